//! Whose turn it is.

use std::num::NonZeroU64;

use super::*;
use crate::model::keys::WorkflowKey;

fn task(workflow: &str, id: i64, precedence: TaskPriority) -> Ready {
    let run = WorkflowKey::new("n", workflow).run("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1");
    let (partition, scheduled_event_id, attempt) = (1, id, 1);
    let (normal_queue, offered_by, term) = (None, None, None);
    Ready::Task(TaskRef {
        partition,
        run,
        scheduled_event_id,
        attempt,
        stamp: 0,
        normal_queue,
        precedence,
        offered_by,
        term,
    })
}

fn plain(workflow: &str, id: i64) -> Ready {
    task(workflow, id, TaskPriority::default())
}

fn ids(backlog: &mut Backlog, count: usize) -> Vec<i64> {
    let popped = std::iter::from_fn(|| backlog.pop(&mut OwnPriority)).take(count);
    popped.map(|ready| if let Ready::Task(task) = ready { task.scheduled_event_id } else { -1 }).collect()
}

#[test]
fn one_that_waits_takes_little() {
    // With its place in the order, its share and its id some 240 bytes, and its key: a million may wait.
    assert!(size_of::<BacklogEntry>() <= 128, "{}", size_of::<BacklogEntry>());
}

#[test]
fn a_run_with_ten_thousand_tasks_delays_others_by_a_turn() {
    let mut backlog = Backlog::default();
    (0..10_000).for_each(|id| backlog.push(0, plain("flood", id)));
    assert_eq!(ids(&mut backlog, 3), [0, 1, 2]);
    backlog.push(0, plain("one", -10));
    backlog.push(0, plain("two", -20));
    backlog.push(0, plain("two", -21));
    let next = ids(&mut backlog, 6);
    assert!(next.iter().position(|id| *id == -10).is_some_and(|turn| turn <= 2), "{next:?}");
    assert!(next.contains(&-20) && next.contains(&-21), "{next:?}");
    assert_eq!(ids(&mut backlog, usize::MAX).len(), 10_000 - 3 - 3);
    assert!(backlog.is_empty());
}

