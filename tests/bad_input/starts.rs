//! Rows about starts: durations, policies, schedules, attributes, metadata.

use bytes::Bytes;
use everlog_temporal_api::common::RetryPolicy;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::common::v1::{Callback, Priority, SearchAttributes, callback};
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::operatorservice::{AddSearchAttributesRequest, RemoveSearchAttributesRequest};
use everlog_temporal_api::workflow::OnConflictOptions;
use everlog_temporal_api::workflowservice::{
    RegisterNamespaceRequest, SignalWithStartWorkflowExecutionRequest,
};
use prost::Message;
use prost_types::Duration;
use tonic::{Code, Request};

use crate::row::{Action, Observation, Row, invalid, refused, row, story, taken};
use crate::world::{World, observation, path_of, payload, payloads, request, seconds, start, text};

const REJECT_DUPLICATE: i32 = 3;
const TERMINATE_IF_RUNNING: i32 = 4;
const FAIL: i32 = 1;
const USE_EXISTING: i32 = 2;
const TERMINATE_EXISTING: i32 = 3;
const YEAR_SECONDS: i64 = 365 * 86_400;

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row(39, "negative run timeout", start(|r| r.workflow_run_timeout = Some(seconds(-1))),
            invalid("")),
        row(39, "seconds and nanos of opposite sign",
            start(|r| r.workflow_execution_timeout = Some(Duration { seconds: 1, nanos: -1 })), invalid("")),
        row(39, "negative start delay", start(|r| r.workflow_start_delay = Some(seconds(-1))), invalid("")),
        row(39, "negative task timeout", start(|r| r.workflow_task_timeout = Some(seconds(-1))), invalid("")),
        row(40, "duration of 10,000 years", story(ten_thousand_years), taken("100 years")),
        row(41, "retry policy of a workflow: coefficient < 1", retry(|p| p.backoff_coefficient = 0.5),
            invalid("BackoffCoefficient cannot be less than 1 on retry policy.")),
        row(41, "retry policy of a workflow: max < initial interval", retry(|p| p.maximum_interval = Some(seconds(1))),
            invalid("MaximumInterval cannot be less than InitialInterval on retry policy.")),
        row(41, "retry policy of a workflow: negative attempts", retry(|p| p.maximum_attempts = -1),
            invalid("MaximumAttempts cannot be negative on retry policy.")),
        row(41, "retry policy of a workflow: bad timeout type",
            retry(|p| p.non_retryable_error_types = vec!["TemporalTimeout:Sometimes".into()]),
            invalid("Invalid timeout type value: Sometimes.")),
        row(42, "cron garbage", start(|r| r.cron_schedule = "now and then".into()),
            invalid("invalid CronSchedule.")),
        row(42, "cron that never fires", start(|r| r.cron_schedule = "0 0 31 2 *".into()),
            invalid("invalid CronSchedule, no time can be found")),
        row(43, "cron and start delay", start(|r| {
                r.cron_schedule = "* * * * *".into();
                r.workflow_start_delay = Some(seconds(1));
            }), invalid("CronSchedule and WorkflowStartDelay may not be used together.")),
        row(51, "unknown conflict policy", start(|r| r.workflow_id_conflict_policy = 99),
            refused(Code::Internal, "unknown WorkflowIdConflictPolicy: 99")),
        row(51, "unknown reuse policy", start(|r| r.workflow_id_reuse_policy = 99),
            refused(Code::Internal, "unknown WorkflowIdReusePolicy: 99")),
        row(52, "terminate if running, with a conflict policy", start(|r| {
                r.workflow_id_reuse_policy = TERMINATE_IF_RUNNING;
                r.workflow_id_conflict_policy = USE_EXISTING;
            }), invalid("Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot be used together")),
        row(52, "reject duplicates and terminate existing", start(|r| {
                r.workflow_id_reuse_policy = REJECT_DUPLICATE;
                r.workflow_id_conflict_policy = TERMINATE_EXISTING;
            }), invalid("Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be used together")),
        row(52, "signal with start that fails on a conflict", signal_with_start(|r| r.workflow_id_conflict_policy = FAIL),
            invalid("")),
        row(68, "retention < 1 h", register(Some(seconds(3_599))),
            invalid("A valid retention period is not set on request.")),
        row(68, "retention negative", register(Some(seconds(-86_400))),
            invalid("A valid retention period is not set on request.")),
        row(68, "retention nil", register(None), invalid("A valid retention period is not set on request.")),
        row(72, "fairness key > 64 bytes",
            priority(|p| p.fairness_key = text(65)), invalid("")),
        row(72, "negative priority", priority(|p| p.priority_key = -1), invalid("")),
        row(73, "33 callbacks", start(|r| r.completion_callbacks = vec![a_callback(10); 33]), invalid("cannot attach more than 32 callbacks to a workflow")),
        row(73, "callback with a URL > 1000 bytes", start(|r| r.completion_callbacks = vec![a_callback(1_001)]),
            invalid("invalid url: url length longer than max length allowed of 1000")),
        row(73, "callback to an address that nobody has allowed", start(|r| r.completion_callbacks = vec![a_callback(10)]),
            invalid("invalid url: url does not match any configured callback address: http://callback/")),
        row(73, "callbacks that are attached without the request id", start(|r| {
                r.workflow_id_conflict_policy = USE_EXISTING;
                let attach_completion_callbacks = true;
                r.on_conflict_options = Some(OnConflictOptions { attach_completion_callbacks, ..Default::default() });
            }), invalid("attaching request ID is required for attaching completion callbacks")),
        row(73, "11 links", start(|r| r.links = vec![link(10); 11]), invalid("")),
        row(73, "link > 4000 bytes", start(|r| r.links = vec![link(4_001)]), invalid("")),
    ]
}

