//! Tasks put into words for their worker, also for one that polls another node.

use bytes::Bytes;
use everlog_partition::{Delivery, Receipt, Told};
use prost::Message;
use tonic::Status;

use crate::namespace::Namespace;
use crate::token::Sealer;
use crate::{Gateway, activity, task};

/// What a worker is told with.
#[derive(Clone, Copy)]
pub(crate) struct Voice<'a> {
    pub sealer: &'a Sealer,
    pub namespace: &'a Namespace,
}

/// The answer that the owner of the run has made, as a handler gives it back.
pub(crate) fn read<R: Message + Default>(told: Told) -> Result<(R, Option<Receipt>), Status> {
    let answer = R::decode(told.answer);
    // Unread, the task goes back by its receipt.
    let answer = answer.map_err(|_error| Status::internal("another node's answer cannot be read"))?;
    Ok((answer, told.receipt))
}

impl Gateway {
    /// A task of this node's partitions as the worker of a poll on another node is told of it, and the receipt to be
    /// accepted when it is; none where there is nothing to tell, and what it was goes back.
    pub fn tell(&self, namespace_id: &str, delivery: Delivery) -> Option<(Bytes, Option<Receipt>)> {
        let namespace = self.namespaces.find_id(namespace_id).ok()?;
        let voice = Voice { sealer: &self.sealer, namespace: &namespace };
        match delivery {
            Delivery::Workflow(told) => {
                let (response, receipt) = task::response(voice, *told).ok()?;
                Some((response.encode_to_vec().into(), receipt))
            }
            Delivery::Activity(told) => {
                let (response, receipt) = activity::response(voice, *told);
                Some((response.encode_to_vec().into(), receipt))
            }
            Delivery::Query(mut told) => {
                let receipt = told.receipt.take();
                let response = task::query_response(voice, *told).ok()?;
                Some((response.encode_to_vec().into(), receipt))
            }
            Delivery::Told(_) | Delivery::Nothing => None,
        }
    }
}
