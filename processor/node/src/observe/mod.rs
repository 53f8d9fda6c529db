//! What a node shows of itself: health, metrics, progress of a start, memory.

pub mod health;
pub mod kafka_metrics;
pub mod memory;
pub mod metrics;
pub mod metrics_http;
pub mod process_metrics;
pub mod progress;
