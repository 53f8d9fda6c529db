//! Values that queries give, and how the values of runs compare with them.

use std::cmp::Ordering;

use crate::value::Value;

/// A value that a query gives, of the type of its attribute where it could be brought to it.
///
/// The order is that of SQLite: numbers and bools by value, and each of them before every text and moment.
#[derive(Clone, Debug)]
pub enum Literal {
    /// Compared byte by byte.
    String(String),
    /// Also a status.
    Int(i64),
    /// Never NaN, never infinite.
    Double(f64),
    /// Counts as 0 or 1.
    Bool(bool),
    /// In ns since 1970-01-01 UTC.
    Time(i64),
}

/// A value of either side, as it compares.
#[derive(Clone, Copy)]
enum Comparable<'a> {
    Int(i64),
    Double(f64),
    Time(i64),
    String(&'a str),
}

impl Literal {
    /// The string of one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Int(_) | Self::Double(_) | Self::Bool(_) | Self::Time(_) => None,
        }
    }

    /// How the value of a run stands to this one; none for a list, of which no order is known.
    pub(crate) fn compare(&self, value: &Value<'_>) -> Option<Ordering> {
        let value = match value {
            Value::String(text) => Comparable::String(text),
            Value::Int(number) => Comparable::Int(*number),
            Value::Double(number) => Comparable::Double(*number),
            Value::Bool(is_true) => Comparable::Int(i64::from(*is_true)),
            Value::Time(ns) => Comparable::Time(*ns),
            Value::List(_) => return None,
        };
        Some(compare(value, self.comparable()))
    }

    fn comparable(&self) -> Comparable<'_> {
        match self {
            Self::String(text) => Comparable::String(text),
            Self::Int(number) => Comparable::Int(*number),
            Self::Double(number) => Comparable::Double(*number),
            Self::Bool(is_true) => Comparable::Int(i64::from(*is_true)),
            Self::Time(ns) => Comparable::Time(*ns),
        }
    }
}

impl Ord for Literal {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.comparable(), other.comparable())
    }
}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Literal {}

fn compare(one: Comparable<'_>, other: Comparable<'_>) -> Ordering {
    use Comparable::{Double, Int, String, Time};
    match (one, other) {
        (Int(one), Int(other)) | (Time(one), Time(other)) => one.cmp(&other),
        (Double(one), Double(other)) => doubles(one, other),
        (Int(one), Double(other)) => int_and_double(one, other),
        (Double(one), Int(other)) => int_and_double(other, one).reverse(),
        (String(one), String(other)) => one.cmp(other),
        (Int(_) | Double(_), Time(_) | String(_)) | (Time(_), String(_)) => Ordering::Less,
        (Time(_) | String(_), Int(_) | Double(_)) | (String(_), Time(_)) => Ordering::Greater,
    }
}

/// Both zeros are equal. A NaN, which only a damaged record has, is sorted so that the order stays total.
fn doubles(one: f64, other: f64) -> Ordering {
    one.partial_cmp(&other).unwrap_or_else(|| one.total_cmp(&other))
}

/// Exact where the int has more digits than a double holds.
fn int_and_double(int: i64, double: f64) -> Ordering {
    /// 2^63: the first double above every i64.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() {
        return doubles(0.0, double);
    }
    if double >= ABOVE {
        return Ordering::Less;
    }
    if double < -ABOVE {
        return Ordering::Greater;
    }
    // In range, so that the whole part is an i64 without loss.
    let whole = double.trunc() as i64;
    int.cmp(&whole).then_with(|| doubles(0.0, double.fract()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_moments_and_texts() {
        let sorted = [
            Literal::Double(-1e300),
            Literal::Int(i64::MIN),
            Literal::Double(-1.5),
            Literal::Int(-1),
            Literal::Double(-0.5),
            Literal::Bool(false),
            Literal::Double(0.5),
            Literal::Bool(true),
            Literal::Double(1.5),
            Literal::Int(9_007_199_254_740_993),
            Literal::Double(9_007_199_254_740_994.0),
            Literal::Int(i64::MAX),
            Literal::Double(9.3e18),
            Literal::Time(-5),
            Literal::Time(5),
            Literal::String("".into()),
            Literal::String("A".into()),
            Literal::String("a".into()),
        ];
        for (place, one) in sorted.iter().enumerate() {
            for (other_place, other) in sorted.iter().enumerate() {
                assert_eq!(one.cmp(other), place.cmp(&other_place), "{one:?} {other:?}");
            }
        }
        assert_eq!(Literal::Int(0), Literal::Double(-0.0));
        assert_eq!(Literal::Bool(true), Literal::Double(1.0));
    }
}
