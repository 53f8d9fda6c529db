//! What is registered, in memory: subjects, versions, ids, levels; and how it is written as rows.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::PREFIX;
use crate::avro::AvroSchema;
use crate::compatibility::Level;
use crate::error::Error;

/// How much is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a schema's text.
    pub schema_bytes_max: usize,
    /// Bytes of a subject's name.
    pub subject_bytes_max: usize,
    /// Subjects.
    pub subjects_max: usize,
    /// Versions of a subject.
    pub versions_max: usize,
    /// Requests at once.
    pub requests_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            schema_bytes_max: 1 << 20,
            subject_bytes_max: 512,
            subjects_max: 10_000,
            versions_max: 1_000,
            requests_max: 64,
        }
    }
}

/// A schema as a subject knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Its id.
    pub id: u32,
    /// From 1, without a gap.
    pub version: u32,
    /// Its text.
    pub text: String,
}

/// A schema that is to be registered, with the rows that say so.
pub(crate) struct Plan {
    subject: String,
    id: u32,
    text: String,
    is_new: bool,
    adds_version: bool,
    pub(crate) rows: Vec<(String, Vec<u8>)>,
}

/// Everything that is registered.
pub(crate) struct Book {
    pub(crate) limits: Limits,
    texts: BTreeMap<u32, String>,
    /// By what makes two schemas the same.
    ids: HashMap<String, u32>,
    /// The ids of the versions, from version 1.
    subjects: BTreeMap<String, BTreeMap<u32, u32>>,
    levels: BTreeMap<String, Level>,
    level: Level,
}

