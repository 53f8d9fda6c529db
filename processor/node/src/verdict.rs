//! What an error of a partition leads to.

use everlog_partition::{Error, RowsFault};

/// What an error of a partition asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rows kept beside the log are of no use: new ones come from it.
    Spoiled(RowsFault),
    /// It may pass: take the partition over again in a while.
    Passing,
    /// The node cannot go on.
    Final,
}

impl Verdict {
    /// `remote`: the log is that of the brokers.
    pub fn of(error: &Error, remote: bool) -> Self {
        use everlog_log::Error as Log;
        match error {
            _ if !remote => Self::Final,
            Error::Stale { fault, .. } => Self::Spoiled(*fault),
            Error::Store(everlog_store::Error::Corrupt { .. }) => Self::Spoiled(RowsFault::Corrupt),
            Error::Log(Log::Unknown { .. } | Log::Busy { .. } | Log::Full { .. } | Log::Io { .. }) => {
                Self::Passing
            }
            Error::Log(_)
            | Error::Store(_)
            | Error::Wire(_)
            | Error::Superseded { .. }
            | Error::Journal { .. } => Self::Final,
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
            assert_eq!(Verdict::of(&error, true), Verdict::Passing, "{error}");
            assert_eq!(Verdict::of(&error, false), Verdict::Final, "{error}");
        }
        assert_eq!(Verdict::of(&stale(), true), Verdict::Spoiled(fault));
        assert_eq!(Verdict::of(&stale(), false), Verdict::Final);
        for last in [
            Error::Superseded { partition: 0, node: "other".into() },
            Error::Log(Log::Closed),
            Error::Store(everlog_store::Error::Io { detail: detail() }),
            Error::Journal { partition: 0, detail: detail() },
        ] {
            assert_eq!(Verdict::of(&last, true), Verdict::Final, "{last}");
        }
    }
}
