//! Validates a command: the same limits, with the same texts, as a gRPC call.

use bytes::Bytes;
use everlog_engine::api_types::{ConflictPolicy, Fields, ReusePolicy};
use everlog_engine::machine::memo_and_search_attributes::check_search_attributes;
use everlog_engine::payload::{Payload as EncodedPayload, check_user_metadata};
use everlog_engine::time::DURATION_MS_MAX;
use prost::Message;
use uuid::Uuid;

use crate::command::{Code, CommandLimits, CommandRefusal};
use crate::event::Priority;
use crate::event::fields::EncodedPriority;

/// Prefix of the server's own task queues.
const RESERVED_QUEUE_PREFIX: &str = "/_sys/";

pub(super) fn invalid(reason: impl Into<String>) -> CommandRefusal {
    CommandRefusal::new(Code::InvalidArgument, reason)
}

fn exceeds(bytes: usize, bytes_max: i64) -> bool {
    i64::try_from(bytes).is_ok_and(|bytes| bytes > bytes_max)
}

impl CommandLimits<'_> {
    /// An id or a name that has to be there.
    pub(super) fn id(&self, what: &str, text: &str) -> Result<(), CommandRefusal> {
        if text.is_empty() {
            return Err(invalid(format!("{what} is not set on request.")));
        }
        self.length(what, text)
    }

    /// An id or a name that may be absent.
    pub(super) fn length(&self, what: &str, text: &str) -> Result<(), CommandRefusal> {
        if exceeds(text.len(), self.settings.id_bytes_max) {
            return Err(invalid(format!("{what} length exceeds limit.")));
        }
        Ok(())
    }

    /// A text that may be absent, and longer than an id.
    pub(super) fn text(&self, what: &str, text: &str) -> Result<(), CommandRefusal> {
        if exceeds(text.len(), self.settings.id_bytes_max.saturating_mul(4)) {
            return Err(invalid(format!("{what} exceeds the size limit.")));
        }
        Ok(())
    }

    pub(super) fn task_queue(&self, name: &str) -> Result<(), CommandRefusal> {
        if name.is_empty() {
            return Err(invalid("missing task queue name"));
        }
        if exceeds(name.len(), self.settings.id_bytes_max) {
            return Err(invalid("taskQueue length exceeds limit"));
        }
        if name.starts_with(RESERVED_QUEUE_PREFIX) {
            return Err(invalid(format!(
                "task queue name cannot start with reserved prefix {RESERVED_QUEUE_PREFIX}"
            )));
        }
        Ok(())
    }

    /// A payload field.
    pub(super) fn blob(&self, blob: Option<&Bytes>) -> Result<(), CommandRefusal> {
        if blob.is_some_and(|blob| exceeds(blob.len(), self.settings.blob_bytes_max)) {
            return Err(invalid("Blob data size exceeds limit."));
        }
        Ok(())
    }

    pub(super) fn reason(&self, reason: &str) -> Result<(), CommandRefusal> {
        if exceeds(reason.len(), self.settings.blob_bytes_max) {
            return Err(invalid("Blob data size exceeds limit."));
        }
        Ok(())
    }

    pub(super) fn memo(&self, memo: Option<&Bytes>, keys: usize) -> Result<(), CommandRefusal> {
        let Some(memo) = memo else { return Ok(()) };
        if exceeds(memo.len(), self.settings.memo_bytes_max) {
            return Err(invalid("Memo size exceeds limit."));
        }
        let most = self.settings.memo_keys_max;
        if exceeds(keys, most) {
            return Err(invalid(format!("Memo size exceeds limit. It has more than {most} keys.")));
        }
        Ok(())
    }

    pub(super) fn search_attributes(&self, given: Option<&Bytes>, keys: usize) -> Result<(), CommandRefusal> {
        let Some(given) = given else { return Ok(()) };
        let most = self.settings.search_attributes_max;
        if exceeds(keys, most) {
            return Err(invalid(format!("number of search attributes {keys} exceeds limit {most}")));
        }
        check_search_attributes(given, self.settings).map_err(invalid)?;
        let map =
            Fields::decode(given.clone()).map_err(|_error| invalid("SearchAttributes cannot be read."))?;
        for entry in map.entries {
            let value = EncodedPayload::decode(entry.value);
            if !value.is_ok_and(|value| std::str::from_utf8(&value.data).is_ok()) {
                return Err(invalid(format!("search attribute {} value is not valid UTF-8", entry.key)));
            }
        }
        Ok(())
    }

    pub(super) fn user_metadata(&self, given: Option<&Bytes>) -> Result<(), CommandRefusal> {
        check_user_metadata(given, self.settings).map_err(invalid)
    }

    /// The encoded priority.
    pub(super) fn priority(&self, given: Option<Priority<'_>>) -> Result<Option<Bytes>, CommandRefusal> {
        let Some(given) = given else { return Ok(None) };
        let priority_key = given.priority_key.unwrap_or_default();
        if priority_key < 0 {
            return Err(invalid("priority key can't be negative"));
        }
        let fairness_key = given.fairness_key.unwrap_or_default().into_owned();
        let most = self.settings.fairness_key_bytes_max;
        if most > 0 && exceeds(fairness_key.len(), most) {
            return Err(invalid(format!("fairness key length exceeds limit of {most} bytes")));
        }
        let fairness_weight = given.fairness_weight.unwrap_or_default();
        if !fairness_weight.is_finite() {
            return Err(invalid("fairness weight is not a number"));
        }
        Ok(Some(EncodedPriority { priority_key, fairness_key, fairness_weight }.encode_to_vec().into()))
    }
}

