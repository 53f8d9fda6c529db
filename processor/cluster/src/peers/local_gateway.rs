//! The gateway of this node, for calls that other nodes forward.

use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use everlog_partition::{Delivery, Receipt};
use everlog_temporal::{Calls, Error, Gateway};

use crate::lock;

/// Set once the node has a gateway; until then forwarded calls are refused.
#[derive(Default)]
pub struct LocalGateway {
    gateway: OnceLock<Arc<Gateway>>,
    calls: OnceLock<Mutex<Calls>>,
}

impl LocalGateway {
    /// Forwarded calls go to this gateway from now on.
    ///
    /// # Errors
    /// Its services cannot be made.
    pub fn set(&self, gateway: &Arc<Gateway>) -> Result<(), Error> {
        // Set once, when the node starts.
        let _ = self.calls.set(Mutex::new(gateway.calls()?));
        let _ = self.gateway.set(Arc::clone(gateway));
        Ok(())
    }

    /// Its services, for one call.
    pub fn calls(&self) -> Option<Calls> {
        self.calls.get().map(|calls| lock(calls).clone())
    }

    /// A delivery as the answer to a poll, and the receipt of it; none where it cannot be answered.
    pub fn answer(&self, namespace_id: &str, delivery: Delivery) -> Option<(Bytes, Option<Receipt>)> {
        self.gateway.get()?.tell(namespace_id, delivery)
    }
}
