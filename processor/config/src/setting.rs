//! A setting: how it is read, what is allowed, how it is written.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use toml::Value;

/// A value as it was given.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// In the file.
    File(&'a Value),
    /// As the text of a variable of the environment.
    Environment(&'a str),
}

/// A type of settings.
pub trait Setting: Sized {
    /// What is allowed.
    type Allowed;

    /// None where the value is of a wrong type or not allowed.
    fn read(given: Given, allowed: &Self::Allowed) -> Option<Self>;

    /// As in a file.
    fn write(&self) -> String;

    /// What is allowed, as text that follows "allowed is".
    fn describe(allowed: &Self::Allowed) -> String;
}

/// A setting of a section.
pub struct Key {
    /// Its name within the section.
    pub name: &'static str,
    /// What it does, in sentences.
    pub meaning: String,
    /// Its value as in a file.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

/// Why a value was refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The section has no such key.
    Unknown,
    /// The value is not allowed; what is.
    NotAllowed(String),
}

/// A section of settings.
pub trait Section {
    /// Its name in the file.
    fn name(&self) -> &'static str;
    /// What it is about, in sentences.
    fn about(&self) -> String;
    /// Its settings in order.
    fn keys(&self) -> Vec<Key>;
    /// Sets a value.
    fn set(&mut self, key: &str, given: Given) -> Result<(), Refusal>;
}

/// Declares a section once: its struct, its defaults, what is allowed, and the text that documentation shows.
macro_rules! section {
    ($(#[doc = $about:literal])+ $section:ident = $title:literal {
        $($(#[doc = $doc:literal])+ $key:ident: $kind:ty = $default:expr, $allowed:expr;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $section { $($(#[doc = $doc])+ pub $key: $kind,)+ }

        impl Default for $section {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $crate::setting::Section for $section {
            fn name(&self) -> &'static str {
                $title
            }

            fn about(&self) -> String {
                [$($about.trim(),)+].join(" ")
            }

            fn keys(&self) -> Vec<$crate::setting::Key> {
                vec![$($crate::setting::Key {
                    name: stringify!($key),
                    meaning: [$($doc.trim(),)+].join(" "),
                    value: self.$key.write(),
                    allowed: <$kind as Setting>::describe(&$allowed),
                },)+]
            }

            fn set(&mut self, key: &str, given: Given) -> Result<(), Refusal> {
                match key {
                    $(stringify!($key) => {
                        let read = <$kind as Setting>::read(given, &$allowed);
                        let describe = || Refusal::NotAllowed(<$kind as Setting>::describe(&$allowed));
                        self.$key = read.ok_or_else(describe)?;
                        Ok(())
                    })+
                    _ => Err(Refusal::Unknown),
                }
            }
        }
    };
}
pub(super) use section;

/// Declares a setting that is one of a few words.
macro_rules! choice {
    ($(#[doc = $about:literal])+ $choice:ident { $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $choice { $($(#[doc = $doc])+ $variant,)+ }

        impl Setting for $choice {
            type Allowed = ();

            fn read(given: Given, (): &()) -> Option<Self> {
                match $crate::setting::text(given)? {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn write(&self) -> String {
                match self { $(Self::$variant => format!("{:?}", $word),)+ }
            }

            fn describe((): &()) -> String {
                $crate::setting::either(&[$($word),+])
            }
        }
    };
}
pub(super) use choice;

/// The text of a value; none where it is another type.
pub fn text<'a>(given: Given<'a>) -> Option<&'a str> {
    match given {
        Given::File(value) => value.as_str(),
        Given::Environment(text) => Some(text),
    }
}

/// "a, b or c", each in quotes.
pub fn either(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

fn integer(given: Given) -> Option<i64> {
    match given {
        Given::File(value) => value.as_integer(),
        Given::Environment(text) => text.trim().replace('_', "").parse().ok(),
    }
}

/// With `_` between groups of three digits.
fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('_');
        }
        grouped.push(digit);
    }
    grouped
}

macro_rules! integers {
    ($($kind:ty),+) => {$(
        impl Setting for $kind {
            type Allowed = RangeInclusive<$kind>;

            fn read(given: Given, allowed: &Self::Allowed) -> Option<Self> {
                let number = <$kind>::try_from(integer(given)?).ok()?;
                allowed.contains(&number).then_some(number)
            }

            fn write(&self) -> String {
                grouped(self)
            }

            fn describe(allowed: &Self::Allowed) -> String {
                format!("{} to {}", grouped(allowed.start()), grouped(allowed.end()))
            }
        }
    )+};
}
integers!(u32, u64, i32, i64, usize);

impl Setting for bool {
    type Allowed = ();

    fn read(given: Given, (): &()) -> Option<Self> {
        match given {
            Given::File(value) => value.as_bool(),
            Given::Environment(text) => text.parse().ok(),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn describe((): &()) -> String {
        "true or false".into()
    }
}

impl Setting for String {
    type Allowed = &'static str;

    fn read(given: Given, _words: &&'static str) -> Option<Self> {
        text(given).map(str::to_owned)
    }

    fn write(&self) -> String {
        Value::String(self.clone()).to_string()
    }

    fn describe(words: &&'static str) -> String {
        (*words).to_owned()
    }
}

/// Names, each once and not empty. In a variable they are separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(pub Vec<String>);

impl Words {
    /// These.
    pub fn of(words: &[&str]) -> Self {
        Self(words.iter().map(|word| (*word).to_owned()).collect())
    }
}

impl Setting for Words {
    type Allowed = &'static str;

    fn read(given: Given, _words: &&'static str) -> Option<Self> {
        let words: Vec<&str> = match given {
            Given::File(value) => value.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
            Given::Environment(text) if text.trim().is_empty() => Vec::new(),
            Given::Environment(text) => text.split(',').map(str::trim).collect(),
        };
        let is_new = |(at, word): (usize, &&str)| !word.is_empty() && !words[..at].contains(word);
        words.iter().enumerate().all(is_new).then(|| Self::of(&words))
    }

    fn write(&self) -> String {
        Value::Array(self.0.iter().cloned().map(Value::String).collect()).to_string()
    }

    fn describe(words: &&'static str) -> String {
        (*words).to_owned()
    }
}

impl Setting for SocketAddr {
    type Allowed = ();

    fn read(given: Given, (): &()) -> Option<Self> {
        text(given)?.parse().ok()
    }

    fn write(&self) -> String {
        format!("\"{self}\"")
    }

    fn describe((): &()) -> String {
        "an IP address and a port, such as \"127.0.0.1:7233\"".into()
    }
}

impl Setting for PathBuf {
    type Allowed = ();

    fn read(given: Given, (): &()) -> Option<Self> {
        text(given).filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    fn write(&self) -> String {
        Value::String(self.to_string_lossy().into()).to_string()
    }

    fn describe((): &()) -> String {
        "a path".into()
    }
}

impl Setting for Option<PathBuf> {
    type Allowed = ();

    fn read(given: Given, (): &()) -> Option<Self> {
        text(given).map(|text| (!text.is_empty()).then(|| PathBuf::from(text)))
    }

    fn write(&self) -> String {
        self.as_ref().map_or("\"\"".into(), Setting::write)
    }

    fn describe((): &()) -> String {
        "a path, or \"\" for none".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_alike_from_the_file_and_the_environment() {
        let range = 1..=70_000u32;
        assert_eq!(u32::read(Given::File(&Value::Integer(65_536)), &range), Some(65_536));
        assert_eq!(u32::read(Given::Environment("65_536"), &range), Some(65_536));
        for bad in ["0", "70001", "-1", "many", "1.5", "", "99999999999999999999"] {
            assert_eq!(u32::read(Given::Environment(bad), &range), None, "{bad:?}");
        }
        assert_eq!(u32::read(Given::File(&Value::String("8".into())), &range), None);
    }

    #[test]
    fn names_are_read_alike_from_the_file_and_the_environment() {
        let file = Value::Array(vec![Value::String("default".into()), Value::String("shop".into())]);
        let both = Some(Words::of(&["default", "shop"]));
        assert_eq!(Words::read(Given::File(&file), &""), both);
        assert_eq!(Words::read(Given::Environment("default, shop"), &""), both);
        assert_eq!(Words::read(Given::Environment(""), &""), Some(Words::of(&[])));
        for bad in ["default,", "shop,shop"] {
            assert_eq!(Words::read(Given::Environment(bad), &""), None, "{bad}");
        }
    }

    #[test]
    fn long_numbers_are_written_in_groups() {
        assert_eq!(
            [1u64, 7_233, 10_000, 67_108_864].map(|n| n.write()),
            ["1", "7233", "10_000", "67_108_864"]
        );
    }
}
