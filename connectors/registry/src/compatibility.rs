//! Which schemas go together: the levels of a subject.

use crate::avro::{AvroSchema, incompatibilities};

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

    /// Checks a new schema against those before it: (version, text), the latest first.
    ///
    /// # Errors
    /// What does not go together with the latest one that it does not go with, one line each.
    pub(crate) fn check<'a>(
        self,
        new: &AvroSchema,
        old: impl Iterator<Item = (u32, &'a str)>,
    ) -> Result<(), Vec<String>> {
        let most = match self {
            Self::None => 0,
            Self::Backward | Self::Forward | Self::Full => 1,
            Self::BackwardTransitive | Self::ForwardTransitive | Self::FullTransitive => usize::MAX,
        };
        old.take(most).try_for_each(|(version, old)| {
            let mut found = self.check_one(new, old);
            if found.is_empty() {
                return Ok(());
            }
            found.push(format!("{{oldSchemaVersion: {version}}}"));
            found.push(format!("{{compatibility: '{}'}}", self.name()));
            Err(found)
        })
    }

    fn check_one(self, new: &AvroSchema, old: &str) -> Vec<String> {
        // Another release may have taken what this one does not.
        let old = match AvroSchema::parse(old) {
            Ok(old) => old,
            Err(reason) => return vec![format!("the earlier schema cannot be read: {reason}")],
        };
        let reads =
            |reader, writer| incompatibilities(reader, writer).into_iter().map(|found| found.to_string());
        match self {
            Self::None => Vec::new(),
            Self::Backward | Self::BackwardTransitive => reads(new, &old).collect(),
            Self::Forward | Self::ForwardTransitive => reads(&old, new).collect(),
            Self::Full | Self::FullTransitive => reads(new, &old).chain(reads(&old, new)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(fields: &str) -> String {
        format!("{{\"type\":\"record\",\"name\":\"R\",\"fields\":[{fields}]}}")
    }

    #[test]
    fn each_level_asks_for_what_its_name_says() {
        let a = r#"{"name":"a","type":"string"}"#;
        let (one, two) = (schema(a), schema(&format!(r#"{a},{{"name":"b","type":"string"}}"#)));
        let both = schema(&format!(r#"{a},{{"name":"b","type":"string","default":""}}"#));
        let wide = schema(r#"{"name":"a","type":["string","int"]}"#);
        let long = schema(r#"{"name":"a","type":["string","long"]}"#);
        let backward = &[Level::None, Level::Backward, Level::BackwardTransitive];
        let forward = &[Level::None, Level::Forward, Level::ForwardTransitive];
        // The new one, the old ones, the latest first, and the levels that take it.
        let cases: [(&str, &[&str], &[Level]); 9] = [
            (&both, &[], &Level::ALL),
            (&both, &[&one], &Level::ALL),
            (&two, &[&one], forward),
            (&one, &[&two], backward),
            (
                &two,
                &[&both, &one],
                &[Level::None, Level::Backward, Level::Forward, Level::ForwardTransitive, Level::Full],
            ),
            (
                &one,
                &[&both, &two],
                &[Level::None, Level::Backward, Level::BackwardTransitive, Level::Forward, Level::Full],
            ),
            // A union that grows is read by the new one only, also where a branch of the old one would do.
            (&wide, &[&one], backward),
            (&one, &[&wide], forward),
            (&long, &[&wide, &one], backward),
        ];
        for (place, (new, old, levels)) in cases.into_iter().enumerate() {
            let new = AvroSchema::parse(new).expect("valid");
            for level in Level::ALL {
                let old = old.iter().zip(1..).map(|(text, version)| (version, *text));
                let taken = level.check(&new, old).is_ok();
                assert_eq!(taken, levels.contains(&level), "case {place}, {}", level.name());
            }
        }
    }
}
