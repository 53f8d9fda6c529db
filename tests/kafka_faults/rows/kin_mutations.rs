//! Mutations of children, chains, updates and resets, each with the least that the checker must report.

use crate::checker::lineage::Lineage;
use crate::client_log::{Answer, Call, Deed};
use crate::event::Event;
use crate::observations::Observations;
use crate::rows::checker_mutations::NamedDamage;
use crate::workflows;
use everlog_tests::fate::Fate;

const ACCEPTED: &str = "WorkflowExecutionUpdateAccepted";
const ANSWERED: &str = "WorkflowExecutionUpdateCompleted";
const SIGNALED: &str = "WorkflowExecutionSignaled";
const STARTED: &str = "WorkflowExecutionStarted";
const TOLD: &str = "ChildWorkflowExecutionCompleted";
const ARRIVED: &str = "ExternalWorkflowExecutionSignaled";
/// A kind that nobody looks at.
const NOTHING: &str = "MarkerRecorded";

pub const KIN: &[NamedDamage] = &[
    ("a child is begun twice", "has begun", |observations| {
        let run_id = room(observations).run_id.clone();
        let twin = observations.events.iter().filter(|event| event.run_id == run_id).cloned().map(another);
        let twin: Vec<_> = twin.collect();
        observations.events.extend(twin);
    }),
    ("a child that nobody asked for", "did not ask for it", |observations| {
        room(observations).numbers.insert("parent_initiated_event_id".into(), 1);
    }),
    ("a child that could not begin is there", "could not begin, and is there", |observations| {
        let begun = kind(observations, "ChildWorkflowExecutionStarted");
        begun.kind = "StartChildWorkflowExecutionFailed".into();
        let (run_id, place) = (begun.run_id.clone(), begun.number("initiated_event_id"));
        for event in observations.events.iter_mut().filter(|event| event.run_id == run_id) {
            let is_end = event.kind.starts_with("ChildWorkflowExecution");
            if is_end && event.number("initiated_event_id") == place {
                event.kind = NOTHING.into();
            }
        }
    }),
    ("a child of another run", "its child is", |observations| {
        kind(observations, "ChildWorkflowExecutionStarted").texts.insert("run_id".into(), "another".into());
    }),
    ("a child's end is not heard", "ended 0", |observations| {
        let is_awaited = |event: &&mut Event| workflows::is_awaited(event.text("workflow_id"));
        let told = observations.events.iter_mut().filter(|event| event.kind == TOLD).find(is_awaited);
        told.expect("houses wait for some").kind = NOTHING.into();
    }),
    ("a child's end is heard twice", "ended 2", |observations| {
        let told = kind(observations, TOLD).clone();
        let letter = in_run(observations, &told.run_id, ARRIVED);
        (letter.kind, letter.numbers, letter.texts) = (told.kind, told.numbers, told.texts);
    }),
    ("a child's end is told wrongly", "tells of", |observations| {
        kind(observations, TOLD).texts.insert("result".into(), "another".into());
    }),
    ("the end of a run before the last is told", "tells of", |observations| {
        kind(observations, TOLD).texts.insert("run_id".into(), "another".into());
    }),
    ("a child ends with a parent that goes on", "no parent that closed before", |observations| {
        last(observations, "reason", "by parent close policy").time_ms -= 600_000;
    }),
    ("a letter is lost", "arrived 0 times", |observations| {
        let letter = observations.events.iter_mut().find(|event| !event.text("external_run_id").is_empty());
        letter.expect("letters are sent").kind = NOTHING.into();
    }),
    ("a letter arrives twice", "times more than it was sent", |observations| {
        let letter = observations.events.iter().find(|event| !event.text("external_run_id").is_empty());
        let again = letter.expect("letters are sent").clone();
        observations.events.push(again);
    }),
    ("a letter is answered twice", "[\"ExternalWorkflowExecutionSignaled\", \"External", |observations| {
        let one = kind(observations, ARRIVED).clone();
        let other =
            observations.events.iter_mut().rfind(|event| event.kind == ARRIVED && event.run_id == one.run_id);
        other.expect("a house has several").numbers = one.numbers;
    }),
    ("a letter is answered that nobody sent", "which sent nothing", |observations| {
        kind(observations, ARRIVED).numbers.insert("initiated_event_id".into(), 1);
    }),
    ("an attempt is left out", "it is attempt", |observations| {
        *follower(observations, "Retry").numbers.entry("attempt".into()).or_default() += 1;
    }),
    ("a run is missing in a chain", "which does not come from it", |observations| {
        let run_id = follower(observations, "Retry").run_id.clone();
        observations.events.retain(|event| event.run_id != run_id);
    }),
    ("a run has two successors", "which another follows", |observations| {
        let run_id = follower(observations, "Retry").run_id.clone();
        let twin: Vec<_> =
            observations.events.iter().filter(|event| event.run_id == run_id).cloned().map(another).collect();
        observations.events.extend(twin);
    }),
    ("a run of another chain", "which belongs to another chain", |observations| {
        follower(observations, "Retry").texts.insert("first_run_id".into(), "another".into());
    }),
    ("a first run says that it is none", "it is the first of its chain", |observations| {
        kind(observations, STARTED).texts.insert("first_run_id".into(), "another".into());
    }),
    ("who follows by itself says it was tried again", "it was made by", |observations| {
        follower(observations, "Workflow").texts.insert("initiator".into(), "Retry".into());
    }),
    ("a round forgets its last result", "its last result is", |observations| {
        follower(observations, "Cron").texts.insert("last_completion_result".into(), "0".into());
    }),
    ("a next attempt knows no failure", "its failure is", |observations| {
        follower(observations, "Retry").texts.remove("continued_failure");
    }),
    ("a round comes too early", "its first task comes before", |observations| {
        let run_id = follower(observations, "Cron").run_id.clone();
        in_run(observations, &run_id, "WorkflowTaskScheduled").time_ms -= 600_000;
    }),
    ("a run begins while another is open", "is open", |observations| {
        let before = follower(observations, "Retry").text("continued_run_id").to_owned();
        observations.events.retain(|event| event.run_id != before || !event.is_closing());
    }),
    ("a repair fails once too often", "ended after", |observations| {
        let end = |event: &&mut Event| event.workflow_id.starts_with("repair") && event.is_last();
        observations.events.iter_mut().find(end).expect("repairs end").kind =
            "WorkflowExecutionFailed".into();
        let end = |event: &&mut Event| event.workflow_id.starts_with("house") && event.is_last();
        observations.events.iter_mut().find(end).expect("houses end").texts.clear();
    }),
    ("an update is accepted twice", "is accepted twice", |observations| {
        kind(observations, ANSWERED).kind = ACCEPTED.into()
    }),
    ("an update is answered that was not accepted", "answers None", |observations| {
        kind(observations, ANSWERED).numbers.insert("accepted_event_id".into(), 1);
    }),
    ("an update is not answered", "has returned and not answered", |observations| {
        for event in observations.events.iter_mut().filter(|event| event.kind == ANSWERED) {
            event.kind = NOTHING.into();
        }
    }),
    ("an acknowledged update is lost", "nobody has accepted it", |observations| {
        let id = update(observations, Fate::Acked).identity.clone();
        for event in observations.events.iter_mut().filter(|event| event.text("update_id") == id) {
            event.kind = NOTHING.into();
        }
    }),
    ("an update is there that nobody sent", "that nobody sent", |observations| {
        kind(observations, ACCEPTED).texts.insert("update_id".into(), "another".into());
    }),
    ("a refused update is accepted", "was refused, and is accepted", |observations| {
        update(observations, Fate::Acked).fate = Fate::Refused;
    }),
    ("an update is answered otherwise than told", "with what no history has", |observations| {
        update(observations, Fate::Acked).answers.push(Answer::Completed("another".into()));
    }),
    ("an update of another workflow", "is accepted by another", |observations| {
        let id = update(observations, Fate::Acked).identity.clone();
        for event in observations.events.iter_mut().filter(|event| event.text("update_id") == id) {
            event.workflow_id = "another".into();
        }
    }),
    ("the run that goes on has not the update", "and lost by", |observations| {
        // One that was accepted before the run was sent back.
        let (base, made) = sent_back(observations);
        let ghost = update(observations, Fate::Acked).identity.clone();
        let id = observations
            .events
            .iter()
            .find(|event| event.run_id == base)
            .expect("it is there")
            .workflow_id
            .clone();
        let its = observations.events.iter_mut().filter(|event| event.run_id == made);
        its.filter(|event| event.text("update_id") == ghost).for_each(|event| event.kind = NOTHING.into());
        for call in observations.calls.iter_mut().filter(|call| call.identity == ghost) {
            call.workflow_id.clone_from(&id);
        }
        become_event(observations, &base, ACCEPTED, "update_id", &ghost);
    }),
    ("a reset loses an update", "it has lost", |observations| {
        let (base, _) = sent_back(observations);
        become_event(observations, &base, ACCEPTED, "update_id", "another");
    }),
    ("a reset loses a signal", "it has lost", |observations| {
        let (base, _) = sent_back(observations);
        become_event(observations, &base, SIGNALED, "request_id", "another");
    }),
    ("a reset brings a signal twice", "twice", |observations| {
        let (_, made) = sent_back(observations);
        let signal = in_run(observations, &made, SIGNALED).text("request_id").to_owned();
        become_event(observations, &made, SIGNALED, "request_id", &signal);
    }),
    ("a reset that nobody ordered", "nobody ordered the reset", |observations| {
        reset(observations).texts.insert("failure".into(), "another".into());
    }),
    ("a reset of another run", "was to be sent back", |observations| {
        reset(observations).texts.insert("base_run_id".into(), "another".into());
    }),
    ("a reset to another task", "it goes back to", |observations| {
        let order = observations.calls.iter_mut().find_map(|call| match &mut call.deed {
            Deed::Reset { finish_event_id, .. } => Some(finish_event_id),
            _another => None,
        });
        *order.expect("accounts are sent back") += 2;
    }),
    ("a reset has another beginning", "are not those of", |observations| {
        let (_, made) = sent_back(observations);
        in_run(observations, &made, STARTED).texts.insert("identity".into(), "another".into());
    }),
    ("a reset is answered with two runs", "has made the runs", |observations| {
        let order = observations.calls.iter_mut().find(|call| matches!(call.deed, Deed::Reset { .. }));
        order.expect("accounts are sent back").answers.push(Answer::Run("another".into()));
    }),
    ("a reset makes two runs", "has made the runs", |observations| {
        let (_, made) = sent_back(observations);
        let twin: Vec<_> =
            observations.events.iter().filter(|event| event.run_id == made).cloned().map(another).collect();
        observations.events.extend(twin);
    }),
    ("a reset has no effect", "has 0 effects", |observations| reset(observations).kind = NOTHING.into()),
    ("who is replaced does not end", "is open", |observations| {
        let (base, _) = sent_back(observations);
        observations.events.retain(|event| event.run_id != base || !event.is_closing());
    }),
    ("nobody has ended who is replaced", "who sent none", |observations| {
        let replaced =
            observations.events.iter_mut().find(|event| event.text("identity") == "history-resetter");
        replaced.expect("accounts are sent back").texts.insert("reason".into(), "another".into());
    }),
];