impl Book {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            texts: BTreeMap::new(),
            ids: HashMap::new(),
            subjects: BTreeMap::new(),
            levels: BTreeMap::new(),
            level: Level::Backward,
        }
    }

    /// Takes a stored row; rows of others are left alone.
    pub(crate) fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let damaged = || Error::Storage(format!("the row {} cannot be read", String::from_utf8_lossy(key)));
        let Some(key) = key.strip_prefix(PREFIX.as_bytes()) else { return Ok(()) };
        let key = std::str::from_utf8(key).map_err(|_error| damaged())?;
        let value = std::str::from_utf8(value).map_err(|_error| damaged())?;
        let (kind, name) = key.split_once('/').ok_or_else(damaged)?;
        match kind {
            "id" => {
                let id = name.parse().map_err(|_error| damaged())?;
                self.ids.insert(same(value).ok_or_else(damaged)?, id);
                self.texts.insert(id, value.to_owned());
            }
            "subject" => {
                let (subject, version) = name.rsplit_once('/').ok_or_else(damaged)?;
                let version = version.parse().map_err(|_error| damaged())?;
                let id = value.parse().map_err(|_error| damaged())?;
                self.subjects.entry(subject.to_owned()).or_default().insert(version, id);
            }
            "level" => {
                let level = Level::parse(value).ok_or_else(damaged)?;
                self.set_level(Some(name).filter(|name| !name.is_empty()), level);
            }
            _of_a_later_release => return Err(damaged()),
        }
        Ok(())
    }

    /// Checks that what was stored belongs together.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        for (subject, versions) in &self.subjects {
            let whole = versions.keys().copied().eq(1..=u32::try_from(versions.len()).unwrap_or(u32::MAX));
            if !whole || versions.values().any(|id| !self.texts.contains_key(id)) {
                return Err(Error::Storage(format!("versions of {subject} are missing")));
            }
        }
        Ok(())
    }

    /// What has to be stored so that a schema is registered under a subject.
    pub(crate) fn plan(&self, subject: &str, text: &str) -> Result<Plan, Error> {
        self.check_subject(subject)?;
        let (avro, same) = self.parse(text)?;
        let known = self.ids.get(&same).copied();
        let versions = self.subjects.get(subject);
        let is_there = known.is_some_and(|id| versions.is_some_and(|v| v.values().any(|other| *other == id)));
        let id =
            known.unwrap_or_else(|| self.texts.last_key_value().map_or(1, |(id, _)| id.saturating_add(1)));
        let mut rows = Vec::new();
        if !is_there {
            self.check_room(subject)?;
            self.compatible(subject, &avro)
                .map_err(|found| Error::Incompatible { subject: subject.into(), detail: found.join(", ") })?;
            if known.is_none() {
                rows.push((format!("{PREFIX}id/{id:010}"), text.as_bytes().to_vec()));
            }
            let version = versions.map_or(1, |versions| versions.len() + 1);
            rows.push((format!("{PREFIX}subject/{subject}/{version:010}"), id.to_string().into_bytes()));
        }
        Ok(Plan {
            subject: subject.into(),
            id,
            text: text.into(),
            is_new: known.is_none(),
            adds_version: !is_there,
            rows,
        })
    }

    /// Keeps what is stored now; its id.
    pub(crate) fn keep(&mut self, plan: Plan) -> u32 {
        if plan.is_new {
            self.ids.insert(same(&plan.text).expect("it was parsed when it was planned"), plan.id);
            self.texts.insert(plan.id, plan.text);
        }
        if plan.adds_version {
            let versions = self.subjects.entry(plan.subject).or_default();
            let version = versions.last_key_value().map_or(1, |(version, _)| version + 1);
            versions.insert(version, plan.id);
        }
        plan.id
    }

    /// The row that keeps a level.
    pub(crate) fn level_row(&self, subject: Option<&str>, level: Level) -> Result<(String, Vec<u8>), Error> {
        if let Some(subject) = subject {
            self.check_subject(subject)?;
            if self.levels.len() >= self.limits.subjects_max && !self.levels.contains_key(subject) {
                return Err(Error::Limit(format!("{} subjects with a level", self.limits.subjects_max)));
            }
        }
        let key = format!("{PREFIX}level/{}", subject.unwrap_or_default());
        Ok((key, level.name().as_bytes().to_vec()))
    }

    pub(crate) fn set_level(&mut self, subject: Option<&str>, level: Level) {
        match subject {
            Some(subject) => {
                self.levels.insert(subject.to_owned(), level);
            }
            None => self.level = level,
        }
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    pub(crate) fn level_of(&self, subject: &str) -> Option<Level> {
        self.levels.get(subject).copied()
    }

    pub(crate) fn text(&self, id: u32) -> Option<&str> {
        self.texts.get(&id).map(String::as_str)
    }

    pub(crate) fn subjects(&self) -> impl Iterator<Item = (&str, &BTreeMap<u32, u32>)> {
        self.subjects.iter().map(|(subject, versions)| (subject.as_str(), versions))
    }

    /// The ids of a subject's versions.
    pub(crate) fn versions(&self, subject: &str) -> Result<&BTreeMap<u32, u32>, Error> {
        self.subjects.get(subject).ok_or_else(|| Error::SubjectUnknown(subject.into()))
    }

    /// One version of a subject; none means the latest.
    pub(crate) fn version(&self, subject: &str, version: Option<u32>) -> Result<Schema, Error> {
        let versions = self.versions(subject)?;
        let found = match version {
            Some(version) => versions.get_key_value(&version),
            None => versions.last_key_value(),
        };
        let (version, id) = found.ok_or_else(|| Error::VersionUnknown(version.unwrap_or_default()))?;
        let text = self.text(*id).unwrap_or_default().to_owned();
        Ok(Schema { id: *id, version: *version, text })
    }

    /// The version of a subject that is this schema.
    pub(crate) fn find(&self, subject: &str, text: &str) -> Result<Schema, Error> {
        let versions = self.versions(subject)?;
        let (_, same) = self.parse(text)?;
        let id = self.ids.get(&same);
        let version = versions.iter().find(|(_, other)| Some(*other) == id).map(|(version, _)| *version);
        self.version(subject, Some(version.ok_or_else(|| Error::SchemaUnknown(String::new()))?))
    }

    /// Whether a schema could be registered, by the level of the subject.
    pub(crate) fn check(&self, subject: &str, text: &str) -> Result<Result<(), Vec<String>>, Error> {
        let (avro, _) = self.parse(text)?;
        Ok(self.compatible(subject, &avro))
    }

    /// Whether a schema goes with one version.
    pub(crate) fn check_with(
        &self,
        subject: &str,
        version: Option<u32>,
        text: &str,
    ) -> Result<Result<(), Vec<String>>, Error> {
        let old = self.version(subject, version)?;
        let (avro, _) = self.parse(text)?;
        let level = self.level_of(subject).unwrap_or(self.level);
        Ok(level.check(&avro, std::iter::once((old.version, old.text.as_str()))))
    }

    fn compatible(&self, subject: &str, new: &AvroSchema) -> Result<(), Vec<String>> {
        let level = self.level_of(subject).unwrap_or(self.level);
        let versions = self.subjects.get(subject).into_iter().flatten().rev();
        level.check(new, versions.filter_map(|(version, id)| Some((*version, self.text(*id)?))))
    }

    fn check_subject(&self, subject: &str) -> Result<(), Error> {
        if subject.is_empty() || subject.len() > self.limits.subject_bytes_max {
            return Err(Error::Request(format!(
                "a subject has 1 to {} bytes",
                self.limits.subject_bytes_max
            )));
        }
        Ok(())
    }

    fn check_room(&self, subject: &str) -> Result<(), Error> {
        match self.subjects.get(subject) {
            Some(versions) if versions.len() >= self.limits.versions_max => {
                Err(Error::Limit(format!("{} versions of a subject", self.limits.versions_max)))
            }
            None if self.subjects.len() >= self.limits.subjects_max => {
                Err(Error::Limit(format!("{} subjects", self.limits.subjects_max)))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The schema, and what makes it the same as another.
    fn parse(&self, text: &str) -> Result<(AvroSchema, String), Error> {
        if text.len() > self.limits.schema_bytes_max {
            return Err(Error::SchemaInvalid(format!(
                "it has more than {} bytes",
                self.limits.schema_bytes_max
            )));
        }
        let avro = AvroSchema::parse(text).map_err(Error::SchemaInvalid)?;
        avro.check_defaults().map_err(Error::SchemaInvalid)?;
        let same = avro.identity();
        Ok((avro, same))
    }
}

/// What makes a stored text the same as another. What another release took and this one does not parse is the same as what
/// is the same JSON.
fn same(text: &str) -> Option<String> {
    match AvroSchema::parse(text) {
        Ok(avro) => Some(avro.identity()),
        Err(_reason) => serde_json::from_str::<Value>(text).ok().map(|json| json.to_string()),
    }
}
