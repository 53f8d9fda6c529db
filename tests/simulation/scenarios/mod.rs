//! Scenarios: fixed courses of events of one or two nodes, which random plans would reach too seldom.

pub mod behind;
pub mod one_node;
pub mod overtaken;
mod planned;
pub mod resent;
pub mod resume;
pub mod skew;
pub mod stale;
