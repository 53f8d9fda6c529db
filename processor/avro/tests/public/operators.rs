//! Commands of operators, for activities and for runs: each kind in both forms, and each way to be refused.

use everlog_avro::command::{
    Code, Command, GivenActivityChange, GivenActivityOptions, GivenActivityPause, GivenActivityReset,
    GivenActivityUnpause, GivenOverride, GivenRunOptions, GivenRunPause, GivenRunUnpause, GivenVersion,
};
use everlog_avro::event::{Priority, RetryPolicy};
use everlog_avro::payload::Payload;
use everlog_engine::machine::operator::activity_control::{ActivitySelection, ActivitySelector};
use everlog_engine::machine::operator::activity_options::ActivityOptionsPatch;
use everlog_engine::machine::operator::run_options::UpdateRunOptions;
use everlog_engine::machine::operator::run_pause::{PauseRun, UnpauseRun};
use everlog_engine::machine::worker_versioning::{Override, Pinned, Version};
use everlog_engine::request::Request;
use everlog_engine::time::{self, Duration};

use crate::world::{RUN_ID, avro, input, read, refusal};

fn of(r#type: &str) -> Command<Payload<'static>> {
    let (identity, run_id) = (Some("ops".into()), Some(RUN_ID.into()));
    Command { r#type: r#type.into(), identity, run_id, ..Command::default() }
}

fn options() -> GivenActivityOptions {
    GivenActivityOptions {
        task_queue: Some("tills".into()),
        schedule_to_close_timeout_ms: Some(90_500),
        schedule_to_start_timeout_ms: Some(0),
        start_to_close_timeout_ms: Some(7_250),
        heartbeat_timeout_ms: Some(1_001),
        retry_policy: Some(RetryPolicy {
            initial_interval_ms: Some(1_500),
            backoff_coefficient: 1.5,
            maximum_interval_ms: Some(60_000),
            maximum_attempts: 4,
            non_retryable_error_types: vec!["Declined".into()],
        }),
        priority: Some(priority()),
    }
}

fn priority() -> Priority<'static> {
    Priority { priority_key: Some(2), fairness_key: Some("Ann".into()), fairness_weight: Some(2.5) }
}

fn pinned() -> GivenOverride {
    let version = GivenVersion { deployment_name: "shop".into(), build_id: "one".into() };
    GivenOverride { auto_upgrade: false, pinned: Some(version) }
}

/// One command of each kind, with everything in it that goes together.
pub fn commands() -> Vec<Command<Payload<'static>>> {
    let (activity_id, activity_type) = (Some("charge".to_owned()), Some("Charge".to_owned()));
    let reason = Some("the till is broken".to_owned());
    let pause = GivenActivityPause {
        activity_id: activity_id.clone(),
        reason: reason.clone(),
        ..GivenActivityPause::default()
    };
    let unpause = GivenActivityUnpause {
        activity_type: activity_type.clone(),
        reset_attempts: true,
        reset_heartbeat: true,
        jitter_ms: Some(5_000),
        ..GivenActivityUnpause::default()
    };
    let reset = GivenActivityReset {
        all: true,
        keep_paused: true,
        reset_heartbeat: true,
        jitter_ms: Some(5_000),
        restore_original: true,
        ..GivenActivityReset::default()
    };
    let change =
        GivenActivityChange { activity_id, options: Some(options()), ..GivenActivityChange::default() };
    let of_run = GivenRunOptions {
        priority: Some(priority()),
        versioning_override: Some(pinned()),
        unset_versioning_override: false,
    };
    vec![
        Command { pause_activity: Some(pause), ..of("pause_activity") },
        Command { unpause_activity: Some(unpause), ..of("unpause_activity") },
        Command { reset_activity: Some(reset), ..of("reset_activity") },
        Command { update_activity_options: Some(change), ..of("update_activity_options") },
        Command { pause: Some(GivenRunPause { reason: reason.clone() }), ..of("pause") },
        Command { unpause: Some(GivenRunUnpause { reason }), ..of("unpause") },
        Command { update_options: Some(of_run), ..of("update_options") },
    ]
}

