//! Values of a query, of the types of their attributes.
//!
//! Any value is accepted for any attribute, as by Temporal's server on SQLite. One that is of another type compares as it
//! does there: numbers and texts that look like numbers compare by value, and any number is less than any text.

use crate::attribute::{AttributeType, SystemAttribute};
use crate::query::error::QueryError;
use crate::query::literal::Literal;
use crate::query::moment::{parse_datetime, parse_duration};
use crate::query::resolve::Column;
use crate::query::syntax::{Operand, Unsupported, UnsupportedKind};

/// A value as it is given for an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Given {
    String(String),
    Int(i64),
    Double(f64),
    Bool(bool),
    /// In ns since 1970-01-01 UTC, and as it is written.
    Moment {
        ns: i64,
        written: String,
    },
}

/// The names of `WorkflowExecutionStatus`: short, and as protobuf's JSON has them without `WORKFLOW_EXECUTION_STATUS_`.
const STATUSES: [(&str, &str); 9] = [
    ("Unspecified", "UNSPECIFIED"),
    ("Running", "RUNNING"),
    ("Completed", "COMPLETED"),
    ("Failed", "FAILED"),
    ("Canceled", "CANCELED"),
    ("Terminated", "TERMINATED"),
    ("ContinuedAsNew", "CONTINUED_AS_NEW"),
    ("TimedOut", "TIMED_OUT"),
    ("Paused", "PAUSED"),
];
const STATUS_PREFIX: &str = "WORKFLOW_EXECUTION_STATUS_";

/// The short name of a status; none of a number that is unknown.
pub fn status_name(status: i32) -> Option<&'static str> {
    usize::try_from(status).ok().and_then(|status| STATUSES.get(status)).map(|(name, _)| *name)
}

fn status_number(name: &str) -> Option<i64> {
    let place = STATUSES
        .iter()
        .position(|(short, long)| *short == name || name.strip_prefix(STATUS_PREFIX) == Some(long));
    place.and_then(|place| i64::try_from(place).ok())
}

/// The value that an operand gives for an attribute.
///
/// # Errors
/// When the operand is no value, or none of the attribute.
pub(super) fn given(column: &Column, operand: &Operand) -> Result<Given, QueryError> {
    let value = match operand {
        // Nobody looks at these, whatever the attribute.
        Operand::Bool(is_true) => return Ok(Given::Bool(*is_true)),
        // All single quotes at both ends are lost.
        Operand::String(text) => Given::String(text.trim_matches('\'').to_owned()),
        Operand::Number(text) => number(text).ok_or_else(|| QueryError::Number(text.clone()))?,
        Operand::Name(_) => {
            let hint = format!("(did you forget to quote '{operand}'?)");
            let text = format!("column name on the right side of comparison expression {hint}");
            return Err(QueryError::Unsupported(text));
        }
        Operand::Other(Unsupported { kind, .. }) => return Err(unsupported(kind)),
        Operand::Tuple(_) => return Err(unexpected_type(operand.node_name())),
    };
    if column.found.attribute.kind == AttributeType::Datetime {
        return moment(column, value);
    }
    if column.is(SystemAttribute::ExecutionStatus) {
        return status(column, value);
    }
    if column.is(SystemAttribute::ExecutionDuration) {
        return duration(value);
    }
    let prefix = column.found.value_prefix;
    Ok(if prefix.is_empty() { value } else { Given::String(format!("{prefix}{}", value.text())) })
}

fn number(text: &str) -> Option<Given> {
    match text.parse() {
        Ok(number) => Some(Given::Int(number)),
        Err(_too_large_or_a_float) => {
            text.parse().ok().filter(|number: &f64| number.is_finite()).map(Given::Double)
        }
    }
}

fn moment(column: &Column, value: Given) -> Result<Given, QueryError> {
    match value {
        Given::Int(ns) => Ok(Given::Moment { ns, written: ns.to_string() }),
        Given::String(written) => match parse_datetime(&written) {
            Some(ns) => Ok(Given::Moment { ns, written }),
            None => Err(QueryError::Expression(format!("unable to parse datetime '{written}'"))),
        },
        Given::Double(_) | Given::Bool(_) | Given::Moment { .. } => Err(unexpected_float(column)),
    }
}

