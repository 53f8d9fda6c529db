//! Why a query is refused.

use crate::query::filter::FilterError;

/// Why a query is refused: gRPC's INVALID_ARGUMENT, with the texts of Temporal's server 1.29 for SQL stores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It does not follow the grammar. The position is that of Temporal's parser, which stands behind the word and puts
    /// `select * from table1 where ` in front of the query.
    #[error("invalid query: malformed SQL query: {what} at position {position}{}", Near(near.as_deref()))]
    Syntax {
        /// What is wrong.
        what: &'static str,
        /// In bytes, from 1.
        position: usize,
        /// The word there, if it is one.
        near: Option<String>,
    },
    /// A name, an operator or a value that does not fit.
    #[error("invalid query: invalid expression: {0}")]
    Expression(String),
    /// What SQL has and this language has not.
    #[error("invalid query: operation is not supported: {0}")]
    Unsupported(String),
    /// A number in a form that is not understood. The server's text has no prefix either.
    #[error("invalid expression: unable to parse {0}")]
    Number(String),
    /// A value of `ExecutionDuration` that is none.
    #[error("invalid query: invalid value for search attribute ExecutionDuration: {value} ({reason})")]
    Duration {
        /// The value.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A filter that is too long.
    #[error("invalid query: {0}")]
    Filter(#[from] FilterError),
}

struct Near<'a>(Option<&'a str>);

impl std::fmt::Display for Near<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(word) => write!(formatter, " near '{word}'"),
            None => Ok(()),
        }
    }
}
