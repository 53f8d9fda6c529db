//! The limits of one namespace: calls per second, and long polls in progress. Both are off by default.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use everlog_listen::{Budget, Share};
use everlog_temporal_api::enums::{ResourceExhaustedCause, ResourceExhaustedScope};
use tonic::Status;

use crate::codec::status;
use crate::rpc::Rpc;

/// The limits of one namespace.
#[derive(Debug)]
pub(crate) struct RateLimit {
    polls: Option<Vec<Arc<Budget>>>,
    rate: Option<Rate>,
}

impl RateLimit {
    /// 0 = no limit.
    pub(crate) fn new(calls_per_second: u32, polls: usize) -> Self {
        let gates = || (0..Rpc::COUNT).map(|_| Budget::new(polls)).collect();
        Self {
            polls: (polls > 0).then(gates),
            rate: (calls_per_second > 0).then(|| Rate::new(calls_per_second)),
        }
    }

    /// Counts a call.
    pub(crate) fn take_call(&self, now: Instant) -> Result<(), Status> {
        match &self.rate {
            Some(rate) if !rate.take(now) => {
                let (cause, scope) = (ResourceExhaustedCause::RpsLimit, ResourceExhaustedScope::Namespace);
                Err(status::exhausted(cause, scope, "namespace rate limit exceeded"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A share for a long poll; none if there is no limit.
    pub(crate) fn take_poll(&self, rpc: Rpc) -> Result<Option<Share>, Status> {
        let Some(gates) = &self.polls else { return Ok(None) };
        let place = gates[rpc as usize].take(1);
        place.map(Some).ok_or_else(|| {
            let (cause, scope) = (ResourceExhaustedCause::ConcurrentLimit, ResourceExhaustedScope::Namespace);
            status::exhausted(cause, scope, "namespace concurrent poller limit exceeded")
        })
    }
}

/// A rate with a burst of one second.
#[derive(Debug)]
struct Rate {
    began: Instant,
    gap_ns: u64,
    /// When the next call would be due if calls were evenly spaced, in ns since `began`.
    next_ns: AtomicU64,
}

const BURST_NS: u64 = 1_000_000_000;

impl Rate {
    fn new(per_second: u32) -> Self {
        let gap_ns = BURST_NS / u64::from(per_second);
        Self { began: Instant::now(), gap_ns, next_ns: AtomicU64::new(0) }
    }

    fn take(&self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.began).as_nanos();
        let now_ns = u64::try_from(since).unwrap_or(u64::MAX - 2 * BURST_NS);
        let taken = self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next_ns| {
            let next_ns = next_ns.max(now_ns) + self.gap_ns;
            (next_ns <= now_ns + BURST_NS).then_some(next_ns)
        });
        taken.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic::Code;

    use super::*;

    #[test]
    fn a_rate_grants_a_second_at_once_and_then_one_at_a_time() {
        let (rate_limit, made) = (RateLimit::new(10, 0), Instant::now());
        let now = made + Duration::from_secs(1);
        assert!((0..10).all(|_| rate_limit.take_call(now).is_ok()));
        let status = rate_limit.take_call(now).expect_err("too many");
        assert_eq!(
            (status.code(), status.message()),
            (Code::ResourceExhausted, "namespace rate limit exceeded")
        );
        assert_eq!(status::exhaustion(&status), ("RpsLimit", "Namespace"));
        assert!(rate_limit.take_call(now + Duration::from_millis(100)).is_ok());
        assert!(rate_limit.take_call(now + Duration::from_millis(100)).is_err());
    }

    #[test]
    fn polls_are_counted_by_method() {
        let rate_limit = RateLimit::new(0, 1);
        let _place = rate_limit.take_poll(Rpc::PollWorkflowTaskQueue).expect("free");
        let status = rate_limit.take_poll(Rpc::PollWorkflowTaskQueue).expect_err("taken");
        assert_eq!(status.message(), "namespace concurrent poller limit exceeded");
        assert!(rate_limit.take_poll(Rpc::PollActivityTaskQueue).is_ok());
    }

    #[test]
    fn without_limits_nothing_is_turned_away() {
        let rate_limit = RateLimit::new(0, 0);
        let now = Instant::now();
        assert!((0..10_000).all(|_| rate_limit.take_call(now).is_ok()));
        assert!(rate_limit.take_poll(Rpc::PollWorkflowTaskQueue).expect("no limit").is_none());
    }
}
