//! The configuration of a task queue: how an update changes it, and what it means for tasks.

use everlog_partition::QueueConfig;
use everlog_temporal_api::enums::TaskQueueType;
use everlog_temporal_api::taskqueue::{ConfigMetadata, RateLimit, RateLimitConfig, TaskQueueConfig};
use everlog_temporal_api::workflowservice::UpdateTaskQueueConfigRequest;
use everlog_temporal_api::workflowservice::update_task_queue_config_request::RateLimitUpdate;
use tonic::Status;

use crate::codec::proto_time::timestamp;
use crate::codec::status::invalid;
use crate::codec::validation::exceeds;

/// Bytes of an identity, and of a reason.
const TEXT_BYTES_MAX: usize = 1_000;
/// Weights that a request sets or unsets, and that a queue has.
const WEIGHTS_MAX: usize = 1_000;

/// Checks an update. The texts are those of Temporal's server, as far as it has any.
pub(crate) fn check(request: &UpdateTaskQueueConfigRequest, key_bytes_max: i64) -> Result<(), Status> {
    if request.identity.len() > TEXT_BYTES_MAX {
        return Err(invalid(format!("Identity field too long (max {TEXT_BYTES_MAX} characters).")));
    }
    let of_workflows = match TaskQueueType::try_from(request.task_queue_type) {
        Ok(TaskQueueType::Workflow) => true,
        Ok(TaskQueueType::Activity) => false,
        Ok(TaskQueueType::Nexus) => return Err(invalid("Nexus task queues are not supported yet.")),
        Ok(TaskQueueType::Unspecified) | Err(_) => {
            return Err(invalid("Task queue type is neither WORKFLOW nor ACTIVITY."));
        }
    };
    if of_workflows && request.update_queue_rate_limit.is_some() {
        return Err(invalid("Setting rate limit on workflow task queues is not allowed."));
    }
    if of_workflows && request.update_fairness_key_rate_limit_default.is_some() {
        return Err(invalid("Setting fairness key rate limit on workflow task queues is not allowed."));
    }
    check_rate("UpdateQueueRateLimit", request.update_queue_rate_limit.as_ref())?;
    let of_keys = request.update_fairness_key_rate_limit_default.as_ref();
    check_rate("UpdateFairnessKeyRateLimitDefault", of_keys)?;
    check_weights(request, key_bytes_max)
}

fn check_rate(what: &str, update: Option<&RateLimitUpdate>) -> Result<(), Status> {
    let Some(update) = update else { return Ok(()) };
    let rate = update.rate_limit.as_ref().map_or(0.0, |rate| rate.requests_per_second);
    if rate.is_nan() || rate < 0.0 {
        return Err(invalid(format!("RequestsPerSecond for {what} rate limit must be non-negative.")));
    }
    if update.reason.len() > TEXT_BYTES_MAX {
        return Err(invalid(format!("{what}.Reason field too long (max {TEXT_BYTES_MAX} characters).")));
    }
    Ok(())
}

fn check_weights(request: &UpdateTaskQueueConfigRequest, key_bytes_max: i64) -> Result<(), Status> {
    let (set, unset) = (&request.set_fairness_weight_overrides, &request.unset_fairness_weight_overrides);
    let count = set.len() + unset.len();
    if count > WEIGHTS_MAX {
        return Err(too_many("in request", count));
    }
    for key in set.keys().chain(unset) {
        if key.is_empty() {
            return Err(invalid("fairness weight override has an empty fairness key"));
        }
        if key_bytes_max > 0 && exceeds(key.len(), key_bytes_max) {
            return Err(invalid("fairness key length exceeds limit"));
        }
    }
    if let Some((key, _)) = set.iter().find(|(_, weight)| weight.is_nan() || **weight <= 0.0) {
        return Err(invalid(format!("fairness weight override of {key:?} must be greater than zero")));
    }
    match unset.iter().find(|key| set.contains_key(*key)) {
        Some(key) => Err(invalid(format!("fairness key {key:?} present in both set and unset lists"))),
        None => Ok(()),
    }
}

fn too_many(what: &str, count: usize) -> Status {
    invalid(format!("too many fairness weight overrides {what}: {count}, limit {WEIGHTS_MAX}"))
}