#[test]
fn whoever_comes_anew_all_the_time_keeps_no_second_task_waiting() {
    let mut backlog = Backlog::default();
    (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
    backlog.push(0, plain("two", -1));
    backlog.push(0, plain("two", -2));
    let mut seen = Vec::new();
    for turn in 100..400 {
        seen.extend(ids(&mut backlog, 1));
        backlog.push(0, plain(&format!("w{turn}"), turn));
    }
    let at = |id| seen.iter().position(|seen| *seen == id).expect("it has had its turn");
    assert!(at(-1) <= 101 && at(-2) <= 205, "{} and {}: about a turn of a hundred each", at(-1), at(-2));
}

#[test]
fn what_is_offered_again_and_again_keeps_its_turn_and_puts_nothing_off() {
    let mut backlog = Backlog::default();
    (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
    for _ in 0..10 {
        (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
    }
    assert_eq!(backlog.len(), 100);
    assert_eq!(ids(&mut backlog, 2), [0, 1]);
    // Its turn was begun and not ended; meanwhile it is offered again.
    backlog.push(0, plain("w0", 0));
    backlog.push_first(0, plain("w0", 0));
    assert_eq!((backlog.len(), ids(&mut backlog, 1)), (99, vec![0]));
    backlog.push(0, plain("w50", 1_000));
    let next = ids(&mut backlog, 99);
    assert_eq!(next.len(), 99);
    assert_eq!(next.iter().position(|id| *id == 50), Some(48));
    assert!(next.contains(&1_000) && backlog.is_empty());
}

#[test]
fn what_an_earlier_owner_offers_late_does_not_stand_for_what_a_later_one_has_offered() {
    let of = |term| match plain("w", 1) {
        Ready::Task(task) => Ready::Task(TaskRef { term: NonZeroU64::new(term), ..task }),
        query @ Ready::Query { .. } => query,
    };
    let term = |ready: Option<Ready>| ready.expect("it waits").term().map(NonZeroU64::get);
    let terms = |offers: &[u64]| {
        let mut backlog = Backlog::default();
        offers.iter().for_each(|term| backlog.push(0, of(*term)));
        let first = term(backlog.pop(&mut OwnPriority));
        // It was being handed out while another one was offered.
        offers.iter().rev().for_each(|term| backlog.push_first(0, of(*term)));
        assert_eq!(backlog.len(), 1);
        (first, term(backlog.pop(&mut OwnPriority)))
    };
    assert_eq!(terms(&[1, 9]), (Some(9), Some(9)));
    assert_eq!(terms(&[9, 1]), (Some(9), Some(9)));
    assert_eq!(terms(&[7, 7]), (Some(7), Some(7)));
    assert_eq!(terms(&[9, 0]).0, None, "where nobody knows the last one counts");
    assert_eq!(terms(&[0, 9]).0, Some(9));
}

#[test]
fn questions_take_turns_as_their_runs_do() {
    let mut backlog = Backlog::default();
    (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
    for asked in 0..50 {
        let run =
            WorkflowKey::new("n", &format!("asked-{asked}")).run("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1");
        let (query_id, normal_queue, offered_by) = (format!("1-{asked}"), None, None);
        backlog.push(0, Ready::Query { partition: 1, run, query_id, normal_queue, offered_by });
    }
    let mut answered = 0;
    for turn in 100..250 {
        answered += usize::from(ids(&mut backlog, 1) == [-1]);
        backlog.push(0, plain(&format!("w{turn}"), turn));
    }
    assert_eq!(answered, 50, "behind those that came before them");
}

#[test]
fn runs_with_one_task_each_go_as_they_came() {
    let mut backlog = Backlog::default();
    (0..100).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
    assert_eq!(ids(&mut backlog, 50), (0..50).collect::<Vec<_>>());
    (100..150).for_each(|id| backlog.push(0, plain(&format!("w{id}"), id)));
    assert_eq!(ids(&mut backlog, 100), (50..150).collect::<Vec<_>>());
}

#[test]
fn a_higher_priority_goes_first_whatever_waits() {
    let mut backlog = Backlog::default();
    for (number, level) in (0..).zip([5, 4, 3, 2, 1, 1, 5]) {
        let precedence = TaskPriority { level, ..TaskPriority::default() };
        let id = 10 * i64::from(level) + number;
        backlog.push(i64::from(level), task(&format!("w{level}"), id, precedence));
    }
    let levels: Vec<_> = backlog.levels().collect();
    assert_eq!(levels, [(1, 2, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4), (5, 2, 5)]);
    assert_eq!(ids(&mut backlog, 9), [14, 15, 23, 32, 41, 50, 56]);
}

#[test]
fn keys_share_by_weight_whatever_runs_they_come_from() {
    let mut backlog = Backlog::default();
    let of = |key: &str, stride| TaskPriority { fairness_key: key.into(), stride, ..TaskPriority::default() };
    for id in 0..1_000 {
        backlog.push(0, task(&format!("l{id}"), 1, of("light", 900)));
        backlog.push(0, task(&format!("h{id}"), 0, of("heavy", 100)));
    }
    let light: i64 = ids(&mut backlog, 500).iter().sum();
    assert!((45..=55).contains(&light), "one in ten of 500: {light}");
}

#[test]
fn what_comes_back_is_the_next_one_and_nothing_is_forgotten() {
    let mut backlog = Backlog::default();
    [1, 2, 3].into_iter().for_each(|id| backlog.push(id, plain("w", id)));
    let (one, two) =
        (backlog.pop(&mut OwnPriority).expect("it waits"), backlog.pop(&mut OwnPriority).expect("it waits"));
    backlog.push_first(2, two);
    backlog.push_first(1, one);
    assert_eq!(backlog.levels().collect::<Vec<_>>(), [(3, 3, 1)]);
    assert_eq!(ids(&mut backlog, 9), [1, 2, 3]);
    assert_eq!((backlog.len(), backlog.pop(&mut OwnPriority)), (0, None));
}

fn keyed(key: &str, workflow: &str, partition: u32, id: i64, weight: f32) -> Ready {
    let priority = TaskPriority { fairness_key: key.into(), ..TaskPriority::of_weight(weight) };
    match task(workflow, id, priority) {
        Ready::Task(task) => Ready::Task(TaskRef { partition, ..task }),
        query @ Ready::Query { .. } => query,
    }
}

#[test]
fn keys_share_by_weight_whatever_partitions_they_come_from() {
    for (weights, of_first) in [((3.0, 1.0), 750), ((300.0, 200.0), 600), ((1.0, 0.002), 998)] {
        let mut backlog = Backlog::default();
        for id in 0..2_000 {
            backlog.push(0, keyed("first", "one run", 1, id, weights.0));
            backlog.push(0, keyed("second", &format!("w{id}"), 2 + id as u32 % 7, -1 - id, weights.1));
        }
        let first = ids(&mut backlog, 1_000).into_iter().filter(|id| *id >= 0).count();
        assert!(first.abs_diff(of_first) <= 3, "{weights:?}: {first} of 1,000");
    }
}

#[test]
fn a_key_that_has_one_task_at_a_time_gains_nothing_by_that() {
    let mut backlog = Backlog::default();
    (0..1_000).for_each(|id| backlog.push(0, keyed("heavy", "h", 1, id, 9.0)));
    let mut light = 0;
    backlog.push(0, keyed("light", "l", 2, -1, 1.0));
    for _ in 0..500 {
        if ids(&mut backlog, 1)[0] < 0 {
            light += 1;
            backlog.push(0, keyed("light", "l", 2, -2 - light, 1.0));
        }
    }
    assert!((48..=52).contains(&light), "one in ten of 500: {light}");
    assert!(ids(&mut backlog, usize::MAX).len() > 500);
    assert!(backlog.is_empty() && backlog.keys() == 0, "nothing is remembered of what is empty");
}

/// Holds keys, and what has none.
struct Holds(Vec<&'static str>);

impl TurnRules for Holds {
    fn stride(&self, ready: &Ready) -> u32 {
        OwnPriority.stride(ready)
    }

    fn holds(&mut self, ready: &Ready) -> bool {
        self.0.contains(&ready.fairness_key().unwrap_or_default())
    }
}

#[test]
fn what_is_held_keeps_no_other_waiting_and_gains_no_credit() {
    let mut backlog = Backlog::default();
    let next = |backlog: &mut Backlog, held: &[&'static str], count: usize| -> Vec<i64> {
        let mut rules = Holds(held.to_vec());
        let popped = std::iter::from_fn(|| backlog.pop(&mut rules)).take(count);
        popped.map(|ready| if let Ready::Task(task) = ready { task.scheduled_event_id } else { -1 }).collect()
    };
    (0..100).for_each(|id| backlog.push(0, keyed("a", "a", 1, id, 1.0)));
    (100..300).for_each(|id| backlog.push(0, keyed("b", "b", 1, id, 1.0)));
    (300..400).for_each(|id| backlog.push(0, plain("c", id)));
    let first = TaskPriority { level: 1, fairness_key: "a".into(), ..TaskPriority::default() };
    backlog.push(0, task("a", 400, first));
    assert!(next(&mut backlog, &["a", "b", ""], 1).is_empty() && backlog.len() == 401);
    backlog.release("");
    assert_eq!(next(&mut backlog, &[], 2), [300, 301], "the others stay held");
    backlog.release("b");
    let some = next(&mut backlog, &["a"], 100);
    assert!(some.iter().all(|id| (100..400).contains(id)), "{some:?}");
    backlog.release("a");
    assert_eq!(next(&mut backlog, &[], 1), [400], "its level goes first again");
    let turns = next(&mut backlog, &[], 90);
    let of_a = turns.iter().filter(|id| **id < 100).count();
    assert!((29..=31).contains(&of_a), "a third, as of those that were not held: {of_a}");
    backlog.push(0, keyed("a", "a", 1, 1_000, 1.0));
    assert!(next(&mut backlog, &["a", "b", ""], 1).is_empty());
    let left = backlog.len();
    assert_eq!(backlog.into_all().count(), left);
}
