//! Connections to the server, used in turn.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use everlog_temporal_api::workflowservice::workflow_service_client::WorkflowServiceClient;
use tonic::client::Grpc;
use tonic::codec::CompressionEncoding;
use tonic::transport::{Channel, Endpoint};

/// The typed client of one connection.
pub type Client = WorkflowServiceClient<Channel>;

/// Bigger answers than any server sends.
const ANSWER_SIZE_MAX_BYTES: usize = 64 << 20;

/// A few HTTP/2 connections.
pub struct Connections {
    channels: Vec<Channel>,
    next: AtomicUsize,
    gzip: bool,
}

impl Connections {
    pub async fn open(url: &str, count: usize, gzip: bool) -> anyhow::Result<Self> {
        let mut channels = Vec::new();
        for _ in 0..count.max(1) {
            let endpoint =
                Endpoint::from_shared(url.to_string()).with_context(|| format!("{url} is not an address"))?;
            let endpoint = endpoint.tcp_nodelay(true);
            channels.push(endpoint.connect().await.with_context(|| format!("nobody listens at {url}"))?);
        }
        Ok(Self { channels, next: AtomicUsize::new(0), gzip })
    }

    /// A client on the next connection.
    pub fn client(&self) -> Client {
        let client =
            WorkflowServiceClient::new(self.channel()).max_decoding_message_size(ANSWER_SIZE_MAX_BYTES);
        match self.gzip {
            true => {
                client.send_compressed(CompressionEncoding::Gzip).accept_compressed(CompressionEncoding::Gzip)
            }
            false => client,
        }
    }

    /// The next connection for calls with messages of our own.
    pub fn grpc(&self) -> Grpc<Channel> {
        let grpc = Grpc::new(self.channel()).max_decoding_message_size(ANSWER_SIZE_MAX_BYTES);
        match self.gzip {
            true => {
                grpc.send_compressed(CompressionEncoding::Gzip).accept_compressed(CompressionEncoding::Gzip)
            }
            false => grpc,
        }
    }

    fn channel(&self) -> Channel {
        self.channels[self.next.fetch_add(1, Ordering::Relaxed) % self.channels.len()].clone()
    }
}
