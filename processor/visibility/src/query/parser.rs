//! Reads a query into its syntax tree.
//!
//! ```text
//! query   = [ or ] [ GROUP BY column {, column} ] [ ORDER BY column [ASC|DESC] {, …} ] [ ; ]
//! or      = and { OR and }
//! and     = not { AND not }
//! not     = NOT not | ( or ) | test
//! test    = column compare value | column [NOT] IN ( value {, value} ) | column [NOT] STARTS_WITH value
//!         | column [NOT] BETWEEN value AND value | column IS [NOT] NULL
//! ```
//!
//! More of SQL is read than is served, so that it can be refused by name. Operations that wait for an operand stand on a
//! stack of the parser's own, so that no depth overflows the stack of the thread.

use crate::query::error::QueryError;
use crate::query::expression::{Expressions, unsupported_expression};
use crate::query::syntax::{
    IsWhat, Operand, Operator, OrderTerm, Predicate, SyntaxNode, SyntaxTree, UnsupportedKind,
};

/// What Temporal's server puts in front of a query: positions in messages count from there.
const SELECT: &str = "select * from table1 ";
const WHERE: &str = "where ";

/// An operation that waits for its right operand, or a bracket that waits for its end.
enum Pending {
    Not,
    And,
    Or,
    Bracket {
        /// The byte of the query at which it opens.
        start: usize,
        /// Nodes before it.
        nodes: usize,
    },
}

/// Reads a query.
///
/// # Errors
/// When it does not follow the grammar, or begins what is never served.
pub fn parse(query: &str) -> Result<SyntaxTree, QueryError> {
    let query = query.trim();
    let begins =
        |clause: &str| query.get(..clause.len()).is_some_and(|start| start.eq_ignore_ascii_case(clause));
    let has_filter = !query.is_empty() && !begins("order by") && !begins("group by");
    let offset = SELECT.len() + if has_filter { WHERE.len() } else { 0 };
    let expressions = Expressions::new(query, offset);
    let mut parser =
        QueryParser { expressions, tree: SyntaxTree::default(), pending: Vec::new(), brackets: 0 };
    if has_filter {
        parser.filter()?;
    }
    parser.clauses()?;
    Ok(parser.tree)
}

struct QueryParser<'a> {
    expressions: Expressions<'a>,
    tree: SyntaxTree,
    pending: Vec<Pending>,
    /// Brackets among the pending ones.
    brackets: usize,
}

