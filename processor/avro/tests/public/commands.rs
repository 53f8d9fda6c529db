//! Commands on their way in: each kind in both forms, and each way to be refused.

use std::time::Instant;

use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use everlog_avro::blob::Blob;
use everlog_avro::command::{Code, Command, CommandVerdict, Complete, Fail, Signal, Start};
use everlog_avro::event::RetryPolicy;
use everlog_avro::payload::Payload;
use everlog_avro::{PublicTopic, Writer};
use everlog_engine::machine::activity_attempt::Target;
use everlog_engine::machine::start::Begin;
use everlog_engine::payload::Payloads;
use everlog_engine::request::Request;
use everlog_engine::{Failure, FailureInfo};
use prost::Message;

use crate::world::{
    COMMAND_ID, EVENT_ID, GIVEN_ID, Known, NAMESPACE_ID, NOW_MS, RUN_ID, UNKNOWN_ID, avro, input, read,
    read_in, refusal, start,
};

fn begin(verdict: CommandVerdict) -> Begin {
    let input = input(verdict);
    assert_eq!((input.namespace_id.as_str(), input.workflow_id.as_str()), (NAMESPACE_ID, "order-1"));
    match input.request {
        Some(Request::Start(begin)) => *begin,
        other => panic!("not a start: {other:?}"),
    }
}

#[test]
fn avro_and_json_give_the_same_order() {
    let json = br#"{"type": "start", "start": {"workflow_type": "Order", "task_queue": "orders",
        "input": [{"total": 12}]}}"#;
    let begin = begin(read(json, &[]));
    assert_eq!(begin, self::begin(read(&avro(&start()), &[])));
    assert_eq!((begin.workflow_type.as_str(), begin.retention_ms), ("Order", 86_400_000));
    let list = Payloads::decode(begin.input.expect("there is input")).expect("payloads");
    assert_eq!(list.payloads[0].data, "{\"total\": 12}");
    assert_eq!(list.payloads[0].metadata[0].value, "json/plain");
}

#[test]
fn a_command_without_an_id_is_named_by_where_it_stands() {
    let bytes = avro(&start());
    assert_eq!(begin(read(&bytes, &[])).request_id, format!("{}-3-42", "07".repeat(16)));
    assert_eq!(begin(read(&bytes, &[("command-id", Some(b"c-1"))])).request_id, "c-1");
}

