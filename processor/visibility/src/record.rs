//! What lists and filters know of a run.

use everlog_engine::api_types::{Execution, MapEntry, Status};
use everlog_engine::{ExecutionInfo, Run};

use crate::attribute::{Attribute, AttributeSource, AttributeType, SystemAttribute};
use crate::derived;
use crate::payload::{Json, PayloadParts};
use crate::query::{NAMESPACE_DIVISION, parse_datetime};
use crate::value::Value;

/// The number of the status Paused, which the engine does not know yet.
const PAUSED: i32 = 8;
const NS_PER_MS: i64 = 1_000_000;

/// Values by attribute.
pub trait Values {
    /// The value of an attribute; none where the run has none, or one that is not of the attribute's type.
    fn value(&self, attribute: &Attribute) -> Option<Value<'_>>;
}

/// What lists and filters know of a run. It changes at the start, at the close, and with the search attributes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Record {
    /// The Workflow Id.
    #[prost(string, tag = "1")]
    pub workflow_id: String,
    /// The run's UUID.
    #[prost(string, tag = "2")]
    pub run_id: String,
    /// The workflow type's name.
    #[prost(string, tag = "3")]
    pub workflow_type: String,
    /// The run's normal task queue.
    #[prost(string, tag = "4")]
    pub task_queue: String,
    /// A number of `WorkflowExecutionStatus`.
    #[prost(int32, tag = "5")]
    pub status: i32,
    /// When the run began, in ms since 1970-01-01 UTC.
    #[prost(int64, tag = "6")]
    pub start_ms: i64,
    /// When its first workflow task may run, in ms.
    #[prost(int64, tag = "7")]
    pub execution_ms: i64,
    /// When it closed, in ms; 0 while it is open.
    #[prost(int64, tag = "8")]
    pub close_ms: i64,
    /// Events of its history; 0 while it is open.
    #[prost(int64, tag = "9")]
    pub history_length: i64,
    /// Encoded bytes of its history; 0 while it is open.
    #[prost(int64, tag = "10")]
    pub history_bytes: i64,
    /// Steps that changed it; 0 while it is open.
    #[prost(int64, tag = "11")]
    pub transitions: i64,
    /// The Workflow Id of its parent; empty without one.
    #[prost(string, tag = "12")]
    pub parent_workflow_id: String,
    /// The run of its parent; empty without one.
    #[prost(string, tag = "13")]
    pub parent_run_id: String,
    /// The Workflow Id of the first ancestor; empty where it is the run itself.
    #[prost(string, tag = "14")]
    pub root_workflow_id: String,
    /// The run of the first ancestor; empty where it is the run itself.
    #[prost(string, tag = "15")]
    pub root_run_id: String,
    /// Predefined and custom search attributes as they were given: encoded payloads, sorted by key.
    #[prost(message, repeated, tag = "16")]
    pub search_attributes: Vec<MapEntry>,
    /// The journal's offset at which it began.
    #[prost(uint64, tag = "17")]
    pub start_offset: u64,
    /// The journal's offset at which it closed; 0 while it is open.
    #[prost(uint64, tag = "18")]
    pub close_offset: u64,
}

impl Record {
    /// What lists know of a run.
    pub fn of(run: &Run) -> Self {
        let (start, head) = (run.start.as_ref(), &run.head);
        let is_reset = start.reset_ms != 0;
        let start_ms = if is_reset { start.reset_ms } else { start.start_ms };
        let backoff_ms = if is_reset { 0 } else { start.first_task_backoff_ms };
        let mut record = Self {
            workflow_id: start.workflow_id.clone(),
            run_id: start.run_id.clone(),
            workflow_type: run.workflow_type().to_owned(),
            task_queue: start.task_queue.clone(),
            status: head.status,
            start_ms,
            execution_ms: start_ms.saturating_add(backoff_ms),
            search_attributes: derived::search_attributes(run),
            start_offset: start.start_offset,
            ..Self::default()
        };
        if !run.is_open() {
            record.close_ms = head.close_ms;
            record.close_offset = head.close_offset;
            record.history_length = head.next_event_id.saturating_sub(1);
            record.history_bytes = head.history_bytes;
            record.transitions = head.transitions;
        }
        if let Some(parent) = &start.parent {
            record.parent_workflow_id.clone_from(&parent.workflow_id);
            record.parent_run_id.clone_from(&parent.run_id);
            let is_other = |root: &&Execution| root.run_id != start.run_id;
            if let Some(root) = parent.root.as_ref().filter(is_other) {
                record.root_workflow_id.clone_from(&root.workflow_id);
                record.root_run_id.clone_from(&root.run_id);
            }
        }
        record
    }

