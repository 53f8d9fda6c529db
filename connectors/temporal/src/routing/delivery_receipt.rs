//! A task's receipt on its way with the response: accepted when the worker's connection has taken the whole response, and dropped
//! otherwise, which requeues the task.
//!
//! The response to a forwarded poll has one hop more: the node that forwarded the poll reports whether it arrived.

use std::sync::Arc;

use everlog_partition::Receipt;
use parking_lot::Mutex;
use tonic::body::Body;
use tonic::codegen::http::Response;

/// Where a handler puts the receipt of the task in its response. It travels among the extensions of a request or response; clones
/// share one slot.
#[derive(Clone, Default)]
pub struct ReceiptSlot(Arc<Mutex<Option<Receipt>>>);

impl ReceiptSlot {
    /// Puts the receipt.
    pub(crate) fn put(&self, receipt: Receipt) {
        *self.0.lock() = Some(receipt);
    }

    /// Takes the receipt. Dropped, it requeues the task.
    pub fn take(&self) -> Option<Receipt> {
        self.0.lock().take()
    }
}

/// A response with the receipt among its extensions.
pub fn with_receipt(mut response: Response<Body>, receipt: Receipt) -> Response<Body> {
    let receipt_slot = ReceiptSlot::default();
    receipt_slot.put(receipt);
    response.extensions_mut().insert(receipt_slot);
    response
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_task_that_nobody_brings_on_goes_back() {
        let given_back = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&given_back);
        let receipt = Receipt::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let answer = with_receipt(Response::new(Body::empty()), receipt);
        assert_eq!(given_back.load(Ordering::Relaxed), 0);
        drop(answer);
        assert_eq!(given_back.load(Ordering::Relaxed), 1);
    }
}
