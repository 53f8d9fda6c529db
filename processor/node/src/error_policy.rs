//! What an error of a partition leads to.

use everlog_partition::{Error, RowsFault};

/// What an error of a partition asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorPolicy {
    /// The rows kept beside the log are of no use, or may be to blame: new ones come from it.
    ReplaceRows(RowsFault),
    /// It may pass: take the partition over again in a while.
    Retry,
    /// It cannot go on, see [`End`].
    Fail,
}

impl ErrorPolicy {
    /// `remote`: the log is that of the brokers.
    pub fn of(error: &Error, remote: bool) -> Self {
        use everlog_log::Error as Log;
        match error {
            _ if !remote => Self::Fail,
            Error::Stale { fault, .. } => Self::ReplaceRows(*fault),
            Error::Store(everlog_store::Error::Corrupt { .. }) | Error::Wire(_) => {
                Self::ReplaceRows(RowsFault::Corrupt)
            }
            Error::Log(Log::Unknown { .. } | Log::Busy { .. } | Log::Full { .. } | Log::Io { .. }) => {
                Self::Retry
            }
            Error::Log(_) | Error::Store(_) | Error::Superseded { .. } | Error::Journal { .. } => Self::Fail,
        }
    }
}

/// What becomes of a partition that cannot go on, and that new rows do not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossScope {
    /// It stays closed, here and on any other node: what is in the log keeps it from being served.
    Closed,
    /// It is lost to this node, and may be served by another.
    Lost,
}

impl LossScope {
    /// `remote`: the log is that of the brokers.
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
        for passing in [Log::Unknown { detail: detail() }, Log::Io { detail: detail() }] {
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
