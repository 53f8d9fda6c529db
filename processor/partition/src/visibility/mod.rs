//! Lists and counts over the index of the partition's runs, which is written with the rows of their state.

pub(crate) mod check;
pub(crate) mod reads;
