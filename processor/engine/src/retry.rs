//! Retries: whether a failed attempt is followed by another, and when.

use bytes::Bytes;
use prost::Message;

use crate::api_types::{RetryPolicy, RetryState, TimeoutType};
use crate::failure::{Failure, Info};
use crate::time::{DURATION_MS_MAX, Duration, span_ms};

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Another attempt after this wait.
    Again {
        /// Wait in ms.
        delay_ms: i64,
    },
    /// The failure is final, and why.
    Final(RetryState),
}

/// An attempt that failed.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The policy in force, with all its defaults filled in.
    pub policy: &'a RetryPolicy,
    /// The attempt that failed, from 1.
    pub number: i32,
    /// When it failed.
    pub now_ms: i64,
    /// When all attempts must be over; 0 = never.
    pub expires_ms: i64,
    /// Its failure, opaque, if the worker gave one.
    pub failure: Option<&'a Bytes>,
    /// A wait that the failure asks for is no longer than the policy's longest (of workflows), or takes its place (of
    /// activities).
    pub asked_within_policy: bool,
}

/// Decides whether there is another attempt.
pub fn verdict(attempt: Attempt<'_>) -> Verdict {
    let Ok(failure) = Failure::decode(attempt.failure.cloned().unwrap_or_default()) else {
        return Verdict::Final(RetryState::NonRetryableFailure);
    };
    if is_final(&failure, attempt.policy) {
        return Verdict::Final(RetryState::NonRetryableFailure);
    }
    let attempts_max = attempt.policy.maximum_attempts;
    if attempts_max > 0 && attempt.number >= attempts_max {
        return Verdict::Final(RetryState::MaximumAttemptsReached);
    }
    let delay_ms = match asked_delay_ms(&failure) {
        Some(asked_ms) if attempt.asked_within_policy => within_longest(asked_ms, attempt.policy),
        Some(asked_ms) => asked_ms,
        None => interval_ms(attempt.policy, attempt.number),
    };
    if attempt.expires_ms > 0 && attempt.now_ms.saturating_add(delay_ms) > attempt.expires_ms {
        return Verdict::Final(RetryState::Timeout);
    }
    Verdict::Again { delay_ms }
}

