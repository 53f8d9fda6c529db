//! What the ingress brings into a journal keeps its bytes.

use bytes::Bytes;
use everlog_engine::machine::cancel;
use everlog_engine::request::{Request, RequestRecord};
use everlog_wire::public_command::{
    Header, InvalidCommand, Original, PublicCommand, ReplyTo, SourcePosition,
};
use expect_test::expect;
use prost::Message;

fn source() -> SourcePosition {
    let incarnation = Bytes::from_static(&[7; 16]);
    SourcePosition { incarnation, partition: 3, offset: 42, topic: "everlog.commands".into(), follows: 0 }
}

fn original() -> Original {
    let headers = vec![Header { key: "command-id".into(), value: Some(Bytes::from_static(b"c-1")) }];
    let value = Some(Bytes::from_static(b"{}"));
    Original { key: Some(Bytes::from_static(b"order-1")), value, value_bytes: 2, headers }
}

fn reply_to() -> ReplyTo {
    ReplyTo { topic: "everlog.replies".into(), correlation_id: Some(Bytes::from_static(b"7")) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_forwarded_command_keeps_its_bytes() {
    let request = cancel::Request { reason: "late".into(), ..cancel::Request::default() };
    let input = RequestRecord {
        namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
        workflow_id: "order-1".into(),
        run_id: String::new(),
        sender: None,
        request: Some(Request::Cancel(request)),
    };
    let forwarded = PublicCommand {
        source: Some(source()),
        input: Some(input),
        namespace: "default".into(),
        command_id: Some("c-1".into()),
        reply_to: Some(reply_to()),
        deliver_at_ms: 1_763_700_000_000,
        traceparent: Some("00-4bf9-00f0-01".into()),
        original: Some(original()),
    };
    let bytes = forwarded.encode_to_vec();
    expect!["0a280a10070707070707070707070707070707071003182a2210657665726c6f672e636f6d6d616e647312370a2438613363303030302d303030302d343030302d383030302d30303030303030303030303112076f726465722d3162060a046c6174651a0764656661756c742203632d312a140a0f657665726c6f672e7265706c69657312013730808ad9a5aa333a0f30302d346266392d303066302d303142220a076f726465722d3112027b7d180222110a0a636f6d6d616e642d69641203632d31"].assert_eq(&hex(&bytes));
    assert_eq!(PublicCommand::decode(&bytes[..]), Ok(forwarded));
}

#[test]
fn an_unreadable_record_keeps_its_bytes() {
    let unreadable = InvalidCommand {
        source: Some(source()),
        code: "not_json".into(),
        reason: "missing field `type`".into(),
        namespace: Some("default".into()),
        command_id: Some("c-1".into()),
        reply_to: Some(reply_to()),
        original: Some(original()),
    };
    let bytes = unreadable.encode_to_vec();
    expect!["0a280a10070707070707070707070707070707071003182a2210657665726c6f672e636f6d6d616e647312086e6f745f6a736f6e1a146d697373696e67206669656c6420607479706560220764656661756c742a03632d3132140a0f657665726c6f672e7265706c6965731201373a220a076f726465722d3112027b7d180222110a0a636f6d6d616e642d69641203632d31"].assert_eq(&hex(&bytes));
    assert_eq!(InvalidCommand::decode(&bytes[..]), Ok(unreadable));
}
