//! Reads names and values, and the lexemes around them.

use crate::query::error::QueryError;
use crate::query::keywords::WordClass;
use crate::query::lexer::{Lexeme, Lexer, LocatedLexeme};
use crate::query::syntax::{Operand, Unsupported, UnsupportedKind};

/// At this many open brackets a query is refused.
const BRACKETS_MAX: usize = 200;

/// Signs that make one operand of two.
const ARITHMETIC: [&str; 12] = ["&", "|", "^", "+", "-", "*", "/", "%", "<<", ">>", "->", "->>"];
/// Words that do.
const ARITHMETIC_WORDS: [&str; 2] = ["div", "mod"];
/// Signs before an operand.
const PREFIXES: [&str; 4] = ["-", "+", "~", "!"];
/// Words before an operand.
const PREFIX_WORDS: [&str; 2] = ["binary", "_binary"];
/// Functions that need no brackets.
const MOMENTS: [&str; 8] = [
    "current_timestamp",
    "utc_timestamp",
    "utc_time",
    "utc_date",
    "localtime",
    "localtimestamp",
    "current_date",
    "current_time",
];
/// Functions whose names are reserved words.
const RESERVED_FUNCTIONS: [(&str, UnsupportedKind); 12] = [
    ("left", UnsupportedKind::Function),
    ("right", UnsupportedKind::Function),
    ("if", UnsupportedKind::Function),
    ("database", UnsupportedKind::Function),
    ("mod", UnsupportedKind::Function),
    ("replace", UnsupportedKind::Function),
    ("group_concat", UnsupportedKind::GroupConcat),
    ("convert", UnsupportedKind::Node("*sqlparser.ConvertExpr")),
    ("cast", UnsupportedKind::Node("*sqlparser.ConvertExpr")),
    ("substr", UnsupportedKind::Node("*sqlparser.SubstrExpr")),
    ("substring", UnsupportedKind::Node("*sqlparser.SubstrExpr")),
    ("values", UnsupportedKind::Node("*sqlparser.ValuesFuncExpr")),
];
/// Words that begin what is refused without being read.
const REFUSED: [(&str, &str); 4] = [
    ("case", "*sqlparser.CaseExpr"),
    ("exists", "*sqlparser.ExistsExpr"),
    ("interval", "*sqlparser.IntervalExpr"),
    ("match", "*sqlparser.MatchExpr"),
];

/// The refusal of an expression that has no place in a filter.
pub(super) fn unsupported_expression(name: &str) -> QueryError {
    QueryError::Unsupported(format!("expression of type {name}"))
}

/// Reads a query from its begin to its end, with one lexeme in sight.
pub(super) struct Expressions<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    current: LocatedLexeme,
    /// Where the lexeme before ends.
    end: usize,
    brackets: usize,
}

impl<'a> Expressions<'a> {
    pub(super) fn new(text: &'a str, offset: usize) -> Self {
        let mut lexer = Lexer::new(text, offset);
        let current = lexer.next();
        Self { text, lexer, current, end: 0, brackets: 0 }
    }

    /// The byte at which the lexeme in sight begins.
    pub(super) fn start(&self) -> usize {
        self.current.start
    }