fn is_final(failure: &Failure, policy: &RetryPolicy) -> bool {
    let named = |name: &str| policy.non_retryable_error_types.iter().any(|known| known == name);
    match &failure.info {
        None => false,
        Some(Info::Canceled(_) | Info::Terminated(_)) => true,
        Some(Info::Server(server)) => server.non_retryable,
        Some(Info::Application(application)) => application.non_retryable || named(&application.r#type),
        Some(Info::Timeout(timeout)) => match TimeoutType::try_from(timeout.timeout_type) {
            Ok(TimeoutType::StartToClose) => named("TemporalTimeout:StartToClose"),
            Ok(TimeoutType::Heartbeat) => named("TemporalTimeout:Heartbeat"),
            Ok(TimeoutType::Unspecified | TimeoutType::ScheduleToStart | TimeoutType::ScheduleToClose)
            | Err(_) => true,
        },
    }
}

fn asked_delay_ms(failure: &Failure) -> Option<i64> {
    match &failure.info {
        Some(Info::Application(application)) => {
            application.next_retry_delay.map(|delay| delay.to_ms().max(0))
        }
        Some(Info::Canceled(_) | Info::Terminated(_) | Info::Server(_) | Info::Timeout(_)) | None => None,
    }
}

/// A wait of no length counts as none that was asked for, and so as the longest, as on Temporal's server.
fn within_longest(asked_ms: i64, policy: &RetryPolicy) -> i64 {
    match (asked_ms, span_ms(policy.maximum_interval)) {
        (asked_ms, 0) => asked_ms,
        (0, longest_ms) => longest_ms,
        (asked_ms, longest_ms) => asked_ms.min(longest_ms),
    }
}

/// The wait after attempt `number`: the first interval, grown by the coefficient with each attempt, up to the longest.
/// Multiplications only: they give the same bits on every machine, however many attempts there were.
pub(crate) fn interval_ms(policy: &RetryPolicy, number: i32) -> i64 {
    let longest_ms = match span_ms(policy.maximum_interval) {
        0 => DURATION_MS_MAX,
        ms => ms,
    };
    let mut wait_ms = span_ms(policy.initial_interval) as f64;
    let mut factor = policy.backoff_coefficient;
    let mut times = number.saturating_sub(1).max(0);
    while times > 0 {
        if times % 2 == 1 {
            wait_ms *= factor;
        }
        factor *= factor;
        times /= 2;
    }
    (wait_ms as i64).clamp(0, longest_ms)
}

/// The policy of an activity with its defaults filled in: without one it is tried again for ever.
///
/// # Errors
/// What is wrong with it, in words.
pub fn normalized(policy: Option<&RetryPolicy>) -> Result<RetryPolicy, String> {
    let mut policy = policy.cloned().unwrap_or_default();
    if span_ms(policy.initial_interval) == 0 {
        policy.initial_interval = Some(Duration::from_ms(1000));
    }
    if policy.backoff_coefficient == 0.0 {
        policy.backoff_coefficient = 2.0;
    }
    if span_ms(policy.maximum_interval) == 0 {
        let longest_ms = span_ms(policy.initial_interval).saturating_mul(100).min(DURATION_MS_MAX);
        policy.maximum_interval = Some(Duration::from_ms(longest_ms));
    }
    check(&policy)?;
    Ok(policy)
}

/// The policy of a workflow with its defaults filled in: without one it is not tried again.
///
/// # Errors
/// What is wrong with it, in words.
pub fn of_workflow(policy: Option<&RetryPolicy>) -> Result<Option<RetryPolicy>, String> {
    policy.map(|policy| normalized(Some(policy))).transpose()
}

/// A single attempt needs no waits: then nothing but a number that is none is refused.
fn check(policy: &RetryPolicy) -> Result<(), String> {
    if !policy.backoff_coefficient.is_finite() {
        return Err("BackoffCoefficient must be a number on retry policy.".into());
    }
    if policy.maximum_attempts == 1 {
        return Ok(());
    }
    let forward = |name: &str, span: Option<Duration>| match span.and_then(Duration::fault) {
        Some(why) => Err(format!("invalid {name} set on retry policy: {why}")),
        None => Ok(()),
    };
    forward("InitialInterval", policy.initial_interval)?;
    if policy.backoff_coefficient < 1.0 {
        return Err("BackoffCoefficient cannot be less than 1 on retry policy.".into());
    }
    forward("MaximumInterval", policy.maximum_interval)?;
    if span_ms(policy.maximum_interval) < span_ms(policy.initial_interval) {
        return Err("MaximumInterval cannot be less than InitialInterval on retry policy.".into());
    }
    if policy.maximum_attempts < 0 {
        return Err("MaximumAttempts cannot be negative on retry policy.".into());
    }
    for name in &policy.non_retryable_error_types {
        if let Some(timeout) = name.strip_prefix("TemporalTimeout:")
            && !matches!(timeout, "StartToClose" | "ScheduleToStart" | "ScheduleToClose" | "Heartbeat")
        {
            return Err(format!("Invalid timeout type value: {timeout}."));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Application;

    fn application(r#type: &str, delay_ms: Option<i64>) -> Bytes {
        let next_retry_delay = delay_ms.map(Duration::from_ms);
        let info = Application { r#type: r#type.into(), non_retryable: false, next_retry_delay };
        Failure { info: Some(Info::Application(info)), ..Failure::default() }.encode_to_vec().into()
    }

    fn after(policy: &RetryPolicy, number: i32, failure: &Bytes) -> Verdict {
        verdict(Attempt {
            policy,
            number,
            now_ms: 1_000_000,
            expires_ms: 0,
            failure: Some(failure),
            asked_within_policy: false,
        })
    }

    #[test]
    fn waits_double_up_to_a_hundred_times_the_first() {
        let policy = normalized(None).expect("the default is valid");
        let waits: Vec<_> = (1..10).map(|number| after(&policy, number, &application("E", None))).collect();
        let expected = [1, 2, 4, 8, 16, 32, 64, 100, 100].map(|s| Verdict::Again { delay_ms: s * 1000 });
        assert_eq!(waits, expected);
    }

    #[test]
    fn a_delay_that_the_failure_names_replaces_the_policys() {
        let policy = normalized(None).expect("the default is valid");
        assert_eq!(after(&policy, 5, &application("E", Some(30))), Verdict::Again { delay_ms: 30 });
    }

    #[test]
    fn a_workflow_may_ask_for_no_longer_a_wait_than_its_policy_has() {
        let policy = normalized(None).expect("the default is valid");
        let wait = |asked_ms| {
            let failure = application("E", Some(asked_ms));
            let (failure, expires_ms) = (Some(&failure), 0);
            verdict(Attempt {
                policy: &policy,
                number: 1,
                now_ms: 0,
                expires_ms,
                failure,
                asked_within_policy: true,
            })
        };
        assert_eq!(wait(30), Verdict::Again { delay_ms: 30 });
        assert_eq!(wait(3_600_000), Verdict::Again { delay_ms: 100_000 });
        assert_eq!(wait(0), Verdict::Again { delay_ms: 100_000 });
    }

    #[test]
    fn a_type_on_the_list_is_final() {
        let given = RetryPolicy { non_retryable_error_types: vec!["Fatal".into()], ..RetryPolicy::default() };
        let policy = normalized(Some(&given)).expect("valid");
        let verdict = after(&policy, 1, &application("Fatal", None));
        assert_eq!(verdict, Verdict::Final(RetryState::NonRetryableFailure));
    }

    #[test]
    fn an_attempt_that_could_only_start_too_late_is_not_made() {
        let policy = normalized(None).expect("the default is valid");
        let failure = application("E", None);
        let failure = Some(&failure);
        let attempt = Attempt {
            policy: &policy,
            number: 1,
            now_ms: 5_000,
            expires_ms: 5_999,
            failure,
            asked_within_policy: false,
        };
        assert_eq!(verdict(attempt), Verdict::Final(RetryState::Timeout));
        assert_eq!(verdict(Attempt { expires_ms: 6_000, ..attempt }), Verdict::Again { delay_ms: 1000 });
    }

    #[test]
    fn a_failure_without_words_is_tried_again() {
        let policy = normalized(None).expect("the default is valid");
        let attempt = Attempt {
            policy: &policy,
            number: 1,
            now_ms: 0,
            expires_ms: 0,
            failure: None,
            asked_within_policy: false,
        };
        assert_eq!(verdict(attempt), Verdict::Again { delay_ms: 1000 });
    }

    #[test]
    fn any_number_of_attempts_is_counted_at_once() {
        let given = RetryPolicy { backoff_coefficient: 1.000_000_1, ..RetryPolicy::default() };
        let slow = normalized(Some(&given)).expect("valid");
        let failure = application("E", None);
        assert_eq!(after(&slow, i32::MAX, &failure), Verdict::Again { delay_ms: 100_000 });
        let given = RetryPolicy { backoff_coefficient: f64::MAX, ..RetryPolicy::default() };
        let steep = normalized(Some(&given)).expect("valid");
        assert_eq!(after(&steep, i32::MAX, &failure), Verdict::Again { delay_ms: 100_000 });
        assert_eq!(after(&steep, i32::MIN, &failure), Verdict::Again { delay_ms: 1_000 });
    }

    #[test]
    fn a_policy_of_one_attempt_may_say_what_it_likes_about_waits() {
        let given = RetryPolicy { maximum_attempts: 1, backoff_coefficient: 0.3, ..RetryPolicy::default() };
        assert_eq!(normalized(Some(&given)).expect("valid").backoff_coefficient, 0.3);
        let given = RetryPolicy { backoff_coefficient: f64::NAN, ..given };
        assert!(normalized(Some(&given)).is_err());
    }

    #[test]
    fn a_coefficient_below_one_is_refused() {
        let given = RetryPolicy { backoff_coefficient: 0.5, ..RetryPolicy::default() };
        assert!(normalized(Some(&given)).is_err());
    }
}
