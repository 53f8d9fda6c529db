//! Search attributes that follow from the state of a run, beside those that it was given.
//!
//! An attribute that the workflow or its starter has set stays as it is.

use std::collections::BTreeSet;

use bytes::Bytes;
use everlog_engine::Run;
use everlog_engine::api_types::{MapEntry, TaskFailedCause, VersioningBehavior};
use everlog_engine::machine::worker_versioning::Versioning;
use everlog_engine::machine::workflow_task::Task;
use everlog_engine::payload::Payload;
use prost::Message;

/// The build id of a worker without a version.
pub const UNVERSIONED: &str = "unversioned";
/// So many workflow tasks that fail in a row are a problem that is reported.
pub const REPORTED_PROBLEMS_MIN: i32 = 5;

/// The search attributes of a run: those that it was given, and those that follow from its state. Sorted by key.
pub fn search_attributes(run: &Run) -> Vec<MapEntry> {
    let mut entries = run.properties.search_attributes.clone();
    let given = entries.len();
    let is_given = |entries: &[MapEntry], name: &str| {
        entries[..given].binary_search_by(|entry| entry.key.as_str().cmp(name)).is_ok()
    };
    each(run, &mut |name, payload| {
        if !is_given(&entries, name) {
            entries.push(MapEntry { key: name.to_owned(), value: payload() });
        }
    });
    if entries.len() > given {
        entries.sort_by(|one, other| one.key.cmp(&other.key));
    }
    entries
}

/// Names each derived attribute that the run has, with what makes its payload.
fn each(run: &Run, tell: &mut dyn FnMut(&str, &dyn Fn() -> Bytes)) {
    let properties = &run.properties;
    let points = &properties.reset_points;
    // Checksums of earlier runs are shown once this run has one.
    let has_own = points.iter().any(|point| !point.binary_checksum.is_empty() && is_own(run, &point.run_id));
    if has_own {
        let named = || points.iter().map(|point| &point.binary_checksum).filter(|word| !word.is_empty());
        tell("BinaryChecksums", &|| keywords(&named().cloned().collect::<Vec<_>>()));
    }
    if let Some(problems) = reported_problems(run) {
        tell("TemporalReportedProblems", &|| keywords(&problems));
    }
    let paused = paused(run);
    if !paused.is_empty() {
        tell("TemporalPauseInfo", &|| keywords(&paused));
    }
    if run.head.previous_started_event_id == 0 && properties.versioning.is_none() {
        return;
    }
    let build_ids = build_ids(run);
    if !build_ids.is_empty() {
        tell("BuildIds", &|| keywords(&build_ids));
    }
    if !properties.deployment_name.is_empty() {
        tell("TemporalWorkerDeployment", &|| keyword(&properties.deployment_name));
    }
    let Some(versioning) = &properties.versioning else { return };
    let overriding = versioning.overriding.as_ref().and_then(|overriding| overriding.pinned.as_ref());
    let version = overriding.map_or(versioning.version.as_ref(), |pinned| pinned.version.as_ref());
    if let Some(version) = version {
        let word = format!("{}:{}", version.deployment_name, version.build_id);
        tell("TemporalWorkerDeploymentVersion", &|| keyword(&word));
    }
    let behavior = VersioningBehavior::try_from(versioning.in_force());
    if let Ok(behavior @ (VersioningBehavior::Pinned | VersioningBehavior::AutoUpgrade)) = behavior {
        tell("TemporalWorkflowVersioningBehavior", &|| keyword(&format!("{behavior:?}")));
    }
}

/// Points of the run itself have no run id in its state.
fn is_own(run: &Run, run_id: &str) -> bool {
    run_id.is_empty() || run_id == run.start.run_id
}

/// How the run's workers are assigned now, and the builds that completed tasks of it.
fn build_ids(run: &Run) -> Vec<String> {
    let builds = run.properties.build_ids.iter().map(|build_id| format!("{UNVERSIONED}:{build_id}"));
    assigned(run).into_iter().chain(builds).collect()
}

