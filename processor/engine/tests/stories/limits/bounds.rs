//! Every limit of a run: one below it, at it, and one above. The words and consequences are those of a Temporal server with the
//! same limits.

use bytes::Bytes;
use everlog_engine::Settings;
use everlog_engine::api_types::{Execution, Fields, MapEntry};
use everlog_engine::command::CommandAttributes;
use everlog_engine::machine::close;
use everlog_engine::machine::external_workflow::SignalOther;
use everlog_engine::machine::marker::Record;
use everlog_engine::machine::memo_and_search_attributes::{Modify, UpsertSearchAttributes};
use everlog_engine::machine::update::Admit;
use everlog_engine::payload::{Payload, UserMetadata};
use expect_test::expect_file;
use prost::Message;

use crate::world::{Turn, World, response};

/// A limit, and how a run comes to so much.
type Bound = (&'static str, i64, fn(&mut Settings, i64), fn(&mut World, usize));

/// Bytes of something opaque.
fn blob(length: usize) -> Bytes {
    vec![b' '; length].into()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("n{number}")).collect()
}

fn each(turn: &mut Turn, count: usize, one: for<'t> fn(&'t mut Turn, &str) -> &'t mut Turn) -> &mut Turn {
    for name in names(count) {
        one(turn, &name);
    }
    turn
}

/// An encoded map of so many keys.
fn map(keys: usize) -> Bytes {
    let value = || Payload { data: blob(1), ..Payload::default() }.encode_to_vec().into();
    let entries = names(keys).into_iter().map(|key| MapEntry { key, value: value() }).collect();
    Fields { entries }.encode_to_vec().into()
}

/// An encoded map with one value of so many bytes.
fn one_value(bytes: usize) -> Bytes {
    let value = Payload { data: blob(bytes), ..Payload::default() }.encode_to_vec().into();
    Fields { entries: vec![MapEntry { key: "k".into(), value }] }.encode_to_vec().into()
}

/// An encoded map of so many bytes in all, up to about a hundred.
fn map_of(bytes: usize) -> Bytes {
    let overhead = one_value(1).len() - 1;
    one_value(bytes - overhead)
}

fn id(length: usize) -> String {
    "i".repeat(length)
}

/// An encoded priority whose fairness key is so long.
fn fairness_key(length: usize) -> Bytes {
    let tag_and_length = [0x12, u8::try_from(length).expect("it is short")];
    [&tag_and_length[..], id(length).as_bytes()].concat().into()
}

fn summary(bytes: usize) -> Bytes {
    UserMetadata { summary: Some(blob(bytes)), details: None }.encode_to_vec().into()
}

/// A signal with an input of so many bytes.
fn signal(world: &mut World, bytes: usize) -> &mut World {
    world.signal_with("s", "", |signal| signal.input = Some(blob(bytes)))
}

/// An input of a signal that is told with two bytes how long it is, as is the event.
const LONG: usize = 300;

/// Bytes that a signal adds to a history besides those of a long input.
fn bytes_written() -> usize {
    let mut world = World::new();
    let bytes =
        |world: &World| usize::try_from(world.run().head.history_bytes).expect("it is no less than 0");
    let before = bytes(world.start("w"));
    bytes(signal(&mut world, LONG)) - before - LONG
}

/// Bytes of a signal that waits besides those of a long input.
fn bytes_buffered() -> usize {
    let mut world = World::new();
    world.start("w").claim();
    signal(&mut world, LONG).run().buffered[0].encoded_len() - LONG
}

fn with_activity(world: &mut World) -> &mut World {
    world.task(|t| t.activity("a")).claim_activity("a").hush()
}

