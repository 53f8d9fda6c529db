//! What a node does about an error of a partition: replace its rows, retry, or give the partition up.

use everlog_partition::{Error, RowsFault};

/// What an error of a partition asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorPolicy {
    /// The rows beside the log are of no use, or may be the cause: they are replaced by new ones from the log.
    ReplaceRows(RowsFault),
    /// The error may go away by itself: the partition is taken over again after a pause.
    Retry,
    /// The partition fails, see [`LossScope`].
    Fail,
}

impl ErrorPolicy {
    /// `remote`: the log is on Kafka.
    pub fn of(error: &Error, remote: bool) -> Self {
        use everlog_log::Error as Log;
        match error {
            _ if !remote => Self::Fail,
            Error::Stale { fault, .. } => Self::ReplaceRows(*fault),
            Error::Store(everlog_store::Error::Corrupt { .. }) | Error::Wire(_) => {
                Self::ReplaceRows(RowsFault::Corrupt)
            }
            Error::Log(
                Log::Unknown { .. }
                | Log::Busy { .. }
                | Log::Full { .. }
                | Log::Io { .. }
                | Log::Denied { .. },
            ) => Self::Retry,
            Error::Log(_) | Error::Store(_) | Error::Superseded { .. } | Error::Journal { .. } => Self::Fail,
        }
    }
}

/// Where a failed partition could still be served, when new rows do not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossScope {
    /// Nowhere: because of what is in the log it stays closed at every node.
    Closed,
    /// At another node.
    Lost,
}

impl LossScope {
    /// `remote`: the log is on Kafka.
    pub fn of(error: &Error, remote: bool) -> Self {
        use everlog_log::Error as Log;
        match error {
            _ if !remote => Self::Lost,
            Error::Stale { .. }
            | Error::Wire(_)
            | Error::Journal { .. }
            | Error::Log(Log::OutOfRange { .. } | Log::Refused { .. } | Log::Corrupt { .. }) => Self::Closed,
            Error::Log(_) | Error::Store(_) | Error::Superseded { .. } => Self::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_remote_log_may_get_over_is_tried_again() {
        use everlog_log::Error as Log;
        let detail = || "no broker".to_owned();
        let fault = RowsFault::Ahead;
        let stale = || Error::Stale { partition: 0, fault, detail: detail() };
        let denied = Log::Denied { detail: detail(), fix: detail() };
        for passing in [Log::Unknown { detail: detail() }, Log::Io { detail: detail() }, denied] {
            let error = Error::Log(passing);
            assert_eq!(ErrorPolicy::of(&error, true), ErrorPolicy::Retry, "{error}");
            assert_eq!(ErrorPolicy::of(&error, false), ErrorPolicy::Fail, "{error}");
        }
        assert_eq!(ErrorPolicy::of(&stale(), true), ErrorPolicy::ReplaceRows(fault));
        assert_eq!(ErrorPolicy::of(&stale(), false), ErrorPolicy::Fail);
        for last in [
            Error::Superseded { partition: 0, node: "other".into() },
            Error::Log(Log::Closed),
            Error::Store(everlog_store::Error::Io { detail: detail() }),
        ] {
            assert_eq!(ErrorPolicy::of(&last, true), ErrorPolicy::Fail, "{last}");
        }
        let unreadable = || Error::Wire(everlog_wire::Error::Decode { what: "a record", detail: detail() });
        assert_eq!(ErrorPolicy::of(&unreadable(), true), ErrorPolicy::ReplaceRows(RowsFault::Corrupt));
        let journal = Error::Journal { partition: 0, detail: detail() };
        let gone = Error::Log(Log::OutOfRange { partition: 0, wanted: 1, start: 2, end: 3 });
        for closed in [stale(), unreadable(), journal, gone] {
            assert_eq!(LossScope::of(&closed, true), LossScope::Closed, "{closed}");
            assert_eq!(LossScope::of(&closed, false), LossScope::Lost, "{closed}");
        }
        let disk = Error::Store(everlog_store::Error::Io { detail: detail() });
        assert_eq!(LossScope::of(&disk, true), LossScope::Lost, "another node has another disk");
    }
}
