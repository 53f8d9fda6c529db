//! Callers: API keys with their roles, and a server that knows them.

use std::path::Path;

use anyhow::Context;
use bytes::Bytes;
use everlog_temporal_api::workflowservice::RegisterNamespaceRequest;
use everlog_tests::raw;
use everlog_tests::server::Server;
use prost::{Message, Name};
use sha2::{Digest, Sha256};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// The namespaces that there are.
pub const OWN: &str = "own";
pub const OTHER: &str = "other";
/// A name that no namespace has.
pub const UNKNOWN: &str = "nowhere";
/// The words of every denial.
pub const DENIED: &str = "Request unauthorized.";

/// A caller: what it shows, and where it has which role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its name, and that of its key.
    pub name: &'static str,
    /// The namespace of its role, or `temporal-system`; empty = it has none.
    pub place: &'static str,
    /// `read`, `write`, `worker` or `admin`; empty = it has none.
    pub role: &'static str,
}

const fn caller(name: &'static str, place: &'static str, role: &'static str) -> Caller {
    Caller { name, place, role }
}

/// The cluster among the places of a role.
pub const SYSTEM: &str = "temporal-system";
/// Nobody knows it: it shows nothing.
pub const NOBODY: Caller = caller("nobody", "", "");
/// Nobody knows it: its key is in no file.
pub const STRANGER: Caller = caller("stranger", "", "");
/// Its key has expired.
pub const EXPIRED: Caller = caller("expired", "", "");
pub const ROOT: Caller = caller("root", SYSTEM, "admin");
pub const WORKER: Caller = caller("own-worker", OWN, "worker");
pub const READER: Caller = caller("own-reader", OWN, "read");
pub const WRITER: Caller = caller("own-writer", OWN, "write");
pub const OTHER_WRITER: Caller = caller("other-writer", OTHER, "write");
/// A writer in both namespaces, which stands in no matrix.
pub const BOTH_WRITER: Caller = caller("both-writer", OWN, "write");

/// All kinds of callers.
pub const CALLERS: [Caller; 15] = [
    NOBODY,
    STRANGER,
    EXPIRED,
    READER,
    WRITER,
    WORKER,
    caller("own-admin", OWN, "admin"),
    caller("other-reader", OTHER, "read"),
    OTHER_WRITER,
    caller("other-worker", OTHER, "worker"),
    caller("other-admin", OTHER, "admin"),
    caller("system-reader", SYSTEM, "read"),
    caller("system-writer", SYSTEM, "write"),
    caller("system-worker", SYSTEM, "worker"),
    ROOT,
];

impl Caller {
    /// Its key; the same in each test.
    pub fn key(self) -> String {
        format!("elk_{:-<43}", self.name)
    }

    fn line(self) -> Option<String> {
        let hash: String =
            Sha256::digest(self.key().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            EXPIRED => Some(format!("{} {OWN}:admin {hash} 2020-01-01T00:00:00Z", self.name)),
            Self { role: "", .. } => None,
            BOTH_WRITER => Some(format!("{} {OWN}:write,{OTHER}:write {hash}", self.name)),
            Self { name, place, role } => Some(format!("{name} {place}:{role} {hash}")),
        }
    }

    /// What it sends with each call.
    pub fn authorization(self) -> Option<MetadataValue<Ascii>> {
        (self != NOBODY).then(|| format!("Bearer {}", self.key()).parse().expect("it is ASCII"))
    }

    /// Calls a method with encoded bytes.
    pub async fn call(self, channel: &Channel, path: &str, request: Bytes) -> Result<Bytes, Status> {
        let mut request = Request::new(request);
        if let Some(authorization) = self.authorization() {
            request.metadata_mut().insert("authorization", authorization);
        }
        raw::call(channel, path, request).await.map(tonic::Response::into_inner)
    }

    /// Calls the method that takes this request.
    pub async fn send<M: Message + Name>(self, channel: &Channel, request: M) -> Result<Bytes, Status> {
        self.call(channel, &raw::path_of::<M>(), request.encode_to_vec().into()).await
    }
}

/// True of the refusal of a caller.
pub fn is_denied(answer: &Result<Bytes, Status>) -> bool {
    answer.as_ref().is_err_and(|status| (status.code(), status.message()) == (Code::PermissionDenied, DENIED))
}

/// A server that judges its callers, with two namespaces, and a connection to it.
///
/// # Errors
/// It does not start.
pub async fn serve(dir: &Path, variables: &[(&str, &str)]) -> anyhow::Result<(Server, Channel)> {
    let keys = dir.join("keys");
    let lines: Vec<String> =
        CALLERS.iter().chain([&BOTH_WRITER]).filter_map(|caller| caller.line()).collect();
    std::fs::write(&keys, lines.join("\n"))?;
    let keys = keys.to_str().context("the path is text")?;
    let mut all = vec![("EVERLOG_AUTH__ENABLED", "true"), ("EVERLOG_AUTH__API_KEYS_FILE", keys)];
    all.extend(variables);
    let server = Server::start(&dir.join("data"), &all).await?;
    let channel = server.connect().await?;
    for namespace in [OWN, OTHER] {
        let request = RegisterNamespaceRequest {
            namespace: namespace.into(),
            workflow_execution_retention_period: Some(prost_types::Duration { seconds: 86_400, nanos: 0 }),
            ..Default::default()
        };
        ROOT.send(&channel, request).await?;
    }
    Ok((server, channel))
}
