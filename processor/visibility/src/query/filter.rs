//! A resolved filter: tests of attributes, joined by NOT, AND and OR.
//!
//! It is a postfix list: operands stand before their operation. A run is tested by one pass over the list with a stack of
//! results, and a result that decides an AND or OR skips the other operand.
//!
//! Logic is that of SQL: a test of a value that the run has not is neither true nor false, NOT leaves it so, and a run
//! matches only if the whole is true. Lists of keywords and texts are an exception: a test of them is false where the run
//! has none, as with SQLite.

use crate::attribute::{Attribute, AttributeType};
use crate::query::literal::Literal;
use crate::query::words::{Phrase, has_phrase};
use crate::record::Values;
use crate::value::Value;

/// Tests in one filter, at most: they bound the work for one run.
pub const TESTS_MAX: usize = 5_000;

/// Which runs match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    nodes: Vec<FilterNode>,
    /// Of each node that is the left operand of an AND or OR: what decides that operation, and where it stands.
    decided: Vec<Option<Decided>>,
}

/// One place of a filter's postfix list.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterNode {
    /// A test of one attribute.
    Test(Test),
    /// Of the operand before it.
    Not,
    /// Of the two operands before it.
    And,
    /// Of the two operands before it.
    Or,
}

/// A test of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The attribute.
    pub attribute: Attribute,
    /// What is asked of its value.
    pub condition: Condition,
}

/// What a test asks of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The run has no value.
    IsNull,
    /// The value, or some element of it, is one of these: sorted, each once, never empty.
    AnyOf(Vec<Literal>),
    /// The value stands so to the literal.
    Compare(RangeOperator, Literal),
    /// The value as text begins so.
    StartsWith(String),
    /// The text has one of these phrases.
    HasPhrase(Vec<Phrase>),
}

/// How a value stands to a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeOperator {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// Why a list of nodes is no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// An operation without its operands, or operands without an operation.
    #[error("a filter's operations do not fit its tests")]
    Unbalanced,
    /// More than [`TESTS_MAX`] tests.
    #[error("a filter has more than {TESTS_MAX} tests")]
    TooLong,
    /// A test that no query gives.
    #[error("a filter has a test that its attribute does not know")]
    Test,
    /// Bytes that are no filter.
    #[error("a filter cannot be decoded")]
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Decided {
    by: bool,
    operation: usize,
}

impl Filter {
    /// The filter of a postfix list; an empty list matches every run.
    ///
    /// # Errors
    /// When the list is no postfix expression, too long, or has a test that no query gives.
    pub fn new(mut nodes: Vec<FilterNode>) -> Result<Self, FilterError> {
        let mut decided = vec![None; nodes.len()];
        // The last nodes of the operands that wait for an operation.
        let mut operands = Vec::new();
        let mut tests = 0_usize;
        for (place, node) in nodes.iter_mut().enumerate() {
            match node {
                FilterNode::Test(test) => {
                    tests += 1;
                    test.normalize()?;
                }
                FilterNode::Not => {
                    operands.pop().ok_or(FilterError::Unbalanced)?;
                }
                FilterNode::And | FilterNode::Or => {
                    operands.pop().ok_or(FilterError::Unbalanced)?;
                    let left: usize = operands.pop().ok_or(FilterError::Unbalanced)?;
                    let by = matches!(node, FilterNode::Or);
                    decided[left] = Some(Decided { by, operation: place });
                }
            }
            operands.push(place);
        }
        if tests > TESTS_MAX {
            return Err(FilterError::TooLong);
        }
        if operands.len() > 1 {
            return Err(FilterError::Unbalanced);
        }
        Ok(Self { nodes, decided })
    }

    /// The postfix list.
    pub fn nodes(&self) -> &[FilterNode] {
        &self.nodes
    }

    /// Both filters: a run matches if it matches each.
    ///
    /// # Errors
    /// When both together are too long.
    pub fn and(self, other: Self) -> Result<Self, FilterError> {
        let joins = !self.nodes.is_empty() && !other.nodes.is_empty();
        let nodes = self.nodes.into_iter().chain(other.nodes);
        Self::new(nodes.chain(joins.then_some(FilterNode::And)).collect())
    }

