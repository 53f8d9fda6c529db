//! The header `authorization`: one value, `Bearer TOKEN`.

use crate::api_keys::KEY_PREFIX;
use crate::error::{DenialClass, Unidentified};

/// A longer value is refused before anything is done with it. Tokens of large directories have 8 KiB.
const VALUE_BYTES_MAX: usize = 16 << 10;
const SCHEME: &str = "bearer";

/// What the header has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bearer<'a> {
    /// One of our API keys.
    ApiKey(&'a str),
    /// What has the form of a JWT: three parts between dots.
    Jwt(&'a str),
}

/// Reads all values of the header; none where there is none.
pub(crate) fn read<'a>(values: &[&'a [u8]]) -> Result<Option<Bearer<'a>>, Unidentified> {
    let denied = |reason: &str| Err(Unidentified::denied(DenialClass::Header, reason));
    let value = match values {
        [] => return Ok(None),
        [value] => *value,
        _ => return denied("there is more than one header authorization"),
    };
    if value.len() > VALUE_BYTES_MAX {
        return denied("the header authorization is longer than 16 KiB");
    }
    let Some((scheme, token)) = std::str::from_utf8(value).ok().and_then(|value| value.split_once(' '))
    else {
        return denied("the header authorization is not \"Bearer TOKEN\"");
    };
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return denied("the scheme of the header authorization is not Bearer");
    }
    let token = token.trim_start_matches(' ');
    if !is_token(token) {
        return denied("the header authorization has a token with characters that no token has");
    }
    if token.starts_with(KEY_PREFIX) {
        return Ok(Some(Bearer::ApiKey(token)));
    }
    if token.split('.').count() == 3 && token.split('.').all(|part| !part.is_empty()) {
        return Ok(Some(Bearer::Jwt(token)));
    }
    denied("the token is neither an API key nor a JWT")
}

/// `b64token` of RFC 6750.
fn is_token(token: &str) -> bool {
    let is_of_token =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
    let stem = token.trim_end_matches('=');
    !stem.is_empty() && stem.bytes().all(is_of_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(values: &[&[u8]]) -> Result<&'static str, String> {
        match read(values) {
            Ok(None) => Ok("none"),
            Ok(Some(Bearer::ApiKey(_))) => Ok("key"),
            Ok(Some(Bearer::Jwt(_))) => Ok("jwt"),
            Err(Unidentified::Denied(DenialClass::Header, reason)) => Err(reason),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_is_known_by_its_prefix_and_a_token_by_its_form() {
        assert_eq!(kind(&[]), Ok("none"));
        for (value, expected) in [
            ("Bearer elk_abc", "key"),
            ("bearer elk_abc", "key"),
            ("BEARER  elk_a.b.c", "key"),
            ("bEaReR a.b.c", "jwt"),
            ("Bearer a-_.b+/.c~==", "jwt"),
        ] {
            assert_eq!(kind(&[value.as_bytes()]), Ok(expected), "{value}");
        }
    }

    #[test]
    fn every_other_header_is_denied() {
        for value in [
            "",
            " ",
            "Bearer",
            "Bearer ",
            "Bearer  ",
            "elk_abc",
            "a.b.c",
            "Basic YTpi",
            "Bearer: elk_abc",
            " Bearer elk_abc",
            "Bearer\telk_abc",
            "Bearer elk_abc ",
            "Bearer elk_abc, Bearer elk_def",
            "Bearer elk_abc elk_def",
            "Bearer a.b.c a.b.c",
            "Bearer a.b.c,a.b.c",
            "Bearer elk_\u{0}abc",
            "Bearer elk_abc\r\nx: y",
            "Bearer elk_ä",
            "Bearer abc",
            "Bearer a.b",
            "Bearer a.b.c.d",
            "Bearer a..c",
            "Bearer .b.c",
            "Bearer a.b.",
            "Bearer ===",
        ] {
            assert!(kind(&[value.as_bytes()]).is_err(), "{value:?}");
        }
        assert!(kind(&[b"Bearer elk_\xff"]).is_err());
        assert!(
            kind(&[b"Bearer elk_abc", b"Bearer elk_abc"]).is_err_and(|why| why.contains("more than one"))
        );
        assert!(kind(&[b"", b""]).is_err());
    }

    #[test]
    fn a_long_header_is_denied_and_one_of_16_kib_is_read() {
        let value = |length: usize| format!("Bearer elk_{}", "a".repeat(length - "Bearer elk_".len()));
        assert_eq!(kind(&[value(16 << 10).as_bytes()]), Ok("key"));
        assert!(kind(&[value((16 << 10) + 1).as_bytes()]).is_err_and(|why| why.contains("16 KiB")));
        assert!(kind(&[value(1 << 20).as_bytes()]).is_err());
    }
}