/// The same in JSON, each without what every command may have.
const JSON: [&str; 7] = [
    r#""type": "pause_activity", "pause_activity": {"activity_id": "charge", "reason": "the till is broken"}"#,
    r#""type": "unpause_activity", "unpause_activity": {"activity_type": "Charge", "reset_attempts": true,
        "reset_heartbeat": true, "jitter_ms": 5000}"#,
    r#""type": "reset_activity", "reset_activity": {"all": true, "keep_paused": true, "reset_heartbeat": true,
        "jitter_ms": 5000, "restore_original": true}"#,
    r#""type": "update_activity_options", "update_activity_options": {"activity_id": "charge", "options": {
        "task_queue": "tills", "schedule_to_close_timeout_ms": 90500, "schedule_to_start_timeout_ms": 0,
        "start_to_close_timeout_ms": 7250, "heartbeat_timeout_ms": 1001,
        "retry_policy": {"initial_interval_ms": 1500, "backoff_coefficient": 1.5, "maximum_interval_ms": 60000,
            "maximum_attempts": 4, "non_retryable_error_types": ["Declined"]},
        "priority": {"priority_key": 2, "fairness_key": "Ann", "fairness_weight": 2.5}}}"#,
    r#""type": "pause", "pause": {"reason": "the till is broken"}"#,
    r#""type": "unpause", "unpause": {"reason": "the till is broken"}"#,
    r#""type": "update_options", "update_options": {
        "priority": {"priority_key": 2, "fairness_key": "Ann", "fairness_weight": 2.5},
        "versioning_override": {"pinned": {"deployment_name": "shop", "build_id": "one"}}}"#,
];

/// What a command asks for, under the command id `c-1`.
fn asked(command: &Command<Payload<'static>>) -> Request {
    input(read(&avro(command), &[("command-id", Some(b"c-1"))])).request.expect("a request")
}

fn refused(command: &Command<Payload<'static>>) -> (Code, String) {
    refusal(read(&avro(command), &[]))
}

fn invalid(command: &Command<Payload<'static>>) -> String {
    let (code, reason) = refused(command);
    assert_eq!(code, Code::InvalidArgument, "{reason}");
    reason
}

fn by(selection: ActivitySelection) -> Option<ActivitySelector> {
    Some(ActivitySelector { selection: Some(selection) })
}