    /// True if the run matches.
    pub fn matches(&self, values: &impl Values) -> bool {
        let mut results: Vec<Option<bool>> = Vec::new();
        let mut place = 0;
        while let Some(node) = self.nodes.get(place) {
            let result = match node {
                FilterNode::Test(test) => test.holds(values),
                FilterNode::Not => results.pop().flatten().map(|result| !result),
                FilterNode::And => both(results.pop().flatten(), results.pop().flatten()),
                FilterNode::Or => either(results.pop().flatten(), results.pop().flatten()),
            };
            // A left operand that decides is the result of its operation, which may be a left operand itself.
            while let Some(Some(decided)) = self.decided.get(place) {
                if result != Some(decided.by) {
                    break;
                }
                place = decided.operation;
            }
            results.push(result);
            place += 1;
        }
        results.pop().unwrap_or(Some(true)) == Some(true)
    }
}

fn both(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        (None, _) | (_, None) => None,
    }
}

fn either(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        (None, _) | (_, None) => None,
    }
}

impl Test {
    /// True, false, or neither where the run has no value.
    fn holds(&self, values: &impl Values) -> Option<bool> {
        let value = values.value(&self.attribute);
        let missing = match self.attribute.kind {
            AttributeType::KeywordList | AttributeType::Text => Some(false),
            AttributeType::Keyword
            | AttributeType::Int
            | AttributeType::Double
            | AttributeType::Bool
            | AttributeType::Datetime => None,
        };
        match &self.condition {
            Condition::IsNull => Some(value.is_none()),
            Condition::AnyOf(literals) => value.map_or(missing, |value| Some(is_any(&value, literals))),
            Condition::Compare(range, literal) => range.holds(literal.compare(&value?)?).into(),
            Condition::StartsWith(prefix) => starts_with(&value?, prefix).into(),
            Condition::HasPhrase(phrases) => match value {
                Some(Value::String(text)) => Some(has_phrase(&text, phrases)),
                Some(_) | None => missing,
            },
        }
    }

    /// Sorts literals, and refuses what no query gives.
    fn normalize(&mut self) -> Result<(), FilterError> {
        let is_text = self.attribute.kind == AttributeType::Text;
        let is_list = self.attribute.kind == AttributeType::KeywordList;
        let is_sound = match &mut self.condition {
            Condition::IsNull => true,
            Condition::AnyOf(literals) => {
                literals.sort_unstable();
                literals.dedup();
                !is_text && !literals.is_empty() && literals.iter().all(is_number_or_other)
            }
            Condition::Compare(_, literal) => !is_text && !is_list && is_number_or_other(literal),
            Condition::StartsWith(_) => !is_text && !is_list,
            Condition::HasPhrase(phrases) => is_text && phrases.iter().all(|phrase| !phrase.is_empty()),
        };
        is_sound.then_some(()).ok_or(FilterError::Test)
    }
}

fn is_number_or_other(literal: &Literal) -> bool {
    !matches!(literal, Literal::Double(number) if !number.is_finite())
}

/// True if the value, or some element of it, is among sorted literals.
fn is_any(value: &Value<'_>, literals: &[Literal]) -> bool {
    let has = |value: &Value<'_>| {
        let order = |literal: &Literal| match literal.compare(value) {
            Some(order) => order.reverse(),
            None => std::cmp::Ordering::Less,
        };
        literals.binary_search_by(order).is_ok()
    };
    match value {
        Value::List(elements) => elements.iter().any(|element| has(&Value::String(element.as_ref().into()))),
        single => has(single),
    }
}

/// Numbers begin with their digits, as with SQLite.
fn starts_with(value: &Value<'_>, prefix: &str) -> bool {
    match value {
        Value::String(text) => text.starts_with(prefix),
        Value::Int(number) => number.to_string().starts_with(prefix),
        Value::Double(number) => number.to_string().starts_with(prefix),
        Value::Bool(is_true) => i64::from(*is_true).to_string().starts_with(prefix),
        Value::List(_) | Value::Time(_) => false,
    }
}

