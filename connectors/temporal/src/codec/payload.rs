//! Payloads of a request: their limits, and copies of those that are stored.

use bytes::Bytes;
use everlog_engine::machine::memo_and_search_attributes::check_search_attributes;
use everlog_engine::payload::{Payload, check_priority, check_user_metadata};
use prost::Message;
use tonic::Status;

use crate::codec::proto_map::entries;
use crate::codec::status::invalid;
use crate::codec::validation::{Checks, exceeds};

impl Checks<'_> {
    /// A payload field.
    pub(crate) fn blob(&self, blob: Option<&Bytes>) -> Result<(), Status> {
        if self.is_oversize(blob) {
            return Err(invalid("Blob data size exceeds limit."));
        }
        Ok(())
    }

    pub(crate) fn is_oversize(&self, blob: Option<&Bytes>) -> bool {
        blob.is_some_and(|blob| exceeds(blob.len(), self.settings.blob_bytes_max))
    }

    pub(crate) fn memo(&self, memo: Option<&Bytes>) -> Result<(), Status> {
        let Some(memo) = memo else { return Ok(()) };
        if exceeds(memo.len(), self.settings.memo_bytes_max) {
            return Err(invalid("Memo size exceeds limit."));
        }
        let mut keys = 0;
        for entry in entries(memo) {
            entry.map_err(|_malformed| invalid("Memo cannot be read."))?;
            keys += 1;
        }
        let keys_max = self.settings.memo_keys_max;
        if keys > keys_max {
            return Err(invalid(format!("Memo size exceeds limit. It has more than {keys_max} keys.")));
        }
        Ok(())
    }

    pub(crate) fn search_attributes(&self, given: Option<&Bytes>) -> Result<(), Status> {
        let Some(given) = given else { return Ok(()) };
        // Counted before they take memory.
        let (count, most) = (entries(given).count(), self.settings.search_attributes_max);
        if i64::try_from(count).is_ok_and(|count| count > most) {
            return Err(invalid(format!("number of search attributes {count} exceeds limit {most}")));
        }
        check_search_attributes(given, self.settings).map_err(invalid)?;
        for entry in entries(given).flatten() {
            let value = Payload::decode(entry.value);
            if !value.is_ok_and(|value| std::str::from_utf8(&value.data).is_ok()) {
                return Err(invalid(format!("search attribute {} value is not valid UTF-8", entry.key)));
            }
        }
        Ok(())
    }

    pub(crate) fn user_metadata(&self, given: Option<&Bytes>) -> Result<(), Status> {
        check_user_metadata(given, self.settings).map_err(invalid)
    }

    pub(crate) fn links(&self, links: &[Bytes]) -> Result<(), Status> {
        if links.len() > self.limits.links_max {
            let (most, count) = (self.limits.links_max, links.len());
            return Err(invalid(format!("cannot attach more than {most} links per request, got {count}")));
        }
        if let Some(link) = links.iter().find(|link| link.len() > self.limits.link_bytes_max) {
            let (most, bytes) = (self.limits.link_bytes_max, link.len());
            return Err(invalid(format!("link exceeds allowed size of {most}, got {bytes}")));
        }
        Ok(())
    }

    pub(crate) fn priority(&self, given: Option<&Bytes>) -> Result<(), Status> {
        check_priority(given, self.settings).map_err(invalid)
    }
}

/// Copies bytes that are stored. The bytes of a request share one buffer, which a stored field would keep in memory as a whole.
pub(crate) fn stored_copy(bytes: Option<Bytes>) -> Option<Bytes> {
    bytes.map(|bytes| Bytes::copy_from_slice(&bytes))
}

#[cfg(test)]
mod tests {
    use everlog_engine::Settings;
    use everlog_engine::api_types::{Fields, MapEntry};
    use everlog_engine::payload::UserMetadata;
    use everlog_temporal_api::common::Priority;
    use tonic::Code;

    use super::*;
    use crate::limits::Limits;