fn kind<'a>(observations: &'a mut Observations, kind: &str) -> &'a mut Event {
    observations.events.iter_mut().find(|event| event.kind == kind).expect("observations have all kinds")
}

fn in_run<'a>(observations: &'a mut Observations, run_id: &str, kind: &str) -> &'a mut Event {
    let mut events = observations.events.iter_mut().filter(|event| event.run_id == run_id);
    events.find(|event| event.kind == kind).expect("the run has it")
}

/// An event that says so.
fn last<'a>(observations: &'a mut Observations, name: &str, text: &str) -> &'a mut Event {
    observations.events.iter_mut().rfind(|event| event.text(name) == text).expect("observations have it")
}

/// The beginning of a child.
fn room(observations: &mut Observations) -> &mut Event {
    let is_child = |event: &&mut Event| event.kind == STARTED && !event.text("parent_run_id").is_empty();
    observations.events.iter_mut().find(is_child).expect("houses have children")
}

/// The beginning of a run that follows another, for this reason; the first run of a schedule has it, too.
fn follower<'a>(observations: &'a mut Observations, initiator: &str) -> &'a mut Event {
    let follows = |event: &&mut Event| {
        let is_so = event.text("initiator") == initiator && !event.text("continued_run_id").is_empty();
        event.kind == STARTED && is_so
    };
    observations.events.iter_mut().find(follows).expect("there are chains of all kinds")
}