    /// True if two states of a run are one record. It is cheap where nothing has changed that lists show.
    pub fn is_same(before: &Run, after: &Run) -> bool {
        let (one, other) = (&before.head, &after.head);
        let sizes = |head: &ExecutionInfo| {
            (head.close_ms, head.close_offset, head.next_event_id, head.history_bytes, head.transitions)
        };
        one.status == other.status
            && (after.is_open() || sizes(one) == sizes(other))
            && derived::are_alike(before, after)
    }

    /// True until the run closes.
    pub fn is_open(&self) -> bool {
        self.status == i32::from(Status::Running) || self.status == PAUSED
    }

    /// True of an inner run, which has a namespace division.
    pub fn is_inner(&self) -> bool {
        self.payload(NAMESPACE_DIVISION)
            .is_some_and(|payload| named(AttributeType::Keyword, payload).is_some())
    }

    fn payload(&self, name: &str) -> Option<&[u8]> {
        let place = self.search_attributes.binary_search_by(|entry| entry.key.as_str().cmp(name)).ok()?;
        Some(&self.search_attributes[place].value)
    }

    fn system(&self, attribute: SystemAttribute) -> Option<Value<'_>> {
        match attribute {
            SystemAttribute::WorkflowId => keyword(&self.workflow_id),
            SystemAttribute::RunId => keyword(&self.run_id),
            SystemAttribute::WorkflowType => keyword(&self.workflow_type),
            SystemAttribute::TaskQueue => keyword(&self.task_queue),
            SystemAttribute::StartTime => Some(moment_of(self.start_ms)),
            SystemAttribute::ExecutionTime => Some(moment_of(self.execution_ms)),
            SystemAttribute::ExecutionStatus => Some(Value::Int(self.status.into())),
            SystemAttribute::CloseTime => self.at_close(|record| moment_of(record.close_ms)),
            SystemAttribute::ExecutionDuration => self.at_close(|record| {
                let duration_ms = record.close_ms.saturating_sub(record.execution_ms).max(0);
                Value::Int(duration_ms.saturating_mul(NS_PER_MS))
            }),
            SystemAttribute::HistoryLength => self.at_close(|record| Value::Int(record.history_length)),
            SystemAttribute::HistorySizeBytes => self.at_close(|record| Value::Int(record.history_bytes)),
            SystemAttribute::StateTransitionCount => self.at_close(|record| Value::Int(record.transitions)),
            SystemAttribute::ParentWorkflowId => self.of_parent(&self.parent_workflow_id),
            SystemAttribute::ParentRunId => self.of_parent(&self.parent_run_id),
            SystemAttribute::RootWorkflowId => keyword(self.root().0),
            SystemAttribute::RootRunId => keyword(self.root().1),
        }
    }

    fn at_close(&self, value: impl FnOnce(&Self) -> Value<'static>) -> Option<Value<'static>> {
        if self.is_open() { None } else { Some(value(self)) }
    }

    fn of_parent<'a>(&self, value: &'a str) -> Option<Value<'a>> {
        if self.parent_run_id.is_empty() && self.parent_workflow_id.is_empty() {
            None
        } else {
            keyword(value)
        }
    }

    /// Workflow Id and run of the first ancestor.
    fn root(&self) -> (&str, &str) {
        match self.root_run_id.as_str() {
            "" => (&self.workflow_id, &self.run_id),
            root_run_id => (&self.root_workflow_id, root_run_id),
        }
    }
}

impl Values for Record {
    fn value(&self, attribute: &Attribute) -> Option<Value<'_>> {
        match &attribute.source {
            AttributeSource::System(system) => self.system(*system),
            AttributeSource::Named(name) => named(attribute.kind, self.payload(name)?),
        }
    }
}

fn keyword(text: &str) -> Option<Value<'_>> {
    Some(Value::String(text.into()))
}

fn moment_of(ms: i64) -> Value<'static> {
    Value::Time(ms.saturating_mul(NS_PER_MS))
}

