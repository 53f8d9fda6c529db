//! Retry policies: the engine's and the API's message.

use everlog_engine::api_types::RetryPolicy;
use everlog_temporal_api::common;

use crate::codec::proto_time;

/// The engine's policy as the API's.
pub(crate) fn outer(policy: RetryPolicy) -> common::RetryPolicy {
    common::RetryPolicy {
        initial_interval: policy.initial_interval.map(proto_time::outer),
        backoff_coefficient: policy.backoff_coefficient,
        maximum_interval: policy.maximum_interval.map(proto_time::outer),
        maximum_attempts: policy.maximum_attempts,
        non_retryable_error_types: policy.non_retryable_error_types,
    }
}

/// The API's policy as the engine's.
pub(crate) fn inner(policy: common::RetryPolicy) -> RetryPolicy {
    RetryPolicy {
        initial_interval: policy.initial_interval.map(proto_time::inner),
        backoff_coefficient: policy.backoff_coefficient,
        maximum_interval: policy.maximum_interval.map(proto_time::inner),
        maximum_attempts: policy.maximum_attempts,
        non_retryable_error_types: policy.non_retryable_error_types,
    }
}

#[cfg(test)]
mod tests {
    use everlog_engine::normalized_retry_policy;

    use super::*;

    #[test]
    fn a_worker_is_told_the_policy_in_force() {
        let policy = normalized_retry_policy(None).expect("the default is valid");
        let told = outer(policy.clone());
        assert_eq!(told.initial_interval, Some(prost_types::Duration { seconds: 1, nanos: 0 }));
        assert_eq!(told.maximum_interval, Some(prost_types::Duration { seconds: 100, nanos: 0 }));
        assert_eq!((told.backoff_coefficient, told.maximum_attempts), (2.0, 0));
        assert_eq!(inner(told), policy);
    }
}
