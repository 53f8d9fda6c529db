//! The limits of one namespace or of one identity: calls per second, and long polls in progress. All are off by default.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use everlog_auth::{Principal, PrincipalKind};
use everlog_listen::{Budget, Share};
use everlog_temporal_api::enums::{ResourceExhaustedCause, ResourceExhaustedScope};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use tonic::Status;

use crate::Limits;
use crate::codec::status;
use crate::rpc::Rpc;

/// Identities whose limits are remembered. Beyond it those without a poll in progress are forgotten: each begins anew with a
/// second's worth of calls.
const IDENTITIES_MAX: usize = 10_000;

/// What a limit is of, in the words of its refusals.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LimitScope {
    Namespace,
    Identity,
}

impl LimitScope {
    fn name(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Identity => "identity",
        }
    }

    /// Temporal has no scope for an identity.
    fn scope(self) -> ResourceExhaustedScope {
        match self {
            Self::Namespace => ResourceExhaustedScope::Namespace,
            Self::Identity => ResourceExhaustedScope::Unspecified,
        }
    }
}

/// The limits of one namespace or one identity.
#[derive(Debug)]
pub(crate) struct RateLimit<C: Clock = DefaultClock> {
    scope: LimitScope,
    polls: Option<Vec<Arc<Budget>>>,
    rate: Option<Rate<C>>,
}

/// A rate with a burst of one second.
#[derive(Debug)]
struct Rate<C: Clock> {
    per_second: NonZeroU32,
    limiter: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
}

impl RateLimit {
    /// 0 = no limit.
    pub(crate) fn new(scope: LimitScope, calls_per_second: u32, polls: usize) -> Self {
        Self::with_clock(scope, calls_per_second, polls, DefaultClock::default())
    }
}

impl<C: Clock> RateLimit<C> {
    fn with_clock(scope: LimitScope, calls_per_second: u32, polls: usize, clock: C) -> Self {
        let budgets = || (0..Rpc::COUNT).map(|_| Budget::new(polls)).collect();
        let rate = NonZeroU32::new(calls_per_second).map(|per_second| {
            let quota = Quota::per_second(per_second);
            Rate { per_second, limiter: RateLimiter::direct_with_clock(quota, clock) }
        });
        Self { scope, polls: (polls > 0).then(budgets), rate }
    }

    /// Counts a call.
    pub(crate) fn take_call(&self) -> Result<(), Status> {
        let Some(rate) = &self.rate else { return Ok(()) };
        rate.limiter.check().map_err(|_too_many| {
            let (name, per_second) = (self.scope.name(), rate.per_second);
            let message = format!(
                "{name} rate limit exceeded: {per_second} calls per second (gateway.{name}_calls_per_second)"
            );
            status::exhausted(ResourceExhaustedCause::RpsLimit, self.scope.scope(), message)
        })
    }

    /// A share for a long poll; none if there is no limit.
    pub(crate) fn take_poll(&self, rpc: Rpc) -> Result<Option<Share>, Status> {
        let Some(budgets) = &self.polls else { return Ok(None) };
        let budget = &budgets[rpc as usize];
        budget.take(1).map(Some).ok_or_else(|| {
            let (name, most, rpc) = (self.scope.name(), budget.most(), rpc.name());
            let message = format!(
                "{name} concurrent poller limit exceeded: {most} calls of {rpc} at once (gateway.{name}_polls_max)"
            );
            status::exhausted(ResourceExhaustedCause::ConcurrentLimit, self.scope.scope(), message)
        })
    }

    /// No poll of it is in progress.
    fn is_idle(&self) -> bool {
        self.polls.iter().flatten().all(|budget| budget.held() == 0)
    }
}

/// The limits of identities, by kind and name.
#[derive(Debug)]
pub(crate) struct IdentityLimits {
    calls_per_second: u32,
    polls_max: usize,
    known: Mutex<HashMap<String, Arc<RateLimit>>>,
}

