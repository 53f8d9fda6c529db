//! The syntax tree of a query, and its print.
//!
//! A tree is a postfix list, as a filter is. [`SyntaxTree`] prints in one form, with the brackets that its operations
//! need, and the parser reads the same tree from it.

use std::fmt::{self, Display, Formatter, Write};

use crate::query::keywords::{WordClass, class};

/// What a query says, before its names are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyntaxTree {
    /// The filter: a postfix list; empty where the query has none.
    pub nodes: Vec<SyntaxNode>,
    /// `GROUP BY`.
    pub group_by: Vec<Operand>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderTerm>,
}

/// One place of a tree's postfix list.
#[derive(Clone, Debug, PartialEq)]
pub enum SyntaxNode {
    /// `left predicate`
    Test(Operand, Predicate),
    /// An operand that nothing is asked of.
    Bare(Operand),
    /// Of the operand before it.
    Not,
    /// Of the two operands before it.
    And,
    /// Of the two operands before it.
    Or,
}

/// What is asked of an operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `= value`, `IN (values)`, and what else compares two operands.
    Compare(Operator, Operand),
    /// `LIKE value ESCAPE value`: `LIKE` and `NOT LIKE` only.
    Escaped(Operator, Operand, Operand),
    /// `[NOT] BETWEEN from AND to`: true of NOT.
    Between(bool, Operand, Operand),
    /// `IS [NOT] …`: true of NOT.
    Is(bool, IsWhat),
}

/// What stands behind `IS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsWhat {
    /// `NULL`
    Null,
    /// `TRUE`
    True,
    /// `FALSE`
    False,
}

/// What compares two operands. Some of them are read in order to be refused by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`, `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<=>`
    NullSafeEqual,
    /// `IN`
    In,
    /// `NOT IN`
    NotIn,
    /// `STARTS_WITH`
    StartsWith,
    /// `NOT STARTS_WITH`
    NotStartsWith,
    /// `LIKE`
    Like,
    /// `NOT LIKE`
    NotLike,
    /// `REGEXP`, `RLIKE`
    Regexp,
    /// `NOT REGEXP`, `NOT RLIKE`
    NotRegexp,
}

/// A name or a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The name of an attribute.
    Name(String),
    /// A string, its escapes resolved.
    String(String),
    /// A number as it is written; integers may have a minus sign.
    Number(String),
    /// `TRUE` or `FALSE`
    Bool(bool),
    /// `(value, …)` behind `IN`.
    Tuple(Vec<Operand>),
    /// What SQL has and this language has not.
    Other(Unsupported),
}

/// An expression that is read in order to be refused by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The expression as it stands in the query.
    pub source: String,
    /// What it is.
    pub kind: UnsupportedKind,
}

/// What an unsupported expression is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsupportedKind {
    /// A call of a function.
    Function,
    /// `GROUP_CONCAT(…)`
    GroupConcat,
    /// A number in an odd form, as messages show it.
    Number(String),
    /// Another one, by the name that it has in Temporal's parser.
    Node(&'static str),
}

/// One term of `ORDER BY`.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderTerm {
    /// What is sorted by.
    pub by: Operand,
    /// True of `DESC`.
    pub is_descending: bool,
}

impl Operator {
    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::NullSafeEqual => "<=>",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::StartsWith => "starts_with",
            Self::NotStartsWith => "not starts_with",
            Self::Like => "like",
            Self::NotLike => "not like",
            Self::Regexp => "regexp",
            Self::NotRegexp => "not regexp",
        }
    }
}

impl Operand {
    /// What Temporal's parser calls it in messages.
    pub(super) fn node_name(&self) -> &'static str {
        match self {
            Self::Name(_) => "*sqlparser.ColName",
            Self::String(_) | Self::Number(_) => "*sqlparser.SQLVal",
            Self::Bool(_) => "sqlparser.BoolVal",
            Self::Tuple(_) => "sqlparser.ValTuple",
            Self::Other(unsupported) => match unsupported.kind {
                UnsupportedKind::Function => "*sqlparser.FuncExpr",
                UnsupportedKind::GroupConcat => "*sqlparser.GroupConcatExpr",
                UnsupportedKind::Number(_) => "*sqlparser.SQLVal",
                UnsupportedKind::Node(name) => name,
            },
        }
    }
}

