//! Cuts a query into words, strings, numbers and signs.

use crate::query::error::QueryError;
use crate::query::keywords::{WordClass, class};

/// What a query consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lexeme {
    /// A word without quotes.
    Word { text: String, class: WordClass },
    /// A name between backquotes.
    Quoted(String),
    /// A string, its escapes resolved.
    String(String),
    /// Decimal digits.
    Integer(String),
    /// Digits with a point or an exponent.
    Float(String),
    /// A value that no attribute takes: `0x1F`, `x'1F'`, `b'01'`, `:name`.
    Odd(String),
    /// A bind variable for a list: `::name`.
    List(String),
    /// An operator or a mark.
    Sign(&'static str),
    /// Nothing that the language knows.
    Unknown,
    /// The end of the query.
    End,
}

/// A lexeme and where it stands.
#[derive(Clone, Debug)]
pub(super) struct LocatedLexeme {
    pub lexeme: Lexeme,
    /// The byte of the query at which it begins.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
    /// How messages show it, if they do.
    near: Option<String>,
}

/// Signs of more than one byte stand before those that they begin with.
const SIGNS: &[&str] = &[
    "<=>", "->>", "<>", "<<", "<=", ">=", ">>", "!=", "&&", "||", "->", "=", ",", ";", "(", ")", "+", "*",
    "%", "^", "~", "&", "|", ".", "/", "-", "<", ">", "!",
];

pub(super) struct Lexer<'a> {
    text: &'a str,
    /// The next byte.
    at: usize,
    /// Bytes that Temporal's server puts in front of the query.
    offset: usize,
    /// `?` so far: each is a bind variable with a number.
    unnamed: usize,
}

