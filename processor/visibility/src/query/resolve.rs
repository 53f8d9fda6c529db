//! Resolves a syntax tree: names become attributes, values become literals of their types.

use crate::attribute::{Attribute, AttributeSource, AttributeType, SystemAttribute};
use crate::query::error::QueryError;
use crate::query::filter::{Condition, Filter, FilterError, FilterNode, RangeOperator, Test};
use crate::query::literal::Literal;
use crate::query::lookup::NAMESPACE_DIVISION;
use crate::query::names::{AttributeNames, NamedAttribute};
use crate::query::syntax::{
    IsWhat, Operand, Operator, Predicate, SyntaxNode, SyntaxTree, Unsupported, UnsupportedKind,
};
use crate::query::value::{Given, given};
use crate::query::words::phrases;

/// An attribute and how the query names it.
pub(super) struct Column {
    pub name: String,
    pub found: NamedAttribute,
}

/// The filter of a tree, as it is: nothing is hidden.
///
/// # Errors
/// When a name is unknown, or a value or an operator does not fit its attribute.
pub fn resolve(tree: &SyntaxTree, names: &impl AttributeNames) -> Result<Filter, QueryError> {
    let mut nodes = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        match node {
            SyntaxNode::Test(left, predicate) => test(left, predicate, names, &mut nodes)?,
            SyntaxNode::Bare(operand) => return Err(bare(operand)),
            SyntaxNode::Not => nodes.push(FilterNode::Not),
            SyntaxNode::And => nodes.push(FilterNode::And),
            SyntaxNode::Or => nodes.push(FilterNode::Or),
        }
    }
    Ok(Filter::new(nodes)?)
}

/// The attribute that an operand names.
///
/// # Errors
/// When the operand is no name, or the name is unknown.
pub(super) fn column(operand: &Operand, names: &impl AttributeNames) -> Result<Column, QueryError> {
    let Operand::Name(name) = operand else {
        let name = operand.node_name();
        return Err(QueryError::Expression(format!("must be a column name but was {name}")));
    };
    let name = name.replace('`', "");
    let Some(found) = names.find(&name) else {
        let text = format!("column name '{name}' is not a valid search attribute");
        return Err(QueryError::Expression(text));
    };
    Ok(Column { name, found })
}

/// Hides the runs of namespace divisions, unless the filter tests the division.
///
/// # Errors
/// When the filter is too long.
pub(super) fn without_divisions(filter: Filter) -> Result<Filter, FilterError> {
    let is_division = |node: &FilterNode| match node {
        FilterNode::Test(test) => test.attribute.is_named(NAMESPACE_DIVISION),
        FilterNode::Not | FilterNode::And | FilterNode::Or => false,
    };
    if filter.nodes().iter().any(is_division) {
        return Ok(filter);
    }
    let source = AttributeSource::Named(NAMESPACE_DIVISION.to_owned());
    let attribute = Attribute { source, kind: AttributeType::Keyword };
    let hidden = FilterNode::Test(Test { attribute, condition: Condition::IsNull });
    filter.and(Filter::new(vec![hidden])?)
}

fn bare(operand: &Operand) -> QueryError {
    match operand {
        Operand::Name(_) => QueryError::Expression("incomplete expression".into()),
        Operand::Other(Unsupported { kind: UnsupportedKind::Function, .. }) => {
            QueryError::Unsupported("function expression".into())
        }
        other => QueryError::Unsupported(format!("expression of type {}", other.node_name())),
    }
}

fn test(
    left: &Operand,
    predicate: &Predicate,
    names: &impl AttributeNames,
    nodes: &mut Vec<FilterNode>,
) -> Result<(), QueryError> {
    match predicate {
        Predicate::Compare(operator, right) => {
            let operator = comparison(*operator, left, predicate)?;
            let column = column(left, names)?;
            compare(&column, operator, right, nodes)
        }
        Predicate::Escaped(operator, ..) => comparison(*operator, left, predicate).map(|_| ()),
        Predicate::Between(is_negated, from, to) => {
            let column = column(left, names)?;
            let range = [(RangeOperator::GreaterOrEqual, from), (RangeOperator::LessOrEqual, to)];
            between(&column, range, *is_negated, nodes)
        }
        Predicate::Is(is_negated, what) => {
            let attribute = column(left, names)?.found.attribute;
            if *what != IsWhat::Null {
                let text = "'IS' operator can only be used with 'NULL' or 'NOT NULL'";
                return Err(QueryError::Expression(text.into()));
            }
            nodes.push(FilterNode::Test(Test { attribute, condition: Condition::IsNull }));
            nodes.extend(is_negated.then_some(FilterNode::Not));
            Ok(())
        }
    }
}