/// What is printed next.
enum Part {
    Node(usize),
    Text(&'static str),
}

fn push_operand(parts: &mut Vec<Part>, place: usize, needs_brackets: bool) {
    if needs_brackets {
        parts.extend([Part::Text(")"), Part::Node(place), Part::Text("(")]);
    } else {
        parts.push(Part::Node(place));
    }
}

impl SyntaxTree {
    /// Prints the filter with a stack of what is still to come.
    fn print_filter(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let left_operands = self.left_operands();
        let mut parts: Vec<_> = self.nodes.len().checked_sub(1).map(Part::Node).into_iter().collect();
        while let Some(part) = parts.pop() {
            let place = match part {
                Part::Text(text) => {
                    formatter.write_str(text)?;
                    continue;
                }
                Part::Node(place) => place,
            };
            let is = |at: usize, joints: &[SyntaxNode]| {
                self.nodes.get(at).is_some_and(|node| joints.contains(node))
            };
            let (left, right) =
                (left_operands.get(place).copied().unwrap_or_default(), place.saturating_sub(1));
            // The last part comes first.
            match &self.nodes[place] {
                SyntaxNode::Test(left, predicate) => write!(formatter, "{left} {predicate}")?,
                SyntaxNode::Bare(bare) => bare.fmt(formatter)?,
                SyntaxNode::Not => {
                    push_operand(&mut parts, right, is(right, &[SyntaxNode::And, SyntaxNode::Or]));
                    parts.push(Part::Text("not "));
                }
                SyntaxNode::And => {
                    push_operand(&mut parts, right, is(right, &[SyntaxNode::And, SyntaxNode::Or]));
                    parts.push(Part::Text(" and "));
                    push_operand(&mut parts, left, is(left, &[SyntaxNode::Or]));
                }
                SyntaxNode::Or => {
                    push_operand(&mut parts, right, is(right, &[SyntaxNode::Or]));
                    parts.push(Part::Text(" or "));
                    push_operand(&mut parts, left, false);
                }
            }
        }
        Ok(())
    }

    /// Of each node, where its left operand ends; 0 of what has none.
    fn left_operands(&self) -> Vec<usize> {
        let mut open = Vec::new();
        let mut left_operands = Vec::with_capacity(self.nodes.len());
        for (place, node) in self.nodes.iter().enumerate() {
            let mut left = 0;
            match node {
                SyntaxNode::Test(..) | SyntaxNode::Bare(_) => {}
                SyntaxNode::Not => drop(open.pop()),
                SyntaxNode::And | SyntaxNode::Or => {
                    open.pop();
                    left = open.pop().unwrap_or_default();
                }
            }
            left_operands.push(left);
            open.push(place);
        }
        left_operands
    }
}

impl Display for SyntaxTree {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.print_filter(formatter)?;
        let mut needs_blank = !self.nodes.is_empty();
        for (place, by) in self.group_by.iter().enumerate() {
            let blank = if needs_blank { " " } else { "" };
            let before = if place == 0 { format!("{blank}group by ") } else { ", ".into() };
            write!(formatter, "{before}{by}")?;
            needs_blank = true;
        }
        for (place, term) in self.order_by.iter().enumerate() {
            let blank = if needs_blank { " " } else { "" };
            let before = if place == 0 { format!("{blank}order by ") } else { ", ".into() };
            let direction = if term.is_descending { "desc" } else { "asc" };
            write!(formatter, "{before}{} {direction}", term.by)?;
        }
        Ok(())
    }
}

impl Display for Predicate {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let not = |is_negated: &bool| if *is_negated { "not " } else { "" };
        match self {
            Self::Compare(operator, right) => write!(formatter, "{} {right}", operator.name()),
            Self::Escaped(operator, right, escape) => {
                write!(formatter, "{} {right} escape {escape}", operator.name())
            }
            Self::Between(is_negated, from, to) => {
                write!(formatter, "{}between {from} and {to}", not(is_negated))
            }
            Self::Is(is_negated, what) => {
                let what = match what {
                    IsWhat::Null => "null",
                    IsWhat::True => "true",
                    IsWhat::False => "false",
                };
                write!(formatter, "is {}{what}", not(is_negated))
            }
        }
    }
}

impl Display for Operand {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) if is_bare(name) => formatter.write_str(name),
            Self::Name(name) => write!(formatter, "`{}`", name.replace('`', "``")),
            Self::String(text) => write_string(formatter, text),
            Self::Number(text) => formatter.write_str(text),
            Self::Bool(is_true) => is_true.fmt(formatter),
            Self::Tuple(values) => {
                for (place, value) in values.iter().enumerate() {
                    write!(formatter, "{}{value}", if place == 0 { "(" } else { ", " })?;
                }
                formatter.write_char(')')
            }
            Self::Other(unsupported) => formatter.write_str(&unsupported.source),
        }
    }
}

/// True of a name that needs no backquotes.
fn is_bare(name: &str) -> bool {
    let is_letter = |char: char| char.is_ascii_alphabetic() || matches!(char, '_' | '@');
    name.starts_with(is_letter)
        && name.chars().all(|char| is_letter(char) || char.is_ascii_digit())
        && class(name) == WordClass::Name
}

fn write_string(formatter: &mut Formatter<'_>, text: &str) -> fmt::Result {
    formatter.write_char('\'')?;
    for char in text.chars() {
        let escape = match char {
            '\0' => '0',
            '\u{8}' => 'b',
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\u{1a}' => 'Z',
            '\'' | '"' | '\\' => char,
            plain => {
                formatter.write_char(plain)?;
                continue;
            }
        };
        write!(formatter, "\\{escape}")?;
    }
    formatter.write_char('\'')
}
