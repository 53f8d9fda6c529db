//! A log without faults that can be opened again and again, as the contract of every log demands.

use everlog_log::contract::Backend;

use super::broker::{Broker, Shared};
use super::nasty::Nasty;
use super::sim_log::SimLog;
use crate::dice::Dice;

/// A log without faults, with as many partitions as wished.
pub struct CalmBackend {
    broker: Shared,
}

impl CalmBackend {
    pub fn calm(partitions: u32) -> Self {
        let nasty = Nasty { immediate: true, ..Nasty::calm() };
        Self { broker: Shared::new(Broker::new(partitions, nasty, Dice::new(1))) }
    }
}

impl Backend for CalmBackend {
    type Home = SimLog;
    fn open(&self) -> SimLog {
        SimLog::open(&self.broker)
    }
}