/// The value of a payload, if it is of this type. A list of one is that one.
fn named(kind: AttributeType, payload: &[u8]) -> Option<Value<'_>> {
    let json = PayloadParts::read(payload)?.json()?;
    let json = match json {
        Json::List(items) if kind == AttributeType::KeywordList => return keyword_list(items),
        Json::List(mut items) if items.len() == 1 => items.pop()?,
        single => single,
    };
    match (kind, json) {
        (AttributeType::Keyword | AttributeType::Text, Json::String(text)) => Some(Value::String(text)),
        (AttributeType::Int, Json::Int(number)) => Some(Value::Int(number)),
        (AttributeType::Double, Json::Int(number)) => Some(Value::Double(number as f64)),
        (AttributeType::Double, Json::Double(number)) => Some(Value::Double(number)),
        (AttributeType::Bool, Json::Bool(is_true)) => Some(Value::Bool(is_true)),
        (AttributeType::Datetime, Json::String(text)) => parse_datetime(&text).map(Value::Time),
        _another_type => None,
    }
}

fn keyword_list(items: Vec<Json<'_>>) -> Option<Value<'_>> {
    let text = |item| match item {
        Json::String(text) => Some(text),
        Json::Int(_) | Json::Double(_) | Json::Bool(_) | Json::List(_) => None,
    };
    items.into_iter().map(text).collect::<Option<Vec<_>>>().map(Value::List)
}

#[cfg(test)]
mod tests {
    use everlog_engine::Start;
    use everlog_engine::api_types::WorkflowType;
    use everlog_engine::machine::child::Parent;
    use everlog_engine::machine::workflow_task::Task;
    use everlog_engine::payload::Payload;
    use prost::Message;

    use super::*;

    fn run() -> Run {
        Run::begin(Start {
            workflow_id: "order-1".into(),
            run_id: "run".into(),
            workflow_type: Some(WorkflowType { name: "Order".into() }),
            task_queue: "orders".into(),
            start_ms: 5_000,
            first_task_backoff_ms: 1_000,
            start_offset: 7,
            ..Start::default()
        })
    }

    fn closed() -> Run {
        let mut run = run();
        run.head.status = Status::Completed.into();
        (run.head.close_ms, run.head.close_offset) = (9_000, 8);
        (run.head.next_event_id, run.head.history_bytes, run.head.transitions) = (12, 900, 4);
        run
    }

    fn child() -> Run {
        let parent = Parent {
            workflow_id: "parent".into(),
            run_id: "parent-run".into(),
            root: Some(Execution { workflow_id: "root".into(), run_id: "root-run".into() }),
            ..Parent::default()
        };
        Run::begin(Start { parent: Some(Box::new(parent)), ..run().start.as_ref().clone() })
    }

    fn value(record: &Record, attribute: SystemAttribute) -> Option<String> {
        let attribute =
            Attribute { source: AttributeSource::System(attribute), kind: AttributeType::Keyword };
        record.value(&attribute).map(|value| match value {
            Value::String(text) => text.into_owned(),
            Value::Int(number) => number.to_string(),
            Value::Time(ns) => format!("{ns} ns"),
            other => format!("{other:?}"),
        })
    }

    /// What is searched of an open run, of a closed one, and of a child: of each attribute in the table of lists.
    #[test]
    fn system_attributes_are_set_when_they_are_to_be() {
        use SystemAttribute as A;
        let of = |run: &Run, attribute| value(&Record::of(run), attribute).unwrap_or("-".into());
        let table = [
            (A::WorkflowId, "order-1", "order-1", "order-1"),
            (A::RunId, "run", "run", "run"),
            (A::WorkflowType, "Order", "Order", "Order"),
            (A::TaskQueue, "orders", "orders", "orders"),
            (A::StartTime, "5000000000 ns", "5000000000 ns", "5000000000 ns"),
            (A::ExecutionTime, "6000000000 ns", "6000000000 ns", "6000000000 ns"),
            (A::CloseTime, "-", "9000000000 ns", "-"),
            (A::ExecutionStatus, "1", "2", "1"),
            (A::ExecutionDuration, "-", "3000000000", "-"),
            (A::HistoryLength, "-", "11", "-"),
            (A::HistorySizeBytes, "-", "900", "-"),
            (A::StateTransitionCount, "-", "4", "-"),
            (A::ParentWorkflowId, "-", "-", "parent"),
            (A::ParentRunId, "-", "-", "parent-run"),
            (A::RootWorkflowId, "order-1", "order-1", "root"),
            (A::RootRunId, "run", "run", "root-run"),
        ];
        for (attribute, of_open, of_closed, of_child) in table {
            let found = [of(&run(), attribute), of(&closed(), attribute), of(&child(), attribute)];
            assert_eq!(found, [of_open, of_closed, of_child], "{attribute:?}");
        }
        let record = Record::of(&closed());
        assert_eq!((record.start_offset, record.close_offset), (7, 8));
    }

    #[test]
    fn a_run_that_a_reset_has_made_began_with_the_reset() {
        let start = Start { reset_ms: 50_000, ..run().start.as_ref().clone() };
        let record = Record::of(&Run::begin(start));
        assert_eq!((record.start_ms, record.execution_ms), (50_000, 50_000));
    }

    /// Whatever `is_same` calls the same is; and what an open run does at every step is nothing that lists show.
    #[test]
    fn an_open_run_that_only_goes_on_is_the_same_record() {
        let mut after = run();
        (after.head.next_event_id, after.head.transitions) = (9, 9);
        after.head.task = Some(Task { attempt: 3, problems: 4, ..Task::default() });
        assert!(Record::is_same(&run(), &after));
        assert_eq!(Record::of(&run()), Record::of(&after));
        let changes: [&dyn Fn(&mut Run); 6] = [
            &|run| run.head.status = Status::Failed.into(),
            &|run| run.head.previous_started_event_id = 3,
            &|run| run.head.task = Some(Task { problems: 5, ..Task::default() }),
            &|run| {
                let value = derived::keyword("x");
                run.properties.make_mut().search_attributes.push(MapEntry { key: "K".into(), value });
            },
            &|run| *run = closed(),
            &|run| {
                *run = closed();
                run.head.transitions += 1;
            },
        ];
        for (place, change) in changes.iter().enumerate() {
            let mut after = run();
            change(&mut after);
            assert!(!Record::is_same(&run(), &after), "{place}");
        }
        let mut after = closed();
        after.head.transitions += 1;
        assert!(!Record::is_same(&closed(), &after), "a closed run is pointed to by a reset");
    }

    fn given(data: &str) -> Record {
        let payload = Payload { data: data.to_owned().into(), ..Payload::default() };
        let entry = MapEntry { key: "K".into(), value: payload.encode_to_vec().into() };
        Record { search_attributes: vec![entry], ..Record::default() }
    }

    #[test]
    fn a_value_is_read_by_the_type_of_its_attribute_and_is_none_where_it_is_of_another() {
        use AttributeType::{Bool, Datetime, Double, Int, Keyword, KeywordList, Text};
        let text = |text: &str| Value::String(text.to_owned().into());
        let values = [
            ("\"x\"", vec![(Keyword, text("x")), (Text, text("x"))]),
            (
                "[\"x\"]",
                vec![(Keyword, text("x")), (Text, text("x")), (KeywordList, Value::List(vec!["x".into()]))],
            ),
            ("[\"x\", \"y\"]", vec![(KeywordList, Value::List(vec!["x".into(), "y".into()]))]),
            ("3", vec![(Int, Value::Int(3)), (Double, Value::Double(3.0))]),
            ("[3]", vec![(Int, Value::Int(3)), (Double, Value::Double(3.0))]),
            ("1.5", vec![(Double, Value::Double(1.5))]),
            ("true", vec![(Bool, Value::Bool(true))]),
            (
                "\"1970-01-01T00:00:01Z\"",
                vec![
                    (Keyword, text("1970-01-01T00:00:01Z")),
                    (Text, text("1970-01-01T00:00:01Z")),
                    (Datetime, Value::Time(1_000_000_000)),
                ],
            ),
            ("[\"x\", 3]", vec![]),
            ("null", vec![]),
            ("[]", vec![]),
            ("", vec![]),
            ("{\"a\": 1}", vec![]),
        ];
        for (data, expected) in values {
            let record = given(data);
            for kind in [Keyword, KeywordList, Text, Int, Double, Bool, Datetime] {
                let attribute = Attribute { source: AttributeSource::Named("K".into()), kind };
                let value = expected.iter().find(|(of, _)| *of == kind).map(|(_, value)| value.clone());
                assert_eq!(record.value(&attribute), value, "{data} as {kind:?}");
                let other = Attribute { source: AttributeSource::Named("L".into()), kind };
                assert_eq!(record.value(&other), None);
            }
        }
    }

    #[test]
    fn a_run_is_inner_while_it_has_a_division() {
        let division = |data: &str| {
            let mut record = given(data);
            record.search_attributes[0].key = NAMESPACE_DIVISION.into();
            record.is_inner()
        };
        assert!(division("\"TemporalScheduler\""));
        assert!(!division("null") && !division("3") && !given("\"x\"").is_inner());
    }
}