/// Changes a configuration. The request is checked.
///
/// # Errors
/// The queue would have too many weights.
pub(crate) fn update(
    config: &mut TaskQueueConfig,
    request: UpdateTaskQueueConfigRequest,
    now_ms: i64,
) -> Result<(), Status> {
    let changed = |update: RateLimitUpdate| RateLimitConfig {
        rate_limit: update.rate_limit,
        metadata: Some(ConfigMetadata {
            reason: update.reason,
            update_identity: request.identity.clone(),
            update_time: Some(timestamp(now_ms)),
        }),
    };
    if let Some(update) = request.update_queue_rate_limit {
        config.queue_rate_limit = Some(changed(update));
    }
    if let Some(update) = request.update_fairness_key_rate_limit_default {
        config.fairness_keys_rate_limit_default = Some(changed(update));
    }
    for key in &request.unset_fairness_weight_overrides {
        config.fairness_weight_overrides.remove(key);
    }
    config.fairness_weight_overrides.extend(request.set_fairness_weight_overrides);
    match config.fairness_weight_overrides.len() {
        count if count > WEIGHTS_MAX => Err(too_many("of the queue", count)),
        _few => Ok(()),
    }
}

/// What a configuration means for tasks; none if nothing.
pub(crate) fn of_tasks(config: Option<&TaskQueueConfig>) -> Option<QueueConfig> {
    let config = config?;
    let rate = |limit: &Option<RateLimitConfig>| {
        let rate: &RateLimit = limit.as_ref()?.rate_limit.as_ref()?;
        Some(f64::from(rate.requests_per_second))
    };
    let of_tasks = QueueConfig {
        rate_per_second: rate(&config.queue_rate_limit),
        key_rate_per_second: rate(&config.fairness_keys_rate_limit_default),
        weights: config.fairness_weight_overrides.clone(),
    };
    (of_tasks != QueueConfig::default()).then_some(of_tasks)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tonic::Code;

    use super::*;

    fn request() -> UpdateTaskQueueConfigRequest {
        let task_queue_type = TaskQueueType::Activity.into();
        UpdateTaskQueueConfigRequest { task_queue_type, identity: "me".into(), ..Default::default() }
    }

    fn rate(rate: f32, reason: &str) -> Option<RateLimitUpdate> {
        let rate_limit = Some(RateLimit { requests_per_second: rate });
        Some(RateLimitUpdate { rate_limit, reason: reason.into() })
    }

    fn weights(weights: &[(&str, f32)]) -> BTreeMap<String, f32> {
        weights.iter().map(|(key, weight)| ((*key).to_owned(), *weight)).collect()
    }

    fn refusal(request: UpdateTaskQueueConfigRequest) -> String {
        let status = check(&request, 64).expect_err("it has to be refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let given = |change: &dyn Fn(&mut UpdateTaskQueueConfigRequest)| {
            let mut request = request();
            change(&mut request);
            refusal(request)
        };
        let long = "x".repeat(1_001);
        let cases = [
            (given(&|r| r.identity = long.clone()), "Identity field too long (max 1000 characters)."),
            (given(&|r| r.task_queue_type = 0), "Task queue type is neither WORKFLOW nor ACTIVITY."),
            (given(&|r| r.task_queue_type = 9), "Task queue type is neither WORKFLOW nor ACTIVITY."),
            (given(&|r| r.task_queue_type = 3), "Nexus task queues are not supported yet."),
            (
                given(&|r| (r.task_queue_type, r.update_queue_rate_limit) = (1, rate(1.0, ""))),
                "Setting rate limit on workflow task queues is not allowed.",
            ),
            (
                given(&|r| {
                    (r.task_queue_type, r.update_fairness_key_rate_limit_default) = (1, rate(1.0, ""))
                }),
                "Setting fairness key rate limit on workflow task queues is not allowed.",
            ),
            (
                given(&|r| r.update_queue_rate_limit = rate(-1.0, "")),
                "RequestsPerSecond for UpdateQueueRateLimit rate limit must be non-negative.",
            ),
            (
                given(&|r| r.update_fairness_key_rate_limit_default = rate(f32::NAN, "")),
                "RequestsPerSecond for UpdateFairnessKeyRateLimitDefault rate limit must be non-negative.",
            ),
            (
                given(&|r| r.update_queue_rate_limit = rate(1.0, &long)),
                "UpdateQueueRateLimit.Reason field too long (max 1000 characters).",
            ),
            (
                given(&|r| r.set_fairness_weight_overrides = weights(&[("", 1.0)])),
                "fairness weight override has an empty fairness key",
            ),
            (
                given(&|r| r.unset_fairness_weight_overrides = vec!["k".repeat(65)]),
                "fairness key length exceeds limit",
            ),
            (
                given(&|r| r.set_fairness_weight_overrides = weights(&[("a", 0.0)])),
                "fairness weight override of \"a\" must be greater than zero",
            ),
            (
                given(&|r| {
                    r.unset_fairness_weight_overrides = (0..1_001).map(|key| key.to_string()).collect()
                }),
                "too many fairness weight overrides in request: 1001, limit 1000",
            ),
            (
                given(&|r| {
                    r.set_fairness_weight_overrides = weights(&[("a", 1.0)]);
                    r.unset_fairness_weight_overrides = vec!["a".into()];
                }),
                "fairness key \"a\" present in both set and unset lists",
            ),
        ];
        for (refused, expected) in cases {
            assert_eq!(refused, expected);
        }
        let of_workflows = UpdateTaskQueueConfigRequest {
            task_queue_type: 1,
            set_fairness_weight_overrides: weights(&[("a", 1.0)]),
            ..request()
        };
        assert!(check(&of_workflows, 64).is_ok());
    }

    #[test]
    fn what_is_not_named_stays_and_what_is_unset_has_a_reason_too() {
        let mut config = TaskQueueConfig::default();
        let first = UpdateTaskQueueConfigRequest {
            update_queue_rate_limit: rate(5.0, "busy"),
            update_fairness_key_rate_limit_default: rate(2.0, "fair"),
            set_fairness_weight_overrides: weights(&[("a", 2.0), ("b", 3.0)]),
            ..request()
        };
        update(&mut config, first, 1_000).expect("few weights");
        let of = |config: &TaskQueueConfig| of_tasks(Some(config)).expect("it means something");
        let expected = QueueConfig {
            rate_per_second: Some(5.0),
            key_rate_per_second: Some(2.0),
            weights: weights(&[("a", 2.0), ("b", 3.0)]),
        };
        assert_eq!(of(&config), expected);
        let second = UpdateTaskQueueConfigRequest {
            update_queue_rate_limit: Some(RateLimitUpdate { rate_limit: None, reason: "over".into() }),
            unset_fairness_weight_overrides: vec!["a".into(), "never set".into()],
            ..request()
        };
        update(&mut config, second, 2_000).expect("few weights");
        let expected = QueueConfig { rate_per_second: None, weights: weights(&[("b", 3.0)]), ..expected };
        assert_eq!(of(&config), expected);
        let metadata = config.queue_rate_limit.as_ref().and_then(|limit| limit.metadata.clone());
        let expected = ConfigMetadata {
            reason: "over".into(),
            update_identity: "me".into(),
            update_time: Some(timestamp(2_000)),
        };
        assert_eq!(metadata, Some(expected));
        let zero = UpdateTaskQueueConfigRequest { update_queue_rate_limit: rate(0.0, ""), ..request() };
        update(&mut config, zero, 3_000).expect("few weights");
        assert_eq!(of(&config).rate_per_second, Some(0.0), "which stops the queue");
        assert_eq!(of_tasks(Some(&TaskQueueConfig::default())), None);
    }

    #[test]
    fn a_queue_has_so_many_weights() {
        let many = |from: usize| UpdateTaskQueueConfigRequest {
            set_fairness_weight_overrides: (from..from + 600).map(|key| (key.to_string(), 1.0)).collect(),
            ..request()
        };
        let mut config = TaskQueueConfig::default();
        update(&mut config, many(0), 0).expect("there is room");
        update(&mut config, many(100), 0).expect("there is room");
        let refusal = update(&mut config, many(1_000), 0).expect_err("there is none");
        assert_eq!(refusal.message(), "too many fairness weight overrides of the queue: 1300, limit 1000");
    }
}
