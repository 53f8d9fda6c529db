//! The gateway's way to the other nodes: it looks up owners and homes, and forwards calls.

use std::sync::Arc;

use bytes::Bytes;
use everlog_partition::QueueKey;
use everlog_temporal::{Body, Broken, CallFuture, Location, POLL_HEADER, Peers, with_receipt};
use hyper::{Request, Response};
use tokio::sync::watch;

use crate::assignment::groups::GroupTable;
use crate::control_table::ControlTable;
use crate::matching::receipts::Recipient;
use crate::matching::remote::RemoteMatching;
use crate::membership::this_node::ThisNode;
use crate::metrics::{ClusterCounters, Outcome};
use crate::peer_server::{CLAIMED_HEADER, RECEIPT_HEADER, read_claimed};
use crate::peers::body_timeout::{BodyTimeout, FRAME_TIMEOUT};
use crate::peers::client::PeerClient;

/// Forwards calls of this node's gateway.
pub struct PeerForwarder {
    pub(crate) control: Arc<ControlTable>,
    pub(crate) node: Arc<ThisNode>,
    pub(crate) groups: Arc<GroupTable>,
    pub(crate) peers: Arc<PeerClient>,
    pub(crate) matching: Arc<RemoteMatching>,
    pub(crate) counters: Arc<ClusterCounters>,
}

impl Peers for PeerForwarder {
    fn owner(&self, partition: u32) -> Location {
        self.matching.location_of(partition)
    }

    fn home(&self, queue: &QueueKey) -> Location {
        match self.matching.home_of(queue) {
            Some(node) if node != self.node.name => Location::There(node.into()),
            Some(_) | None => Location::Here,
        }
    }

    fn calls_address(&self, node: &str) -> Option<String> {
        self.control.view().nodes.get(node).map(|row| row.calls.clone())
    }

    fn is_alone(&self) -> bool {
        let view = self.control.view();
        let mut others = view.assignment.nodes.iter().chain(&view.hosts);
        others.all(|node| *node == self.node.name) && self.groups.iter().all(|group| group.is_owned())
    }

    fn others(&self) -> Vec<Arc<str>> {
        let view = self.control.view();
        view.assignment
            .nodes
            .iter()
            .filter(|node| **node != self.node.name)
            .map(|node| node.as_str().into())
            .collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.control.changes()
    }

    fn poll_lost(&self, node: &str, poll_id: String) {
        self.matching.poll_lost_at(node, poll_id);
    }

    fn call(&self, node: Arc<str>, request: Request<Bytes>) -> CallFuture<Result<Response<Body>, Broken>> {
        let (control, peers) = (Arc::clone(&self.control), Arc::clone(&self.peers));
        let (matching, counters) = (Arc::clone(&self.matching), Arc::clone(&self.counters));
        let poll_id = request.headers().get(POLL_HEADER);
        let poll_id = poll_id.and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
        Box::pin(async move {
            let answered = match control.address_of(&node) {
                Some(address) => peers.call(&address, request).await,
                None => Err(Broken::Unsent),
            };
            counters.forwarded_out.count(match &answered {
                Ok(_) => Outcome::Answered,
                Err(Broken::Unsent) => Outcome::Unsent,
                Err(Broken::Unanswered) => Outcome::Unanswered,
            });
            let mut response = answered?;
            let receipt = response.headers_mut().remove(RECEIPT_HEADER);
            let receipt = receipt.and_then(|receipt| receipt.to_str().ok()?.parse().ok());
            let claimed = response.headers_mut().remove(CLAIMED_HEADER);
            let claimed = claimed.and_then(|claimed| read_claimed(claimed.to_str().ok()?));
            let response = response.map(|body| Body::new(BodyTimeout::new(body, FRAME_TIMEOUT)));
            Ok(match receipt {
                Some(receipt) => {
                    with_receipt(response, matching.receipt(node, receipt, Recipient { poll_id, claimed }))
                }
                None => response,
            })
        })
    }
}
