//! A file of librdkafka properties, for secrets that do not stand among the settings.
//!
//! A line is `key=value`; what begins with `#` or `!` is a comment. Without the escapes of Java: a value is the rest of
//! its line, so a password stands there as it is. The file is looked at again every two seconds. A new user name or
//! password is handed to all clients; other properties are taken at the start only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::client::librdkafka::LiveClients;
use crate::client::properties::{ClientProperties, fault};

/// Pause between two looks at the file.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Properties that clients take while they live.
const USERNAME: &str = "sasl.username";
const PASSWORD: &str = "sasl.password";

/// The file as it was read at the start, and what has changed since.
pub struct PropertiesFile {
    path: PathBuf,
    properties: ClientProperties,
    /// `kafka.properties`: the user name may stand there, and the password in the file.
    beside: ClientProperties,
    watched: Mutex<Watched>,
    live: Arc<LiveClients>,
}

/// A user name and its password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SaslCredentials {
    pub(crate) username: String,
    pub(crate) password: String,
}

/// By what a changed file is noticed.
type FileState = Option<(SystemTime, u64)>;

struct Watched {
    /// Of the content that counts.
    read: FileState,
    /// Of the last look: a file is read when two looks in a row find the same.
    seen: FileState,
    /// The content that counts.
    properties: ClientProperties,
    /// Those that came after the start.
    credentials: Option<SaslCredentials>,
    complaint: String,
    is_watching: bool,
}

impl PropertiesFile {
    /// Reads it. `beside`: the properties among the settings.
    ///
    /// # Errors
    /// Every fault, with file and line, and without a value.
    pub fn open(path: &Path, beside: &ClientProperties) -> Result<Arc<Self>, Vec<String>> {
        // In this order: what is written meanwhile is noticed by the next look.
        let read = stamp(path);
        let properties = load(path, beside)?;
        let watched = Watched {
            read,
            seen: read,
            properties: properties.clone(),
            credentials: None,
            complaint: String::new(),
            is_watching: false,
        };
        Ok(Arc::new(PropertiesFile {
            path: path.to_owned(),
            properties,
            beside: beside.clone(),
            watched: Mutex::new(watched),
            live: Arc::default(),
        }))
    }

    /// What new clients take: user name and password as they are now, the rest as it was at the start.
    pub(crate) fn for_new_client(&self) -> ClientProperties {
        let mut properties = self.properties.clone();
        if let Some(SaslCredentials { username, password }) = self.watched.lock().credentials.clone() {
            properties.insert(USERNAME.to_owned(), username);
            properties.insert(PASSWORD.to_owned(), password);
        }
        properties
    }

    /// The clients that live. The first request for them starts the watch, which ends with the file's last holder.
    pub(crate) fn live(self: &Arc<Self>) -> &Arc<LiveClients> {
        let was_watching = std::mem::replace(&mut self.watched.lock().is_watching, true);
        if !was_watching {
            let file = Arc::downgrade(self);
            let thread = std::thread::Builder::new().name("kafka-password".into());
            if let Err(error) = thread.spawn(move || watch(&file)) {
                tracing::error!(file = %self.path.display(), %error, "a changed Kafka password will not be noticed");
            }
        }
        &self.live
    }

    /// Reads the file if it has changed, and hands new credentials to the clients.
    fn look(&self) {
        let mut watched = self.watched.lock();
        let stamp = stamp(&self.path);
        let is_steady = std::mem::replace(&mut watched.seen, stamp) == stamp;
        if !is_steady || watched.read == stamp {
            return;
        }
        watched.read = stamp;
        match load(&self.path, &self.beside) {
            Ok(properties) => {
                watched.complaint.clear();
                self.take(&mut watched, properties);
            }
            Err(faults) => {
                let complaint = faults.join("; ");
                if complaint != watched.complaint {
                    tracing::error!(%complaint, "the changed file of Kafka properties is not used");
                    watched.complaint = complaint;
                }
            }
        }
    }

    fn take(&self, watched: &mut Watched, properties: ClientProperties) {
        let before = std::mem::replace(&mut watched.properties, properties);
        let now = &watched.properties;
        let keys = before.keys().chain(now.keys().filter(|key| !before.contains_key(*key)));
        let changed: Vec<_> = keys.filter(|key| before.get(*key) != now.get(*key)).collect();
        let (credentials, others): (Vec<_>, Vec<_>) =
            changed.into_iter().partition(|key| [USERNAME, PASSWORD].contains(&key.as_str()));
        let file = self.path.display();
        if !others.is_empty() {
            tracing::warn!(%file, properties = ?others, "changed Kafka properties need a restart of the node");
        }
        if credentials.is_empty() {
            return;
        }
        match self.credentials(now) {
            Some(new) => {
                let clients = self.live.set_credentials(&new);
                tracing::info!(%file, properties = ?credentials, clients, "Kafka credentials changed");
                watched.credentials = Some(new);
            }
            None => {
                tracing::warn!(%file, "a Kafka user name or password is gone from the file: the last ones stay in use");
            }
        }
    }

    fn credentials(&self, now: &ClientProperties) -> Option<SaslCredentials> {
        let of = |key| now.get(key).or_else(|| self.beside.get(key)).cloned();
        Some(SaslCredentials { username: of(USERNAME)?, password: of(PASSWORD)? })
    }
}

impl std::fmt::Debug for PropertiesFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PropertiesFile").field("path", &self.path).finish_non_exhaustive()
    }
}

