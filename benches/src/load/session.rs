//! What all parts of one run of the load generator share.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use everlog_temporal_api::enums::TaskQueueKind;
use everlog_temporal_api::full::temporal::api::common::v1::{Payload, Payloads};
use everlog_temporal_api::taskqueue::TaskQueue;
use prost::Message;

use super::calls::Calls;
use super::connection::Connections;
use super::options::Load;
use super::tally::Tally;
use super::wait::Waiters;

/// One run of the load generator.
pub struct Session {
    pub load: Load,
    /// Of this run alone; every id begins with it.
    pub name: String,
    pub task_queue: TaskQueue,
    pub sticky_queue: TaskQueue,
    /// Encoded `Payloads`: every input, result and answer.
    pub payloads: Bytes,
    pub tally: Tally,
    pub finished: Waiters,
    pub calls: Calls,
    /// Connections of the worker.
    pub worker_connections: Connections,
}

impl Session {
    pub async fn open(load: &Load) -> anyhow::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        let name = format!("load-{:x}-{:x}", now.as_micros(), std::process::id());
        let task_queue =
            TaskQueue { name: name.clone(), kind: TaskQueueKind::Normal.into(), ..Default::default() };
        let sticky_queue = TaskQueue {
            name: format!("{name}-sticky"),
            kind: TaskQueueKind::Sticky.into(),
            normal_name: name.clone(),
        };
        let payloads = payloads(load.payload_bytes);
        let clients = Connections::open(&load.url(), load.connections, load.gzip).await?;
        Ok(Self {
            calls: Calls::new(load, clients, task_queue.clone(), payloads.clone()),
            worker_connections: Connections::open(&load.url(), load.connections, load.gzip).await?,
            load: load.clone(),
            name,
            task_queue,
            sticky_queue,
            payloads,
            tally: Tally::default(),
            finished: Waiters::default(),
        })
    }

    pub fn workflow_id(&self, number: u64) -> String {
        format!("{}-{number}", self.name)
    }
}

fn payloads(size_bytes: usize) -> Bytes {
    let payload = Payload {
        metadata: [("encoding".to_string(), Bytes::from_static(b"binary/plain"))].into(),
        data: vec![b'x'; size_bytes].into(),
        ..Default::default()
    };
    Payloads { payloads: vec![payload] }.encode_to_vec().into()
}
