//! What inputs are fed to, and what is no answer.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::DESCRIPTOR;
use everlog_temporal_api::workflowservice::*;
use everlog_tests::caller::{Caller, execution};
use everlog_tests::server::Server;
use everlog_tests::{page, raw};
use prost::Message;
use prost_types::FileDescriptorSet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::{Code, Request, Status};

use crate::inputs::of_hex;

/// What inputs are fed to.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Task tokens and page tokens, of a real task and a real page.
    Tokens,
    /// The query of a list, a count and a batch job.
    Queries,
    /// A message of any RPC.
    Messages,
    /// A public command over HTTP.
    Commands,
    /// The bytes of a connection to each address.
    Heads,
}

/// A caller beside the inputs, and what it has got.
pub struct Probe {
    caller: Caller,
    task_token: Bytes,
    methods: Vec<String>,
}

impl Probe {
    pub async fn new(server: &Server) -> anyhow::Result<Self> {
        let caller = Caller(server.connect().await?);
        caller.start_patient("probe").await?;
        let task = caller.take().await?.context("there is a task")?;
        let set = FileDescriptorSet::decode(DESCRIPTOR)?;
        let methods = set.file.iter().flat_map(|file| {
            file.service.iter().flat_map(move |service| {
                let path = format!("/{}.{}", file.package(), service.name());
                service.method.iter().map(move |method| format!("{path}/{}", method.name()))
            })
        });
        // What deletes the namespace of the probe would end it, and a poll waits for a minute.
        let is_fed = |method: &String| {
            !["DeleteNamespace", "PollWorkflowTaskQueue", "PollActivityTaskQueue"]
                .iter()
                .any(|name| method.ends_with(&format!("/{name}")))
        };
        let methods = methods.filter(is_fed).collect();
        Ok(Self { caller, task_token: task.token, methods })
    }

    /// The server does its work.
    pub async fn works(&self) -> anyhow::Result<()> {
        self.caller.signal("probe", "still there").await?;
        ensure!(!self.caller.history("probe").await?.is_empty());
        Ok(())
    }

    async fn call(&self, path: &str, message: Vec<u8>) -> Result<Bytes, Status> {
        let mut request = Request::new(Bytes::from(message));
        request.set_timeout(std::time::Duration::from_secs(1));
        raw::call(&self.caller.0, path, request).await.map(tonic::Response::into_inner)
    }

    async fn send<M: Message + prost::Name>(&self, request: M) -> Result<Bytes, Status> {
        self.call(&raw::path_of::<M>(), request.encode_to_vec()).await
    }
}

/// Codes that say that the server has a fault. UNAVAILABLE is what a client says of a connection that broke.
fn fault(answer: Result<Bytes, Status>) -> Option<String> {
    let status = answer.err()?;
    let is_of_a_message = status.message().starts_with("grpc: error unmarshalling request");
    let is_fault = matches!(status.code(), Code::Unknown | Code::Unavailable | Code::DataLoss)
        || (status.code() == Code::Internal && !is_of_a_message);
    is_fault.then(|| format!("{status:?}"))
}

impl Target {
    /// What inputs are made of.
    pub fn corpus(self) -> Vec<Vec<u8>> {
        let lines = |text: &str| text.lines().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>();
        match self {
            // The changes are what matters: the token is the probe's.
            Self::Tokens => vec![vec![0; 96], Vec::new()],
            Self::Queries => lines(include_str!("corpus/queries")),
            Self::Messages => include_str!("corpus/messages").lines().map(of_hex).collect(),
            Self::Commands => lines(include_str!("corpus/commands")),
            Self::Heads => {
                let heads = include_str!("corpus/heads").split("\n\n");
                heads.map(|head| format!("{}\r\n\r\n", head.replace('\n', "\r\n")).into_bytes()).collect()
            }
        }
    }

    /// Feeds an input. Returns what is no answer to it.
    pub async fn feed(self, server: &Server, probe: &Probe, input: &[u8]) -> Option<String> {
        match self {
            Self::Tokens => tokens(probe, input).await,
            Self::Queries => queries(probe, input).await,
            Self::Messages => messages(probe, input).await,
            Self::Commands => commands(server, input).await,
            Self::Heads => heads(server, input).await,
        }
    }
}

/// The input says which bits of the token are other ones.
async fn tokens(probe: &Probe, input: &[u8]) -> Option<String> {
    let mut token = probe.task_token.to_vec();
    token.resize(input.len().max(1), 7);
    for (byte, change) in token.iter_mut().zip(input) {
        *byte ^= change;
    }
    if token == probe.task_token {
        return None;
    }
    let (task_token, namespace) = (Bytes::from(token), String::from("default"));
    let request = RespondWorkflowTaskCompletedRequest {
        task_token: task_token.clone(),
        namespace: namespace.clone(),
        ..Default::default()
    };
    let opened = probe.send(request).await;
    if opened.is_ok() {
        return Some("a changed token was taken".into());
    }
    let request = GetWorkflowExecutionHistoryRequest {
        namespace: namespace.clone(),
        execution: execution("probe"),
        next_page_token: task_token.clone(),
        ..Default::default()
    };
    let history = probe.send(request).await;
    let request =
        ListWorkflowExecutionsRequest { namespace, next_page_token: task_token, ..Default::default() };
    fault(opened).or(fault(history)).or(fault(probe.send(request).await))
}

async fn queries(probe: &Probe, input: &[u8]) -> Option<String> {
    // What is no UTF-8 is no string of a message.
    let query = String::from_utf8_lossy(input).into_owned();
    let namespace = String::from("default");
    let list = ListWorkflowExecutionsRequest {
        namespace: namespace.clone(),
        query: query.clone(),
        ..Default::default()
    };
    let count = CountWorkflowExecutionsRequest { namespace, query };
    fault(probe.send(list).await).or(fault(probe.send(count).await))
}

async fn messages(probe: &Probe, input: &[u8]) -> Option<String> {
    let number: usize = input.iter().map(|byte| usize::from(*byte)).sum();
    let path = &probe.methods[number % probe.methods.len()];
    fault(probe.call(path, input.to_vec()).await).map(|fault| format!("{path}: {fault}"))
}

async fn commands(server: &Server, input: &[u8]) -> Option<String> {
    let body = String::from_utf8_lossy(input);
    let headers = [("Content-Type", "application/json")];
    match page::ask(server.http_address(), "POST /commands", &headers, &body).await {
        Ok((200 | 400 | 413 | 422, _)) => None,
        other => Some(format!("{other:?}")),
    }
}

/// Who talks nonsense may be hung up on.
async fn heads(server: &Server, input: &[u8]) -> Option<String> {
    for address in [server.http_address(), server.metrics_address(), server.address()] {
        if let Err(error) = say(address, input).await {
            return Some(format!("{address}: {error}"));
        }
    }
    None
}

/// Says it, and hears what comes back until no more does. A connection that is reset was answered.
async fn say(address: SocketAddr, input: &[u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    if stream.write_all(input).await.is_ok() && stream.shutdown().await.is_ok() {
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
    }
    Ok(())
}
