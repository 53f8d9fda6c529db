//! Lists and counts over all partitions: every node asks the owners, and puts their answers together.

pub(crate) mod count;
pub(crate) mod list;
pub(crate) mod listed;