#[test]
fn avro_and_json_ask_for_the_same() {
    for (command, json) in commands().iter().zip(JSON) {
        let json = format!(r#"{{"identity": "ops", "run_id": "{RUN_ID}", {json}}}"#);
        let by_json = input(read(json.as_bytes(), &[]));
        assert_eq!(by_json, input(read(&avro(command), &[])), "{}", command.r#type);
        assert_eq!((by_json.workflow_id.as_str(), by_json.run_id.as_str()), ("order-1", RUN_ID));
    }
}

#[test]
fn all_that_is_said_of_activities_arrives() {
    let [pause, unpause, reset, change, ..] = &commands()[..] else { panic!("there are seven") };
    let Request::PauseActivity(pause) = asked(pause) else { panic!("no pause") };
    assert_eq!(pause.selector, by(ActivitySelection::Id("charge".into())));
    let said = [pause.identity.as_str(), pause.reason.as_str(), pause.request_id.as_str()];
    assert_eq!(said, ["ops", "the till is broken", "c-1"]);
    let Request::UnpauseActivity(unpause) = asked(unpause) else { panic!("no unpause") };
    assert_eq!(unpause.selector, by(ActivitySelection::Type("Charge".into())));
    assert_eq!((unpause.resets_attempts, unpause.resets_heartbeat, unpause.jitter_ms), (true, true, 5_000));
    let Request::ResetActivity(reset) = asked(reset) else { panic!("no reset") };
    assert_eq!(reset.selector, by(ActivitySelection::All(true)));
    assert!(reset.keeps_paused && reset.resets_heartbeat && reset.restores_options);
    assert_eq!(reset.jitter_ms, 5_000);
    let Request::UpdateActivityOptions(change) = asked(change) else { panic!("no other options") };
    assert_eq!(change.selector, by(ActivitySelection::Id("charge".into())));
    let patch = *change.patch.expect("options that change");
    let policy = patch.retry_policy.clone().expect("a policy");
    assert_eq!((policy.maximum_attempts, policy.backoff_coefficient), (4, 1.5));
    assert_eq!(policy.initial_interval, Some(Duration::from_ms(1_500)));
    assert_eq!(policy.non_retryable_error_types, ["Declined"]);
    // Temporal's Priority: a key, a fairness key, its weight.
    assert_eq!(patch.priority.as_deref(), Some(&b"\x08\x02\x12\x03Ann\x1d\x00\x00\x20\x40"[..]));
    let expected = ActivityOptionsPatch {
        task_queue: Some("tills".into()),
        schedule_to_close_timeout: Some(Duration::from_ms(90_500)),
        schedule_to_start_timeout: Some(Duration::default()),
        start_to_close_timeout: Some(Duration::from_ms(7_250)),
        heartbeat_timeout: Some(Duration::from_ms(1_001)),
        retry_policy: Some(policy),
        priority: patch.priority.clone(),
        ..ActivityOptionsPatch::default()
    };
    assert_eq!(patch, expected);
}

#[test]
fn all_that_is_said_of_runs_arrives() {
    let [.., pause, unpause, change] = &commands()[..] else { panic!("there are seven") };
    let (identity, reason, request_id) =
        ("ops".to_owned(), "the till is broken".to_owned(), "c-1".to_owned());
    let expected = PauseRun { identity, reason, request_id };
    assert_eq!(asked(pause), Request::PauseRun(expected.clone()));
    let PauseRun { identity, reason, request_id } = expected;
    assert_eq!(asked(unpause), Request::UnpauseRun(UnpauseRun { identity, reason, request_id }));
    let Request::UpdateRunOptions(change) = asked(change) else { panic!("no other options") };
    let version = Some(Version { deployment_name: "shop".into(), build_id: "one".into() });
    let pinned = Override { pinned: Some(Pinned { behavior: 1, version }), auto_upgrade: false };
    assert_eq!(
        (change.sets_override, change.overriding, change.identity.as_str()),
        (true, Some(pinned), "ops")
    );
    assert_eq!(change.priority.as_deref(), Some(&b"\x08\x02\x12\x03Ann\x1d\x00\x00\x20\x40"[..]));
}

#[test]
fn what_is_absent_stays_as_it_is() {
    let change =
        |change| asked(&Command { update_activity_options: Some(change), ..of("update_activity_options") });
    let all = GivenActivityChange { all: true, ..GivenActivityChange::default() };
    let none = GivenActivityChange { options: Some(GivenActivityOptions::default()), ..all.clone() };
    let Request::UpdateActivityOptions(none) = change(none) else { panic!("no other options") };
    assert_eq!(none.patch.as_deref(), Some(&ActivityOptionsPatch::default()));
    let original = GivenActivityChange { restore_original: true, ..all };
    let Request::UpdateActivityOptions(original) = change(original) else { panic!("no other options") };
    assert_eq!(original.patch, None, "the original options come back");

    let of_run = |options| asked(&Command { update_options: Some(options), ..of("update_options") });
    let identity = || "ops".to_owned();
    let none = UpdateRunOptions { identity: identity(), ..UpdateRunOptions::default() };
    assert_eq!(of_run(GivenRunOptions::default()), Request::UpdateRunOptions(none.clone()));
    let unset = GivenRunOptions { unset_versioning_override: true, ..GivenRunOptions::default() };
    let expected = UpdateRunOptions { sets_override: true, ..none.clone() };
    assert_eq!(of_run(unset), Request::UpdateRunOptions(expected));
    let cleared = GivenRunOptions { priority: Some(Priority::default()), ..GivenRunOptions::default() };
    let expected = UpdateRunOptions { priority: Some(Default::default()), ..none.clone() };
    assert_eq!(of_run(cleared), Request::UpdateRunOptions(expected));
    let upgrade = GivenOverride { auto_upgrade: true, pinned: None };
    let upgraded = GivenRunOptions { versioning_override: Some(upgrade), ..GivenRunOptions::default() };
    let overriding = Some(Override { pinned: None, auto_upgrade: true });
    let expected = UpdateRunOptions { sets_override: true, overriding, ..none };
    assert_eq!(of_run(upgraded), Request::UpdateRunOptions(expected));
}

#[test]
fn a_pause_of_a_run_needs_no_part_and_takes_its_id_from_the_record() {
    let pause = Command { run_id: None, ..of("pause") };
    let Some(Request::PauseRun(pause)) = input(read(&avro(&pause), &[])).request else { panic!("no pause") };
    assert_eq!((pause.reason.as_str(), pause.request_id), ("", format!("{}-3-42", "07".repeat(16))));
    assert!(matches!(asked(&of("unpause")), Request::UnpauseRun(_)));
}

#[test]
fn activities_are_named_in_one_way() {
    let pause = |pause| Command { pause_activity: Some(pause), ..of("pause_activity") };
    let named = |id: Option<&str>, name: Option<&str>, all| {
        let (activity_id, activity_type) = (id.map(str::to_owned), name.map(str::to_owned));
        pause(GivenActivityPause { activity_id, activity_type, all, reason: None })
    };
    let (code, reason) = refused(&named(None, None, false));
    let none = "an activity is named by activity_id, activity_type or all";
    assert_eq!((code, reason.as_str()), (Code::CommandIncomplete, none));
    let several = "an activity is named by one of activity_id, activity_type and all";
    for (id, name, all) in [
        (Some("a"), Some("A"), false),
        (Some("a"), None, true),
        (None, Some("A"), true),
        (Some(""), Some("A"), true),
    ] {
        assert_eq!(invalid(&named(id, name, all)), several);
    }
    assert_eq!(invalid(&named(Some(""), None, false)), "ActivityId is not set on request.");
    assert_eq!(invalid(&named(None, Some(""), false)), "ActivityType is not set on request.");
    let long = "a".repeat(1_001);
    assert_eq!(invalid(&named(Some(&long), None, false)), "ActivityId length exceeds limit.");
    assert_eq!(invalid(&named(None, Some(&long), false)), "ActivityType length exceeds limit.");
}

#[test]
fn what_is_said_of_activities_has_the_limits_of_a_call() {
    let reason =
        |bytes| GivenActivityPause { all: true, reason: Some("r".repeat(bytes)), ..Default::default() };
    let pause = |pause| Command { pause_activity: Some(pause), ..of("pause_activity") };
    assert!(matches!(asked(&pause(reason(4_000))), Request::PauseActivity(_)));
    assert_eq!(invalid(&pause(reason(4_001))), "Reason exceeds the size limit.");
    let negative = "negative duration: An invalid Jitter is set on request.";
    let unpause = GivenActivityUnpause { all: true, jitter_ms: Some(-1), ..Default::default() };
    let unpause = Command { unpause_activity: Some(unpause), ..of("unpause_activity") };
    assert_eq!(invalid(&unpause), negative);
    let reset = GivenActivityReset { all: true, jitter_ms: Some(i64::MIN), ..Default::default() };
    assert_eq!(invalid(&Command { reset_activity: Some(reset), ..of("reset_activity") }), negative);
    let reset = GivenActivityReset { all: true, jitter_ms: Some(i64::MAX), ..Default::default() };
    let reset = asked(&Command { reset_activity: Some(reset), ..of("reset_activity") });
    let Request::ResetActivity(reset) = reset else { panic!("no reset") };
    assert_eq!(reset.jitter_ms, time::DURATION_MS_MAX);

    let change = |change| Command { update_activity_options: Some(change), ..of("update_activity_options") };
    let all = GivenActivityChange { all: true, ..GivenActivityChange::default() };
    let (code, reason) = refused(&change(all.clone()));
    assert_eq!((code, reason.as_str()), (Code::CommandIncomplete, "the part \"options\" is missing"));
    let both = GivenActivityChange { options: Some(options()), restore_original: true, ..all.clone() };
    assert_eq!(invalid(&change(both)), "Both options and restore_original are provided");
    let priority = Some(Priority { priority_key: Some(-1), ..Priority::default() });
    let options = Some(GivenActivityOptions { priority, ..GivenActivityOptions::default() });
    assert_eq!(invalid(&change(GivenActivityChange { options, ..all })), "priority key can't be negative");
}

#[test]
fn what_is_said_of_runs_has_the_limits_of_a_call() {
    let reason = |bytes| Some("r".repeat(bytes));
    let pause = |bytes| Command { pause: Some(GivenRunPause { reason: reason(bytes) }), ..of("pause") };
    assert!(matches!(asked(&pause(1_000)), Request::PauseRun(_)));
    assert_eq!(invalid(&pause(1_001)), "reason is too long.");
    let unpause = GivenRunUnpause { reason: reason(1_001) };
    assert_eq!(invalid(&Command { unpause: Some(unpause), ..of("unpause") }), "reason is too long.");

    let change = |options| Command { update_options: Some(options), ..of("update_options") };
    let overridden = |overriding| {
        let versioning_override = Some(overriding);
        invalid(&change(GivenRunOptions { versioning_override, ..GivenRunOptions::default() }))
    };
    let version = |deployment_name: &str, build_id: &str| {
        let version = GivenVersion { deployment_name: deployment_name.into(), build_id: build_id.into() };
        GivenOverride { auto_upgrade: false, pinned: Some(version) }
    };
    assert_eq!(overridden(GivenOverride::default()), "override behavior is required");
    let both = GivenOverride { auto_upgrade: true, ..pinned() };
    assert_eq!(overridden(both), "only provide pinned version if behavior is 'PINNED'");
    let unset = "VersioningOverride.DeploymentName is not set on request.";
    assert_eq!(overridden(version("", "one")), unset);
    assert_eq!(overridden(version("shop", "")), "VersioningOverride.BuildId is not set on request.");
    let long = "VersioningOverride.BuildId length exceeds limit.";
    assert_eq!(overridden(version("shop", &"x".repeat(1_001))), long);
    let both = GivenRunOptions {
        versioning_override: Some(pinned()),
        unset_versioning_override: true,
        ..GivenRunOptions::default()
    };
    let text = "Both versioning_override and unset_versioning_override are provided";
    assert_eq!(invalid(&change(both)), text);
    let priority = Some(Priority { fairness_weight: Some(f32::NAN), ..Priority::default() });
    let unweighted = change(GivenRunOptions { priority, ..GivenRunOptions::default() });
    assert_eq!(invalid(&unweighted), "fairness weight is not a number");
}

#[test]
fn parts_and_types_belong_together() {
    for r#type in
        ["pause_activity", "unpause_activity", "reset_activity", "update_activity_options", "update_options"]
    {
        let (code, reason) = refused(&of(r#type));
        assert_eq!((code, reason), (Code::CommandIncomplete, format!("the part {type:?} is missing")));
    }
    for command in commands() {
        let of_another = if command.r#type == "pause" { "cancel" } else { "pause" };
        let (code, reason) = refused(&Command { r#type: of_another.into(), ..command.clone() });
        let expected = format!("a command {of_another:?} has no part {:?}", command.r#type);
        assert_eq!((code, reason), (Code::CommandIncomplete, expected));
    }
    let typo = br#"{"type": "pause_activity", "pause_activity": {"id": "charge"}}"#;
    assert_eq!(refusal(read(typo, &[])).0, Code::NotJson);
}