/// What search attributes are held against.
#[rustfmt::skip]
pub fn attribute_rows() -> Vec<Row> {
    vec![
        row(66, "101 search attributes", attributes(101), invalid("number of search attributes 101 exceeds limit 100")),
        row(66, "search attribute of 2 KiB", sized(2_048, 0), taken("")),
        row(66, "search attribute of 2 KiB and a byte", sized(2_049, 0),
            invalid("search attribute BatcherUser value size 2049 exceeds size limit 2048")),
        row(66, "search attributes of 40 KiB", sized(100, 40_960), taken("")),
        row(66, "search attributes of 40 KiB and a byte", sized(100, 40_961),
            invalid("total size of search attributes 40961 exceeds size limit 40960")),
        row(66, "search attribute that is not UTF-8", story(attribute_not_utf8), invalid("")),
        row(66, "search attribute of a name that nobody knows", attribute("Nonsense", b"\"x\""),
            invalid("Namespace default has no mapping defined for search attribute Nonsense")),
        row(66, "search attribute that only the server sets", attribute("WorkflowId", b"\"x\""),
            invalid("WorkflowId attribute can't be set in SearchAttributes")),
        row(66, "search attribute with a value of another type", attribute("TemporalChangeVersion", b"\"x\""),
            invalid("invalid value for search attribute TemporalChangeVersion of type KeywordList: x")),
        row(66, "search attribute with a value that is no JSON", attribute("BatcherUser", b"x"),
            invalid("invalid value for search attribute BatcherUser of type Keyword")),
        row(66, "search attribute of a signal with start that nobody knows",
            signal_with_start(|r| r.search_attributes = one_attribute("Nonsense", b"1")),
            invalid("Namespace default has no mapping defined for search attribute Nonsense")),
        row(66, "registration of a name that is reserved", registration("TemporalMine", 2),
            invalid("Search attribute TemporalMine is reserved by system.")),
        row(66, "registration of a type that nobody knows", registration("Mine", 99),
            invalid("Unknown search attribute type: 99.")),
        row(66, "registration of nothing", story(register_nothing),
            invalid("SearchAttributes are not set on request.")),
        row(66, "removal of what is there always", story(remove_system),
            invalid("Unable to remove non-custom search attributes: WorkflowId.")),
        row(66, "visibility query with a syntax error", list("WorkflowType ="),
            invalid("invalid query: malformed SQL query: syntax error at position 42")),
        row(66, "visibility query with an unknown attribute", list("Nonsense = 1"),
            invalid("invalid query: invalid expression: column name 'Nonsense' is not a valid search attribute")),
    ]
}

