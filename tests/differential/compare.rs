//! Compares two replies field by field, apart from the differences that are allowed.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::allowed::{ALLOWED, Allowed};
use crate::generator::POLL_WITHIN_S;
use crate::program::{Program, Step};
use crate::runner::Noted;

/// One field in which two servers differ.
#[derive(Clone, Debug)]
pub struct Difference {
    pub step: String,
    pub path: String,
    pub reference: Value,
    pub everlog: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, path, reference, everlog } = self;
        write!(f, "step {step}: {path}\n      reference: {reference}\n      everlog:   {everlog}")
    }
}

/// How often each allowed difference was met, by its field.
pub type Uses = BTreeMap<&'static str, usize>;

/// The answers of a program that are compared: all, but where it leaves its course, those until then. A task that is to be there
/// comes at neither server, or at the reference without what that has [`forgotten`]: what follows is not what was written, waits for
/// what does not come, and depends on seconds.
pub fn on_course<'a>(
    program: &Program,
    reference: &'a [Noted],
    everlog: &'a [Noted],
) -> (&'a [Noted], &'a [Noted]) {
    let leaves = |noted: &Noted| {
        let step = noted.step.parse().ok().and_then(|number: usize| program.steps.get(number));
        let is_awaited = matches!(step, Some(Step::Call { method: "PollWorkflowTaskQueue", within_s, .. }) if *within_s >= POLL_WITHIN_S);
        is_awaited && noted.answer == Value::Object(serde_json::Map::new())
    };
    let places = [reference, everlog].map(|noted| noted.iter().position(leaves));
    if let Some(place) = forgotten(reference, everlog) {
        return (&reference[..place], &everlog[..place]);
    }
    match places {
        [Some(one), Some(other)] if one == other => (&reference[..=one], &everlog[..=one]),
        _on_course => (reference, everlog),
    }
}

/// Where a task comes at the reference without the updates that wait. With one that it refuses, because too many are under way, it
/// forgets the others, and a task that is of no use any more makes it forget them once more: it remembers them only when their
/// callers' calls are brought again by itself, which may be behind the next task.
fn forgotten(reference: &[Noted], everlog: &[Noted]) -> Option<usize> {
    const REFUSED: &str = "limit on number of concurrent in-flight updates";
    let is_refusal = |noted: &Noted| {
        let message = noted.answer.pointer("/error/message").and_then(Value::as_str);
        message.is_some_and(|message| message.starts_with(REFUSED))
    };
    let refused = reference.iter().position(is_refusal)?;
    let brings = |noted: &Noted| noted.answer.get("messages").is_some();
    let mut pairs = reference.iter().zip(everlog).enumerate().skip(refused);
    let lacks = pairs.find(|(_, (theirs, ours))| {
        theirs.step == ours.step
            && theirs.answer.get("task_token").is_some()
            && !brings(theirs)
            && brings(ours)
    });
    lacks.map(|(place, _)| place)
}

/// What differs and may not while a program is on its course.
pub fn differ(program: &Program, reference: &[Noted], everlog: &[Noted], uses: &mut Uses) -> Vec<Difference> {
    let (reference, everlog) = on_course(program, reference, everlog);
    compare(reference, everlog, uses)
}

/// Whatever differs and may not.
pub fn compare(reference: &[Noted], everlog: &[Noted], uses: &mut Uses) -> Vec<Difference> {
    compare_by(&met(ALLOWED, reference), reference, everlog, uses)
}