impl RangeOperator {
    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::attribute::{AttributeSource, SystemAttribute};

    /// Three runs in one: `k` is "a", `l` is missing.
    struct Run(BTreeMap<String, Value<'static>>);

    impl Values for Run {
        fn value(&self, attribute: &Attribute) -> Option<Value<'_>> {
            match &attribute.source {
                AttributeSource::Named(name) => self.0.get(name).cloned(),
                AttributeSource::System(SystemAttribute::ExecutionStatus) => Some(Value::Int(1)),
                AttributeSource::System(_) => None,
            }
        }
    }

    fn run() -> Run {
        Run(BTreeMap::from([("k".to_owned(), Value::String("a".into()))]))
    }

    fn test(name: &str, kind: AttributeType, literal: &str) -> FilterNode {
        let attribute = Attribute { source: AttributeSource::Named(name.into()), kind };
        let condition = Condition::AnyOf(vec![Literal::String(literal.into())]);
        FilterNode::Test(Test { attribute, condition })
    }

    fn truth(result: Option<bool>) -> FilterNode {
        match result {
            Some(true) => test("k", AttributeType::Keyword, "a"),
            Some(false) => test("k", AttributeType::Keyword, "b"),
            None => test("l", AttributeType::Keyword, "a"),
        }
    }

    /// What a filter is: true if it matches, false if its opposite does, else neither.
    fn result(nodes: &[FilterNode]) -> Option<bool> {
        let opposite: Vec<_> = nodes.iter().cloned().chain([FilterNode::Not]).collect();
        let matches = |nodes: Vec<FilterNode>| Filter::new(nodes).expect("a filter").matches(&run());
        match (matches(nodes.to_vec()), matches(opposite)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
            (true, true) => panic!("both"),
        }
    }

    #[test]
    fn logic_has_three_values() {
        let all = [Some(true), Some(false), None];
        for one in all {
            assert_eq!(result(&[truth(one)]), one);
            for other in all {
                assert_eq!(result(&[truth(one), truth(other), FilterNode::And]), both(one, other));
                assert_eq!(result(&[truth(one), truth(other), FilterNode::Or]), either(one, other));
                for third in all {
                    let nested = [truth(one), truth(other), FilterNode::And, truth(third), FilterNode::Or];
                    assert_eq!(result(&nested), either(both(one, other), third));
                    let right = [truth(one), truth(other), truth(third), FilterNode::Or, FilterNode::And];
                    assert_eq!(result(&right), both(one, either(other, third)));
                }
            }
        }
    }

    #[test]
    fn a_test_of_a_list_or_text_that_is_missing_is_false() {
        assert_eq!(result(&[test("l", AttributeType::KeywordList, "a")]), Some(false));
        let attribute = Attribute { source: AttributeSource::Named("l".into()), kind: AttributeType::Text };
        let condition = Condition::HasPhrase(vec![vec!["a".into()]]);
        assert_eq!(result(&[FilterNode::Test(Test { attribute, condition })]), Some(false));
    }

    #[test]
    fn lists_that_are_no_filters_are_refused() {
        let one = || truth(Some(true));
        for nodes in [
            vec![FilterNode::Not],
            vec![one(), FilterNode::And],
            vec![one(), one()],
            vec![FilterNode::Or, one(), one()],
        ] {
            assert_eq!(Filter::new(nodes), Err(FilterError::Unbalanced));
        }
        let long: Vec<_> = std::iter::repeat_with(one).take(TESTS_MAX + 1).collect();
        assert_eq!(Filter::new(long), Err(FilterError::TooLong));
        let text = test("k", AttributeType::Text, "a");
        assert_eq!(Filter::new(vec![text]), Err(FilterError::Test));
        assert!(Filter::new(Vec::new()).expect("empty").matches(&run()));
    }
}
