//! The registry's state in memory: subjects, versions, ids, compatibility levels and modes.
//!
//! A request reads the state and plans changes; [`Subjects::apply`] applies them after they are stored. No IO here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use crate::avro::AvroSchema;
use crate::compatibility::{Against, CompatibilityLevel, Old};
use crate::error::Error;
use crate::limits::Limits;
use crate::mode::Mode;
use crate::rows::RegistryChange;
use crate::submitted_schema::SubmittedSchema;
use crate::work_budget::WorkBudget;

/// A version of a subject, with its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The id of the schema.
    pub id: u32,
    /// The number of the version, from 1. Permanently deleted numbers are not reused while a higher one exists.
    pub version: u32,
    /// The text of the schema.
    pub text: Arc<str>,
    /// The version is soft-deleted: its schema can still be read by its id.
    pub is_deleted: bool,
}

/// Which versions a request covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Live,
    All,
    Deleted,
}

impl Which {
    pub(crate) fn takes(self, is_deleted: bool) -> bool {
        match self {
            Self::Live => !is_deleted,
            Self::All => true,
            Self::Deleted => is_deleted,
        }
    }
}

/// A version of a subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub(crate) id: u32,
    pub(crate) is_deleted: bool,
}

type Versions = BTreeMap<u32, Version>;

#[derive(Debug)]
struct StoredText {
    text: Arc<str>,
    identity: Arc<str>,
}

impl StoredText {
    fn bytes(&self) -> usize {
        self.text.len() + self.identity.len()
    }
}

/// The state of the registry.
pub(crate) struct Subjects {
    pub(crate) limits: Limits,
    texts: BTreeMap<u32, StoredText>,
    /// The ids of each schema, by its identity. Earlier releases assigned several ids to one schema.
    ids: HashMap<Arc<str>, BTreeSet<u32>>,
    /// Bytes of the texts and identities.
    bytes: usize,
    /// How many versions use each id.
    uses: BTreeMap<u32, usize>,
    /// The versions of each subject; no subject is empty.
    subjects: BTreeMap<String, Versions>,
    levels: BTreeMap<String, CompatibilityLevel>,
    level: CompatibilityLevel,
    modes: BTreeMap<String, Mode>,
    mode: Mode,
}

