//! How workflows must end that have children, retries or schedules. The Workflow Id alone decides it.

use crate::checker::lineage::Lineage;
use crate::event::Event;
use crate::workflows::{self, ATTEMPTS_MAX};

const COMPLETED: &str = "WorkflowExecutionCompleted";
const FAILED: &str = "WorkflowExecutionFailed";
const TERMINATED: &str = "WorkflowExecutionTerminated";

/// Workflows that did not end as they had to.
pub fn check(lineage: &Lineage<'_>, found: &mut Vec<String>) {
    let mut ids: Vec<&str> = lineage.runs.values().map(|events| events[0].workflow_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    for id in ids {
        let chain = lineage.in_order(id);
        let Some(last) = chain.last().and_then(|events| events.last()) else { continue };
        let (runs, result) = (chain.len(), last.text("result"));
        let is_right = match id.split('-').next() {
            Some("house") => runs == 1 && (last.kind.as_str(), result) == (COMPLETED, &number(id)),
            Some("room") => is_room(id, runs, last),
            Some("repair") => {
                let fails = workflows::fails(id);
                let attempts = (fails + 1).min(ATTEMPTS_MAX);
                let wanted = if fails < ATTEMPTS_MAX {
                    (COMPLETED, attempts.to_string())
                } else {
                    (FAILED, String::new())
                };
                runs == attempts as usize && (last.kind.as_str(), result) == (wanted.0, &wanted.1)
            }
            Some("round") => {
                let results = chain[..runs - 1].iter().filter_map(|events| events.last());
                let counts = results.zip(1..).all(|(last, count)| last.text("result") == count.to_string());
                counts && last.kind == TERMINATED
            }
            Some("account") => {
                let answered = |events: &&[&Event]| {
                    events.iter().filter(|event| event.kind == "WorkflowExecutionUpdateCompleted").count()
                };
                let answered = chain.last().map_or(0, answered);
                (last.kind.as_str(), result) == (COMPLETED, &answered.to_string())
            }
            _no_kin => true,
        };
        if !is_right {
            found.push(format!("{id} ended after {runs} runs with {}, {result:?}", last.kind));
        }
    }
}

fn number(id: &str) -> String {
    workflows::number(id).to_string()
}

/// A room that rests, falls down, is tried again, or is bound to its house or free.
fn is_room(id: &str, runs: usize, last: &Event) -> bool {
    let number = workflows::number(id);
    let wanted = match number % 10 {
        0 => (1, COMPLETED),
        1 => (1, FAILED),
        2 => (2, COMPLETED),
        _last if number / 10 % 2 == 0 => (1, TERMINATED),
        _free => (1, COMPLETED),
    };
    (runs, last.kind.as_str()) == wanted
}
