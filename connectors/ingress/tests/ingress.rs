//! The ingress between a topic in memory and journals that fail: everything arrives, in order, and counts once.

mod harness;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use everlog_avro::{PublicTopic, write};
use everlog_engine::request::Request;
use everlog_log::consumer::Fetched;
use everlog_wire::Body;
use harness::{Fault, Harness, INCARNATION, Journal, Journals, Registry, cancel, record, signal};

/// Source partitions and offsets of what was applied, with what each says.
fn told(journal: &Journal) -> Vec<(u32, u64, String)> {
    let tell = |body: &Body| match body {
        Body::PublicCommand(forwarded) => {
            let source = forwarded.source.as_ref().expect("it has a place");
            let order = forwarded.input.as_ref().and_then(|input| input.request.as_ref());
            let name = match order {
                Some(Request::Signal(signal)) => signal.name.clone(),
                Some(Request::Cancel(_)) => "cancel".into(),
                other => panic!("nobody sent {other:?}"),
            };
            (source.partition, source.offset, name)
        }
        Body::InvalidCommand(unreadable) => {
            let source = unreadable.source.as_ref().expect("it has a place");
            (source.partition, source.offset, unreadable.code.clone())
        }
        other => panic!("nobody brings {other:?}"),
    };
    journal.applied().iter().map(tell).collect()
}

fn all_told(journals: &Journals) -> Vec<(u32, u64, String)> {
    let mut all: Vec<_> = journals.all().iter().flat_map(told).collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_holds_and_each_record_counts_once_through_all_failures() {
    let mut harness = Harness::new(3);
    for n in 0..1_000_u64 {
        let id = format!("order-{}", n % 17);
        harness.topic.produce((n % 17 % 3) as u32, signal(&id, &format!("s{n}")));
    }
    let faults =
        [Fault::Refused, Fault::AnswerLost, Fault::Part(1), Fault::None, Fault::Part(0), Fault::None];
    harness.journals.faults(faults.into_iter().cycle().take(60));
    let running = harness.run();
    harness.until(|harness| harness.topic.committed().iter().flatten().sum::<u64>() == 1_000).await;
    running.stop().await;
    let mut seen = 0;
    for journal in harness.journals.all() {
        let told = told(&journal);
        seen += told.len();
        for partition in 0..3 {
            let offsets: Vec<_> = told.iter().filter(|told| told.0 == partition).map(|told| told.1).collect();
            assert!(offsets.is_sorted_by(|one, next| one < next), "partition {partition}: {offsets:?}");
        }
    }
    assert_eq!(seen, 1_000);
    let stats = harness.stats();
    assert!(stats.retries.load(Ordering::Relaxed) >= 30);
    assert_eq!(stats.forwarded.load(Ordering::Relaxed), 1_000);
}

#[tokio::test]
async fn what_was_brought_and_not_committed_is_brought_again_and_counts_once() {
    let mut harness = Harness::new(1);
    for n in 0..100 {
        harness.topic.produce(0, signal("order-1", &format!("s{n}")));
    }
    harness.topic.forget_commits(true);
    let running = harness.run();
    harness.until(|harness| harness.stats().forwarded.load(Ordering::Relaxed) == 100).await;
    running.stop().await;
    assert_eq!(harness.topic.committed(), [None]);
    harness.topic.forget_commits(false);
    let running = harness.run();
    harness.until(|harness| harness.topic.committed() == [Some(100)]).await;
    running.stop().await;
    let journals = harness.journals.all();
    assert_eq!(journals.iter().map(Journal::len).sum::<usize>(), 200);
    assert_eq!(all_told(&harness.journals).len(), 100);
}

#[tokio::test]
async fn poison_becomes_a_record_of_its_own_and_stops_nothing() {
    let mut harness = Harness::new(1);
    let header = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned().into()));
    let poison = [
        (Fetched { value: None, ..signal("order-1", "x") }, "null_value"),
        (Fetched { key: None, ..signal("order-1", "x") }, "key_missing"),
        (record("order-1", b"{\"type\"".to_vec()), "not_json"),
        (record("order-1", b"\x01hello".to_vec()), "not_avro"),
        (record("order-1", vec![b' '; 70_000]), "too_large"),
        (
            Fetched { headers: vec![header("namespace", "nowhere")], ..signal("order-1", "x") },
            "namespace_unknown",
        ),
        (
            Fetched { headers: vec![header("namespace", "private")], ..signal("order-1", "x") },
            "namespace_closed",
        ),
        (
            Fetched { headers: vec![header("reply-topic", "everlog.journal")], ..signal("order-1", "x") },
            "reply_topic",
        ),
        // Small where it stands, and large as an order.
        (
            record(
                "order-1",
                format!(r#"{{"type":"signal","signal":{{"name":"x","input":[{}1]}}}}"#, "1,".repeat(20_000))
                    .into(),
            ),
            "too_large",
        ),
    ];
    let mut expected = Vec::new();
    for (fetched, code) in poison {
        for (fetched, what) in [(fetched, code), (signal("order-1", "good"), "good")] {
            expected.push((0, expected.len() as u64, what.to_owned()));
            harness.topic.produce(0, fetched);
        }
    }
    let running = harness.run();
    let count = expected.len() as u64;
    harness.until(|harness| harness.topic.committed() == [Some(count)]).await;
    running.stop().await;
    assert_eq!(all_told(&harness.journals), expected);
    for body in harness.journals.all().iter().flat_map(Journal::applied) {
        let Body::InvalidCommand(unreadable) = body else { continue };
        let original = unreadable.original.expect("its bytes");
        let kept = original.value.map_or(0, |value| value.len() as u64);
        assert!(kept <= 64 << 10 && kept <= original.value_bytes);
        assert!(original.value_bytes < 70_000 || kept == 64 << 10, "it is cut, and no shorter than need be");
    }
}

