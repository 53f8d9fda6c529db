//! Options of an activity that may be changed: the engine's and the API's, and what a field mask names of them.

use bytes::Bytes;
use everlog_engine::machine::operator::activity_options::{
    ActivityOptions as EngineOptions, ActivityOptionsPatch,
};
use everlog_engine::payload::PriorityPatch;
use everlog_engine::time;
use everlog_temporal_api::enums::TaskQueueKind;
use everlog_temporal_api::full::temporal::api::common::v1::Priority;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::temporal::api::activity::v1::ActivityOptions;
use prost::Message;
use prost_types::FieldMask;
use tonic::Status;

use crate::codec::proto_time::{duration, inner};
use crate::codec::retry_policy;
use crate::codec::status::invalid;

/// The engine's options as the API's.
pub(crate) fn outer(options: EngineOptions) -> ActivityOptions {
    let kind = TaskQueueKind::Normal.into();
    ActivityOptions {
        task_queue: Some(TaskQueue { name: options.task_queue, kind, normal_name: String::new() }),
        schedule_to_close_timeout: Some(duration(options.schedule_to_close_ms)),
        schedule_to_start_timeout: Some(duration(options.schedule_to_start_ms)),
        start_to_close_timeout: Some(duration(options.start_to_close_ms)),
        heartbeat_timeout: Some(duration(options.heartbeat_timeout_ms)),
        retry_policy: options.retry_policy.map(retry_policy::outer),
        priority: options.priority,
        ..ActivityOptions::default()
    }
}

/// What a mask names of the options. Paths may be written in camel case too; one that names nothing is refused, so that a slip of the
/// pen does not pass for a change.
pub(crate) fn patch(mask: &FieldMask, options: ActivityOptions) -> Result<ActivityOptionsPatch, Status> {
    let mut patch = ActivityOptionsPatch::default();
    for path in &mask.paths {
        set(&mut patch, path, &options)?;
    }
    Ok(patch)
}

fn set(patch: &mut ActivityOptionsPatch, path: &str, options: &ActivityOptions) -> Result<(), Status> {
    let span = |given: Option<prost_types::Duration>| Some(given.map_or(time::Duration::default(), inner));
    match snake_case(path).as_str() {
        // The last one is how the CLI names it.
        "task_queue" | "task_queue.name" | "task_queue_name" => {
            let queue = options.task_queue.as_ref().ok_or_else(|| invalid("TaskQueue is not provided"))?;
            patch.task_queue = Some(queue.name.clone());
        }
        "schedule_to_close_timeout" => {
            patch.schedule_to_close_timeout = span(options.schedule_to_close_timeout);
        }
        "schedule_to_start_timeout" => {
            patch.schedule_to_start_timeout = span(options.schedule_to_start_timeout);
        }
        "start_to_close_timeout" => patch.start_to_close_timeout = span(options.start_to_close_timeout),
        "heartbeat_timeout" => patch.heartbeat_timeout = span(options.heartbeat_timeout),
        "retry_policy" => patch.retry_policy = options.retry_policy.clone().map(retry_policy::inner),
        "priority" => patch.priority = Some(options.priority.clone().unwrap_or_default()),
        other => match other.split_once('.') {
            Some(("retry_policy", part)) => set_retry_policy(patch, part, options)?,
            Some(("priority", part)) => {
                set_priority(&mut patch.priority_patch, part, options.priority.as_ref())?
            }
            Some(_) | None => return Err(unknown_path(path)),
        },
    }
    Ok(())
}

fn set_retry_policy(
    patch: &mut ActivityOptionsPatch,
    part: &str,
    options: &ActivityOptions,
) -> Result<(), Status> {
    let policy = options.retry_policy.clone().ok_or_else(|| invalid("RetryPolicy is not provided"))?;
    let policy = retry_policy::inner(policy);
    match part {
        "initial_interval" => patch.initial_interval = Some(policy.initial_interval.unwrap_or_default()),
        "backoff_coefficient" => patch.backoff_coefficient = Some(policy.backoff_coefficient),
        "maximum_interval" => patch.maximum_interval = Some(policy.maximum_interval.unwrap_or_default()),
        "maximum_attempts" => patch.maximum_attempts = Some(policy.maximum_attempts),
        other => return Err(unknown_path(&format!("retry_policy.{other}"))),
    }
    Ok(())
}