/// Which of the allowed differences hold, by what the reference has answered.
pub fn met(allowed: &'static [Allowed], reference: &[Noted]) -> Vec<&'static Allowed> {
    allowed.iter().filter(|one| (one.is_met)(reference)).collect()
}

/// Whatever differs and is not among those that are allowed.
pub fn compare_by(
    rows: &[&'static Allowed],
    reference: &[Noted],
    everlog: &[Noted],
    uses: &mut Uses,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    for number in 0..reference.len().max(everlog.len()) {
        let (left, right) = (reference.get(number), everlog.get(number));
        let step = left.or(right).map(|noted| noted.step.clone()).unwrap_or_default();
        let mut pairs = Vec::new();
        // An answer that only one has is a difference of its own.
        let name = |noted: Option<&Noted>| noted.map(|noted| Value::from(noted.step.clone()));
        walk("step", name(left).as_ref(), name(right).as_ref(), &mut pairs);
        walk("", left.map(|noted| &noted.answer), right.map(|noted| &noted.answer), &mut pairs);
        for (path, reference, everlog) in pairs {
            let plain = without_indices(&path);
            let is_covered = |one: &&&'static Allowed| {
                // The end of a path, or with a `*` any part of it.
                let is_field = match one.field.strip_suffix('*') {
                    Some(part) => plain.contains(part),
                    None => plain.ends_with(one.field),
                };
                is_field && (one.accepts)(reference.as_ref(), everlog.as_ref())
            };
            match rows.iter().find(is_covered) {
                Some(allowed) => *uses.entry(allowed.field).or_default() += 1,
                None => {
                    let (reference, everlog) = (reference.unwrap_or_default(), everlog.unwrap_or_default());
                    differences.push(Difference { step: step.clone(), path, reference, everlog });
                }
            }
        }
    }
    differences
}

type Pair = (String, Option<Value>, Option<Value>);

/// The deepest places at which two trees differ.
fn walk(path: &str, left: Option<&Value>, right: Option<&Value>, pairs: &mut Vec<Pair>) {
    match (left, right) {
        (left, right) if left == right => {}
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let only_right = right.keys().filter(|key| !left.contains_key(*key));
            for key in left.keys().chain(only_right) {
                walk(&format!("{path}.{key}"), left.get(key), right.get(key), pairs);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for number in 0..left.len().max(right.len()) {
                walk(&format!("{path}[{number}]"), left.get(number), right.get(number), pairs);
            }
        }
        (left, right) => pairs.push((path.to_owned(), left.cloned(), right.cloned())),
    }
}

/// `.a[3].b` as `.a[].b`.
pub fn without_indices(path: &str) -> String {
    let mut plain = String::new();
    let mut is_inside = false;
    for sign in path.chars() {
        is_inside = (is_inside || sign == '[') && sign != ']';
        if !is_inside || sign == '[' {
            plain.push(sign);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Uses, compare, differ};
    use crate::generator::POLL_WITHIN_S;
    use crate::program::{Program, Step};
    use crate::runner::Noted;

    fn noted(answer: serde_json::Value) -> Vec<Noted> {
        vec![Noted { step: "0".to_owned(), answer }]
    }

    #[test]
    fn what_follows_a_task_that_comes_at_neither_server_is_not_compared() {
        let poll = |within_s| Step::Call { method: "PollWorkflowTaskQueue", request: json!({}), within_s };
        let answers = |first: serde_json::Value, then: serde_json::Value| {
            let noted = [first, then].into_iter().enumerate();
            noted.map(|(step, answer)| Noted { step: step.to_string(), answer }).collect::<Vec<_>>()
        };
        let count = |within_s, [reference, everlog]: [Vec<Noted>; 2]| {
            let program = Program { seed: 0, steps: vec![poll(within_s), poll(1)], moves: Vec::new() };
            differ(&program, &reference, &everlog, &mut Uses::new()).len()
        };
        let (task, none) = (json!({"attempt": 1}), json!({}));
        let both =
            |first: &serde_json::Value| [answers(first.clone(), json!(1)), answers(first.clone(), json!(2))];
        assert_eq!(count(POLL_WITHIN_S, both(&none)), 0, "it was to come");
        assert_eq!(count(POLL_WITHIN_S, both(&task)), 1, "it came");
        assert_eq!(count(3, both(&none)), 1, "it was not to come");
        let one = [answers(none, json!(1)), answers(task, json!(2))];
        assert_eq!(count(POLL_WITHIN_S, one), 2, "it came at one of them");
    }

    #[test]
    fn every_field_of_either_side_is_compared() {
        let left = noted(json!({"a": [{"b": 1}, {"b": 2}], "c": {}}));
        let right = noted(json!({"a": [{"b": 1}, {"b": 3}], "d": 1}));
        let differences = compare(&left, &right, &mut Uses::new());
        let paths: Vec<&str> = differences.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, [".a[1].b", ".c", ".d"]);
        // An answer too many is found as well.
        let more = [left.clone(), noted(json!({}))].concat();
        assert!(!compare(&left, &more, &mut Uses::new()).is_empty());
        assert!(compare(&left, &left, &mut Uses::new()).is_empty());
    }

    #[test]
    fn what_may_differ_is_counted() {
        let mut uses = Uses::new();
        let left = noted(json!({"workflow_task_started_event_attributes": {"history_size_bytes": 100}}));
        let right = noted(json!({"workflow_task_started_event_attributes": {"history_size_bytes": 99}}));
        assert!(compare(&left, &right, &mut uses).is_empty());
        assert_eq!(uses.values().sum::<usize>(), 1);
        let none = noted(json!({"workflow_task_started_event_attributes": {}}));
        assert!(!compare(&left, &none, &mut uses).is_empty(), "it must be there");
    }
}
