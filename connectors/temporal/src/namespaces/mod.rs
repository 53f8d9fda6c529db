//! The registry of namespaces, with the search attributes and the rate limits of each.

pub(crate) mod namespace;
#[cfg(test)]
pub(crate) mod namespace_tests;
pub(crate) mod search_attributes;
