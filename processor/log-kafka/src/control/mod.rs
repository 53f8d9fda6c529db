//! The topic `control`: its rows, whoever follows them, and the group of the nodes.

pub mod client;
pub(crate) mod control_topic;
pub mod follower;
pub mod node_group;
