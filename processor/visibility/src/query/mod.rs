//! The filter language: queries are read, resolved against the attributes of a namespace, and tested on runs.
//!
//! text --lexer, parser--> [`SyntaxTree`](syntax::SyntaxTree) --resolve--> [`Query`], whose [`Filter`] is tested on runs,
//! sent to other nodes, and asked for what an index can look up.
//!
//! Every step is a loop over a flat list: no query, however deep, overflows a stack. Nothing here reads a clock.

mod error;
mod expression;
pub mod filter;
mod keywords;
mod legacy;
mod lexer;
mod literal;
mod lookup;
mod message;
mod moment;
mod names;
mod parser;
mod resolve;
pub mod syntax;
mod value;
mod words;

pub use error::QueryError;
pub use filter::{Condition, Filter, FilterError, FilterNode, RangeOperator, Test};
pub use legacy::{LegacyFilter, Moments};
pub use literal::Literal;
pub use lookup::{NAMESPACE_DIVISION, NamespaceDivision};
pub use message::FilterMessage;
pub use moment::parse_datetime;
pub use names::{AttributeNames, NamedAttribute, RunAttributes};
pub use parser::parse;
pub use resolve::resolve;
pub use value::status_name;
pub use words::{Phrase, phrases, words};

use crate::attribute::{Attribute, AttributeSource, AttributeType, SystemAttribute};
use crate::query::resolve::{column, without_divisions};
use crate::query::syntax::SyntaxTree;

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

impl Query {
    /// The query of a list.
    ///
    /// # Errors
    /// When it cannot be read, or a list has not what it asks for.
    pub fn for_list(text: &str, names: &impl AttributeNames) -> Result<Self, QueryError> {
        let tree = parse(text)?;
        let order = order(&tree, names)?;
        let filter = without_divisions(resolve(&tree, names)?)?;
        if group_by(&tree, names)?.is_some() {
            return Err(QueryError::Unsupported("'group by' clause".into()));
        }
        Ok(Self { filter, order, group_by: None })
    }

    /// The query of a count.
    ///
    /// # Errors
    /// When it cannot be read, or a count has not what it asks for.
    pub fn for_count(text: &str, names: &impl AttributeNames) -> Result<Self, QueryError> {
        let tree = parse(text)?;
        if !tree.order_by.is_empty() {
            return Err(order_by());
        }
        let filter = resolve(&tree, names)?;
        let group_by = group_by(&tree, names)?;
        // Who counts by division wants to see them all.
        let counts_divisions = group_by.as_ref().is_some_and(|by| by.is_named(NAMESPACE_DIVISION));
        let filter = if counts_divisions { filter } else { without_divisions(filter)? };
        Ok(Self { filter, order: None, group_by })
    }
}

fn order_by() -> QueryError {
    QueryError::Unsupported("'order by' clause".into())
}

fn order(tree: &SyntaxTree, names: &impl AttributeNames) -> Result<Option<SortOrder>, QueryError> {
    use SystemAttribute::{CloseTime, ExecutionTime, StartTime};
    let term = match tree.order_by.as_slice() {
        [] => return Ok(None),
        [term] => term,
        _several => return Err(order_by()),
    };
    match column(&term.by, names)?.found.attribute.source {
        AttributeSource::System(by @ (StartTime | CloseTime | ExecutionTime)) => {
            Ok(Some(SortOrder { by, is_descending: term.is_descending }))
        }
        AttributeSource::System(_) | AttributeSource::Named(_) => Err(order_by()),
    }
}

fn group_by(tree: &SyntaxTree, names: &impl AttributeNames) -> Result<Option<Attribute>, QueryError> {
    let by = match tree.group_by.as_slice() {
        [] => return Ok(None),
        [by] => column(by, names)?,
        _several => {
            let text = "'group by' clause supports only a single field";
            return Err(QueryError::Unsupported(text.into()));
        }
    };
    if by.found.attribute.kind == AttributeType::Keyword && by.found.value_prefix.is_empty() {
        return Ok(Some(by.found.attribute));
    }
    // The server's text, though more is supported here.
    let text = "'group by' clause is only supported for ExecutionStatus search attribute";
    Err(QueryError::Unsupported(text.into()))
}
