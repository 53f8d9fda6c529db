//! The gateway over real gRPC, with partitions that are played by the test.

use std::collections::BTreeMap;
use std::sync::Arc;

use everlog_engine::{Rejection, Reply, Settings};
use everlog_listen::{Listener, ListenerBounds};
use everlog_partition::{Admission, Dispatcher, InboxMessage, Router};
use everlog_patience as patience;
use everlog_temporal::{
    About, Calls, Config, Control, Gateway, Guard, Limits, Metrics, Namespaces, Peers, Row, TaskQueues,
    TokenSigner,
};
use everlog_temporal_api::workflowservice::workflow_service_client::WorkflowServiceClient;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::transport::Channel;

/// A gateway that serves, and what the test holds of it.
pub(crate) struct Front {
    pub(crate) client: WorkflowServiceClient<Channel>,
    pub(crate) channel: Channel,
    pub(crate) registry: prometheus::Registry,
    /// The same services, without a connection.
    pub(crate) calls: Calls,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<Result<(), everlog_temporal::Error>>>,
}

#[derive(Default)]
struct Memory {
    rows: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Control for Memory {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.rows.lock().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), String> {
        self.rows.lock().remove(key);
        Ok(())
    }

    fn scan(&self) -> Result<Vec<Row>, String> {
        let rows = self.rows.lock();
        Ok(rows.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

/// Partitions that know no run, and panic at the Workflow Id `panic`.
pub(crate) fn unknowing(_partition: u32, event: InboxMessage) -> bool {
    match event {
        InboxMessage::Request { input, reply, .. } => {
            assert_ne!(input.workflow_id, "panic", "as the test wants it");
            drop(reply.send(Ok(Reply::Rejected(Rejection::unknown()))));
        }
        InboxMessage::Read { reply, .. } => drop(reply.send(Ok(None))),
        InboxMessage::Query { .. } => return false,
        _never_in_these_tests => return false,
    }
    true
}

impl Front {
    pub(crate) async fn open() -> Self {
        Self::with(Limits::default(), Arc::new(unknowing)).await
    }

    pub(crate) async fn with(limits: Limits, send: everlog_partition::PartitionSender) -> Self {
        Self::among(limits, send, None).await
    }

    /// Among other nodes, where there are some.
    pub(crate) async fn among(
        limits: Limits,
        send: everlog_partition::PartitionSender,
        peers: Option<Arc<dyn Peers>>,
    ) -> Self {
        Self::judged(limits, send, peers, None).await
    }

    /// The same, where callers are judged.
    pub(crate) async fn judged(
        limits: Limits,
        send: everlog_partition::PartitionSender,
        peers: Option<Arc<dyn Peers>>,
        guard: Option<Guard>,
    ) -> Self {
        let registry = prometheus::Registry::new();
        let dispatcher = Dispatcher::new(|| 0);
        let router = Router::new(2, send, dispatcher.clone(), Arc::new(Admission::new(2, 100, 100)));
        let metrics = Metrics::register(&registry).expect("a new registry");
        let namespaces = Namespaces::open(Arc::new(Memory::default()), &limits, &metrics);
        let task_queues = TaskQueues::open(Arc::new(Memory::default()), dispatcher);
        let config = Config {
            about: About {
                server_version: "0.1.0".into(),
                cluster_id: "5bbe3c42-7bc0-4a94-a8a9-1b8e3a6ef5b1".into(),
                cluster_name: "active".into(),
                address: "127.0.0.1:7233".into(),
                partitions: 2,
                persistence_store: "test".into(),
                visibility_store: String::new(),
            },
            limits,
            settings: Settings::standard(),
            token_signer: TokenSigner::new(&[vec![7; 32]]).expect("long enough"),
            namespaces: Arc::new(namespaces.expect("memory does not fail")),
            task_queues: Arc::new(task_queues.expect("memory does not fail")),
            router,
            metrics,
            peers,
            guard,
            traces: None,
        };
        let gateway = Arc::new(Gateway::new(config).expect("valid"));
        let calls = gateway.calls().expect("the descriptor is good");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (stop, stopped) = oneshot::channel();
        let listener = Listener::new(listener, ListenerBounds::default());
        let served = tokio::spawn(gateway.serve(listener, Box::pin(async { drop(stopped.await) })));
        let channel = Channel::from_shared(format!("http://{address}")).expect("a URI").connect().await;
        let channel = channel.expect("it listens");
        let client = WorkflowServiceClient::new(channel.clone());
        Self { client, channel, registry, calls, stop: Some(stop), served: Some(served) }
    }

    /// Tells the gateway to stop, and waits until it has.
    pub(crate) async fn stop(&mut self) {
        self.stop.take().expect("stopped once").send(()).expect("it still serves");
        let served = patience::answer("the end of the gateway", self.served.take().expect("stopped once"));
        served.await.expect("it stops").expect("no panic").expect("no error");
    }
}

mod attributes;
mod namespaces;
mod nodes;
mod principals;
mod refusals;
mod sample;
mod service;
mod starts;