fn retry(edit: impl Fn(&mut RetryPolicy) + Send + Sync + Copy + 'static) -> Action {
    start(move |request| {
        let mut policy = RetryPolicy { initial_interval: Some(seconds(10)), ..RetryPolicy::default() };
        edit(&mut policy);
        request.retry_policy = Some(policy);
    })
}

fn signal_with_start(
    edit: impl Fn(&mut SignalWithStartWorkflowExecutionRequest) + Send + Sync + Copy + 'static,
) -> Action {
    Box::new(move |world| {
        Box::pin(async move {
            let start = world.start_of(&world.fresh("refused"));
            let mut request = SignalWithStartWorkflowExecutionRequest {
                namespace: start.namespace,
                workflow_id: start.workflow_id.clone(),
                workflow_type: start.workflow_type,
                task_queue: start.task_queue,
                request_id: start.request_id,
                signal_name: "changed".into(),
                ..SignalWithStartWorkflowExecutionRequest::default()
            };
            edit(&mut request);
            let observation = observation(world.send(request).await);
            Ok(Observation { unknown_id: Some(start.workflow_id), ..observation })
        })
    })
}

fn keyword(value: &[u8]) -> everlog_temporal_api::full::temporal::api::common::v1::Payload {
    let mut keyword = payload(0);
    keyword.metadata.insert("encoding".into(), Bytes::from_static(b"json/plain"));
    keyword.metadata.insert("type".into(), Bytes::from_static(b"Keyword"));
    keyword.data = [b"\"", value, b"\""].concat().into();
    keyword
}

fn attributes(count: usize) -> Action {
    start(move |request| {
        let names = (0..count).map(|number| format!("CustomKeywordField{number}"));
        let indexed_fields = names.map(|name| (name, keyword(b"x"))).collect();
        request.search_attributes = Some(SearchAttributes { indexed_fields }.encode_to_vec().into());
    })
}

/// A search attribute whose value has so many bytes, with metadata that makes all of it as long as is said.
fn sized(value_bytes: usize, encoded_bytes: usize) -> Action {
    let padded = move |padding: usize| {
        let mut value = keyword(text(value_bytes - 2).as_bytes());
        if padding > 0 {
            value.metadata.insert("padding".into(), vec![b'x'; padding].into());
        }
        let indexed_fields = [("BatcherUser".to_owned(), value)].into();
        SearchAttributes { indexed_fields }.encode_to_vec()
    };
    let around = padded(encoded_bytes).len().saturating_sub(encoded_bytes);
    let padding = encoded_bytes.saturating_sub(around);
    start(move |request| request.search_attributes = Some(padded(padding).into()))
}

fn one_attribute(name: &str, data: &[u8]) -> Option<Bytes> {
    let mut value = keyword(b"");
    value.metadata.remove("type");
    value.data = Bytes::copy_from_slice(data);
    let indexed_fields = [(name.to_owned(), value)].into();
    Some(SearchAttributes { indexed_fields }.encode_to_vec().into())
}

fn attribute(name: &'static str, data: &'static [u8]) -> Action {
    start(move |request| request.search_attributes = one_attribute(name, data))
}

