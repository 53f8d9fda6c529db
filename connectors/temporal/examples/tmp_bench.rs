//! temp
use std::sync::Arc;
use std::collections::BTreeMap;
use std::sync::Mutex;
use everlog_engine::{Reply, Settings};
use everlog_partition::*;
use everlog_temporal::{About, Config, Control, Gateway, Limits, Metrics, Row};
use everlog_temporal_api::workflowservice::workflow_service_client::WorkflowServiceClient;
use everlog_temporal_api::workflowservice::*;
use everlog_temporal_api::common::*;
use everlog_temporal_api::query::WorkflowQuery;
#[derive(Default)]
struct Memory { rows: Mutex<BTreeMap<Vec<u8>, Vec<u8>>> }
impl Control for Memory {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> { self.rows.lock().unwrap().insert(key.to_vec(), value.to_vec()); Ok(()) }
    fn scan(&self) -> Result<Vec<Row>, String> { Ok(vec![]) }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "server" {
        let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        rt.block_on(async {
            let send: everlog_partition::Send = Arc::new(|_, event| { match event {
                Event::Order { reply, .. } => { let _ = reply.send(Ok(Reply::Done)); }
                Event::Query { reply, .. } => { let _ = reply.send(Ok(QueryOutcome::Answered(QueryAnswer{query_id: "1".into(), succeeded: true, result: Some(bytes::Bytes::from_static(b"0123456789")), error_message: String::new(), failure: None}))); }
                _ => {} } true });
            let registry = prometheus::Registry::new();
            let config = Config { about: About { server_version: "1".into(), cluster_id: "x".into(), cluster_name: "a".into(), partitions: 8, persistence_store: "".into(), visibility_store: "".into() },
                limits: Limits::default(), settings: Settings::standard(), token_keys: vec![vec![7; 32]], control: Arc::new(Memory::default()),
                router: Router::new(8, send, Dispatcher::new(|| 0), Arc::new(Admission::new(8, 1000))), metrics: Metrics::register(&registry).unwrap() };
            let g = Arc::new(Gateway::new(config).unwrap());
            let l = tokio::net::TcpListener::bind("127.0.0.1:7999").await.unwrap();
            g.serve(l, std::future::pending()).await.unwrap();
        });
    } else {
        let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        rt.block_on(async {
            let kind = args[2].clone();
            let mut hs = vec![];
            for c in 0..4 {
                let ch = tonic::transport::Channel::from_static("http://127.0.0.1:7999").connect().await.unwrap();
                for k in 0..8 {
                    let mut cl = WorkflowServiceClient::new(ch.clone()); let kind = kind.clone();
                    hs.push(tokio::spawn(async move {
                        let end = std::time::Instant::now() + std::time::Duration::from_secs(6);
                        let mut n = 0u64;
                        while std::time::Instant::now() < end {
                            if kind == "signal" {
                                cl.signal_workflow_execution(SignalWorkflowExecutionRequest { namespace: "default".into(), workflow_execution: Some(WorkflowExecution { workflow_id: format!("w-{c}-{k}"), run_id: String::new() }), signal_name: "s".into(), request_id: format!("{c}-{k}-{n}"), identity: "me".into(), input: Some(bytes::Bytes::from_static(b"hello")), ..Default::default() }).await.unwrap();
                            } else {
                                cl.query_workflow(QueryWorkflowRequest { namespace: "default".into(), execution: Some(WorkflowExecution { workflow_id: format!("w-{c}-{k}"), run_id: String::new() }), query: Some(WorkflowQuery { query_type: "q".into(), ..Default::default() }), ..Default::default() }).await.unwrap();
                            }
                            n += 1;
                        }
                        n
                    }));
                }
            }
            let mut total = 0; for h in hs { total += h.await.unwrap(); }
            println!("{kind} {total} calls in 6 s");
        });
    }
}
