//! Which nodes there are: how a node joins and leaves, whom it reaches, and which nodes are gone.

pub(crate) mod departed;
pub(crate) mod flap_damping;
pub(crate) mod reachability;
pub(crate) mod this_node;
