//! Filters as bytes: nodes send them to each other. Bytes are not trusted: they are a filter only if a query could have
//! made it.

use bytes::Bytes;
use prost::Message;

use crate::attribute::{Attribute, AttributeSource, AttributeType, SYSTEM};
use crate::query::filter::{Condition, Filter, FilterError, FilterNode, RangeOperator, Test};
use crate::query::literal::Literal;
use crate::query::words::Phrase;

/// A filter as a message: its postfix list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FilterMessage {
    #[prost(message, repeated, tag = "1")]
    nodes: Vec<NodeMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct NodeMessage {
    /// 0 of a test, else NOT, AND, OR.
    #[prost(uint32, tag = "1")]
    operation: u32,
    /// The place among the system attributes, from 1; 0 of a named one.
    #[prost(uint32, tag = "2")]
    system: u32,
    #[prost(string, tag = "3")]
    name: String,
    /// A number of `IndexedValueType`.
    #[prost(int32, tag = "4")]
    kind: i32,
    /// `IS NULL`, a set, four ranges, a prefix, phrases.
    #[prost(uint32, tag = "5")]
    condition: u32,
    #[prost(message, repeated, tag = "6")]
    literals: Vec<LiteralMessage>,
    #[prost(message, repeated, tag = "7")]
    phrases: Vec<PhraseMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LiteralMessage {
    #[prost(oneof = "LiteralValue", tags = "1, 2, 3, 4, 5")]
    value: Option<LiteralValue>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum LiteralValue {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(sint64, tag = "2")]
    Int(i64),
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(sint64, tag = "5")]
    Time(i64),
}

#[derive(Clone, PartialEq, prost::Message)]
struct PhraseMessage {
    #[prost(string, repeated, tag = "1")]
    words: Vec<String>,
}

const NOT: u32 = 1;
const AND: u32 = 2;
const OR: u32 = 3;

const IS_NULL: u32 = 0;
const ANY_OF: u32 = 1;
const LESS: u32 = 2;
const LESS_OR_EQUAL: u32 = 3;
const GREATER: u32 = 4;
const GREATER_OR_EQUAL: u32 = 5;
const STARTS_WITH: u32 = 6;
const HAS_PHRASE: u32 = 7;

impl Filter {
    /// The filter as bytes.
    pub fn encode(&self) -> Bytes {
        FilterMessage::from(self).encode_to_vec().into()
    }

    /// The filter of bytes.
    ///
    /// # Errors
    /// When they are none that [`Filter::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Self, FilterError> {
        FilterMessage::decode(bytes).map_err(|_malformed| FilterError::Bytes)?.try_into()
    }
}

impl From<&Filter> for FilterMessage {
    fn from(filter: &Filter) -> Self {
        Self { nodes: filter.nodes().iter().map(NodeMessage::from).collect() }
    }
}

impl TryFrom<FilterMessage> for Filter {
    type Error = FilterError;

    fn try_from(message: FilterMessage) -> Result<Self, FilterError> {
        let nodes = message.nodes.into_iter().map(FilterNode::try_from);
        Self::new(nodes.collect::<Result<_, _>>()?)
    }
}

