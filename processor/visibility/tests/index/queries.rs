//! Random filters, of every attribute and condition that the index has rows for, and of others.

use everlog_visibility::attribute::{Attribute, AttributeSource, AttributeType, SystemAttribute};
use everlog_visibility::query::{Condition, Filter, FilterNode, Literal, RangeOperator, SortOrder, Test};
use uuid::Uuid;

use crate::model::{LONG, run_id};
use crate::random::Random;

pub fn named(name: &str, kind: AttributeType) -> Attribute {
    Attribute { source: AttributeSource::Named(name.into()), kind }
}

pub fn system(attribute: SystemAttribute, kind: AttributeType) -> Attribute {
    Attribute { source: AttributeSource::System(attribute), kind }
}

pub fn test(attribute: Attribute, condition: Condition) -> FilterNode {
    FilterNode::Test(Test { attribute, condition })
}

/// Ordinary runs only.
pub fn ordinary() -> FilterNode {
    test(named("TemporalNamespaceDivision", AttributeType::Keyword), Condition::IsNull)
}

/// A filter that is the conjunction of tests, or something else made of them.
pub fn filter(random: &mut Random) -> Filter {
    let mut nodes = vec![random_test(random)];
    for _ in 0..random.below(3) {
        if random.once_in(5) {
            nodes.push(FilterNode::Not);
        }
        nodes.push(random_test(random));
        nodes.push(if random.once_in(3) { FilterNode::Or } else { FilterNode::And });
    }
    if random.once_in(6) {
        nodes.clear();
    }
    let has_tests = !nodes.is_empty();
    if !random.once_in(4) {
        nodes.push(ordinary());
        if has_tests {
            nodes.push(FilterNode::And);
        }
    }
    Filter::new(nodes).expect("a filter")
}

pub fn order(random: &mut Random) -> Option<SortOrder> {
    let by = [SystemAttribute::StartTime, SystemAttribute::CloseTime, SystemAttribute::ExecutionTime];
    let is_descending = random.once_in(2);
    (!random.once_in(2)).then(|| SortOrder { by: *random.of(&by), is_descending })
}

pub fn group_by(random: &mut Random) -> Attribute {
    match random.below(4) {
        0 => system(SystemAttribute::WorkflowType, AttributeType::Keyword),
        1 => named("K", AttributeType::Keyword),
        _status => system(SystemAttribute::ExecutionStatus, AttributeType::Keyword),
    }
}

fn random_test(random: &mut Random) -> FilterNode {
    use AttributeType::{Bool, Datetime, Double, Int, Keyword, KeywordList, Text};
    let workflow_ids = ["order-1", "order-2", "order\0", "pay", LONG, "nobody"];
    let keywords = ["a", "ab", "b", "", "a\0", LONG, "c", "e7"];
    let moment = |random: &mut Random| Literal::Time(90_000_000 + random.below(80) as i64 * 1_000_000);
    match random.below(17) {
        16 => {
            let run_id = |random: &mut Random| run_id(random.below(2) as u64, random.below(60) as u64);
            let ids = [run_id(random).to_string(), run_id(random).to_string(), "none".into()];
            let condition = Condition::AnyOf(ids.into_iter().map(Literal::String).collect());
            test(system(SystemAttribute::RunId, Keyword), condition)
        }
        0 | 1 => strings(random, system(SystemAttribute::WorkflowId, Keyword), &workflow_ids),
        2 => strings(random, system(SystemAttribute::WorkflowType, Keyword), &["Order", "Pay", "O"]),
        3 => strings(random, system(SystemAttribute::RootWorkflowId, Keyword), &["order-1", "root", "pay"]),
        4 => strings(random, system(SystemAttribute::ParentWorkflowId, Keyword), &["order-1", "x"]),
        5 => {
            let attribute = system(SystemAttribute::ExecutionStatus, Keyword);
            let statuses: Vec<_> =
                (0..=random.below(3)).map(|_| Literal::Int(1 + random.below(8) as i64)).collect();
            test(attribute, Condition::AnyOf(statuses))
        }
        6 => {
            let condition = Condition::Compare(range(random), moment(random));
            test(system(SystemAttribute::StartTime, Datetime), condition)
        }
        7 => {
            let condition = match random.below(4) {
                0 => Condition::IsNull,
                _range => Condition::Compare(range(random), moment(random)),
            };
            test(system(SystemAttribute::CloseTime, Datetime), condition)
        }
        8 | 9 => strings(random, named("K", Keyword), &keywords),
        10 => {
            let texts = [random.of(&keywords).to_string(), random.of(&keywords).to_string()];
            let literals = texts.into_iter().map(Literal::String).collect();
            test(named("L", KeywordList), Condition::AnyOf(literals))
        }
        11 => {
            let kind = *random.of(&[Int, Double]);
            let name = *random.of(&["N", "D", "K"]);
            let numbers = [1, -5, 0, 7, 9_007_199_254_740_993];
            let literal = match random.below(3) {
                0 => Literal::Double(1.5),
                1 => Literal::Bool(true),
                _int => Literal::Int(*random.of(&numbers)),
            };
            let condition = match random.below(2) {
                0 => Condition::AnyOf(vec![literal]),
                _range => Condition::Compare(range(random), literal),
            };
            test(named(name, kind), condition)
        }
        12 => test(named("B", Bool), Condition::AnyOf(vec![Literal::Bool(random.once_in(2))])),
        13 => {
            let literal = Literal::Time(1_000_000_000);
            let condition = match random.below(2) {
                0 => Condition::AnyOf(vec![literal]),
                _range => Condition::Compare(range(random), literal),
            };
            test(named("T", Datetime), condition)
        }
        14 => test(named("K", Text), Condition::HasPhrase(vec![vec!["a".into()]])),
        _division => {
            let attribute = named("TemporalNamespaceDivision", Keyword);
            test(attribute, Condition::AnyOf(vec![Literal::String("x".into())]))
        }
    }
}

fn strings(random: &mut Random, attribute: Attribute, values: &[&str]) -> FilterNode {
    let literal = |random: &mut Random| Literal::String(random.of(values).to_string());
    let condition = match random.below(8) {
        0..=3 => Condition::AnyOf(vec![literal(random)]),
        4 => Condition::AnyOf(vec![literal(random), literal(random), Literal::Int(3)]),
        5 => Condition::StartsWith(random.of(&["", "o", "order", "a", LONG]).to_string()),
        6 => Condition::IsNull,
        _range => Condition::Compare(range(random), literal(random)),
    };
    test(attribute, condition)
}

fn range(random: &mut Random) -> RangeOperator {
    *random.of(&[
        RangeOperator::Less,
        RangeOperator::LessOrEqual,
        RangeOperator::Greater,
        RangeOperator::GreaterOrEqual,
    ])
}

/// A filter for one run.
pub fn of_run(run_id: Uuid) -> Filter {
    let attribute = system(SystemAttribute::RunId, AttributeType::Keyword);
    let condition = Condition::AnyOf(vec![Literal::String(run_id.to_string())]);
    Filter::new(vec![test(attribute, condition)]).expect("a filter")
}