/// What is left of the operators after those that are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal { is_negated: bool },
    In { is_negated: bool },
    StartsWith { is_negated: bool },
    Range(RangeOperator),
}

fn comparison(operator: Operator, left: &Operand, predicate: &Predicate) -> Result<Comparison, QueryError> {
    Ok(match operator {
        Operator::Equal => Comparison::Equal { is_negated: false },
        Operator::NotEqual => Comparison::Equal { is_negated: true },
        Operator::In => Comparison::In { is_negated: false },
        Operator::NotIn => Comparison::In { is_negated: true },
        Operator::StartsWith => Comparison::StartsWith { is_negated: false },
        Operator::NotStartsWith => Comparison::StartsWith { is_negated: true },
        Operator::Less => Comparison::Range(RangeOperator::Less),
        Operator::LessOrEqual => Comparison::Range(RangeOperator::LessOrEqual),
        Operator::Greater => Comparison::Range(RangeOperator::Greater),
        Operator::GreaterOrEqual => Comparison::Range(RangeOperator::GreaterOrEqual),
        Operator::NullSafeEqual
        | Operator::Like
        | Operator::NotLike
        | Operator::Regexp
        | Operator::NotRegexp => {
            let text = format!("invalid operator '{}' in `{left} {predicate}`", operator.name());
            return Err(QueryError::Expression(text));
        }
    })
}

fn compare(
    column: &Column,
    comparison: Comparison,
    right: &Operand,
    nodes: &mut Vec<FilterNode>,
) -> Result<(), QueryError> {
    // A list stands behind IN, and behind nothing else.
    let operands = match right {
        Operand::Tuple(operands) => operands.as_slice(),
        single => std::slice::from_ref(single),
    };
    let values = operands.iter().map(|operand| given(column, operand)).collect::<Result<Vec<_>, _>>()?;
    let condition = match column.found.attribute.kind {
        AttributeType::Text => has_phrase(column, comparison, &values)?,
        AttributeType::KeywordList => is_among(column, comparison, &values)?,
        AttributeType::Keyword
        | AttributeType::Int
        | AttributeType::Double
        | AttributeType::Bool
        | AttributeType::Datetime => scalar(column, comparison, &values)?,
    };
    nodes.push(FilterNode::Test(Test { attribute: column.found.attribute.clone(), condition }));
    nodes.extend(comparison.is_negated().then_some(FilterNode::Not));
    Ok(())
}

fn scalar(column: &Column, comparison: Comparison, values: &[Given]) -> Result<Condition, QueryError> {
    match comparison {
        Comparison::Equal { .. } | Comparison::In { .. } => {
            Ok(Condition::AnyOf(values.iter().map(|value| value.literal(column)).collect()))
        }
        Comparison::Range(range) => match values {
            [value] => Ok(Condition::Compare(range, value.literal(column))),
            _no_single_one => Err(QueryError::Filter(FilterError::Test)),
        },
        Comparison::StartsWith { .. } => match values {
            [Given::String(prefix)] => Ok(Condition::StartsWith(prefix.clone())),
            // A moment begins with no other moment.
            [moment @ Given::Moment { .. }] => Ok(Condition::AnyOf(vec![moment.literal(column)])),
            other => {
                let (name, value) = (comparison.name(), shown(other));
                let text = format!("right-hand side of '{name}' must be a literal string (got: {value})");
                Err(QueryError::Expression(text))
            }
        },
    }
}

/// Lists of keywords: some element is among the values.
fn is_among(column: &Column, comparison: Comparison, values: &[Given]) -> Result<Condition, QueryError> {
    let is_in = match comparison {
        Comparison::Equal { .. } => false,
        Comparison::In { .. } => true,
        Comparison::StartsWith { .. } | Comparison::Range(_) => {
            return Err(wrong_operator(column, comparison, values));
        }
    };
    let literals = values.iter().map(|value| match value {
        Given::String(text) => Ok(Literal::String(text.clone())),
        Given::Int(_) | Given::Double(_) | Given::Bool(_) | Given::Moment { .. } => {
            let place = if is_in { "type in tuple" } else { "type" };
            let value = value.shown();
            let text = format!("unexpected value {place} (expected string, got {value})");
            Err(QueryError::Expression(text))
        }
    });
    Ok(Condition::AnyOf(literals.collect::<Result<_, _>>()?))
}

