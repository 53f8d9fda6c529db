//! Time zones: how far the clocks are ahead of UTC, and when that changes.
//!
//! A zone is one of the database that is compiled in, or is read from the content of a TZif file. Only times from 1970
//! to the end of 2100 matter. In its last year a named zone has no changes, since the database's tables end before it.

mod posix_rule;
mod tzif;

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::spec::SpecError;

/// Two changes of one named zone are further apart than this since 1970, so that looking at its ends finds each.
const STRIDE_S: i64 = 5 * 86_400;

/// How the clocks of a place are set.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(ZoneRules);

#[derive(Clone, Debug, PartialEq)]
enum ZoneRules {
    Utc,
    Named(Tz),
    /// Offset before the first change, then changes by their time, each to another offset than before.
    Changes {
        first_s: i32,
        changes: Vec<OffsetChange>,
    },
}

/// From a moment on the clocks are so far ahead of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetChange {
    /// Unix time.
    pub(crate) at_s: i64,
    pub(crate) offset_s: i32,
}

impl Zone {
    /// The zone of a name and of the content of a TZif file, which wins if it is not empty. Neither means UTC.
    ///
    /// # Errors
    /// An unknown name, or a content that is no TZif or too large.
    pub fn of(name: &str, tzif: &[u8]) -> Result<Self, SpecError> {
        if !tzif.is_empty() {
            let malformed = || SpecError("malformed time zone information".to_owned());
            let (first_s, changes) = tzif::read(tzif).ok_or_else(malformed)?;
            return Ok(Self(ZoneRules::Changes { first_s, changes: condensed(first_s, changes) }));
        }
        if name.is_empty() || name == "UTC" {
            return Ok(Self(ZoneRules::Utc));
        }
        if name.starts_with(['/', '\\']) || name.split(['/', '\\']).any(|part| part == "..") {
            return Err(SpecError("time: invalid location name".to_owned()));
        }
        let zone = name.parse().map_err(|_unknown| SpecError(format!("unknown time zone {name}")))?;
        Ok(Self(ZoneRules::Named(zone)))
    }

    /// How far the clocks are ahead of UTC at a moment, in seconds.
    pub fn offset_s(&self, unix_s: i64) -> i64 {
        match &self.0 {
            ZoneRules::Utc => 0,
            ZoneRules::Named(zone) => {
                let time = DateTime::from_timestamp(unix_s, 0).unwrap_or_default().naive_utc();
                zone.offset_from_utc_datetime(&time).fix().local_minus_utc().into()
            }
            ZoneRules::Changes { first_s, changes } => {
                let behind = changes.partition_point(|change| change.at_s <= unix_s);
                let offset_s = behind.checked_sub(1).map_or(*first_s, |last| changes[last].offset_s);
                offset_s.into()
            }
        }
    }

    /// The first moment behind `after_s`, and no later than `until_s`, at which the offset is another than before, and the
    /// number of steps that it took to find out.
    pub(crate) fn next_change(&self, after_s: i64, until_s: i64) -> (Option<i64>, u32) {
        match &self.0 {
            ZoneRules::Utc => (None, 1),
            ZoneRules::Changes { changes, .. } => {
                let next = changes.partition_point(|change| change.at_s <= after_s);
                let next = changes.get(next).map(|change| change.at_s);
                (next.filter(|at_s| *at_s <= until_s), 1)
            }
            ZoneRules::Named(_) => self.next_named_change(after_s, until_s),
        }
    }

    fn next_named_change(&self, after_s: i64, until_s: i64) -> (Option<i64>, u32) {
        let offset_s = self.offset_s(after_s);
        let (mut from_s, mut steps) = (after_s, 1);
        while from_s < until_s {
            let mut to_s = from_s.saturating_add(STRIDE_S).min(until_s);
            steps += 1;
            if self.offset_s(to_s) == offset_s {
                from_s = to_s;
                continue;
            }
            while to_s - from_s > 1 {
                let middle_s = from_s.midpoint(to_s);
                if self.offset_s(middle_s) == offset_s { from_s = middle_s } else { to_s = middle_s }
            }
            return (Some(to_s), steps);
        }
        (None, steps)
    }
}

/// Without changes that change nothing.
fn condensed(first_s: i32, mut changes: Vec<OffsetChange>) -> Vec<OffsetChange> {
    let mut before_s = first_s;
    changes.retain(|change| std::mem::replace(&mut before_s, change.offset_s) != change.offset_s);
    changes
}