impl IdentityLimits {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            calls_per_second: limits.identity_calls_per_second,
            polls_max: limits.identity_polls_max,
            known: Mutex::default(),
        }
    }

    /// The limits of this identity; none where identities have none, and of the server itself.
    pub(crate) fn of(&self, principal: &Principal) -> Option<Arc<RateLimit>> {
        let is_limited = (self.calls_per_second, self.polls_max) != (0, 0);
        if !is_limited || principal.kind == PrincipalKind::Server {
            return None;
        }
        let name = format!("{}/{}", principal.kind.name(), principal.name);
        let mut known = self.known.lock();
        if known.len() >= IDENTITIES_MAX && !known.contains_key(&name) {
            known.retain(|_, limit| !limit.is_idle());
        }
        let new = || RateLimit::new(LimitScope::Identity, self.calls_per_second, self.polls_max).into();
        Some(Arc::clone(known.entry(name).or_insert_with(new)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use everlog_auth::Grants;
    use governor::clock::FakeRelativeClock;
    use tonic::Code;

    use super::*;

    #[test]
    fn a_rate_grants_a_second_at_once_and_then_one_at_a_time() {
        let clock = FakeRelativeClock::default();
        let rate_limit = RateLimit::with_clock(LimitScope::Namespace, 10, 0, clock.clone());
        assert!((0..10).all(|_| rate_limit.take_call().is_ok()));
        let status = rate_limit.take_call().expect_err("too many");
        assert_eq!(status.code(), Code::ResourceExhausted);
        let message =
            "namespace rate limit exceeded: 10 calls per second (gateway.namespace_calls_per_second)";
        assert_eq!(status.message(), message);
        assert_eq!(status::exhaustion(&status), ("RpsLimit", "Namespace"));
        clock.advance(Duration::from_millis(100));
        assert!(rate_limit.take_call().is_ok());
        assert!(rate_limit.take_call().is_err());
    }

    #[test]
    fn polls_are_counted_by_method() {
        let rate_limit = RateLimit::new(LimitScope::Namespace, 0, 1);
        let _place = rate_limit.take_poll(Rpc::PollWorkflowTaskQueue).expect("free");
        let status = rate_limit.take_poll(Rpc::PollWorkflowTaskQueue).expect_err("taken");
        let message = "namespace concurrent poller limit exceeded: 1 calls of PollWorkflowTaskQueue at once \
                       (gateway.namespace_polls_max)";
        assert_eq!(status.message(), message);
        assert!(rate_limit.take_poll(Rpc::PollActivityTaskQueue).is_ok());
    }

    #[test]
    fn without_limits_nothing_is_turned_away() {
        let rate_limit = RateLimit::new(LimitScope::Namespace, 0, 0);
        assert!((0..10_000).all(|_| rate_limit.take_call().is_ok()));
        assert!(rate_limit.take_poll(Rpc::PollWorkflowTaskQueue).expect("no limit").is_none());
    }

    fn principal(kind: PrincipalKind, name: &str) -> Principal {
        Principal { kind, name: name.into(), grants: Grants::default() }
    }

    #[test]
    fn each_identity_has_limits_of_its_own() {
        let limits = Limits { identity_calls_per_second: 1, ..Limits::default() };
        let identities = IdentityLimits::new(&limits);
        let take = |kind, name| {
            let limit = identities.of(&principal(kind, name)).expect("there are limits");
            limit.take_call().is_ok()
        };
        assert!(take(PrincipalKind::ApiKey, "a") && !take(PrincipalKind::ApiKey, "a"));
        assert!(take(PrincipalKind::ApiKey, "b") && take(PrincipalKind::Jwt, "a"));
        assert!(IdentityLimits::new(&Limits::default()).of(&principal(PrincipalKind::Jwt, "a")).is_none());
    }

    #[test]
    fn identities_without_a_poll_are_forgotten_when_there_are_many() {
        let limits = Limits { identity_polls_max: 1, ..Limits::default() };
        let identities = IdentityLimits::new(&limits);
        let of = |number: usize| {
            identities.of(&principal(PrincipalKind::Jwt, &number.to_string())).expect("there are limits")
        };
        let _poll = of(0).take_poll(Rpc::PollWorkflowTaskQueue).expect("free");
        for number in 1..=IDENTITIES_MAX {
            of(number);
        }
        assert!(identities.known.lock().len() < IDENTITIES_MAX);
        assert!(of(0).take_poll(Rpc::PollWorkflowTaskQueue).is_err(), "its poll is still in progress");
    }
}