const BOUNDS: &[Bound] = &[
    (
        "activities",
        3,
        |s, n| s.pending_activities_max = n,
        |w, n| {
            w.task(|t| each(t, n, |t, name| t.activity(name)));
        },
    ),
    (
        "children",
        3,
        |s, n| s.pending_children_max = n,
        |w, n| {
            w.task(|t| each(t, n, |t, name| t.child(name)));
        },
    ),
    (
        "signals to others",
        3,
        |s, n| s.pending_signals_max = n,
        |w, n| {
            w.task(|t| each(t, n, |t, name| t.signal_other(name, false)));
        },
    ),
    (
        "cancellations of others",
        3,
        |s, n| s.pending_cancels_max = n,
        |w, n| {
            w.task(|t| each(t, n, |t, name| t.cancel_other(name, false)));
        },
    ),
    (
        "signals",
        3,
        |s, n| s.signals_max = n,
        |w, n| {
            for name in names(n) {
                w.signal(&name);
            }
        },
    ),
    (
        "events during a task",
        3,
        |s, n| s.buffered_events_max = n,
        |w, n| {
            w.claim();
            for name in names(n) {
                w.signal(&name);
            }
        },
    ),
    (
        "events",
        6,
        |s, n| s.history_events_max = n,
        |w, n| {
            for name in names(n - 2) {
                w.signal(&name);
            }
        },
    ),
    (
        "bytes of events during a task",
        1_000,
        |s, n| s.buffered_bytes_max = n,
        |w, n| {
            signal(w.claim(), LONG);
            signal(w, n - bytes_buffered() - LONG - bytes_buffered());
        },
    ),
    (
        "bytes of events",
        1_000,
        |s, n| s.history_bytes_max = n,
        |w, n| {
            let before = usize::try_from(w.run().head.history_bytes).expect("it is no less than 0");
            signal(w, n - before - bytes_written());
        },
    ),
    (
        "bytes of the state",
        1_000,
        |s, n| s.state_bytes_max = n,
        |w, n| {
            let before = usize::try_from(w.claim().run().head.state_bytes).expect("it is no less than 0");
            signal(w, n - before - bytes_buffered());
        },
    ),
    (
        "updates at once",
        3,
        |s, n| s.updates_in_flight_max = n,
        |w, n| {
            for name in names(n) {
                w.update(&name);
            }
        },
    ),
    (
        "updates in all",
        3,
        |s, n| s.updates_max = n,
        |w, n| {
            for name in names(n) {
                w.update(&name);
                if w.run().head.task.is_some() {
                    w.task(|t| t.accept(&name).respond(&name));
                }
            }
        },
    ),
    (
        "bytes of an activity's input",
        30,
        |s, n| s.blob_bytes_max = n,
        |w, n| {
            w.task(|t| t.activity_with("a", "", |order| order.input = Some(blob(n))));
        },
    ),
    (
        "bytes of a child's input",
        30,
        |s, n| s.blob_bytes_max = n,
        |w, n| {
            w.task(|t| t.child_with("c", "", |order| order.input = Some(blob(n))));
        },
    ),
    (
        "bytes of a continuation's input",
        30,
        |s, n| s.blob_bytes_max = n,
        |w, n| {
            w.task(|t| t.continue_as_new(|order| order.input = Some(blob(n))));
        },
    ),
    (
        "bytes of an external signal's input",
        30,
        |s, n| s.blob_bytes_max = n,
        |w, n| {
            let execution = Some(Execution { workflow_id: "other".into(), run_id: String::new() });
            let (signal_name, input) = ("s".into(), Some(blob(n)));
            let order = SignalOther { execution, signal_name, input, ..SignalOther::default() };
            w.task(|t| t.command("", CommandAttributes::SignalExternal(Box::new(order))));
        },
    ),
    (
        "bytes of a result",
        30,
        |s, n| s.blob_bytes_max = n,
        |w, n| {
            w.task(|t| {
                t.command("", CommandAttributes::CompleteWorkflow(close::Complete { result: Some(blob(n)) }))
            });
        },
    ),
    (
        "bytes of a failure",
        30,
        |s, n| s.blob_bytes_max = n,
        |w, n| {
            w.task(|t| t.fail(blob(n)));
        },
    ),
    (
        "bytes of a marker's details",
        30,
        |s, n| s.blob_bytes_max = n,
        |w, n| {
            let key = "k";
            let details = vec![MapEntry { key: key.into(), value: blob(n - key.len()) }];
            let order = Record { marker_name: "m".into(), details, ..Record::default() };
            w.task(|t| t.command("", CommandAttributes::RecordMarker(Box::new(order))));
        },
    ),
    (
        "bytes of an activity's result",
        60,
        |s, n| s.blob_bytes_max = n,
        |w, n| {
            let target = with_activity(w).target("a");
            w.completes("", target, blob(n));
        },
    ),
    (
        "bytes of an activity's report",
        60,
        |s, n| s.blob_bytes_max = n,
        |w, n| {
            let target = with_activity(w).target("a");
            w.heartbeats("", target, Some(blob(n)));
        },
    ),
    ("bytes of a memo", 60, |s, n| s.memo_bytes_max = n, |w, n| modify(w, map_of(n))),
    (
        "bytes of a child's memo",
        60,
        |s, n| s.memo_bytes_max = n,
        |w, n| {
            w.task(|t| t.child_with("c", "", |order| order.memo = Some(map_of(n))));
        },
    ),
    (
        "bytes of a continuation's memo",
        60,
        |s, n| s.memo_bytes_max = n,
        |w, n| {
            w.task(|t| t.continue_as_new(|order| order.memo = Some(map_of(n))));
        },
    ),
    ("keys of a memo", 3, |s, n| s.memo_keys_max = n, |w, n| modify(w, map(n))),
    (
        "keys of a child's memo",
        3,
        |s, n| s.memo_keys_max = n,
        |w, n| {
            w.task(|t| t.child_with("c", "", |order| order.memo = Some(map(n))));
        },
    ),
    (
        "keys of a continuation's memo",
        3,
        |s, n| s.memo_keys_max = n,
        |w, n| {
            w.task(|t| t.continue_as_new(|order| order.memo = Some(map(n))));
        },
    ),
    ("search attributes", 3, |s, n| s.search_attributes_max = n, |w, n| upsert(w, map(n))),
    (
        "search attributes of a child",
        3,
        |s, n| s.search_attributes_max = n,
        |w, n| {
            w.task(|t| t.child_with("c", "", |order| order.search_attributes = Some(map(n))));
        },
    ),
    (
        "bytes of a search attribute",
        30,
        |s, n| s.search_attribute_bytes_max = n,
        |w, n| upsert(w, one_value(n)),
    ),
    (
        "bytes of a child's search attribute",
        30,
        |s, n| s.search_attribute_bytes_max = n,
        |w, n| {
            w.task(|t| t.child_with("c", "", |order| order.search_attributes = Some(one_value(n))));
        },
    ),
    (
        "bytes of all search attributes",
        60,
        |s, n| s.search_attributes_bytes_max = n,
        |w, n| upsert(w, map_of(n)),
    ),
    (
        "bytes of a summary",
        30,
        |s, n| s.summary_bytes_max = n,
        |w, n| {
            w.task(|t| {
                t.start_timer("t", 1_000);
                if let Some(command) = t.order.commands.last_mut() {
                    command.user_metadata = Some(summary(n));
                }
                t
            });
        },
    ),
    (
        "bytes of an activity's id",
        30,
        |s, n| s.id_bytes_max = n,
        |w, n| {
            w.task(|t| t.activity(&id(n)));
        },
    ),
    (
        "bytes of the fairness key of an activity",
        30,
        |s, n| s.fairness_key_bytes_max = n,
        |w, n| {
            w.task(|t| t.activity_with("a", "", |activity| activity.priority = Some(fairness_key(n))));
        },
    ),
    (
        "bytes of a timer's id",
        30,
        |s, n| s.id_bytes_max = n,
        |w, n| {
            w.task(|t| t.start_timer(&id(n), 1_000));
        },
    ),
    (
        "bytes of a child's id",
        30,
        |s, n| s.id_bytes_max = n,
        |w, n| {
            w.task(|t| t.child(&id(n)));
        },
    ),
];