/// A part of a priority.
pub(crate) fn set_priority(
    patch: &mut Option<PriorityPatch>,
    part: &str,
    given: Option<&Bytes>,
) -> Result<(), Status> {
    let given = given.cloned().ok_or_else(|| invalid("Priority is not provided"))?;
    let priority = Priority::decode(given).map_err(|_error| invalid("Priority cannot be read."))?;
    let parts = patch.get_or_insert_with(PriorityPatch::default);
    match part {
        "priority_key" => parts.priority_key = Some(priority.priority_key),
        "fairness_key" => parts.fairness_key = Some(priority.fairness_key),
        "fairness_weight" => parts.fairness_weight = Some(priority.fairness_weight),
        other => return Err(unknown_path(&format!("priority.{other}"))),
    }
    Ok(())
}

/// A mask names what there is not.
pub(crate) fn unknown_path(path: &str) -> Status {
    let shown = &path[..path.floor_char_boundary(100)];
    invalid(format!("unsupported field in update_mask: {shown:?}"))
}

/// A path as the messages have it, which JSON writes in camel case.
pub(crate) fn snake_case(path: &str) -> String {
    let mut snake = String::with_capacity(path.len() + 8);
    for letter in path.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use everlog_temporal_api::common::RetryPolicy;

    use super::*;

    fn masked(paths: &[&str], options: ActivityOptions) -> Result<ActivityOptionsPatch, String> {
        let mask = FieldMask { paths: paths.iter().map(|path| (*path).to_owned()).collect() };
        patch(&mask, options).map_err(|status| status.message().to_owned())
    }

    #[test]
    fn a_mask_takes_what_it_names_and_nothing_else() {
        let priority = Priority { priority_key: 2, fairness_key: "tenant".into(), fairness_weight: 3.0 };
        let options = ActivityOptions {
            start_to_close_timeout: Some(duration(5_000)),
            heartbeat_timeout: Some(duration(7_000)),
            retry_policy: Some(RetryPolicy { maximum_attempts: 4, ..RetryPolicy::default() }),
            priority: Some(priority.encode_to_vec().into()),
            ..ActivityOptions::default()
        };
        let paths = ["startToCloseTimeout", "retry_policy.maximum_attempts", "priority.fairnessKey"];
        let expected = ActivityOptionsPatch {
            start_to_close_timeout: Some(time::Duration::from_ms(5_000)),
            maximum_attempts: Some(4),
            priority_patch: Some(PriorityPatch {
                fairness_key: Some("tenant".into()),
                ..PriorityPatch::default()
            }),
            ..ActivityOptionsPatch::default()
        };
        assert_eq!(masked(&paths, options.clone()), Ok(expected));
        assert_eq!(masked(&[], options), Ok(ActivityOptionsPatch::default()));
        let queue = TaskQueue { name: "other".into(), ..TaskQueue::default() };
        let queue = ActivityOptions { task_queue: Some(queue), ..ActivityOptions::default() };
        for path in ["task_queue.name", "task_queue_name", "taskQueue.name", "task_queue"] {
            let patch = masked(&[path], queue.clone()).expect("it names the queue");
            assert_eq!(patch.task_queue.as_deref(), Some("other"), "{path}");
        }
        let cleared = masked(&["heartbeat_timeout", "priority"], ActivityOptions::default());
        let cleared = cleared.expect("what is absent counts as none");
        assert_eq!(cleared.heartbeat_timeout, Some(time::Duration::default()));
        assert_eq!(cleared.priority, Some(Bytes::new()));
    }

    #[test]
    fn a_path_that_names_nothing_is_refused() {
        for path in
            ["", "zz", "retry_policy.zz", "start_delay", "task_queue.kind", "heartbeat_timeout.seconds"]
        {
            let options =
                ActivityOptions { retry_policy: Some(RetryPolicy::default()), ..ActivityOptions::default() };
            let refused = masked(&[path], options).expect_err("it names nothing");
            assert_eq!(refused, format!("unsupported field in update_mask: {path:?}"));
        }
        let none = |path| masked(&[path], ActivityOptions::default());
        assert_eq!(none("task_queue.name"), Err("TaskQueue is not provided".into()));
        assert_eq!(none("retry_policy.maximum_attempts"), Err("RetryPolicy is not provided".into()));
        assert_eq!(none("priority.priority_key"), Err("Priority is not provided".into()));
    }
}
