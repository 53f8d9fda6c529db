//! Compatibility of schemas: the levels, and the check of a new schema by a level.

use std::sync::Arc;

use crate::avro::{AvroSchema, Fault, incompatibilities};
use crate::work_budget::{Stopped, WorkBudget};

/// A version of a subject that a new schema is compared with.
#[derive(Clone, Debug)]
pub(crate) struct Old {
    pub(crate) version: u32,
    pub(crate) id: u32,
    pub(crate) text: Arc<str>,
}

/// A level, and the versions that it compares a new schema with, the latest first.
pub(crate) struct Against {
    pub(crate) level: CompatibilityLevel,
    pub(crate) old: Vec<Old>,
}

/// A compatibility level: what a new schema of a subject must be able to read, and what must be able to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompatibilityLevel {
    /// No check.
    None,
    /// The new schema reads data of the latest version.
    Backward,
    /// The new schema reads data of every version.
    BackwardTransitive,
    /// The latest version reads data of the new schema.
    Forward,
    /// Every version reads data of the new schema.
    ForwardTransitive,
    /// Backward and forward with the latest version.
    Full,
    /// Backward and forward with every version.
    FullTransitive,
}

impl CompatibilityLevel {
    /// All levels.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Backward,
        Self::BackwardTransitive,
        Self::Forward,
        Self::ForwardTransitive,
        Self::Full,
        Self::FullTransitive,
    ];

    /// The name in the API.
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

    /// The level of a name, in any case of letters.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }

    /// How many versions are compared, from the latest one backwards.
    pub(crate) fn versions_max(self) -> usize {
        match self {
            Self::None => 0,
            Self::Backward | Self::Forward | Self::Full => 1,
            Self::BackwardTransitive | Self::ForwardTransitive | Self::FullTransitive => usize::MAX,
        }
    }
}

impl Against {
    /// Whether both compare with the same versions. Ids are never reused, so their texts are the same too.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same = |(one, other): (&Old, &Old)| (one.version, one.id) == (other.version, other.id);
        self.level == other.level
            && self.old.len() == other.old.len()
            && self.old.iter().zip(&other.old).all(same)
    }

    /// Checks a new schema. Returns the incompatibilities with the latest version that it is incompatible with, one line
    /// each; none if it is compatible with all.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) fn check(&self, new: &AvroSchema, steps: &WorkBudget) -> Result<Vec<String>, Stopped> {
        for old in &self.old {
            let mut found = self.check_one(new, &old.text, steps)?;
            if !found.is_empty() {
                found.push(format!("{{oldSchemaVersion: {}}}", old.version));
                found.push(format!("{{compatibility: '{}'}}", self.level.name()));
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    fn check_one(&self, new: &AvroSchema, old: &str, steps: &WorkBudget) -> Result<Vec<String>, Stopped> {
        // Another release may have accepted a schema that this one cannot parse.
        let old = match AvroSchema::parse(old, steps) {
            Ok(old) => old,
            Err(Fault::Invalid(reason)) => {
                return Ok(vec![format!("the earlier schema cannot be parsed: {reason}")]);
            }
            Err(Fault::Stopped(stopped)) => return Err(stopped),
        };
        let reads = |reader, writer| {
            let found = incompatibilities(reader, writer, steps)?;
            Ok(found.into_iter().map(|found| found.to_string()).collect::<Vec<_>>())
        };
        match self.level {
            CompatibilityLevel::None => Ok(Vec::new()),
            CompatibilityLevel::Backward | CompatibilityLevel::BackwardTransitive => reads(new, &old),
            CompatibilityLevel::Forward | CompatibilityLevel::ForwardTransitive => reads(&old, new),
            CompatibilityLevel::Full | CompatibilityLevel::FullTransitive => {
                Ok([reads(new, &old)?, reads(&old, new)?].concat())
            }
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
        let backward =
            &[CompatibilityLevel::None, CompatibilityLevel::Backward, CompatibilityLevel::BackwardTransitive];
        let forward =
            &[CompatibilityLevel::None, CompatibilityLevel::Forward, CompatibilityLevel::ForwardTransitive];
        // The new one, the old ones, the latest first, and the levels that take it.
        let cases: [(&str, &[&str], &[CompatibilityLevel]); 9] = [
            (&both, &[], &CompatibilityLevel::ALL),
            (&both, &[&one], &CompatibilityLevel::ALL),
            (&two, &[&one], forward),
            (&one, &[&two], backward),
            (
                &two,
                &[&both, &one],
                &[
                    CompatibilityLevel::None,
                    CompatibilityLevel::Backward,
                    CompatibilityLevel::Forward,
                    CompatibilityLevel::ForwardTransitive,
                    CompatibilityLevel::Full,
                ],
            ),
            (
                &one,
                &[&both, &two],
                &[
                    CompatibilityLevel::None,
                    CompatibilityLevel::Backward,
                    CompatibilityLevel::BackwardTransitive,
                    CompatibilityLevel::Forward,
                    CompatibilityLevel::Full,
                ],
            ),
            // A union that grows is read by the new one only, also where a branch of the old one would do.
            (&wide, &[&one], backward),
            (&one, &[&wide], forward),
            (&long, &[&wide, &one], backward),
        ];
        for (place, (new, old, levels)) in cases.into_iter().enumerate() {
            let steps = WorkBudget::bounded(10_000);
            let new = AvroSchema::parse(new, &steps).expect("valid");
            for level in CompatibilityLevel::ALL {
                let old = old.iter().zip(1..).map(|(text, id)| Old { version: id, id, text: (*text).into() });
                let against = Against { level, old: old.take(level.versions_max()).collect() };
                let taken = against.check(&new, &steps).expect("small").is_empty();
                assert_eq!(taken, levels.contains(&level), "case {place}, {}", level.name());
            }
        }
    }
}