fn modify(world: &mut World, memo: Bytes) {
    let order = Modify { upserted_memo: Some(memo) };
    world.task(|t| t.command("", CommandAttributes::ModifyProperties(order)));
}

fn upsert(world: &mut World, search_attributes: Bytes) {
    let order = UpsertSearchAttributes { search_attributes: Some(search_attributes) };
    world.task(|t| t.command("", CommandAttributes::UpsertSearchAttributes(order)));
}

/// What came of it: a refusal in its words, and whether an activity, the task or the run was over with it.
fn verdict(story: &str) -> String {
    let refusal = story.lines().rev().find_map(|line| line.strip_prefix("! "));
    let ends = story.contains("activity.failed").then_some("the activity fails");
    let fails = story.contains("task.failed").then_some("the task fails");
    let closes = story.contains("workflow.terminated").then_some("the run ends");
    let told = [refusal, ends, fails, closes].into_iter().flatten().collect::<Vec<_>>().join("; ");
    if told.is_empty() { "taken".to_owned() } else { told }
}

#[test]
fn each_is_met_below_at_and_above() {
    let mut table = String::new();
    for (name, limit, set, come) in BOUNDS {
        table.push_str(&format!("{name}, at most {limit}\n"));
        for count in limit - 1..=limit + 1 {
            let mut world = World::with(|settings| set(settings, *limit));
            world.start("w").hush();
            come(&mut world, usize::try_from(count).expect("a small number"));
            table.push_str(&format!("    {count}: {}\n", verdict(world.story())));
        }
    }
    expect_file!["bounds.txt"].assert_eq(&table);
}

#[test]
fn what_a_worker_says_of_an_update_is_bounded_as_any_payload() {
    let answer = response("u", blob(900));
    let bytes = answer.body.as_ref().map_or(0, Message::encoded_len) as i64;
    let came_of = |bytes_max: i64| {
        let mut world = World::with(|settings| settings.blob_bytes_max = bytes_max);
        world.start("w").update("u");
        world.task(|t| t.accept("u").message("answer u", answer.clone()));
        verdict(world.story())
    };
    assert_eq!(came_of(bytes), "taken");
    let told = came_of(bytes - 1);
    let words = "Message type temporal.api.update.v1.Response exceeds size limit.";
    let refused = format!("invalid: BadUpdateWorkflowExecutionMessage: {words}");
    assert!(told.starts_with(&refused), "{told}");
    assert!(told.ends_with("; the task fails; the run ends"), "{told}");
}

#[test]
fn updates_that_nobody_has_accepted_are_bounded_together() {
    let mut world = World::with(|settings| settings.updates_bytes_max = 1_000);
    let of = |bytes: usize| move |admit: &mut Admit| admit.request = blob(bytes);
    world.start("w").update_with("u1", "", of(500)).update_with("u2", "", of(490)).hush();
    world.update_with("u3", "", of(501));
    assert!(verdict(world.story()).starts_with("too many at once: "), "{}", world.story());
    world.hush().task(|t| t.accept("u1").accept("u2")).update_with("u3", "", of(501));
    assert_eq!(verdict(world.story()), "taken", "what was accepted does not count");
}