#[test]
fn every_kind_becomes_its_order() {
    let json = |text: &str| input(read(text.as_bytes(), &[])).request.expect("an order");
    let Request::Signal(signal) = json(r#"{"type":"signal","signal":{"name":"go","input":[1,"x"]}}"#) else {
        panic!("not a signal")
    };
    assert_eq!((signal.name.as_str(), signal.input.is_some()), ("go", true));
    let both = r#"{"type":"signal_with_start","signal":{"name":"go"},
        "start":{"workflow_type":"Order","task_queue":"orders","conflict_policy":"UseExisting"}}"#;
    let Request::Start(begin) = json(both) else { panic!("not a start") };
    assert_eq!(begin.signal.expect("with a signal").request_id, begin.request_id);
    let Request::Update(update) = json(r#"{"type":"update","update":{"id":"u-1","name":"add","input":[1]}}"#)
    else {
        panic!("not an update")
    };
    assert_eq!((update.update_id.as_str(), update.patient), ("u-1", true));
    let both = r#"{"type":"update_with_start","update":{"name":"add"},
        "start":{"workflow_type":"Order","task_queue":"orders","conflict_policy":"UseExisting"}}"#;
    let Request::Start(begin) = json(both) else { panic!("not a start") };
    assert_eq!(begin.update.expect("with an update").update_id, begin.request_id);
    let Request::Cancel(cancel) = json(r#"{"type":"cancel"}"#) else { panic!("not a request") };
    assert_eq!(cancel.reason, "");
    let Request::Terminate(end) =
        json(r#"{"type":"terminate","terminate":{"reason":"enough","details":[1]}}"#)
    else {
        panic!("no end")
    };
    assert_eq!((end.reason.as_str(), end.details.is_some()), ("enough", true));
    let complete =
        json(r#"{"type":"complete_activity","complete_activity":{"activity_id":"a","result":[true]}}"#);
    let Request::CompleteActivity(complete) = complete else { panic!("no completion") };
    assert_eq!(complete.target.expect("by id").activity_id, "a");
    let fail = json(
        r#"{"type":"fail_activity","fail_activity":{"activity_id":"a","message":"no","error_type":"Card",
        "non_retryable":true,"next_retry_delay_ms":1500}}"#,
    );
    let Request::FailActivity(fail) = fail else { panic!("no failure") };
    let failure = Failure::decode(fail.failure.expect("there is one")).expect("a failure");
    let Some(FailureInfo::Application(info)) = failure.info else { panic!("another kind") };
    assert_eq!((failure.message.as_str(), info.r#type.as_str(), info.non_retryable), ("no", "Card", true));
    assert_eq!(info.next_retry_delay.expect("a delay").to_ms(), 1_500);
}

#[test]
fn a_task_token_names_the_attempt_and_has_to_agree_with_the_key() {
    let complete = |token: &'static [u8]| {
        let complete = Complete { token: Some(Blob(token.into())), ..Complete::default() };
        avro(&Command {
            r#type: "complete_activity".into(),
            complete_activity: Some(complete),
            ..Command::default()
        })
    };
    let order = input(read(&complete(b"token"), &[]));
    assert_eq!(order.run_id, RUN_ID);
    let Some(Request::CompleteActivity(done)) = order.request else { panic!("no completion") };
    let target = Target { scheduled_event_id: 5, attempt: 2, claim: 77, activity_id: String::new() };
    assert_eq!(done.target, Some(target));
    assert_eq!(refusal(read(&complete(b"forged"), &[])).0, Code::Token);
    let other = read_in(&Known::default(), Some(b"order-2"), Some(&complete(b"token")), &[]);
    assert_eq!(refusal(other).0, Code::KeyMismatch);
}

#[test]
fn headers_ask_for_what_the_order_does_not_say() {
    let bytes = avro(&start());
    let accepted = |headers: &[(&str, Option<&[u8]>)]| match read(&bytes, headers) {
        CommandVerdict::Accepted(accepted) => accepted.ask,
        other => panic!("it has to be accepted: {other:?}"),
    };
    let later = (NOW_MS + 1_000).to_string();
    let ask = accepted(&[
        ("namespace", Some(b"other")),
        ("command-id", Some(b"c-1")),
        ("reply-topic", Some(b"everlog.replies")),
        ("correlation-id", Some(b"\xff\x01")),
        ("deliver-at", Some(later.as_bytes())),
        ("traceparent", Some(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")),
        ("x-of-the-sender", Some(b"\xff")),
        ("x-empty", None),
    ]);
    assert_eq!((ask.namespace.as_str(), ask.command_id.as_deref()), ("other", Some("c-1")));
    assert_eq!(ask.correlation_id.as_deref(), Some(&b"\xff\x01"[..]));
    assert_eq!(ask.deliver_at_ms, Some(NOW_MS + 1_000));
    assert!(ask.traceparent.is_some_and(|trace| trace.starts_with("00-")));
    assert_eq!(
        accepted(&[("deliver-at", Some(b"1"))]).deliver_at_ms,
        None,
        "what is due is delivered at once"
    );
    assert_eq!(accepted(&[]).namespace, "default");
    let code = |name: &str, value: &[u8]| refusal(read(&bytes, &[(name, Some(value))])).0;
    assert_eq!(code("deliver-at", b"tomorrow"), Code::Header);
    assert_eq!(code("deliver-at", b"9223372036854775807"), Code::Header);
    assert_eq!(code("reply-topic", b"everlog.journal"), Code::ReplyTopic);
    assert_eq!(code("namespace", b"nowhere"), Code::NamespaceUnknown);
    assert_eq!(code("namespace", b"closed"), Code::NamespaceClosed);
    assert_eq!(code("namespace", b"\xff"), Code::Header);
    assert_eq!(code("command-id", &[b'x'; 1_001]), Code::Header);
    assert_eq!(code("content-type", b"application/json; charset=utf-8"), Code::NotJson);
}

#[test]
fn a_refusal_keeps_what_the_headers_ask_for() {
    let CommandVerdict::Refused(refusal) = read(b"{}", &[("command-id", Some(b"c-1"))]) else {
        panic!("refused")
    };
    assert_eq!(refusal.ask.expect("the headers could be read").command_id.as_deref(), Some("c-1"));
}

/// The rows K1 to K13 of bad records.
#[test]
fn a_bad_record_is_refused_by_name() {
    let world = Known::default();
    let good = avro(&start());
    let keyless = |key: Option<&[u8]>| refusal(read_in(&world, key, Some(&good), &[])).0;
    assert_eq!(refusal(read_in(&world, Some(b"order-1"), None, &[])).0, Code::NullValue);
    assert_eq!(keyless(None), Code::KeyMissing);
    assert_eq!(keyless(Some(b"")), Code::KeyMissing);
    assert_eq!(keyless(Some(b"\xff")), Code::KeyUnreadable);
    assert_eq!(keyless(Some(&[b'k'; 1_001])), Code::InvalidArgument);
    let other = avro(&Command { workflow_id: Some("order-2".into()), ..start() });
    assert_eq!(refusal(read(&other, &[])).0, Code::KeyMismatch);
    for bytes in [&b""[..], b"\0", b"\0\0\0\0", b"hello", b"\x01\0\0\0\x0b"] {
        assert_eq!(refusal(read(bytes, &[])).0, Code::NotAvro, "{bytes:?}");
    }
    let with_id = |id: u32| [&[0], &id.to_be_bytes()[..], &good[5..]].concat();
    assert_eq!(refusal(read(&with_id(UNKNOWN_ID), &[])).0, Code::SchemaUnknown);
    assert_eq!(refusal(read(&with_id(EVENT_ID), &[])).0, Code::SchemaWrongType);
    assert_eq!(read(&with_id(99), &[]), CommandVerdict::Schema(99));
    let longer = [&good[..], b"x"].concat();
    let (code, reason) = refusal(read(&longer, &[]));
    assert_eq!((code, reason.as_str()), (Code::Decode, "not a WorkflowCommand: 1 bytes are left over"));
    assert_eq!(refusal(read(&vec![b'{'; (1 << 20) + 1], &[])).0, Code::TooLarge);
    assert_eq!(refusal(read(b"{\"type\": 1}", &[])).0, Code::NotJson);
    assert_eq!(refusal(read(b"{\"type\": \"start\", \"sart\": {}}", &[])).0, Code::NotJson);
    let unknown = Command { r#type: "archive".into(), start: None, ..start() };
    assert_eq!(refusal(read(&avro(&unknown), &[])).0, Code::CommandUnknown);
    let partless = Command { start: None, ..start() };
    assert_eq!(refusal(read(&avro(&partless), &[])).0, Code::CommandIncomplete);
    let overfull = Command { signal: Some(Signal::default()), ..start() };
    assert_eq!(refusal(read(&avro(&overfull), &[])).0, Code::CommandIncomplete);
}

#[test]
fn a_length_of_exabytes_takes_no_memory() {
    // "type" as a text of 2^60 bytes, and an array of as many payloads.
    let length = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    let head = [&[0][..], &COMMAND_ID.to_be_bytes()].concat();
    let (code, reason) = refusal(read(&[&head[..], &length].concat(), &[]));
    assert_eq!((code, reason.as_str()), (Code::Decode, "not a WorkflowCommand: it ends too early"));
    let start = avro(&start());
    let at = start.windows(7).position(|bytes| bytes == b"\x0corders").expect("the queue") + 7;
    let (code, reason) = refusal(read(&[&start[..=at], &length].concat(), &[]));
    assert_eq!(
        (code, reason.as_str()),
        (Code::Decode, "not a WorkflowCommand: it has more than 10000 elements")
    );
}

#[test]
fn a_text_that_is_not_utf_8_is_refused() {
    let mut bytes = avro(&start());
    let at = bytes.windows(6).position(|bytes| bytes == b"orders").expect("the queue");
    bytes[at] = 0xff;
    let (code, reason) = refusal(read(&bytes, &[]));
    assert_eq!((code, reason.as_str()), (Code::Decode, "not a WorkflowCommand: a text is not UTF-8"));
}

#[test]
fn a_start_may_be_retried_and_repeated() {
    let json = br#"{"type": "start", "start": {"workflow_type": "Report", "task_queue": "reports",
        "cron_schedule": "CRON_TZ=Europe/Berlin 0 9 * * MON-FRI",
        "retry_policy": {"maximum_attempts": 3, "initial_interval_ms": 5000, "non_retryable_error_types": ["Gone"]}}}"#;
    let policy = RetryPolicy {
        maximum_attempts: 3,
        initial_interval_ms: Some(5_000),
        non_retryable_error_types: vec!["Gone".into()],
        ..RetryPolicy::default()
    };
    let given = Start {
        workflow_type: "Report".into(),
        task_queue: "reports".into(),
        cron_schedule: Some("CRON_TZ=Europe/Berlin 0 9 * * MON-FRI".into()),
        retry_policy: Some(policy),
        ..Start::default()
    };
    let command = Command { r#type: "start".into(), start: Some(given), ..Command::default() };
    for bytes in [&json[..], &avro(&command)] {
        let Some(Request::Start(begin)) = input(read(bytes, &[])).request else { panic!("no start") };
        assert_eq!(begin.cron_schedule, "CRON_TZ=Europe/Berlin 0 9 * * MON-FRI");
        let policy = begin.retry_policy.expect("a policy");
        assert_eq!((policy.maximum_attempts, policy.non_retryable_error_types), (3, vec!["Gone".into()]));
        assert_eq!(policy.initial_interval.map(|span| span.to_ms()), Some(5_000));
    }
    let typo = br#"{"type": "start", "start": {"workflow_type": "R", "task_queue": "r", "retry_policy": {"attempts": 3}}}"#;
    assert_eq!(refusal(read(typo, &[])).0, Code::NotJson);
}

#[test]
fn the_same_limits_hold_as_for_a_call() {
    let refused = |change: &dyn Fn(&mut Start<Payload<'static>>)| {
        let mut command = start();
        change(command.start.as_mut().expect("a start"));
        let (code, reason) = refusal(read(&avro(&command), &[]));
        assert_eq!(code, Code::InvalidArgument, "{reason}");
        reason
    };
    assert_eq!(refused(&|start| start.workflow_type.clear()), "WorkflowType is not set on request.");
    assert_eq!(refused(&|start| start.task_queue = "q".repeat(1_001)), "taskQueue length exceeds limit");
    assert!(refused(&|start| start.task_queue = "/_sys/x".into()).contains("reserved prefix"));
    assert!(refused(&|start| start.start_delay_ms = Some(-1)).starts_with("negative duration"));
    assert!(
        refused(&|start| start.reuse_policy = Some("Sometimes".into())).starts_with("unknown reuse_policy")
    );
    assert_eq!(refused(&|start| start.cron_schedule = Some("never".into())), "invalid CronSchedule.");
    let delayed = |start: &mut Start<Payload<'static>>| {
        (start.cron_schedule, start.start_delay_ms) = (Some("@daily".into()), Some(1));
    };
    assert_eq!(refused(&delayed), "CronSchedule and WorkflowStartDelay may not be used together.");
    let attempts = |start: &mut Start<Payload<'static>>| {
        start.retry_policy = Some(RetryPolicy { maximum_attempts: -1, ..RetryPolicy::default() });
    };
    assert_eq!(refused(&attempts), "MaximumAttempts cannot be negative on retry policy.");
    let both = |start: &mut Start<Payload<'static>>| {
        start.reuse_policy = Some("TerminateIfRunning".into());
        start.conflict_policy = Some("Fail".into());
    };
    assert!(refused(&both).contains("cannot be used together"));
    let summary = Payload { text: Some("x".repeat(401).into()), ..Payload::default() };
    assert_eq!(
        refused(&|start| start.summary = Some(summary.clone())),
        "UserMetadata.Summary size exceeds limit."
    );
    let run = Command { run_id: Some(RUN_ID.into()), ..start() };
    assert_eq!(refusal(read(&avro(&run), &[])).0, Code::InvalidArgument);
    let fail = Fail { activity_id: Some("a".into()), next_retry_delay_ms: Some(-1), ..Fail::default() };
    let fail = Command { r#type: "fail_activity".into(), fail_activity: Some(fail), ..Command::default() };
    assert_eq!(refusal(read(&avro(&fail), &[])).0, Code::InvalidArgument);
}

/// What another release may write: a field more, in another order, one less.
#[test]
fn a_newer_schema_is_read_and_one_that_cannot_be_is_refused() {
    let newer = r#"{"type": "record", "name": "io.everlog.WorkflowCommand", "fields": [
        {"name": "nonce", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4}},
        {"name": "type", "type": "string"},
        {"name": "cancel", "type": ["null", {"type": "record", "name": "CancelWorkflow", "fields": [
            {"name": "urgent", "type": "boolean"}, {"name": "reason", "type": ["null", "string"]}]}]}]}"#;
    let schema = apache_avro::Schema::parse_str(newer).expect("a schema");
    let cancel = vec![
        ("urgent".to_owned(), Value::Boolean(true)),
        ("reason".to_owned(), Value::Union(1, Box::new(Value::String("late".into())))),
    ];
    let command = Value::Record(vec![
        ("nonce".into(), Value::Decimal(vec![1, 2].into())),
        ("type".into(), Value::String("cancel".into())),
        ("cancel".into(), Value::Union(1, Box::new(Value::Record(cancel)))),
    ]);
    let writer = GenericDatumWriter::builder(&schema).build().expect("a valid schema");
    let body = writer.write_value_to_vec(command).expect("it is written");
    let bytes = [&[0], &GIVEN_ID.to_be_bytes()[..], &body].concat();
    let world = Known { given: Some(Writer::parse(PublicTopic::Command, newer)), ..Known::default() };
    let Some(Request::Cancel(cancel)) = input(read_in(&world, Some(b"w"), Some(&bytes), &[])).request else {
        panic!("no request")
    };
    assert_eq!(cancel.reason, "late");
    for end in 5..bytes.len() {
        let cut = read_in(&world, Some(b"w"), Some(&bytes[..end]), &[]);
        assert_eq!(refusal(cut).0, Code::Decode, "{end} of {} bytes", bytes.len());
    }
    let refused = |text: &str| {
        let world = Known { given: Some(Writer::parse(PublicTopic::Command, text)), ..Known::default() };
        refusal(read_in(&world, Some(b"w"), Some(&bytes), &[])).0
    };
    assert_eq!(refused(&newer.replace("WorkflowCommand", "Pancake")), Code::SchemaWrongType);
    assert_eq!(refused("\"string\""), Code::SchemaWrongType);
    assert_eq!(
        refused(
            &newer
                .replace("\"name\": \"type\", \"type\": \"string\"", "\"name\": \"type\", \"type\": \"int\"")
        ),
        Code::SchemaIncompatible
    );
    assert_eq!(refused("{"), Code::SchemaIncompatible);
}

#[test]
fn commands_are_read_by_a_schema_that_is_parsed_once() {
    let json: &[u8] = br#"{"type": "start", "start": {"workflow_type": "Order", "task_queue": "orders",
        "input": [{"total": 12}]}}"#;
    for (form, bytes) in [("Avro", &avro(&start())[..]), ("JSON", json)] {
        let rounds = 20_000;
        let begun = Instant::now();
        for _ in 0..rounds {
            assert!(matches!(read(bytes, &[]), CommandVerdict::Accepted(_)));
        }
        let each_ns = begun.elapsed().as_nanos() / rounds;
        println!("a command of {} bytes in {form}: {each_ns} ns to read", bytes.len());
    }
    assert!(std::ptr::eq(PublicTopic::Command.schema(), PublicTopic::Command.schema()));
}
