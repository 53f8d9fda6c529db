//! The id of a topic as text, in the form that Kafka's own tools print.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Characters of an id: the last one stands for two bits only.
const CHARACTERS: usize = 22;

/// 22 characters of URL-safe Base64.
pub fn text(id: &[u8; 16]) -> String {
    let number = u128::from_be_bytes(*id);
    let sextet = |at: usize| {
        let bits = if at + 1 < CHARACTERS { number >> (122 - 6 * at) } else { number << 4 };
        char::from(ALPHABET[(bits & 63) as usize])
    };
    (0..CHARACTERS).map(sextet).collect()
}

/// The id that a text stands for, if it does for one.
pub fn parse(text: &str) -> Option<[u8; 16]> {
    if text.len() != CHARACTERS {
        return None;
    }
    let mut number = 0_u128;
    for (at, character) in text.bytes().enumerate() {
        let sextet = ALPHABET.iter().position(|other| *other == character)? as u128;
        if at + 1 < CHARACTERS {
            number = number << 6 | sextet;
        } else if sextet & 15 == 0 {
            number = number << 2 | sextet >> 4;
        } else {
            return None;
        }
    }
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_from_its_text() {
        let ids = [[0; 16], [255; 16], std::array::from_fn(|at| (at * 37 + 11) as u8)];
        for id in ids {
            let text = text(&id);
            assert_eq!((text.len(), parse(&text)), (22, Some(id)), "{text}");
        }
        assert_eq!(text(&[255; 16]), "_____________________w");
        assert_eq!(text(&[0; 16]), "AAAAAAAAAAAAAAAAAAAAAA");
    }

    #[test]
    fn what_is_no_id_is_none() {
        for bad in [
            "",
            "x",
            "AAAAAAAAAAAAAAAAAAAAAAA",
            "AAAAAAAAAAAAAAAAAAAAAB",
            "AAAAAAAAAAAAAAAAAAAAA=",
            "äAAAAAAAAAAAAAAAAAAAA",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
