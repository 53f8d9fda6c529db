//! The stored format of the registry: each change puts or removes one row of the control topic.

use std::sync::Arc;

use crate::PREFIX;
use crate::compatibility::CompatibilityLevel;
use crate::error::Error;
use crate::mode::Mode;
use crate::subjects::identity;

/// Follows the id in the row of a soft-deleted version.
const DELETED: &str = " deleted";

/// One change of the registry. `subject: None` is the global setting; `level: None` and `mode: None` remove the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RegistryChange {
    /// Puts a schema under an id. The identity is not stored, because it is computed from the text.
    Text {
        id: u32,
        text: Arc<str>,
        identity: Arc<str>,
    },
    /// Removes the schema of an id.
    NoText {
        id: u32,
    },
    Version {
        subject: String,
        version: u32,
        id: u32,
        is_deleted: bool,
    },
    NoVersion {
        subject: String,
        version: u32,
    },
    Level {
        subject: Option<String>,
        level: Option<CompatibilityLevel>,
    },
    Mode {
        subject: Option<String>,
        mode: Option<Mode>,
    },
}

impl RegistryChange {
    /// The row's key and value; `None` removes the row.
    pub(crate) fn row(&self) -> (String, Option<Vec<u8>>) {
        let of = |subject: &Option<String>| subject.clone().unwrap_or_default();
        let (key, value) = match self {
            Self::Text { id, text, .. } => (format!("id/{id:010}"), Some(text.to_string())),
            Self::NoText { id } => (format!("id/{id:010}"), None),
            Self::Version { subject, version, id, is_deleted } => {
                let value = format!("{id}{}", if *is_deleted { DELETED } else { "" });
                (format!("subject/{subject}/{version:010}"), Some(value))
            }
            Self::NoVersion { subject, version } => (format!("subject/{subject}/{version:010}"), None),
            Self::Level { subject, level } => {
                (format!("level/{}", of(subject)), level.map(|level| level.name().to_owned()))
            }
            Self::Mode { subject, mode } => {
                (format!("mode/{}", of(subject)), mode.map(|mode| mode.name().to_owned()))
            }
        };
        (format!("{PREFIX}{key}"), value.map(String::into_bytes))
    }

    /// The change of a stored row; `None` for rows outside of [`PREFIX`].
    ///
    /// # Errors
    /// [`Error::Storage`]: this release cannot read the row.
    pub(crate) fn parse(key: &[u8], value: &[u8]) -> Result<Option<Self>, Error> {
        let Some(own) = key.strip_prefix(PREFIX.as_bytes()) else { return Ok(None) };
        let parsed = std::str::from_utf8(own).ok().zip(std::str::from_utf8(value).ok());
        let parsed = parsed.and_then(|(key, value)| Self::of(key, value));
        let damaged = || Error::Storage(format!("the row {} cannot be read", String::from_utf8_lossy(key)));
        parsed.map(Some).ok_or_else(damaged)
    }

    fn of(key: &str, value: &str) -> Option<Self> {
        let (kind, name) = key.split_once('/')?;
        let subject = || Some(name.to_owned()).filter(|name| !name.is_empty());
        match kind {
            "id" => Some(Self::Text {
                id: name.parse().ok()?,
                text: value.into(),
                identity: identity(value)?.into(),
            }),
            "subject" => {
                let (subject, version) = name.rsplit_once('/')?;
                let (id, is_deleted) = match value.strip_suffix(DELETED) {
                    Some(id) => (id, true),
                    None => (value, false),
                };
                Some(Self::Version {
                    subject: subject.to_owned(),
                    version: version.parse().ok()?,
                    id: id.parse().ok()?,
                    is_deleted,
                })
            }
            "level" => {
                Some(Self::Level { subject: subject(), level: Some(CompatibilityLevel::parse(value)?) })
            }
            "mode" => Some(Self::Mode { subject: subject(), mode: Some(Mode::parse(value)?) }),
            _of_a_later_release => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_the_change_that_it_was_written_for() {
        let subject = || Some("com/shop v1/orders-value".to_owned());
        let text = "\"int\"".to_owned();
        for change in [
            RegistryChange::Text {
                id: 7,
                identity: identity(&text).expect("JSON").into(),
                text: text.into(),
            },
            RegistryChange::Version { subject: "a/b".into(), version: 3, id: 7, is_deleted: false },
            RegistryChange::Version { subject: "a/b".into(), version: 3, id: 7, is_deleted: true },
            RegistryChange::Level { subject: subject(), level: Some(CompatibilityLevel::Full) },
            RegistryChange::Level { subject: None, level: Some(CompatibilityLevel::None) },
            RegistryChange::Mode { subject: subject(), mode: Some(Mode::ReadOnly) },
        ] {
            let (key, value) = change.row();
            assert_eq!(RegistryChange::parse(key.as_bytes(), &value.expect("it is put")), Ok(Some(change)));
        }
        assert_eq!(RegistryChange::parse(b"namespaces/default", b"of somebody else"), Ok(None));
    }
}