#[tokio::test]
async fn a_record_waits_for_its_schema_while_those_of_other_partitions_go_on() {
    let mut harness = Harness::new(2);
    let mut value = Vec::new();
    write(PublicTopic::Command, 9, &cancel(), &mut value).expect("a command");
    harness.topic.produce(0, record("order-1", value));
    harness.topic.produce(0, signal("order-1", "behind it"));
    harness.topic.produce(1, signal("order-2", "beside it"));
    // It does not come to an end while the test lasts.
    harness.options.schema_wait_ms = 3_600_000;
    harness.registry = Registry::away();
    let running = harness.run();
    harness.until(|harness| harness.topic.committed() == [None, Some(1)]).await;
    harness.until(|harness| harness.registry.asked() >= 3).await;
    assert_eq!(harness.stats().schema_waits.load(Ordering::Relaxed), 1);
    harness.registry.comes_back(9, PublicTopic::Command.text());
    harness.until(|harness| harness.topic.committed() == [Some(2), Some(1)]).await;
    running.stop().await;
    let expected =
        [(0, 0, "cancel".to_owned()), (0, 1, "behind it".to_owned()), (1, 0, "beside it".to_owned())];
    assert_eq!(all_told(&harness.journals), expected);
}

#[tokio::test]
async fn a_registry_that_stays_away_holds_a_record_up_within_a_bound() {
    let mut harness = Harness::new(1);
    harness.topic.produce(0, record("order-1", vec![0, 0, 0, 0, 9, 1]));
    harness.topic.produce(0, signal("order-1", "behind it"));
    harness.options.schema_wait_ms = 100;
    harness.registry = Registry::away();
    let running = harness.run();
    harness.until(|harness| harness.topic.committed() == [Some(2)]).await;
    running.stop().await;
    let expected = [(0, 0, "schema_unknown".to_owned()), (0, 1, "behind it".to_owned())];
    assert_eq!(all_told(&harness.journals), expected);
}