    fn with_checks<T>(test: impl FnOnce(Checks<'_>) -> T) -> T {
        let (limits, settings) = (Limits::default(), Settings::standard());
        test(Checks { limits: &limits, settings: &settings })
    }

    fn refusal<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
        let status = result.expect_err("it has to be refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    }

    #[test]
    fn payloads_have_a_limit() {
        with_checks(|checks| {
            let large = Bytes::from(vec![0; (2 << 20) + 1]);
            assert_eq!(refusal(checks.blob(Some(&large))), "Blob data size exceeds limit.");
            assert_eq!(refusal(checks.memo(Some(&large))), "Memo size exceeds limit.");
            assert!(checks.blob(Some(&large.slice(1..))).is_ok());
            assert!(checks.blob(None).is_ok());
        });
    }

    fn attributes(entries: usize, data: &[u8]) -> Bytes {
        let value = Payload { metadata: Vec::new(), data: Bytes::copy_from_slice(data) }.encode_to_vec();
        let entry = |number| MapEntry { key: format!("Key{number}"), value: value.clone().into() };
        Fields { entries: (0..entries).map(entry).collect() }.encode_to_vec().into()
    }

    /// One attribute that is exactly so long as it is sent, nearly all of it metadata, which its value goes without.
    fn attributes_of(encoded_bytes: usize) -> Bytes {
        let padded = |bytes: usize| {
            let padding = MapEntry { key: "padding".into(), value: vec![b'x'; bytes].into() };
            let value = Payload { metadata: vec![padding], data: Bytes::from_static(b"1") };
            let entry = MapEntry { key: "Key".into(), value: value.encode_to_vec().into() };
            Bytes::from(Fields { entries: vec![entry] }.encode_to_vec())
        };
        let around = padded(encoded_bytes).len() - encoded_bytes;
        padded(encoded_bytes - around)
    }

    #[test]
    fn search_attributes_have_limits_of_their_own() {
        with_checks(|checks| {
            assert!(checks.search_attributes(Some(&attributes(100, b"1"))).is_ok());
            assert!(
                refusal(checks.search_attributes(Some(&attributes(101, b"1"))))
                    .starts_with("number of search")
            );
            assert!(checks.search_attributes(Some(&attributes(1, &[b'x'; 2_048]))).is_ok());
            let large = refusal(checks.search_attributes(Some(&attributes(1, &[b'x'; 2_049]))));
            assert_eq!(large, "search attribute Key0 value size 2049 exceeds size limit 2048");
            assert!(checks.search_attributes(Some(&attributes_of(40_960))).is_ok());
            let total = refusal(checks.search_attributes(Some(&attributes_of(40_961))));
            assert_eq!(total, "total size of search attributes 40961 exceeds size limit 40960");
            let bytes = refusal(checks.search_attributes(Some(&attributes(1, b"\xff"))));
            assert_eq!(bytes, "search attribute Key0 value is not valid UTF-8");
        });
    }

    #[test]
    fn user_metadata_is_for_a_line_and_a_page() {
        let metadata = |summary: usize, details: usize| {
            let part = |bytes| Some(Bytes::from(vec![b'x'; bytes]));
            let metadata = UserMetadata { summary: part(summary), details: part(details) };
            Bytes::from(metadata.encode_to_vec())
        };
        with_checks(|checks| {
            assert!(checks.user_metadata(Some(&metadata(400, 20_000))).is_ok());
            assert!(
                refusal(checks.user_metadata(Some(&metadata(401, 0)))).starts_with("UserMetadata.Summary")
            );
            assert!(
                refusal(checks.user_metadata(Some(&metadata(0, 20_001)))).starts_with("UserMetadata.Details")
            );
        });
    }

    #[test]
    fn links_are_few_and_short() {
        with_checks(|checks| {
            assert!(checks.links(&vec![Bytes::from_static(b"x"); 10]).is_ok());
            assert!(
                refusal(checks.links(&vec![Bytes::new(); 11]))
                    .starts_with("cannot attach more than 10 links")
            );
            assert!(
                refusal(checks.links(&[vec![b'x'; 4_001].into()])).starts_with("link exceeds allowed size")
            );
        });
    }

    #[test]
    fn priorities_are_not_negative_and_fairness_keys_are_short() {
        let priority = |priority_key, key: &str| {
            Bytes::from(
                Priority { priority_key, fairness_key: key.into(), fairness_weight: 1.0 }.encode_to_vec(),
            )
        };
        with_checks(|checks| {
            assert!(checks.priority(Some(&priority(3, &"k".repeat(64)))).is_ok());
            assert_eq!(refusal(checks.priority(Some(&priority(-1, "")))), "PriorityKey can't be negative");
            let long = checks.priority(Some(&priority(0, &"k".repeat(65))));
            assert_eq!(refusal(long), "FairnessKey length exceeds limit");
            let light = Priority { fairness_weight: -1.0, ..Priority::default() }.encode_to_vec().into();
            assert_eq!(refusal(checks.priority(Some(&light))), "FairnessWeight can't be negative");
        });
    }
}
