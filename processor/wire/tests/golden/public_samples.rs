//! A public command and an invalid one, with every field filled in.

use bytes::Bytes;
use everlog_engine::request::{Request, RequestRecord};
use everlog_wire::public_command::{
    Header, InvalidCommand, Original, PublicCommand, ReplyTo, SourcePosition,
};

use crate::events::some;
use crate::records::signal;
use crate::rows::RUN_ID;

pub fn source() -> SourcePosition {
    let incarnation = Bytes::from_static(&[9; 16]);
    SourcePosition { incarnation, partition: 3, offset: 1_234, topic: "everlog.commands".into(), follows: 0 }
}

fn reply_to() -> ReplyTo {
    ReplyTo { topic: "everlog.replies".into(), correlation_id: Some(some(b"correlation")) }
}

fn original() -> Original {
    let header = Header { key: "command-id".into(), value: Some(some(b"charge-1")) };
    Original {
        key: Some(some(b"order-1")),
        value: Some(some(b"{}")),
        value_bytes: 2,
        headers: vec![header, Header { key: "empty".into(), value: None }],
    }
}

pub fn forwarded() -> PublicCommand {
    PublicCommand {
        source: Some(source()),
        input: Some(RequestRecord {
            namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
            workflow_id: "order-1".into(),
            run_id: RUN_ID.into(),
            sender: None,
            request: Some(Request::Signal(signal())),
        }),
        namespace: "default".into(),
        command_id: Some("charge-1".into()),
        reply_to: Some(reply_to()),
        deliver_at_ms: 1_763_700_000_000,
        traceparent: Some("00-1-2-01".into()),
        original: Some(original()),
    }
}

pub fn unreadable() -> InvalidCommand {
    InvalidCommand {
        source: Some(source()),
        code: "not_json".into(),
        reason: "it is not JSON".into(),
        namespace: Some("default".into()),
        command_id: Some("charge-1".into()),
        reply_to: Some(reply_to()),
        original: Some(original()),
    }
}
