//! Strings within keys: escaped and ended, so that the order of the keys is that of the strings, and none is the beginning
//! of another.

/// Zero is written as zero and this.
const ESCAPED: u8 = 0xff;
/// Zero and this stand behind the last byte.
const END: u8 = 0x01;

/// Appends a string.
pub(crate) fn escaped(text: &[u8], key: &mut Vec<u8>) {
    unended(text, key);
    key.extend_from_slice(&[0, END]);
}

/// Appends a string of which only the beginning is known.
pub(crate) fn unended(text: &[u8], key: &mut Vec<u8>) {
    if !text.contains(&0) {
        key.extend_from_slice(text);
        return;
    }
    for byte in text {
        key.push(*byte);
        if *byte == 0 {
            key.push(ESCAPED);
        }
    }
}

/// The string at the beginning, and what stands behind it; none where there is no end.
pub(crate) fn read(key: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut text = Vec::new();
    let mut rest = key;
    loop {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        text.extend_from_slice(&rest[..zero]);
        let mark = *rest.get(zero + 1)?;
        rest = &rest[zero + 2..];
        match mark {
            END => return Some((text, rest)),
            ESCAPED => text.push(0),
            _other => return None,
        }
    }
}

/// What stands behind the string at the beginning; none where there is no end.
pub(crate) fn skip(key: &[u8]) -> Option<&[u8]> {
    let mut rest = key;
    loop {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        let mark = *rest.get(zero + 1)?;
        rest = &rest[zero + 2..];
        match mark {
            END => return Some(rest),
            ESCAPED => {}
            _other => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_sort_in_keys_as_they_are() {
        let texts: Vec<Vec<u8>> = (0..=3)
            .flat_map(|length| {
                (0..5_usize.pow(length)).map(move |mut number| {
                    let digit = |number: &mut usize| {
                        let byte = [0, 1, 2, 0xfe, 0xff][*number % 5];
                        *number /= 5;
                        byte
                    };
                    (0..length).map(|_| digit(&mut number)).collect()
                })
            })
            .collect();
        let key = |text: &[u8]| {
            let mut key = Vec::new();
            escaped(text, &mut key);
            key
        };
        for one in &texts {
            let own = key(one);
            assert_eq!(read(&[&own[..], b"rest"].concat()), Some((one.clone(), &b"rest"[..])));
            assert_eq!(skip(&[&own[..], b"rest"].concat()), Some(&b"rest"[..]));
            for other in &texts {
                assert_eq!(own.cmp(&key(other)), one.cmp(other), "{one:?} {other:?}");
                assert!(one == other || !key(other).starts_with(&own), "{one:?} {other:?}");
                let mut beginning = Vec::new();
                unended(other, &mut beginning);
                assert_eq!(own.starts_with(&beginning), one.starts_with(other), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_string_without_an_end_is_none() {
        for bad in [&b""[..], b"a", b"a\0", b"a\0\x02", b"a\0\xff"] {
            assert_eq!((read(bad), skip(bad)), (None, None), "{bad:?}");
        }
    }
}