impl Subjects {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            texts: BTreeMap::new(),
            ids: HashMap::new(),
            bytes: 0,
            uses: BTreeMap::new(),
            subjects: BTreeMap::new(),
            levels: BTreeMap::new(),
            level: CompatibilityLevel::Backward,
            modes: BTreeMap::new(),
            mode: Mode::ReadWrite,
        }
    }

    /// Applies a change that is stored.
    pub(crate) fn apply(&mut self, change: RegistryChange) {
        match change {
            RegistryChange::Text { id, text, identity } => self.insert(id, text, identity),
            RegistryChange::NoText { id } => self.remove(id),
            RegistryChange::Version { subject, version, id, is_deleted } => {
                *self.uses.entry(id).or_default() += 1;
                let versions = self.subjects.entry(subject).or_default();
                if let Some(before) = versions.insert(version, Version { id, is_deleted }) {
                    self.uses.entry(before.id).and_modify(|uses| *uses -= 1);
                }
            }
            RegistryChange::NoVersion { subject, version } => {
                if let Some(versions) = self.subjects.get_mut(&subject) {
                    if let Some(before) = versions.remove(&version) {
                        self.uses.entry(before.id).and_modify(|uses| *uses -= 1);
                    }
                    if versions.is_empty() {
                        self.subjects.remove(&subject);
                    }
                }
            }
            RegistryChange::Level { subject: None, level } => {
                self.level = level.unwrap_or(CompatibilityLevel::Backward)
            }
            RegistryChange::Level { subject: Some(subject), level } => set(&mut self.levels, subject, level),
            RegistryChange::Mode { subject: None, mode } => self.mode = mode.unwrap_or(Mode::ReadWrite),
            RegistryChange::Mode { subject: Some(subject), mode } => set(&mut self.modes, subject, mode),
        }
    }

    fn insert(&mut self, id: u32, text: Arc<str>, identity: Arc<str>) {
        self.remove(id);
        // Texts of the same schema share one copy of it.
        let identity = self.ids.get_key_value(&identity).map_or(identity, |(known, _)| Arc::clone(known));
        self.ids.entry(Arc::clone(&identity)).or_default().insert(id);
        let text = StoredText { text, identity };
        self.bytes += text.bytes();
        self.texts.insert(id, text);
    }

    fn remove(&mut self, id: u32) {
        let Some(text) = self.texts.remove(&id) else { return };
        self.bytes -= text.bytes();
        if let Some(ids) = self.ids.get_mut(&text.identity) {
            ids.remove(&id);
            if ids.is_empty() {
                self.ids.remove(&text.identity);
            }
        }
    }

    /// Bytes of the texts and identities of all schemas.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Checks that every version has its schema, after all rows are applied.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let lacking = |versions: &Versions| versions.values().any(|one| !self.texts.contains_key(&one.id));
        match self.subjects.iter().find(|(_, versions)| lacking(versions)) {
            Some((subject, _)) => Err(Error::Storage(format!("a schema of {subject} is missing"))),
            None => Ok(()),
        }
    }

    /// The id of a schema under a subject; `None` if it is not registered there, and the limits and the mode allow it.
    pub(crate) fn registered(&self, subject: &str, new: &SubmittedSchema<'_>) -> Result<Option<u32>, Error> {
        self.check_subject(subject)?;
        if let Some((_, found)) = self.same_in(subject, new, Which::Live) {
            return Ok(Some(found.id));
        }
        self.check_mode(subject)?;
        self.check_room(subject, new)?;
        Ok(None)
    }

    /// The id of a schema under a subject, and the changes that register it there.
    pub(crate) fn register(&self, subject: &str, new: &SubmittedSchema<'_>) -> (u32, Vec<RegistryChange>) {
        let mut changes = Vec::new();
        let id = self.id_of(new).unwrap_or_else(|| self.last_id().saturating_add(1));
        if !self.texts.contains_key(&id) {
            let (text, identity) = (new.text.into(), Arc::clone(&new.identity));
            changes.push(RegistryChange::Text { id, text, identity });
        }
        let last = self.subjects.get(subject).and_then(|versions| versions.last_key_value());
        let version = last.map_or(1, |(version, _)| version.saturating_add(1));
        changes.push(RegistryChange::Version { subject: subject.into(), version, id, is_deleted: false });
        (id, changes)
    }

    /// The lowest id of a schema.
    fn id_of(&self, new: &SubmittedSchema<'_>) -> Option<u32> {
        self.ids.get(&new.identity).and_then(BTreeSet::first).copied()
    }

    /// Deletes a subject: the numbers of the deleted versions, and the changes. `for_good` requires that all versions are
    /// soft-deleted.
    pub(crate) fn delete_subject(
        &self,
        subject: &str,
        for_good: bool,
    ) -> Result<(Vec<u32>, Vec<RegistryChange>), Error> {
        let versions = self.versions(subject, Which::All)?;
        self.check_mode(subject)?;
        let is_live = versions.values().any(|version| !version.is_deleted);
        let mut changes = match (is_live, for_good) {
            (false, false) => return Err(Error::SubjectDeleted(subject.into())),
            (true, true) => return Err(Error::SubjectNotDeleted(subject.into())),
            (true, false) => {
                let live = versions.iter().filter(|(_, version)| !version.is_deleted);
                live.map(|(number, version)| deleted(subject, *number, *version)).collect::<Vec<_>>()
            }
            (false, true) => {
                let gone =
                    |version: &u32| RegistryChange::NoVersion { subject: subject.into(), version: *version };
                versions.keys().map(gone).collect()
            }
        };
        let numbers = changes.iter().filter_map(|change| match change {
            RegistryChange::Version { version, .. } | RegistryChange::NoVersion { version, .. } => {
                Some(*version)
            }
            RegistryChange::Text { .. }
            | RegistryChange::NoText { .. }
            | RegistryChange::Level { .. }
            | RegistryChange::Mode { .. } => None,
        });
        let numbers = numbers.collect();
        if for_good {
            changes.extend(self.left_over(subject, None));
        } else {
            let of = || Some(subject.to_owned());
            changes.extend(
                self.levels.get(subject).map(|_| RegistryChange::Level { subject: of(), level: None }),
            );
            changes
                .extend(self.modes.get(subject).map(|_| RegistryChange::Mode { subject: of(), mode: None }));
        }
        Ok((numbers, changes))
    }

    /// Deletes a version, or the latest one: its number, and the changes. `for_good` requires that it is soft-deleted.
    pub(crate) fn delete_version(
        &self,
        subject: &str,
        version: Option<u32>,
        for_good: bool,
    ) -> Result<(u32, Vec<RegistryChange>), Error> {
        let versions = self.versions(subject, Which::All)?;
        let latest = || versions.iter().rev().find(|(_, version)| for_good || !version.is_deleted);
        let found = match version {
            Some(version) => versions.get_key_value(&version),
            None => latest(),
        };
        let (number, version) = found.ok_or(Error::VersionUnknown(version))?;
        self.check_mode(subject)?;
        let changes = match (version.is_deleted, for_good) {
            (true, false) => return Err(Error::VersionDeleted(subject.into(), *number)),
            (false, true) => return Err(Error::VersionNotDeleted(subject.into(), *number)),
            (false, false) => vec![deleted(subject, *number, *version)],
            (true, true) => {
                let mut changes =
                    vec![RegistryChange::NoVersion { subject: subject.into(), version: *number }];
                changes.extend(self.left_over(subject, Some(*number)));
                changes
            }
        };
        Ok((*number, changes))
    }

    /// The changes that remove the texts which only this version, or this subject, uses. The highest id stays, so that it is
    /// not assigned again.
    fn left_over(&self, subject: &str, version: Option<u32>) -> impl Iterator<Item = RegistryChange> {
        let is_gone =
            |of: &str, number: u32| of == subject && version.is_none_or(|version| version == number);
        let all = self.subjects.iter().flat_map(|(of, versions)| versions.iter().map(move |one| (of, one)));
        let stay = all.filter(|(of, (number, _))| !is_gone(of, **number));
        let used: BTreeSet<u32> = stay.map(|(_, (_, version))| version.id).chain([self.last_id()]).collect();
        self.texts.keys().filter(move |id| !used.contains(id)).map(|id| RegistryChange::NoText { id: *id })
    }

    /// The change that sets a level; `None` removes it.
    pub(crate) fn set_level(
        &self,
        subject: Option<&str>,
        level: Option<CompatibilityLevel>,
    ) -> Result<RegistryChange, Error> {
        if let Some(subject) = subject {
            self.check_subject(subject)?;
            if level.is_some() && !self.levels.contains_key(subject) {
                self.check_settings(self.levels.len(), "level")?;
            }
        }
        Ok(RegistryChange::Level { subject: subject.map(str::to_owned), level })
    }

    /// The change that sets a mode; `None` removes it.
    pub(crate) fn set_mode(
        &self,
        subject: Option<&str>,
        mode: Option<Mode>,
    ) -> Result<RegistryChange, Error> {
        if let Some(subject) = subject {
            self.check_subject(subject)?;
            if mode.is_some() && !self.modes.contains_key(subject) {
                self.check_settings(self.modes.len(), "mode")?;
            }
        }
        Ok(RegistryChange::Mode { subject: subject.map(str::to_owned), mode })
    }

    pub(crate) fn level(&self) -> CompatibilityLevel {
        self.level
    }

    pub(crate) fn level_of(&self, subject: &str) -> Option<CompatibilityLevel> {
        self.levels.get(subject).copied()
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn mode_of(&self, subject: &str) -> Option<Mode> {
        self.modes.get(subject).copied()
    }

    /// The highest id that was ever assigned; 0 if none was.
    pub(crate) fn last_id(&self) -> u32 {
        self.texts.last_key_value().map_or(0, |(id, _)| *id)
    }

    /// The text of a schema that a version uses, soft-deleted versions included.
    pub(crate) fn text(&self, id: u32) -> Option<&str> {
        let is_there = self.uses.get(&id).is_some_and(|uses| *uses > 0);
        self.texts.get(&id).filter(|_| is_there).map(|text| &*text.text)
    }

    /// The subjects with a live version, with any version, or with deleted versions only.
    pub(crate) fn subjects(&self, which: Which) -> impl Iterator<Item = (&str, &Versions)> {
        let all = self.subjects.iter().map(|(subject, versions)| (subject.as_str(), versions));
        all.filter(move |(_, versions)| which.takes(versions.values().all(|version| version.is_deleted)))
    }

    /// All versions of a subject that has at least one of these.
    pub(crate) fn versions(&self, subject: &str, which: Which) -> Result<&Versions, Error> {
        let found = self.subjects.get(subject);
        let found = found.filter(|versions| versions.values().any(|version| which.takes(version.is_deleted)));
        found.ok_or_else(|| Error::SubjectUnknown(subject.into()))
    }

    /// One version of a subject, or the latest one.
    pub(crate) fn version(&self, subject: &str, version: Option<u32>, which: Which) -> Result<Schema, Error> {
        let versions = self.versions(subject, which)?;
        let mut found = versions.iter().rev().filter(|(_, one)| which.takes(one.is_deleted));
        let found = found.find(|(number, _)| version.is_none_or(|version| version == **number));
        let (number, found) = found.ok_or(Error::VersionUnknown(version))?;
        Ok(self.schema(*number, *found))
    }

    pub(crate) fn schema(&self, number: u32, version: Version) -> Schema {
        let text = self.texts.get(&version.id).map_or_else(|| "".into(), |text| Arc::clone(&text.text));
        Schema { id: version.id, version: number, text, is_deleted: version.is_deleted }
    }

    /// The version of a subject that has this schema.
    pub(crate) fn find(
        &self,
        subject: &str,
        new: &SubmittedSchema<'_>,
        which: Which,
    ) -> Result<Schema, Error> {
        self.versions(subject, which)?;
        let (number, version) =
            self.same_in(subject, new, which).ok_or_else(|| Error::SchemaUnknown(String::new()))?;
        Ok(self.schema(number, version))
    }

    /// The latest version of a subject that has this schema; live versions come before deleted ones.
    fn same_in(&self, subject: &str, new: &SubmittedSchema<'_>, which: Which) -> Option<(u32, Version)> {
        let ids = self.ids.get(&new.identity)?;
        let versions = self.subjects.get(subject)?.iter();
        let same = versions.filter(|(_, one)| which.takes(one.is_deleted) && ids.contains(&one.id));
        same.max_by_key(|(number, version)| (!version.is_deleted, **number)).map(|(n, v)| (*n, *v))
    }

    /// The versions that a new schema of a subject is compared with.
    pub(crate) fn against(&self, subject: &str) -> Against {
        let level = self.level_of(subject).unwrap_or(self.level);
        let versions = self.subjects.get(subject).into_iter().flatten().rev();
        let live = versions.filter(|(_, version)| !version.is_deleted);
        let old = live.filter_map(|(number, version)| {
            let text = Arc::clone(&self.texts.get(&version.id)?.text);
            Some(Old { version: *number, id: version.id, text })
        });
        Against { level, old: old.take(level.versions_max()).collect() }
    }

    /// A comparison with one version, or with the latest one. Without a latest version, every schema is compatible.
    pub(crate) fn against_one(&self, subject: &str, version: Option<u32>) -> Result<Against, Error> {
        let level = self.level_of(subject).unwrap_or(self.level);
        let old = match self.version(subject, version, Which::Live) {
            Ok(Schema { id, version, text, .. }) => vec![Old { version, id, text }],
            Err(_nothing) if version.is_none() => Vec::new(),
            Err(_nothing) => return Err(Error::VersionUnknown(version)),
        };
        Ok(Against { level, old })
    }

    fn check_subject(&self, subject: &str) -> Result<(), Error> {
        if subject.is_empty() || subject.len() > self.limits.subject_bytes_max {
            return Err(Error::Request(format!(
                "the name of a subject must have 1 to {} bytes",
                self.limits.subject_bytes_max
            )));
        }
        Ok(())
    }

    fn check_mode(&self, subject: &str) -> Result<(), Error> {
        match self.mode_of(subject).unwrap_or(self.mode) {
            Mode::ReadWrite => Ok(()),
            Mode::ReadOnly => Err(Error::NotPermitted(format!("Subject {subject} is in read-only mode"))),
        }
    }

    fn check_room(&self, subject: &str, new: &SubmittedSchema<'_>) -> Result<(), Error> {
        let bytes = if self.id_of(new).is_some() { 0 } else { new.bytes() };
        if self.bytes.saturating_add(bytes) > self.limits.bytes_max {
            return Err(Error::Limit(format!(
                "{} bytes of schemas (registry.bytes_max)",
                self.limits.bytes_max
            )));
        }
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

    fn check_settings(&self, count: usize, what: &str) -> Result<(), Error> {
        if count >= self.limits.subjects_max {
            return Err(Error::Limit(format!("{} subjects with a {what}", self.limits.subjects_max)));
        }
        Ok(())
    }
}

fn set<T>(settings: &mut BTreeMap<String, T>, subject: String, value: Option<T>) {
    match value {
        Some(value) => settings.insert(subject, value),
        None => settings.remove(&subject),
    };
}

fn deleted(subject: &str, number: u32, version: Version) -> RegistryChange {
    RegistryChange::Version { subject: subject.into(), version: number, id: version.id, is_deleted: true }
}

/// The identity of a stored text. A text that this release cannot parse has its normalised JSON as its identity.
pub(crate) fn identity(text: &str) -> Option<String> {
    match AvroSchema::parse(text, &WorkBudget::unbounded()) {
        Ok(avro) => Some(avro.identity()),
        Err(_reason) => serde_json::from_str::<Value>(text).ok().map(|json| json.to_string()),
    }
}