fn status(column: &Column, value: Given) -> Result<Given, QueryError> {
    match value {
        Given::Int(number) => Ok(Given::Int(number)),
        Given::String(name) => match status_number(&name) {
            Some(number) => Ok(Given::Int(number)),
            None => Err(QueryError::Expression(format!("invalid ExecutionStatus value '{name}'"))),
        },
        Given::Double(_) | Given::Bool(_) | Given::Moment { .. } => Err(unexpected_float(column)),
    }
}

fn duration(value: Given) -> Result<Given, QueryError> {
    match value {
        Given::String(text) => match parse_duration(&text) {
            Ok(ns) => Ok(Given::Int(ns)),
            Err(reason) => Err(QueryError::Duration { value: text, reason }),
        },
        other => Ok(other),
    }
}

fn unexpected_float(column: &Column) -> QueryError {
    let name = &column.name;
    QueryError::Expression(format!("unexpected value type float64 for search attribute {name}"))
}

fn unexpected_type(name: &str) -> QueryError {
    QueryError::Expression(format!("unexpected value type {name}"))
}

fn unsupported(kind: &UnsupportedKind) -> QueryError {
    match kind {
        UnsupportedKind::Function => QueryError::Unsupported("nested func".into()),
        UnsupportedKind::GroupConcat => QueryError::Unsupported("'group_concat'".into()),
        UnsupportedKind::Number(text) => QueryError::Number(text.clone()),
        UnsupportedKind::Node(name) => unexpected_type(name),
    }
}

impl Given {
    /// The literal that values of the attribute are compared with.
    pub(super) fn literal(&self, column: &Column) -> Literal {
        let is_status = column.is(SystemAttribute::ExecutionStatus);
        match (self, column.found.attribute.kind) {
            (Self::Moment { ns, .. }, _) => Literal::Time(*ns),
            (value, AttributeType::Keyword) if !is_status => Literal::String(value.text()),
            (Self::Bool(is_true), AttributeType::Bool) => Literal::Bool(*is_true),
            (Self::Bool(is_true), _) => Literal::Int(i64::from(*is_true)),
            (Self::Int(number), kind) => typed(Literal::Int(*number), kind),
            (Self::Double(number), kind) => typed(Literal::Double(*number), kind),
            (Self::String(text), kind) => match number(text.trim()).filter(|_| looks_like_number(text)) {
                Some(Self::Int(number)) => typed(Literal::Int(number), kind),
                Some(Self::Double(number)) => typed(Literal::Double(number), kind),
                Some(Self::String(_) | Self::Bool(_) | Self::Moment { .. }) | None => {
                    Literal::String(text.clone())
                }
            },
        }
    }

    /// The value as text.
    fn text(&self) -> String {
        match self {
            Self::String(text) | Self::Moment { written: text, .. } => text.clone(),
            Self::Int(number) => number.to_string(),
            Self::Double(number) => number.to_string(),
            Self::Bool(is_true) => i64::from(*is_true).to_string(),
        }
    }

    /// The value as messages show it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::String(text) => format!("'{}'", text.replace('\'', "''")),
            Self::Bool(is_true) => is_true.to_string(),
            Self::Int(_) | Self::Double(_) | Self::Moment { .. } => self.text(),
        }
    }
}

/// Words for infinity are read as numbers elsewhere.
fn looks_like_number(text: &str) -> bool {
    text.trim().bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'))
}

/// A number in the form that values of the attribute have, where it is the same number: an index looks it up.
fn typed(number: Literal, kind: AttributeType) -> Literal {
    let other = match (&number, kind) {
        (Literal::Double(double), AttributeType::Int | AttributeType::Keyword) => {
            Literal::Int(*double as i64)
        }
        (Literal::Int(int), AttributeType::Double) => Literal::Double(*int as f64),
        (Literal::Int(int @ 0..=1), AttributeType::Bool) => Literal::Bool(*int == 1),
        _other => return number,
    };
    if other == number { other } else { number }
}
