//! Which schemas go together.

use apache_avro::Schema;
use apache_avro::schema_compatibility::SchemaCompatibility;

/// What a new schema of a subject has to be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nothing.
    None,
    /// Read what the latest one wrote.
    Backward,
    /// Read what any one wrote.
    BackwardTransitive,
    /// Write what the latest one reads.
    Forward,
    /// Write what any one reads.
    ForwardTransitive,
    /// Both, with the latest one.
    Full,
    /// Both, with every one.
    FullTransitive,
}

impl Level {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Backward,
        Self::BackwardTransitive,
        Self::Forward,
        Self::ForwardTransitive,
        Self::Full,
        Self::FullTransitive,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Backward => "BACKWARD",
            Self::BackwardTransitive => "BACKWARD_TRANSITIVE",
            Self::Forward => "FORWARD",
            Self::ForwardTransitive => "FORWARD_TRANSITIVE",
            Self::Full => "FULL",
            Self::FullTransitive => "FULL_TRANSITIVE",
        }
    }

    /// The level of this name, in large or small letters.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }

    fn is_transitive(self) -> bool {
        match self {
            Self::BackwardTransitive | Self::ForwardTransitive | Self::FullTransitive => true,
            Self::None | Self::Backward | Self::Forward | Self::Full => false,
        }
    }

    /// Checks a new schema against those before it, the oldest first.
    ///
    /// # Errors
    /// What does not go together.
    pub fn check<'a>(
        self,
        new: &Schema,
        old: impl DoubleEndedIterator<Item = &'a Schema>,
    ) -> Result<(), String> {
        let most = if self.is_transitive() { usize::MAX } else { 1 };
        old.rev().take(most).try_for_each(|old| self.check_one(new, old))
    }

    fn check_one(self, new: &Schema, old: &Schema) -> Result<(), String> {
        let reads = |writer: &Schema, reader: &Schema| {
            SchemaCompatibility::can_read(writer, reader).map(drop).map_err(|error| error.to_string())
        };
        match self {
            Self::None => Ok(()),
            Self::Backward | Self::BackwardTransitive => reads(old, new),
            Self::Forward | Self::ForwardTransitive => reads(new, old),
            Self::Full | Self::FullTransitive => reads(old, new).and_then(|()| reads(new, old)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(fields: &str) -> Schema {
        Schema::parse_str(&format!("{{\"type\":\"record\",\"name\":\"R\",\"fields\":[{fields}]}}"))
            .expect("valid")
    }

    #[test]
    fn each_level_asks_for_what_its_name_says() {
        let a = r#"{"name":"a","type":"string"}"#;
        let (one, two) = (schema(a), schema(&format!(r#"{a},{{"name":"b","type":"string"}}"#)));
        let both = schema(&format!(r#"{a},{{"name":"b","type":"string","default":""}}"#));
        // The new one, the old ones, and the levels that take it.
        let cases: [(&Schema, &[&Schema], &[Level]); 4] = [
            (&both, &[&one], &Level::ALL),
            (&two, &[&one], &[Level::None, Level::Forward, Level::ForwardTransitive]),
            (&one, &[&two], &[Level::None, Level::Backward, Level::BackwardTransitive]),
            (
                &two,
                &[&one, &both],
                &[Level::None, Level::Backward, Level::Forward, Level::ForwardTransitive, Level::Full],
            ),
        ];
        for (place, (new, old, levels)) in cases.into_iter().enumerate() {
            for level in Level::ALL {
                let taken = level.check(new, old.iter().copied()).is_ok();
                assert_eq!(taken, levels.contains(&level), "case {place}, {}", level.name());
            }
        }
    }
}
