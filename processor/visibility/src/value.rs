//! Values that runs have, as filters compare them.

use std::borrow::Cow;

/// The value of an attribute of one run.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Of a keyword, or a text before it is cut into words.
    String(Cow<'a, str>),
    /// Of a list of keywords; never empty.
    List(Vec<Cow<'a, str>>),
    /// Of an int, or a status.
    Int(i64),
    /// Of a double.
    Double(f64),
    /// Of a bool.
    Bool(bool),
    /// Of a datetime, in ns since 1970-01-01 UTC.
    Time(i64),
}