fn watch(file: &Weak<PropertiesFile>) {
    loop {
        std::thread::sleep(LOOK_EVERY);
        match file.upgrade() {
            Some(file) => file.look(),
            None => return,
        }
    }
}

/// None where it cannot be seen.
fn stamp(path: &Path) -> FileState {
    let found = std::fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

fn load(path: &Path, beside: &ClientProperties) -> Result<ClientProperties, Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        vec![format!("kafka.properties_file = {} cannot be read: {error}", path.display())]
    })?;
    let (mut properties, mut lines, mut faults) = (ClientProperties::default(), BTreeMap::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let found = match line.split_once('=').map(|(key, value)| (key.trim_end(), value.trim_start())) {
            None | Some(("", _)) => Some("the line is no key=value".to_owned()),
            Some((_, value)) if value.contains('\0') => Some("the value holds a zero byte".to_owned()),
            Some((key, value)) => {
                let again =
                    lines.insert(key, number).map(|first| format!("{key} stands in line {first} as well"));
                let both = || {
                    beside.contains_key(key).then(|| {
                        format!("{key} stands in kafka.properties as well: keep it in one of the two")
                    })
                };
                properties.insert(key.to_owned(), value.to_owned());
                fault(key, value).or(again).or_else(both)
            }
        };
        faults.extend(found.map(|found| format!("{}:{number}: {found}", path.display())));
    }
    if faults.is_empty() { Ok(properties) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::properties::RESERVED;

    struct Fixture {
        dir: tempfile::TempDir,
        beside: ClientProperties,
    }

    impl Fixture {
        fn new(beside: &[(&str, &str)]) -> Self {
            let pairs = beside.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let dir = tempfile::tempdir().expect("a directory");
            Fixture { dir, beside: ClientProperties(pairs.collect()) }
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("kafka.properties")
        }

        /// Contents of different lengths: the clock of the file system may be coarse.
        fn write(&self, text: &str) {
            std::fs::write(self.path(), text).expect("the file can be written");
        }

        fn open(&self) -> Result<Arc<PropertiesFile>, Vec<String>> {
            PropertiesFile::open(&self.path(), &self.beside)
        }

        fn faults(&self, text: &str) -> String {
            self.write(text);
            let faults = self.open().expect_err("it has faults").join("\n");
            faults.replace(&self.path().display().to_string(), "FILE")
        }
    }

    fn password(file: &PropertiesFile) -> String {
        file.for_new_client().get(PASSWORD).cloned().unwrap_or_default()
    }

    #[test]
    fn a_value_is_the_rest_of_its_line() {
        let fixture = Fixture::new(&[]);
        fixture
            .write("# a comment\r\n\n  ! another\n sasl.username = everlog\r\nsasl.password=a=b\\c#d; e \n");
        let file = fixture.open().expect("it has no faults");
        assert_eq!(file.properties.get(USERNAME).map(String::as_str), Some("everlog"));
        assert_eq!(password(&file), "a=b\\c#d; e ");
        assert!(!format!("{file:?}").contains("a=b"));
    }

    #[test]
    fn every_fault_has_its_line_and_no_value() {
        let fixture = Fixture::new(&[("sasl.username", "everlog")]);
        let text =
            "acks=1\nof-the-test\nsasl.password=of-the-test\nsasl.username=of-the-test\nsasl.password=x\n=y";
        let faults = "FILE:1: the property acks cannot be set: what is safe depends on it\n\
                      FILE:2: the line is no key=value\n\
                      FILE:4: sasl.username stands in kafka.properties as well: keep it in one of the two\n\
                      FILE:5: sasl.password stands in line 3 as well\n\
                      FILE:6: the line is no key=value";
        assert_eq!(fixture.faults(text), faults);
        for key in RESERVED {
            assert!(
                fixture.faults(&format!("\n{key}=1")).starts_with(&format!("FILE:2: the property {key} "))
            );
        }
        let absent = PropertiesFile::open(Path::new("/not/there"), &ClientProperties::default());
        assert!(
            absent.expect_err("it is not there")[0]
                .contains("kafka.properties_file = /not/there cannot be read")
        );
    }

    #[test]
    fn a_changed_password_counts_once_the_file_is_steady_and_other_properties_as_at_the_start() {
        let fixture = Fixture::new(&[("sasl.username", "everlog")]);
        fixture.write("sasl.password=first\nssl.ca.location=/a");
        let file = fixture.open().expect("it has no faults");
        fixture.write("sasl.password=the second\nssl.ca.location=/b");
        file.look();
        assert_eq!(password(&file), "first", "it may still be written to");
        file.look();
        assert_eq!(password(&file), "the second");
        assert_eq!(file.for_new_client().get("ssl.ca.location").map(String::as_str), Some("/a"));
    }

    #[test]
    fn a_file_that_is_gone_or_faulty_changes_nothing() {
        let fixture = Fixture::new(&[("sasl.username", "everlog")]);
        fixture.write("sasl.password=first");
        let file = fixture.open().expect("it has no faults");
        let look = || (0..2).for_each(|_| file.look());
        fixture.write("sasl.password=the second\nacks=1");
        look();
        assert_eq!(password(&file), "first");
        std::fs::remove_file(fixture.path()).expect("it was there");
        look();
        assert_eq!(password(&file), "first");
        fixture.write("# sasl.password");
        look();
        assert_eq!(password(&file), "first", "a client without a password cannot connect");
        fixture.write("sasl.password=the third, which is right");
        look();
        assert_eq!(password(&file), "the third, which is right");
    }
}