impl From<&FilterNode> for NodeMessage {
    fn from(node: &FilterNode) -> Self {
        let operation = |operation| Self { operation, ..Self::default() };
        let Test { attribute, condition } = match node {
            FilterNode::Test(test) => test,
            FilterNode::Not => return operation(NOT),
            FilterNode::And => return operation(AND),
            FilterNode::Or => return operation(OR),
        };
        let mut message = Self { kind: attribute.kind.number(), ..Self::default() };
        match &attribute.source {
            AttributeSource::Named(name) => message.name.clone_from(name),
            AttributeSource::System(system) => {
                let place = SYSTEM.iter().zip(1..).find(|((_, known), _)| known == system);
                message.system = place.map(|(_, place)| place).unwrap_or_default();
            }
        }
        match condition {
            Condition::IsNull => message.condition = IS_NULL,
            Condition::AnyOf(literals) => {
                message.condition = ANY_OF;
                message.literals = literals.iter().map(LiteralMessage::from).collect();
            }
            Condition::Compare(range, literal) => {
                message.condition = match range {
                    RangeOperator::Less => LESS,
                    RangeOperator::LessOrEqual => LESS_OR_EQUAL,
                    RangeOperator::Greater => GREATER,
                    RangeOperator::GreaterOrEqual => GREATER_OR_EQUAL,
                };
                message.literals = vec![literal.into()];
            }
            Condition::StartsWith(prefix) => {
                message.condition = STARTS_WITH;
                message.literals = vec![(&Literal::String(prefix.clone())).into()];
            }
            Condition::HasPhrase(phrases) => {
                message.condition = HAS_PHRASE;
                message.phrases =
                    phrases.iter().map(|words| PhraseMessage { words: words.clone() }).collect();
            }
        }
        message
    }
}

impl TryFrom<NodeMessage> for FilterNode {
    type Error = FilterError;

    fn try_from(message: NodeMessage) -> Result<Self, FilterError> {
        match message.operation {
            0 => message.test().ok_or(FilterError::Bytes).map(Self::Test),
            NOT => Ok(Self::Not),
            AND => Ok(Self::And),
            OR => Ok(Self::Or),
            _unknown => Err(FilterError::Bytes),
        }
    }
}

impl NodeMessage {
    fn test(self) -> Option<Test> {
        let attribute = match usize::try_from(self.system).ok()?.checked_sub(1) {
            None => {
                let kind = AttributeType::from_number(self.kind)?;
                Attribute { source: AttributeSource::Named(self.name), kind }
            }
            Some(place) => Attribute::system(SYSTEM.get(place)?.1),
        };
        let literals =
            self.literals.into_iter().map(Literal::try_from).collect::<Result<Vec<_>, _>>().ok()?;
        let range = |range| match <[Literal; 1]>::try_from(literals.clone()) {
            Ok([literal]) => Some(Condition::Compare(range, literal)),
            Err(_several) => None,
        };
        let condition = match self.condition {
            IS_NULL => Condition::IsNull,
            ANY_OF => Condition::AnyOf(literals),
            LESS => range(RangeOperator::Less)?,
            LESS_OR_EQUAL => range(RangeOperator::LessOrEqual)?,
            GREATER => range(RangeOperator::Greater)?,
            GREATER_OR_EQUAL => range(RangeOperator::GreaterOrEqual)?,
            STARTS_WITH => match <[Literal; 1]>::try_from(literals) {
                Ok([Literal::String(prefix)]) => Condition::StartsWith(prefix),
                Ok([_other]) => return None,
                Err(_several) => return None,
            },
            HAS_PHRASE => Condition::HasPhrase(
                self.phrases.into_iter().map(|phrase| -> Phrase { phrase.words }).collect(),
            ),
            _unknown => return None,
        };
        Some(Test { attribute, condition })
    }
}

impl From<&Literal> for LiteralMessage {
    fn from(literal: &Literal) -> Self {
        let value = match literal {
            Literal::String(text) => LiteralValue::String(text.clone()),
            Literal::Int(number) => LiteralValue::Int(*number),
            Literal::Double(number) => LiteralValue::Double(*number),
            Literal::Bool(is_true) => LiteralValue::Bool(*is_true),
            Literal::Time(ns) => LiteralValue::Time(*ns),
        };
        Self { value: Some(value) }
    }
}

impl TryFrom<LiteralMessage> for Literal {
    type Error = FilterError;

    fn try_from(message: LiteralMessage) -> Result<Self, FilterError> {
        Ok(match message.value.ok_or(FilterError::Bytes)? {
            LiteralValue::String(text) => Self::String(text),
            LiteralValue::Int(number) => Self::Int(number),
            LiteralValue::Double(number) => Self::Double(number),
            LiteralValue::Bool(is_true) => Self::Bool(is_true),
            LiteralValue::Time(ns) => Self::Time(ns),
        })
    }
}
