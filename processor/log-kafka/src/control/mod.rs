//! The topic `control`: its rows, their followers, and the consumer group of the nodes.

pub mod client;
pub(crate) mod control_topic;
pub mod follower;
pub mod node_group;
