//! Moments and spans as they stand in records: seconds and nanoseconds, counted in milliseconds inside.

/// The longest span that is counted; longer ones are cut to it (100 years of 365 days).
pub const DURATION_MS_MAX: i64 = 100 * 365 * 24 * 3_600_000;

/// A moment: seconds and nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Timestamp {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// 0 to 999,999,999, counted forward in time.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Timestamp {
    /// The moment `ms` milliseconds after 1970-01-01 UTC.
    pub fn from_ms(ms: i64) -> Self {
        let nanos = i32::try_from(ms.rem_euclid(1000) * 1_000_000).expect("below one second");
        Self { seconds: ms.div_euclid(1000), nanos }
    }

    /// Milliseconds since 1970-01-01 UTC, rounded down.
    pub fn to_ms(self) -> i64 {
        self.seconds.saturating_mul(1000).saturating_add(i64::from(self.nanos) / 1_000_000)
    }
}

/// A span of time.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Duration {
    /// Whole seconds; of the same sign as `nanos`.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// -999,999,999 to 999,999,999.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Duration {
    /// The span of `ms` milliseconds.
    pub fn from_ms(ms: i64) -> Self {
        let nanos = i32::try_from(ms % 1000 * 1_000_000).expect("below one second");
        Self { seconds: ms / 1000, nanos }
    }

    /// Milliseconds, rounded up so that nothing is ever early, and at most [`DURATION_MS_MAX`].
    pub fn to_ms(self) -> i64 {
        let nanos = i64::from(self.nanos);
        let ms = self.seconds.saturating_mul(1000).saturating_add(nanos.div_euclid(1_000_000));
        let up = i64::from(nanos.rem_euclid(1_000_000) != 0);
        ms.saturating_add(up).clamp(-DURATION_MS_MAX, DURATION_MS_MAX)
    }

    /// Why it is no span of time, where it is none.
    pub fn fault(self) -> Option<&'static str> {
        let is_torn = self.seconds > 0 || self.nanos > 0;
        let why =
            if is_torn { "duration has seconds and nanos with different signs" } else { "negative duration" };
        self.is_negative().then_some(why)
    }

    /// True where it points backward or its parts disagree: never a valid timeout.
    pub fn is_negative(self) -> bool {
        self.seconds < 0 || self.nanos < 0
    }
}

/// Milliseconds of an optional span; 0 where there is none.
pub fn span_ms(span: Option<Duration>) -> i64 {
    span.map_or(0, Duration::to_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_never_gets_shorter_by_being_counted_in_milliseconds() {
        assert_eq!(Duration { seconds: 1, nanos: 1 }.to_ms(), 1001);
        assert_eq!(Duration { seconds: 0, nanos: 1_000_000 }.to_ms(), 1);
        assert_eq!(Duration::from_ms(1234), Duration { seconds: 1, nanos: 234_000_000 });
    }

    #[test]
    fn ten_thousand_years_are_cut_to_a_hundred() {
        assert_eq!(Duration { seconds: 10_000 * 365 * 86_400, nanos: 0 }.to_ms(), DURATION_MS_MAX);
    }

    #[test]
    fn a_moment_before_the_epoch_counts_its_nanoseconds_forward() {
        let moment = Timestamp::from_ms(-1);
        assert_eq!(moment, Timestamp { seconds: -1, nanos: 999_000_000 });
        assert_eq!(moment.to_ms(), -1);
    }
}