impl LocatedLexeme {
    /// True of this reserved word, whatever its case.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.lexeme, Lexeme::Word { text, .. } if text.eq_ignore_ascii_case(word))
    }

    /// True of this sign.
    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(&self.lexeme, Lexeme::Sign(own) if *own == sign)
    }
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, offset: usize) -> Self {
        Self { text, at: 0, offset, unnamed: 0 }
    }

    /// The refusal of a lexeme: the position is one byte behind it.
    pub(super) fn refusal(&self, what: &'static str, located: &LocatedLexeme) -> QueryError {
        let near = located.near.clone().filter(|near| !near.is_empty());
        QueryError::Syntax { what, position: self.offset + located.end + 1, near }
    }

    /// The next lexeme; the end again and again where the query is over.
    pub(super) fn next(&mut self) -> LocatedLexeme {
        // A NUL byte before a lexeme is passed over, a second one is not.
        if self.byte(0) == Some(0) {
            self.at += 1;
        }
        if let Some(unclosed) = self.skip_blanks_and_comments() {
            return unclosed;
        }
        let start = self.at;
        let (lexeme, near) = match (self.byte(0), self.byte(1)) {
            (None, _) => (Lexeme::End, None),
            (Some(b'x' | b'X'), Some(b'\'')) => self.digits_in_quotes(u8::is_ascii_hexdigit, 2),
            (Some(b'b' | b'B'), Some(b'\'')) => self.digits_in_quotes(|byte| matches!(byte, b'0' | b'1'), 1),
            (Some(byte), _) if is_letter(byte) => self.word(),
            (Some(byte), _) if byte.is_ascii_digit() => self.number(),
            (Some(b'.'), Some(byte)) if byte.is_ascii_digit() => self.number(),
            (Some(b':'), _) => self.bind_variable(),
            (Some(b'?'), _) => {
                self.at += 1;
                self.unnamed += 1;
                seen(Lexeme::Odd, format!(":v{}", self.unnamed))
            }
            (Some(quote @ (b'\'' | b'"')), _) => self.string(quote),
            (Some(b'`'), _) => self.quoted_name(),
            (Some(_sign), _) => self.sign(),
        };
        LocatedLexeme { lexeme, start, end: self.at, near }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Takes bytes as long as they are so; they are ASCII.
    fn take_while(&mut self, is_so: impl Fn(&u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| is_so(byte)).count();
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// A comment that is not closed is returned, as what is unknown.
    fn skip_blanks_and_comments(&mut self) -> Option<LocatedLexeme> {
        loop {
            self.take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
            let rest = self.rest();
            if rest.starts_with("--") || rest.starts_with('#') || rest.starts_with("//") {
                self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
            } else if rest.starts_with("/*") {
                // What stands in `/*! */` is a part of the query for MySQL, and refused here.
                let body = rest.get(2..).unwrap_or_default();
                let length = body.find("*/").filter(|_| !body.starts_with('!')).map(|end| end + 4);
                let start = self.at;
                self.at += length.unwrap_or(rest.len());
                if length.is_none() {
                    let near = Some(rest.to_owned());
                    return Some(LocatedLexeme { lexeme: Lexeme::Unknown, start, end: self.at, near });
                }
            } else {
                return None;
            }
        }
    }

    fn word(&mut self) -> (Lexeme, Option<String>) {
        let text = self.take_while(|byte| is_letter(*byte) || byte.is_ascii_digit()).to_owned();
        let class = class(&text);
        let near = if class == WordClass::Name { text.clone() } else { text.to_ascii_lowercase() };
        (Lexeme::Word { text, class }, Some(near))
    }

    fn number(&mut self) -> (Lexeme, Option<String>) {
        let start = self.at;
        let mut lexeme: fn(String) -> Lexeme = Lexeme::Integer;
        if self.byte(0) == Some(b'0') && matches!(self.byte(1), Some(b'x' | b'X')) {
            self.at += 2;
            self.take_while(u8::is_ascii_hexdigit);
            lexeme = Lexeme::Odd;
        } else {
            self.take_while(u8::is_ascii_digit);
            if self.byte(0) == Some(b'.') {
                self.at += 1;
                self.take_while(u8::is_ascii_digit);
                lexeme = Lexeme::Float;
            }
            if matches!(self.byte(0), Some(b'e' | b'E')) {
                self.at += 1;
                self.at += usize::from(matches!(self.byte(0), Some(b'+' | b'-')));
                self.take_while(u8::is_ascii_digit);
                lexeme = Lexeme::Float;
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default().to_owned();
        match self.byte(0) {
            Some(byte) if is_letter(byte) => (Lexeme::Unknown, Some(text)),
            Some(_) | None => seen(lexeme, text),
        }
    }

    /// `x'1F'` and `b'01'`: a number of digits that can be divided by `step`.
    fn digits_in_quotes(&mut self, is_digit: fn(&u8) -> bool, step: usize) -> (Lexeme, Option<String>) {
        self.at += 2;
        let digits = self.take_while(is_digit).to_owned();
        if self.byte(0) != Some(b'\'') {
            return (Lexeme::Unknown, Some(digits));
        }
        self.at += 1;
        if digits.len().is_multiple_of(step) {
            seen(Lexeme::Odd, digits)
        } else {
            (Lexeme::Unknown, Some(digits))
        }
    }

    fn bind_variable(&mut self) -> (Lexeme, Option<String>) {
        self.at += 1;
        let colons = if self.byte(0) == Some(b':') { "::" } else { ":" };
        self.at += colons.len() - 1;
        if !self.byte(0).is_some_and(is_letter) {
            return (Lexeme::Unknown, Some(colons.to_owned()));
        }
        let name = self.take_while(|byte| is_letter(*byte) || byte.is_ascii_digit() || *byte == b'.');
        seen(if colons.len() == 2 { Lexeme::List } else { Lexeme::Odd }, format!("{colons}{name}"))
    }

    fn string(&mut self, quote: u8) -> (Lexeme, Option<String>) {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let is_end = |char: char| char == '\\' || u32::from(char) == u32::from(quote);
            let Some(plain) = rest.find(is_end) else {
                self.at = self.text.len();
                text.push_str(rest);
                return (Lexeme::Unknown, Some(text));
            };
            text.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain + 1;
            let next = self.rest().chars().next();
            if self.text.as_bytes().get(self.at - 1) == Some(&b'\\') {
                let Some(escaped) = next else { return (Lexeme::Unknown, Some(text)) };
                text.push(unescaped(escaped));
                self.at += escaped.len_utf8();
            } else if self.byte(0) == Some(quote) {
                text.push(char::from(quote));
                self.at += 1;
            } else {
                return seen(Lexeme::String, text);
            }
        }
    }

    fn quoted_name(&mut self) -> (Lexeme, Option<String>) {
        self.at += 1;
        let mut name = String::new();
        loop {
            let rest = self.rest();
            let Some(plain) = rest.find('`') else {
                self.at = self.text.len();
                name.push_str(rest);
                return (Lexeme::Unknown, Some(name));
            };
            name.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain + 1;
            if self.byte(0) != Some(b'`') {
                break;
            }
            name.push('`');
            self.at += 1;
        }
        if name.is_empty() { (Lexeme::Unknown, None) } else { seen(Lexeme::Quoted, name) }
    }

    fn sign(&mut self) -> (Lexeme, Option<String>) {
        let rest = self.rest();
        match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            Some(sign) => {
                self.at += sign.len();
                (Lexeme::Sign(sign), None)
            }
            None => {
                // One byte, even within a character, because positions count so. The parser reads no further.
                let char = rest.chars().next().unwrap_or_default();
                self.at += 1;
                (Lexeme::Unknown, Some(char.to_string()))
            }
        }
    }
}

fn seen(lexeme: impl Fn(String) -> Lexeme, text: String) -> (Lexeme, Option<String>) {
    (lexeme(text.clone()), Some(text))
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'@')
}

fn unescaped(char: char) -> char {
    match char {
        '0' => '\0',
        'b' => '\u{8}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'Z' => '\u{1a}',
        other => other,
    }
}
