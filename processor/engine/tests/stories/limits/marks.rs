//! Marks of a run: each is passed by what is beyond it, and by what is exactly there it is not.

use bytes::Bytes;
use everlog_engine::api_types::{Fields, MapEntry};
use everlog_engine::command::CommandAttributes;
use everlog_engine::machine::activity_attempt;
use everlog_engine::machine::close::Terminate;
use everlog_engine::machine::marker::Record;
use everlog_engine::machine::signal::Signal;
use everlog_engine::machine::start::Begin;
use everlog_engine::machine::workflow_task_completed::Complete;
use everlog_engine::request::Request;
use everlog_engine::{Run, Settings, SizeWarning};
use prost::Message;

use crate::world::{Turn, World, a_signal, fields, start};

/// A mark, its setting, and what it is about in a run.
type Row = (SizeWarning, fn(&mut Settings, i64), fn(&Run) -> i64);

const ROWS: [Row; 4] = [
    (SizeWarning::Events, |to, most| to.history_events_warn = most, |run| run.head.next_event_id - 1),
    (SizeWarning::History, |to, most| to.history_bytes_warn = most, |run| run.head.history_bytes),
    (SizeWarning::State, |to, most| to.state_bytes_warn = most, |run| run.head.state_bytes),
    (
        SizeWarning::Memo,
        |to, most| to.memo_bytes_warn = most,
        |run| Fields { entries: run.properties.memo.clone() }.encoded_len() as i64,
    ),
];

#[test]
fn a_run_passes_a_mark_when_it_comes_beyond_it_and_not_again() {
    let mut world = World::new();
    let memo = fields(&[("a", Some("1"))]);
    world.start_with("order-1", "with a memo", |begin| begin.memo = Some(memo)).claim();
    let before = world.run().clone();
    let mut turn = Turn::new(&before);
    turn.memo(&[("b", Some("2"))]).activity("a");
    let order = Complete { token: Some(world.token()), ..turn.order };
    let outcome = world.order(Request::CompleteTask(Box::new(order)));
    let [step] = &outcome.steps[..] else { panic!("one run has changed") };
    for (mark, set, size) in ROWS {
        let (was, is) = (size(&before), size(&step.run));
        let passed = |most: i64| {
            let mut settings = Settings::default();
            set(&mut settings, most);
            step.marks_passed(Some(&before), &settings).collect::<Vec<_>>()
        };
        for (most, expected) in [(is, vec![]), (is - 1, vec![(mark, is)]), (was, vec![(mark, is)])] {
            assert_eq!(passed(most), expected, "{mark:?} from {was} to {is}, at {most}");
        }
        assert!(was > 1 && passed(was - 1).is_empty(), "{mark:?}: it was beyond it");
        assert_eq!(passed(0), [], "nobody wants to know");
    }
}

#[test]
fn a_run_begins_beyond_its_marks() {
    let mut world = World::new();
    let begin = Begin { memo: Some(fields(&[("a", Some("1"))])), ..start("start") };
    let outcome = world.on("order-1").order(Request::Start(Box::new(begin)));
    let [step] = &outcome.steps[..] else { panic!("one run has begun") };
    let mut settings = Settings::default();
    ROWS.iter().for_each(|(_, set, _)| set(&mut settings, 1));
    let passed: Vec<_> = step.marks_passed(None, &settings).map(|(mark, _)| mark).collect();
    assert_eq!(passed, ROWS.map(|(mark, ..)| mark));
}

const LARGE: i64 = 100;

fn large() -> Bytes {
    vec![b' '; LARGE as usize].into()
}

/// Orders something, and tells the size of the payload that is beyond its mark.
fn beyond(world: &mut World, most: i64, order: Request) -> Option<i64> {
    let settings = Settings { blob_bytes_warn: most, ..Settings::default() };
    let before = world.current().cloned();
    let outcome = world.order(order);
    let passed = |step: &everlog_engine::Step| {
        step.marks_passed(before.as_ref(), &settings)
            .find(|(mark, _)| *mark == SizeWarning::Blob)
            .map(|(_, size)| size)
    };
    outcome.steps.iter().find_map(passed)
}

#[test]
fn a_payload_passes_its_mark_whoever_sends_it() {
    let mut world = World::new();
    world.on("order-1");
    let begin = Begin { input: Some(large()), ..start("start") };
    assert_eq!(beyond(&mut world, LARGE - 1, Request::Start(Box::new(begin))), Some(LARGE));
    let signal = |id: &str| Request::Signal(Signal { header: Some(large()), ..a_signal("go", id) });
    assert_eq!(beyond(&mut world, LARGE, signal("1")), None);
    assert_eq!(beyond(&mut world, LARGE - 1, signal("2")), Some(LARGE));
    assert_eq!(beyond(&mut world, 0, signal("3")), None);

    world.claim();
    let mut turn = Turn::new(world.run());
    let details = vec![MapEntry { key: "k".into(), value: large().slice(1..) }];
    let marker = Record { marker_name: "m".into(), details, ..Record::default() };
    turn.activity("a").command("marker", CommandAttributes::RecordMarker(Box::new(marker)));
    let order = Complete { token: Some(world.token()), ..turn.order };
    assert_eq!(beyond(&mut world, LARGE - 1, Request::CompleteTask(Box::new(order))), Some(LARGE));

    world.claim_activity("a");
    let report = activity_attempt::Heartbeat { target: world.target("a"), details: Some(large()) };
    assert_eq!(beyond(&mut world, LARGE - 1, Request::HeartbeatActivity(report)), Some(LARGE));
    let target = world.target("a");
    let result =
        activity_attempt::Complete { target, result: Some(large()), ..activity_attempt::Complete::default() };
    assert_eq!(beyond(&mut world, LARGE - 1, Request::CompleteActivity(result)), Some(LARGE));
    let end = Terminate { details: Some(large()), ..Terminate::default() };
    assert_eq!(beyond(&mut world, LARGE - 1, Request::Terminate(end)), Some(LARGE));
}
