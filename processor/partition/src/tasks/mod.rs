//! Workflow and activity tasks between the state of a run and a worker: offer, payload, and lost deliveries.

pub(crate) mod lost_deliveries;
pub(crate) mod offer;
pub(crate) mod task_offers;
pub(crate) mod task_payload;