    /// The byte behind the lexeme before it.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn is_end(&self) -> bool {
        self.current.lexeme == Lexeme::End
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.current.is_sign(sign)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.current.is_word(word)
    }

    pub(super) fn takes_sign(&mut self, sign: &str) -> bool {
        let is_there = self.is_sign(sign);
        if is_there {
            self.advance();
        }
        is_there
    }

    pub(super) fn takes_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        if is_there {
            self.advance();
        }
        is_there
    }

    /// The refusal of the lexeme in sight.
    pub(super) fn syntax_error(&self) -> QueryError {
        self.lexer.refusal("syntax error", &self.current)
    }

    /// Takes an opening bracket.
    ///
    /// # Errors
    /// When there is none, or when too many are open.
    pub(super) fn open_bracket(&mut self) -> Result<(), QueryError> {
        if !self.is_sign("(") {
            return Err(self.syntax_error());
        }
        self.brackets += 1;
        if self.brackets == BRACKETS_MAX {
            return Err(self.lexer.refusal("max nesting level reached", &self.current));
        }
        self.advance();
        Ok(())
    }

    pub(super) fn takes_bracket_end(&mut self) -> bool {
        let is_there = self.takes_sign(")");
        self.brackets -= usize::from(is_there);
        is_there
    }

    /// Takes all up to the end of the bracket that is open, and this as well.
    pub(super) fn skip_to_bracket_end(&mut self) -> Result<(), QueryError> {
        let outside = self.brackets.saturating_sub(1);
        while self.brackets > outside {
            match &self.current.lexeme {
                Lexeme::End | Lexeme::Unknown => return Err(self.syntax_error()),
                Lexeme::Sign("(") => self.open_bracket()?,
                Lexeme::Sign(")") => {
                    self.takes_bracket_end();
                }
                _other => self.advance(),
            }
        }
        Ok(())
    }

    /// An expression from a byte to the lexeme in sight.
    pub(super) fn unsupported(&self, start: usize, kind: UnsupportedKind) -> Operand {
        self.unsupported_until(start, self.end, kind)
    }

    pub(super) fn unsupported_until(&self, start: usize, end: usize, kind: UnsupportedKind) -> Operand {
        let source = self.text.get(start..end).unwrap_or_default().to_owned();
        Operand::Other(Unsupported { source, kind })
    }

    /// Reads one operand.
    pub(super) fn operand(&mut self) -> Result<Operand, QueryError> {
        let start = self.start();
        let operand = self.single()?;
        self.rest_of_operand(start, operand)
    }

    /// True if the operand before goes on, or something is asked of it.
    pub(super) fn goes_on(&self) -> bool {
        const TESTS: [&str; 8] = ["=", "!=", "<>", "<", "<=", ">", ">=", "<=>"];
        const TEST_WORDS: [&str; 7] = ["not", "in", "like", "regexp", "rlike", "starts_with", "between"];
        let is_test = TESTS.iter().any(|sign| self.is_sign(sign));
        is_test
            || TEST_WORDS.iter().any(|word| self.is_word(word))
            || self.is_arithmetic()
            || self.is_word("collate")
    }

    fn is_arithmetic(&self) -> bool {
        ARITHMETIC.iter().any(|sign| self.is_sign(sign))
            || ARITHMETIC_WORDS.iter().any(|word| self.is_word(word))
    }

    /// Reads arithmetic behind an operand.
    pub(super) fn rest_of_operand(&mut self, start: usize, operand: Operand) -> Result<Operand, QueryError> {
        let mut kind = None;
        loop {
            if self.is_arithmetic() {
                self.advance();
                self.single()?;
                kind = Some(UnsupportedKind::Node("*sqlparser.BinaryExpr"));
            } else if self.takes_word("collate") {
                match &self.current.lexeme {
                    Lexeme::Word { class: WordClass::Name, .. } | Lexeme::Quoted(_) | Lexeme::String(_) => {}
                    _other => return Err(self.syntax_error()),
                }
                self.advance();
                kind = Some(UnsupportedKind::Node("*sqlparser.CollateExpr"));
            } else {
                return Ok(kind.map_or(operand, |kind| self.unsupported(start, kind)));
            }
        }
    }

    /// `( value {, value} )`, or a bind variable.
    pub(super) fn tuple(&mut self) -> Result<Operand, QueryError> {
        let start = self.start();
        if matches!(self.current.lexeme, Lexeme::List(_)) {
            self.advance();
            return Ok(self.unsupported(start, UnsupportedKind::Node("sqlparser.ListArg")));
        }
        self.open_bracket()?;
        if self.is_word("select") {
            self.skip_to_bracket_end()?;
            return Ok(self.unsupported(start, UnsupportedKind::Node("*sqlparser.Subquery")));
        }
        let mut values = vec![self.operand()?];
        while self.takes_sign(",") {
            values.push(self.operand()?);
        }
        if self.takes_bracket_end() { Ok(Operand::Tuple(values)) } else { Err(self.syntax_error()) }
    }

    /// An operand with its signs, without arithmetic.
    fn single(&mut self) -> Result<Operand, QueryError> {
        let start = self.start();
        let (mut is_signed, mut is_minus, mut is_other) = (false, false, false);
        loop {
            if PREFIXES.iter().any(|sign| self.is_sign(sign)) {
                is_signed = true;
                is_minus ^= self.is_sign("-");
                is_other |= !self.is_sign("-") && !self.is_sign("+");
            } else if PREFIX_WORDS.iter().any(|word| self.is_word(word)) {
                is_other = true;
            } else {
                break;
            }
            self.advance();
        }
        let operand = self.primary()?;
        match operand {
            Operand::Number(digits) if !is_other && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Operand::Number(if is_minus { format!("-{digits}") } else { digits }))
            }
            operand if !is_signed && !is_other => Ok(operand),
            _signed => Ok(self.unsupported(start, UnsupportedKind::Node("*sqlparser.UnaryExpr"))),
        }
    }

    fn primary(&mut self) -> Result<Operand, QueryError> {
        let start = self.start();
        let operand = match &self.current.lexeme {
            Lexeme::String(text) => Operand::String(text.clone()),
            Lexeme::Integer(digits) | Lexeme::Float(digits) => Operand::Number(digits.clone()),
            Lexeme::Odd(text) => {
                let kind = UnsupportedKind::Number(text.clone());
                self.advance();
                return Ok(self.unsupported(start, kind));
            }
            Lexeme::Quoted(_) | Lexeme::Word { class: WordClass::Name | WordClass::Soft, .. } => {
                return self.name(start);
            }
            Lexeme::Word { class: WordClass::Reserved, .. } => return self.reserved(start),
            Lexeme::Sign("(") => return self.brackets(start),
            Lexeme::Sign(_) | Lexeme::List(_) | Lexeme::Unknown | Lexeme::End => {
                return Err(self.syntax_error());
            }
        };
        self.advance();
        Ok(operand)
    }

    /// A name of up to three parts, or a call of a function.
    fn name(&mut self, start: usize) -> Result<Operand, QueryError> {
        let mut name = String::new();
        for part in 0..3 {
            match &self.current.lexeme {
                Lexeme::Quoted(text) | Lexeme::Word { text, .. } => name.push_str(text),
                _other => return Err(self.syntax_error()),
            }
            self.advance();
            if part == 2 || !self.takes_sign(".") {
                break;
            }
            name.push('.');
        }
        if self.is_sign("(") {
            return self.call(start, UnsupportedKind::Function);
        }
        Ok(Operand::Name(name))
    }

    fn reserved(&mut self, start: usize) -> Result<Operand, QueryError> {
        for (word, is_true) in [("true", true), ("false", false)] {
            if self.takes_word(word) {
                return Ok(Operand::Bool(is_true));
            }
        }
        if self.takes_word("null") {
            return Ok(self.unsupported(start, UnsupportedKind::Node("*sqlparser.NullVal")));
        }
        for word in MOMENTS {
            if self.takes_word(word) {
                if self.is_sign("(") {
                    self.open_bracket()?;
                    if !self.takes_bracket_end() {
                        return Err(self.syntax_error());
                    }
                }
                return Ok(self.unsupported(start, UnsupportedKind::Function));
            }
        }
        for (word, kind) in RESERVED_FUNCTIONS {
            if self.takes_word(word) {
                return self.call(start, kind);
            }
        }
        for (word, name) in REFUSED {
            if self.is_word(word) {
                return Err(unsupported_expression(name));
            }
        }
        Err(self.syntax_error())
    }

    /// The arguments of a function are not looked at.
    fn call(&mut self, start: usize, kind: UnsupportedKind) -> Result<Operand, QueryError> {
        self.open_bracket()?;
        self.skip_to_bracket_end()?;
        Ok(self.unsupported(start, kind))
    }

    /// An operand in brackets is refused, by what it is.
    fn brackets(&mut self, start: usize) -> Result<Operand, QueryError> {
        self.open_bracket()?;
        let name = if self.is_word("select") { "*sqlparser.Subquery" } else { "*sqlparser.ParenExpr" };
        self.skip_to_bracket_end()?;
        Ok(self.unsupported(start, UnsupportedKind::Node(name)))
    }

    fn advance(&mut self) {
        self.end = self.current.end;
        self.current = self.lexer.next();
    }
}