/// The end of the task to which a run has gone back.
fn reset(observations: &mut Observations) -> &mut Event {
    let is_it = |event: &&mut Event| event.text("new_run_id") == event.run_id;
    observations.events.iter_mut().find(is_it).expect("accounts are sent back")
}

/// A run that was open when it was sent back, and the last one, which was made of it.
fn sent_back(observations: &Observations) -> (String, String) {
    let lineage = Lineage::of(observations);
    let pairs = lineage.resets.iter().filter(|(run_id, reset)| {
        let chain = lineage.in_order(&reset.failed.workflow_id);
        let [.., before, last] = chain.as_slice() else { return false };
        last[0].run_id == **run_id && before[0].run_id == reset.base_run_id
    });
    let pair = pairs.map(|(run_id, reset)| (reset.base_run_id.to_owned(), (*run_id).to_owned())).next();
    pair.expect("an account's current run is sent back")
}

/// The last event in a run that is none of a reset, a signal or an end becomes one of this kind.
fn become_event(observations: &mut Observations, run_id: &str, kind: &str, name: &str, text: &str) {
    let other = observations.events.iter_mut().rfind(|event| {
        let is_free = !event.is_closing() && event.kind != SIGNALED && event.text("new_run_id").is_empty();
        event.run_id == run_id && is_free
    });
    let event = other.expect("a run has many");
    event.kind = kind.into();
    event.texts.insert(name.into(), text.into());
}

/// The same event in a run of its own.
fn another(event: Event) -> Event {
    let mut texts = event.texts;
    if texts.get("new_run_id") == Some(&event.run_id) {
        texts.insert("new_run_id".into(), "another".into());
    }
    Event { run_id: "another".into(), offset: event.offset + 1_000_000, texts, ..event }
}

fn update(observations: &mut Observations, fate: Fate) -> &mut Call {
    let is_it = |call: &&mut Call| call.deed == Deed::Update && call.fate == fate;
    observations.calls.iter_mut().find(is_it).expect("accounts are updated")
}