fn has_phrase(column: &Column, comparison: Comparison, values: &[Given]) -> Result<Condition, QueryError> {
    match (comparison, values) {
        (Comparison::Equal { .. }, [Given::String(text)]) => {
            if text.split(' ').all(str::is_empty) {
                let text = format!("no tokens found in '{text}'");
                let text = format!("unexpected value for Text type search attribute ({text})");
                return Err(QueryError::Expression(text));
            }
            Ok(Condition::HasPhrase(phrases(text)))
        }
        (Comparison::Equal { .. }, other) => {
            let value = shown(other);
            Err(QueryError::Expression(format!("unexpected value type (expected string, got {value})")))
        }
        (Comparison::In { .. } | Comparison::StartsWith { .. } | Comparison::Range(_), other) => {
            Err(wrong_operator(column, comparison, other))
        }
    }
}

fn wrong_operator(column: &Column, comparison: Comparison, values: &[Given]) -> QueryError {
    let (kind, name, operator) = (column.found.attribute.kind.name(), &column.name, comparison.name());
    let values = match comparison {
        Comparison::In { .. } => {
            let values: Vec<_> = values.iter().map(Given::shown).collect();
            format!("({})", values.join(", "))
        }
        Comparison::Equal { .. } | Comparison::StartsWith { .. } | Comparison::Range(_) => shown(values),
    };
    let place = format!("{kind} type search attribute in `{name} {operator} {values}`");
    QueryError::Expression(format!("operator '{operator}' not supported for {place}"))
}

fn shown(values: &[Given]) -> String {
    values.iter().map(Given::shown).collect::<Vec<_>>().join(", ")
}

/// `BETWEEN` is two comparisons that are joined by AND.
fn between(
    column: &Column,
    range: [(RangeOperator, &Operand); 2],
    is_negated: bool,
    nodes: &mut Vec<FilterNode>,
) -> Result<(), QueryError> {
    let kind = column.found.attribute.kind;
    match kind {
        AttributeType::Keyword | AttributeType::Int | AttributeType::Double | AttributeType::Datetime => {}
        AttributeType::KeywordList | AttributeType::Text | AttributeType::Bool => {
            let place = format!("'{}' of type {}", column.name, kind.name());
            let text = format!("cannot do range condition on search attribute {place}");
            return Err(QueryError::Expression(text));
        }
    }
    for (range, operand) in range {
        let condition = Condition::Compare(range, given(column, operand)?.literal(column));
        nodes.push(FilterNode::Test(Test { attribute: column.found.attribute.clone(), condition }));
    }
    nodes.push(FilterNode::And);
    nodes.extend(is_negated.then_some(FilterNode::Not));
    Ok(())
}

impl Comparison {
    fn is_negated(self) -> bool {
        match self {
            Self::Equal { is_negated } | Self::In { is_negated } | Self::StartsWith { is_negated } => {
                is_negated
            }
            Self::Range(_) => false,
        }
    }

    fn name(self) -> &'static str {
        let operator = match self {
            Self::Equal { is_negated: false } => Operator::Equal,
            Self::Equal { is_negated: true } => Operator::NotEqual,
            Self::In { is_negated: false } => Operator::In,
            Self::In { is_negated: true } => Operator::NotIn,
            Self::StartsWith { is_negated: false } => Operator::StartsWith,
            Self::StartsWith { is_negated: true } => Operator::NotStartsWith,
            Self::Range(RangeOperator::Less) => Operator::Less,
            Self::Range(RangeOperator::LessOrEqual) => Operator::LessOrEqual,
            Self::Range(RangeOperator::Greater) => Operator::Greater,
            Self::Range(RangeOperator::GreaterOrEqual) => Operator::GreaterOrEqual,
        };
        operator.name()
    }
}

impl Column {
    /// True of this system attribute, whatever a namespace calls by its name.
    pub(super) fn is(&self, attribute: SystemAttribute) -> bool {
        self.found.attribute.source == AttributeSource::System(attribute)
    }
}
