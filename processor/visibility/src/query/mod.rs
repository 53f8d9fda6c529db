//! The filter language: queries are read, resolved against the attributes of a namespace, and tested on runs.
//!
//! text --lexer, parser--> [`SyntaxTree`](syntax::SyntaxTree) --resolve--> [`Query`], whose [`Filter`] is tested on runs,
//! sent to other nodes, and asked for what an index can look up.
//!
//! Every step is a loop over a flat list: no query, however deep, overflows a stack. Nothing here reads a clock.

pub mod filter;
mod literal;
mod lookup;
mod words;

pub use filter::{Condition, Filter, FilterNode, Range, Test};
pub use literal::Literal;
pub use lookup::{NAMESPACE_DIVISION, NamespaceDivision};
pub use words::{Phrase, phrases, words};

use crate::attribute::{Attribute, SystemAttribute};

/// What a caller asks for: a filter, and how its matches are sorted or counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Which runs match.
    pub filter: Filter,
    /// `ORDER BY` of a list; none is the list's own order.
    pub order: Option<SortOrder>,
    /// `GROUP BY` of a count: `ExecutionStatus`, `WorkflowType`, or another keyword.
    pub group_by: Option<Attribute>,
}

/// The order of a list that asks for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortOrder {
    /// `StartTime`, `CloseTime` or `ExecutionTime`.
    pub by: SystemAttribute,
    /// True if the latest moment comes first.
    pub is_descending: bool,
}