fn assigned(run: &Run) -> Option<String> {
    let versioning = run.properties.versioning.as_ref();
    let behavior = versioning.map_or(0, Versioning::in_force);
    if behavior == i32::from(VersioningBehavior::Unspecified) {
        return Some(UNVERSIONED.into());
    }
    let version = versioning.and_then(Versioning::pinned);
    let version = version.map(|version| format!("{}:{}", version.deployment_name, version.build_id));
    let is_pinned = behavior == i32::from(VersioningBehavior::Pinned);
    is_pinned.then(|| format!("pinned:{}", version.unwrap_or_default()))
}

/// Category and cause of the workflow tasks that fail, where so many have in a row.
fn reported_problems(run: &Run) -> Option<[String; 2]> {
    let task = run.head.task.as_ref().filter(|task| has_problems(task))?;
    let cause = TaskFailedCause::try_from(task.failed_cause).unwrap_or(TaskFailedCause::Unspecified);
    Some(match cause {
        TaskFailedCause::Unspecified => {
            ["category=WorkflowTaskTimedOut".into(), "cause=WorkflowTaskTimedOutCauseStartToClose".into()]
        }
        cause => ["category=WorkflowTaskFailed".into(), format!("cause=WorkflowTaskFailedCause{cause:?}")],
    })
}

/// What is paused: the run itself, and the types of its activities, each once.
fn paused(run: &Run) -> Vec<String> {
    let whole = run
        .pause()
        .map(|pause| [format!("Workflow:{}", run.start.workflow_id), format!("Reason:{}", pause.reason)]);
    let paused = run.activities.values().filter(|activity| activity.pause.is_some());
    let types: BTreeSet<_> = paused.map(|activity| activity.activity_type.as_str()).collect();
    let types = types.into_iter().map(|name| format!("property:activityType={name}"));
    whole.into_iter().flatten().chain(types).collect()
}

fn has_problems(task: &Task) -> bool {
    task.problems >= REPORTED_PROBLEMS_MIN
}

/// True if two states of a run have the same search attributes; false also where that would have to be looked into.
pub(crate) fn are_alike(before: &Run, after: &Run) -> bool {
    let problem =
        |run: &Run| run.head.task.as_ref().filter(|task| has_problems(task)).map(|task| task.failed_cause);
    let has_completed = |run: &Run| run.head.previous_started_event_id > 0;
    has_completed(before) == has_completed(after)
        && problem(before) == problem(after)
        && (before.activities.is_same(&after.activities) || paused(before) == paused(after))
        && (before.properties.is_same(&after.properties) || before.properties == after.properties)
}

/// The encoded payload of a keyword that the server sets.
pub fn keyword(word: &str) -> Bytes {
    payload("Keyword", serde_json::to_vec(word))
}

/// The encoded payload of a keyword list that the server sets.
pub fn keywords(words: &[String]) -> Bytes {
    payload("KeywordList", serde_json::to_vec(words))
}

