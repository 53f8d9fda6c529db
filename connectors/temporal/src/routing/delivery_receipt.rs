//! Receipts on their way with an answer: a task has reached its worker when the worker's connection has taken all of it, and goes
//! back where that does not come to pass.
//!
//! The answer of a poll that another node has brought has one hop more before it: that node says whether it got there.

use std::sync::Arc;

use everlog_partition::Receipt;
use parking_lot::Mutex;
use tonic::body::Body;
use tonic::codegen::http::Response;

/// Where a handler leaves the receipt of what it answers with, for whoever brings the answer on. Goes along with a request, among
/// its extensions; clones are the same place.
#[derive(Clone, Default)]
pub struct ReceiptSlot(Arc<Mutex<Option<Receipt>>>);

impl ReceiptSlot {
    /// Leaves the receipt.
    pub(crate) fn put(&self, receipt: Receipt) {
        *self.0.lock() = Some(receipt);
    }

    /// What was left. Whoever drops it gives the task back.
    pub fn take(&self) -> Option<Receipt> {
        self.0.lock().take()
    }
}

/// An answer with its receipt, for whoever brings it to its worker.
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