fn registration(name: &'static str, r#type: i32) -> Action {
    request(move |world| AddSearchAttributesRequest {
        search_attributes: [(name.to_owned(), r#type)].into(),
        namespace: world.namespace.clone(),
    })
}

async fn register_nothing(world: World) -> anyhow::Result<Observation> {
    let namespace = world.namespace.clone();
    let request = AddSearchAttributesRequest { namespace, ..AddSearchAttributesRequest::default() };
    Ok(observation(world.send(request).await))
}

async fn remove_system(world: World) -> anyhow::Result<Observation> {
    let (namespace, search_attributes) = (world.namespace.clone(), vec!["WorkflowId".to_owned()]);
    Ok(observation(world.send(RemoveSearchAttributesRequest { namespace, search_attributes }).await))
}

async fn attribute_not_utf8(world: World) -> anyhow::Result<Observation> {
    let id = world.fresh("refused");
    let mut start = world.start_of(&id);
    let indexed_fields = [("CustomKeywordField".to_owned(), keyword(&[0xff, 0xfe]))].into();
    start.search_attributes = Some(SearchAttributes { indexed_fields }.encode_to_vec().into());
    Ok(Observation { unknown_id: Some(id), ..observation(world.send(start).await) })
}

fn list(query: &'static str) -> Action {
    use everlog_temporal_api::workflowservice::ListWorkflowExecutionsRequest;
    request(move |world| ListWorkflowExecutionsRequest {
        namespace: world.namespace.clone(),
        query: query.into(),
        ..ListWorkflowExecutionsRequest::default()
    })
}

fn register(retention: Option<Duration>) -> Action {
    request(move |world| RegisterNamespaceRequest {
        namespace: world.fresh("namespace"),
        workflow_execution_retention_period: retention,
        ..RegisterNamespaceRequest::default()
    })
}

fn priority(edit: impl Fn(&mut Priority) + Send + Sync + Copy + 'static) -> Action {
    start(move |request| {
        let mut priority = Priority::default();
        edit(&mut priority);
        request.priority = Some(priority.encode_to_vec().into());
    })
}

fn a_callback(path_bytes: usize) -> Bytes {
    let nexus = callback::Nexus {
        url: format!("http://callback/{}", text(path_bytes)),
        ..callback::Nexus::default()
    };
    Callback { variant: Some(callback::Variant::Nexus(nexus)), ..Callback::default() }.encode_to_vec().into()
}

fn link(workflow_id_bytes: usize) -> Bytes {
    use everlog_temporal_api::full::temporal::api::common::v1::{Link, link};
    let event = link::WorkflowEvent {
        namespace: "default".into(),
        workflow_id: text(workflow_id_bytes),
        run_id: "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11".into(),
        ..link::WorkflowEvent::default()
    };
    Link { variant: Some(link::Variant::WorkflowEvent(event)) }.encode_to_vec().into()
}

/// Accepted and cut: what the run keeps of it.
async fn ten_thousand_years(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|start| start.workflow_run_timeout = Some(seconds(10_000 * YEAR_SECONDS))).await?;
    let mut kept = 0;
    for event in world.events(&run).await? {
        if let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = event.attributes {
            kept = started.workflow_run_timeout.map_or(0, |timeout| timeout.seconds);
        }
    }
    world.until(&run, EventType::WorkflowTaskScheduled).await?;
    let left = if kept == 100 * YEAR_SECONDS { "100 years".into() } else { format!("{kept} s") };
    Ok(Observation { code: Some(Code::Ok), left, ..Observation::default() })
}

/// A start whose input is cut off in the middle of a field.
pub async fn truncated(world: World) -> anyhow::Result<Observation> {
    let mut start = world.start_of("truncated");
    start.input = payloads(1_000);
    let mut bytes = start.encode_to_vec();
    bytes.truncate(bytes.len() - 500);
    let path = path_of::<everlog_temporal_api::workflowservice::StartWorkflowExecutionRequest>();
    Ok(observation(world.call(&path, Request::new(bytes.into())).await))
}