fn payload(kind: &'static str, data: serde_json::Result<Vec<u8>>) -> Bytes {
    let said = |key: &str, value: &'static str| MapEntry { key: key.into(), value: value.into() };
    let metadata = vec![said("encoding", "json/plain"), said("type", kind)];
    let data = data.expect("texts are JSON");
    Payload { metadata, data: data.into() }.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use everlog_engine::Start;
    use everlog_engine::machine::reset_points::Point;
    use everlog_engine::machine::worker_versioning::{Override, Pinned, Version};

    use super::*;
    use crate::payload::{Json, PayloadParts};

    fn run() -> Run {
        Run::begin(Start { run_id: "own".into(), ..Start::default() })
    }

    /// Names and values, as JSON would have them.
    fn told(run: &Run) -> Vec<String> {
        let entries = search_attributes(run);
        assert!(entries.is_sorted_by(|one, other| one.key < other.key), "sorted, each once");
        let value = |entry: &MapEntry| match PayloadParts::read(&entry.value).and_then(|parts| parts.json()) {
            Some(Json::String(word)) => word.into_owned(),
            Some(Json::List(words)) => {
                let words = words.iter().map(|word| match word {
                    Json::String(word) => word.to_string(),
                    _other => String::new(),
                });
                words.collect::<Vec<_>>().join(" ")
            }
            _other => String::new(),
        };
        entries.iter().map(|entry| format!("{}={}", entry.key, value(entry))).collect()
    }

    #[test]
    fn a_run_without_a_completed_task_has_what_it_was_given() {
        let mut run = run();
        let given = MapEntry { key: "Custom".into(), value: keyword("x") };
        run.properties.make_mut().search_attributes.push(given);
        assert_eq!(told(&run), ["Custom=x"]);
    }

    #[test]
    fn builds_are_told_from_the_first_completed_task_on() {
        let mut run = run();
        run.properties.make_mut().build_ids.push("b1".into());
        run.head.previous_started_event_id = 3;
        assert_eq!(told(&run), ["BuildIds=unversioned unversioned:b1"]);
        let given = MapEntry { key: "BuildIds".into(), value: keywords(&["own".into()]) };
        run.properties.make_mut().search_attributes.push(given);
        assert_eq!(told(&run), ["BuildIds=own"], "what the workflow has set stays");
    }

    #[test]
    fn checksums_of_earlier_runs_are_told_once_the_run_has_one() {
        let mut run = run();
        let point = |run_id: &str, checksum: &str| Point {
            run_id: run_id.into(),
            binary_checksum: checksum.into(),
            ..Point::default()
        };
        run.properties.make_mut().reset_points.push(point("earlier", "one"));
        assert_eq!(told(&run), [""; 0]);
        run.properties.make_mut().reset_points.extend([point("", ""), point("", "two")]);
        assert_eq!(told(&run), ["BinaryChecksums=one two"]);
    }

    #[test]
    fn versions_are_those_in_force() {
        let mut run = run();
        let version = |build_id: &str| Version { build_id: build_id.into(), deployment_name: "shop".into() };
        let mut versioning = Versioning {
            behavior: VersioningBehavior::AutoUpgrade.into(),
            version: Some(version("one")),
            ..Versioning::default()
        };
        let properties = run.properties.make_mut();
        properties.deployment_name = "shop".into();
        properties.versioning = Some(versioning.clone());
        let common = "TemporalWorkerDeployment=shop";
        let behavior = "TemporalWorkflowVersioningBehavior";
        let version_of = |word: &str| format!("TemporalWorkerDeploymentVersion=shop:{word}");
        assert_eq!(told(&run), [common, &version_of("one"), &format!("{behavior}=AutoUpgrade")]);
        let pinned = Some(Pinned { behavior: 1, version: Some(version("two")) });
        versioning.overriding = Some(Override { pinned, auto_upgrade: false });
        run.properties.make_mut().versioning = Some(versioning);
        let build = "BuildIds=pinned:shop:two";
        assert_eq!(told(&run), [build, common, &version_of("two"), &format!("{behavior}=Pinned")]);
    }

    #[test]
    fn problems_are_told_from_the_fifth_failure_in_a_row_on() {
        let mut run = run();
        let cause = TaskFailedCause::NonDeterministicError.into();
        let mut fail = |problems, failed_cause| {
            run.head.task = Some(Task { problems, failed_cause, ..Task::default() });
            told(&run)
        };
        assert_eq!(fail(4, cause), [""; 0]);
        let failed = "category=WorkflowTaskFailed cause=WorkflowTaskFailedCauseNonDeterministicError";
        assert_eq!(fail(5, cause), [format!("TemporalReportedProblems={failed}")]);
        let timed_out = "category=WorkflowTaskTimedOut cause=WorkflowTaskTimedOutCauseStartToClose";
        assert_eq!(fail(9, 0), [format!("TemporalReportedProblems={timed_out}")]);
    }
}
