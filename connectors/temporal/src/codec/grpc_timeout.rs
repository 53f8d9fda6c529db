//! The timeout of a call, in the header `grpc-timeout`.

use std::time::Duration;

use tonic::codegen::http::HeaderMap;

/// The caller's timeout; none if it sets none.
pub(crate) fn of(headers: &HeaderMap) -> Option<Duration> {
    duration(headers.get("grpc-timeout")?.to_str().ok()?)
}

/// Parses a timeout: one to eight digits and a unit.
fn duration(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3_600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _unknown_unit => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", text.parse().expect("ASCII"));
        of(&headers)
    }

    #[test]
    fn a_deadline_is_read_in_every_unit() {
        assert_eq!(read("30000000u"), Some(Duration::from_secs(30)));
        assert_eq!(read("70S"), Some(Duration::from_secs(70)));
        assert_eq!(read("2M"), Some(Duration::from_secs(120)));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!(read("5m"), Some(Duration::from_millis(5)));
        assert_eq!(read("7n"), Some(Duration::from_nanos(7)));
    }

    #[test]
    fn what_is_no_deadline_is_none() {
        for text in ["", "S", "10", "10s", "-1S", "+1S", "123456789S", "1.5S"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(of(&HeaderMap::new()), None);
    }
}