impl QueryParser<'_> {
    fn filter(&mut self) -> Result<(), QueryError> {
        loop {
            self.prefixes()?;
            let start = self.expressions.start();
            let operand = self.expressions.operand()?;
            self.test(start, operand)?;
            while self.brackets > 0 && self.bracket_ends()? {}
            if self.takes_joint("and", "&&") {
                self.reduce(|waiting| matches!(waiting, Pending::Not | Pending::And));
                self.pending.push(Pending::And);
            } else if self.takes_joint("or", "||") {
                self.reduce(|waiting| !matches!(waiting, Pending::Bracket { .. }));
                self.pending.push(Pending::Or);
            } else if self.brackets > 0 {
                return Err(self.expressions.syntax_error());
            } else {
                self.reduce(|_waiting| true);
                return Ok(());
            }
        }
    }

    /// NOT and brackets before an operand.
    fn prefixes(&mut self) -> Result<(), QueryError> {
        loop {
            if self.expressions.takes_word("not") {
                self.pending.push(Pending::Not);
            } else if self.expressions.is_sign("(") {
                let start = self.expressions.start();
                self.expressions.open_bracket()?;
                if self.expressions.is_word("select") {
                    return Err(unsupported_expression("*sqlparser.Subquery"));
                }
                self.pending.push(Pending::Bracket { start, nodes: self.tree.nodes.len() });
                self.brackets += 1;
            } else {
                return Ok(());
            }
        }
    }

    fn takes_joint(&mut self, word: &str, sign: &str) -> bool {
        self.expressions.takes_word(word) || self.expressions.takes_sign(sign)
    }

    /// Moves operations that wait to the tree, the last one first, as long as they are of a kind.
    fn reduce(&mut self, is_of_kind: impl Fn(&Pending) -> bool) {
        while let Some(waiting) = self.pending.pop_if(|waiting| is_of_kind(waiting)) {
            match waiting {
                Pending::Not => self.tree.nodes.push(SyntaxNode::Not),
                Pending::And => self.tree.nodes.push(SyntaxNode::And),
                Pending::Or => self.tree.nodes.push(SyntaxNode::Or),
                Pending::Bracket { .. } => {}
            }
        }
    }

    /// Closes a bracket if its end stands here. A bracket that is an operand is refused later, by name.
    fn bracket_ends(&mut self) -> Result<bool, QueryError> {
        let is_tuple = self.expressions.is_sign(",");
        if is_tuple {
            self.expressions.skip_to_bracket_end()?;
        } else if !self.expressions.takes_bracket_end() {
            return Ok(false);
        }
        self.reduce(|waiting| !matches!(waiting, Pending::Bracket { .. }));
        self.brackets -= 1;
        let Some(Pending::Bracket { start, nodes }) = self.pending.pop() else { return Ok(true) };
        if is_tuple || self.expressions.is_word("is") || self.expressions.goes_on() {
            self.tree.nodes.truncate(nodes);
            let name = if is_tuple { "sqlparser.ValTuple" } else { "*sqlparser.ParenExpr" };
            let operand = self.expressions.unsupported(start, UnsupportedKind::Node(name));
            let operand = self.expressions.rest_of_operand(start, operand)?;
            self.test(start, operand)?;
        }
        Ok(true)
    }

    /// Reads what is asked of an operand, and puts the test into the tree.
    fn test(&mut self, start: usize, operand: Operand) -> Result<(), QueryError> {
        let Some(mut predicate) = self.predicate()? else {
            self.tree.nodes.push(SyntaxNode::Bare(operand));
            return Ok(());
        };
        // `a = 1 IS NULL` asks something of a test.
        let mut tested = None;
        loop {
            let name = match predicate {
                Predicate::Compare(..) | Predicate::Escaped(..) => "*sqlparser.ComparisonExpr",
                Predicate::Between(..) => "*sqlparser.RangeCond",
                Predicate::Is(..) => "*sqlparser.IsExpr",
            };
            let end = self.expressions.end();
            if !self.expressions.takes_word("is") {
                break;
            }
            tested = Some((end, UnsupportedKind::Node(name)));
            predicate = self.is_what()?;
        }
        let operand = match tested {
            Some((end, kind)) => self.expressions.unsupported_until(start, end, kind),
            None => operand,
        };
        self.tree.nodes.push(SyntaxNode::Test(operand, predicate));
        Ok(())
    }

    fn predicate(&mut self) -> Result<Option<Predicate>, QueryError> {
        const SIGNS: [(&str, Operator); 8] = [
            ("=", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<>", Operator::NotEqual),
            ("<", Operator::Less),
            ("<=", Operator::LessOrEqual),
            (">", Operator::Greater),
            (">=", Operator::GreaterOrEqual),
            ("<=>", Operator::NullSafeEqual),
        ];
        for (sign, operator) in SIGNS {
            if self.expressions.takes_sign(sign) {
                return Ok(Some(Predicate::Compare(operator, self.expressions.operand()?)));
            }
        }
        if self.expressions.takes_word("is") {
            return self.is_what().map(Some);
        }
        let is_negated = self.expressions.takes_word("not");
        let either = |plain, negated| if is_negated { negated } else { plain };
        if self.expressions.takes_word("in") {
            let operator = either(Operator::In, Operator::NotIn);
            return Ok(Some(Predicate::Compare(operator, self.expressions.tuple()?)));
        }
        if self.expressions.takes_word("starts_with") {
            let operator = either(Operator::StartsWith, Operator::NotStartsWith);
            return Ok(Some(Predicate::Compare(operator, self.expressions.operand()?)));
        }
        if self.expressions.takes_word("between") {
            let from = self.expressions.operand()?;
            if !self.takes_joint("and", "&&") {
                return Err(self.expressions.syntax_error());
            }
            return Ok(Some(Predicate::Between(is_negated, from, self.expressions.operand()?)));
        }
        if self.expressions.takes_word("like") {
            let operator = either(Operator::Like, Operator::NotLike);
            let right = self.expressions.operand()?;
            return Ok(Some(if self.expressions.takes_word("escape") {
                Predicate::Escaped(operator, right, self.expressions.operand()?)
            } else {
                Predicate::Compare(operator, right)
            }));
        }
        if self.expressions.takes_word("regexp") || self.expressions.takes_word("rlike") {
            let operator = either(Operator::Regexp, Operator::NotRegexp);
            return Ok(Some(Predicate::Compare(operator, self.expressions.operand()?)));
        }
        if is_negated { Err(self.expressions.syntax_error()) } else { Ok(None) }
    }

    fn is_what(&mut self) -> Result<Predicate, QueryError> {
        let is_negated = self.expressions.takes_word("not");
        for (word, what) in [("null", IsWhat::Null), ("true", IsWhat::True), ("false", IsWhat::False)] {
            if self.expressions.takes_word(word) {
                return Ok(Predicate::Is(is_negated, what));
            }
        }
        Err(self.expressions.syntax_error())
    }

    /// What stands behind the filter.
    fn clauses(&mut self) -> Result<(), QueryError> {
        if self.expressions.takes_word("group") {
            self.expect_by()?;
            loop {
                self.tree.group_by.push(self.expressions.operand()?);
                if !self.expressions.takes_sign(",") {
                    break;
                }
            }
        }
        self.refuse("having", "'having' clause")?;
        self.refuse("union", "'union' clause")?;
        if self.expressions.takes_word("order") {
            self.expect_by()?;
            loop {
                let by = self.expressions.operand()?;
                let is_descending = self.expressions.takes_word("desc");
                if !is_descending {
                    self.expressions.takes_word("asc");
                }
                self.tree.order_by.push(OrderTerm { by, is_descending });
                if !self.expressions.takes_sign(",") {
                    break;
                }
            }
        }
        self.refuse("limit", "'limit' clause")?;
        self.refuse("for", "'for update' clause")?;
        self.refuse("lock", "'lock in share mode' clause")?;
        self.expressions.takes_sign(";");
        if self.expressions.is_end() { Ok(()) } else { Err(self.expressions.syntax_error()) }
    }

    fn expect_by(&mut self) -> Result<(), QueryError> {
        if self.expressions.takes_word("by") { Ok(()) } else { Err(self.expressions.syntax_error()) }
    }

    fn refuse(&self, word: &str, clause: &str) -> Result<(), QueryError> {
        if self.expressions.is_word(word) { Err(QueryError::Unsupported(clause.into())) } else { Ok(()) }
    }
}