/// A span in ms, 0 where it is absent; beyond 100 years it counts as 100 years.
pub(super) fn span_ms(what: &str, given: Option<i64>) -> Result<i64, CommandRefusal> {
    match given.unwrap_or_default() {
        negative if negative < 0 => {
            Err(invalid(format!("negative duration: An invalid {what} is set on request.")))
        }
        span => Ok(span.min(DURATION_MS_MAX)),
    }
}

/// A run id in its usual form; absent stays empty.
pub(super) fn run_id(what: &str, given: Option<String>) -> Result<String, CommandRefusal> {
    match given {
        None => Ok(String::new()),
        Some(empty) if empty.is_empty() => Ok(empty),
        Some(given) => match Uuid::try_parse(&given) {
            Ok(uuid) => Ok(uuid.to_string()),
            Err(_) => Err(invalid(format!("Invalid {what}."))),
        },
    }
}

/// Which policies there are, and which go together.
pub(super) fn policies(reuse: Option<&str>, conflict: Option<&str>) -> Result<(i32, i32), CommandRefusal> {
    let reuse = match reuse.unwrap_or_default() {
        "" => ReusePolicy::Unspecified,
        "AllowDuplicate" => ReusePolicy::AllowDuplicate,
        "AllowDuplicateFailedOnly" => ReusePolicy::AllowDuplicateFailedOnly,
        "RejectDuplicate" => ReusePolicy::RejectDuplicate,
        "TerminateIfRunning" => ReusePolicy::TerminateIfRunning,
        other => return Err(invalid(format!("unknown reuse_policy: {other:?}"))),
    };
    let conflict = match conflict.unwrap_or_default() {
        "" => ConflictPolicy::Unspecified,
        "Fail" => ConflictPolicy::Fail,
        "UseExisting" => ConflictPolicy::UseExisting,
        "TerminateExisting" => ConflictPolicy::TerminateExisting,
        other => return Err(invalid(format!("unknown conflict_policy: {other:?}"))),
    };
    if reuse == ReusePolicy::TerminateIfRunning && conflict != ConflictPolicy::Unspecified {
        return Err(invalid(
            "invalid WorkflowIdReusePolicy: TerminateIfRunning cannot be used together with a WorkflowIdConflictPolicy",
        ));
    }
    if reuse == ReusePolicy::RejectDuplicate && conflict == ConflictPolicy::TerminateExisting {
        return Err(invalid(
            "invalid WorkflowIdReusePolicy: RejectDuplicate cannot be used together with \
             WorkflowIdConflictPolicy TerminateExisting",
        ));
    }
    Ok((reuse.into(), conflict.into()))
}