#[tokio::test]
async fn a_registry_that_stays_away_holds_all_records_up_once() {
    // One after the other they would be held up for 1,000 s.
    const RECORDS: u16 = 2_000;
    let mut harness = Harness::new(1);
    for [high, low] in (0..RECORDS).map(u16::to_be_bytes) {
        harness.topic.produce(0, record("order-1", vec![0, 0, 1, high, low, 1]));
    }
    harness.topic.produce(0, signal("order-1", "behind them"));
    harness.options.schema_wait_ms = 500;
    harness.registry = Registry::away();
    let running = harness.run();
    harness.until(|harness| harness.topic.committed() == [Some(u64::from(RECORDS) + 1)]).await;
    running.stop().await;
    let records = usize::from(RECORDS);
    let told = all_told(&harness.journals);
    assert!(told[..records].iter().all(|(_, _, code)| code == "schema_unknown"));
    assert_eq!(told[records], (0, u64::from(RECORDS), "behind them".to_owned()));
}

#[tokio::test]
async fn what_waits_is_bounded_while_a_journal_takes_nothing() {
    let mut harness = Harness::new(2);
    for n in 0..5_000_u64 {
        harness.topic.produce(0, signal("order-1", &format!("s{n}")));
        harness.topic.produce(1, signal("order-2", &format!("s{n}")));
    }
    harness.journals.close(true);
    let running = harness.run();
    harness.until(|harness| harness.topic.paused() == 2).await;
    let most = 2 * (harness.options.backlog_records_max + harness::POLL_RECORDS) as u64;
    let backlog = harness.stats().backlog_records.load(Ordering::Relaxed);
    assert!(backlog > 0 && backlog <= most, "{backlog} records wait, {most} may");
    harness.journals.close(false);
    harness.until(|harness| harness.topic.committed() == [Some(5_000), Some(5_000)]).await;
    running.stop().await;
    assert_eq!(all_told(&harness.journals).len(), 10_000);
}

#[tokio::test]
async fn a_partition_that_is_not_what_it_was_is_not_read_and_the_others_are() {
    let mut harness = Harness::new(4);
    for partition in 0..4 {
        (0..10).for_each(|n| harness.topic.produce(partition, signal("order-1", &format!("s{n}"))));
    }
    harness.topic.left_at(0, [1; 16], 3);
    harness.topic.left_at(1, INCARNATION, 11);
    harness.topic.left_at(2, INCARNATION, 3);
    harness.topic.trim(2, 5);
    harness.topic.left_at(3, INCARNATION, 4);
    let running = harness.run();
    harness.until(|harness| harness.topic.committed()[3] == Some(10)).await;
    harness.until(|harness| harness.stats().stopped().len() == 3).await;
    running.stop().await;
    let stopped = harness.stats().stopped();
    assert!(
        stopped[&0].contains("made again") && stopped[&1].contains("11") && stopped[&2].contains("5 to 10")
    );
    assert_eq!(harness.topic.committed(), [Some(3), Some(11), Some(3), Some(10)]);
    assert_eq!(all_told(&harness.journals).len(), 6);
}

#[tokio::test]
async fn what_is_revoked_is_left_to_others_and_taken_up_where_it_was_left() {
    let mut harness = Harness::new(1);
    harness.journals.close(true);
    (0..10).for_each(|n| harness.topic.produce(0, signal("order-1", &format!("s{n}"))));
    let running = harness.run();
    harness.until(|harness| harness.journals.waiting() == 1).await;
    harness.topic.rebalance();
    harness.until(|harness| harness.topic.assignments() == 2).await;
    harness.journals.close(false);
    harness.until(|harness| harness.topic.committed() == [Some(10)]).await;
    running.stop().await;
    assert_eq!(all_told(&harness.journals).len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_records_arrive_and_nothing_runs_on() {
    let mut harness = Harness::new(4);
    for n in 0..40_000_u64 {
        harness.topic.produce((n % 4) as u32, signal(&format!("order-{n}"), "go"));
    }
    let begin = std::time::Instant::now();
    let running = harness.run();
    harness.until(|harness| harness.topic.committed() == [Some(10_000); 4]).await;
    let took = begin.elapsed();
    running.stop().await;
    println!("{:.0} records/s into journals in memory", 40_000.0 / took.as_secs_f64());
    assert_eq!(all_told(&harness.journals).len(), 40_000);
    assert_eq!(Arc::strong_count(&harness.stats()), 2, "nothing runs on");
}
