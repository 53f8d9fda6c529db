//! The keys of task tokens: from an operator's file, from the data directory, or from `control` for all nodes.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use everlog_temporal::{Control, TokenSigner};

/// The prefix of the keys' rows in `control`.
const ROW: &str = "token-key/";
/// The file in the data directory.
const FILE: &str = "token-keys";

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// A key. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub [u8; KEY_BYTES]);

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(secret)")
    }
}

/// The key that signs, and another that is accepted while keys are changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Signs, and is accepted.
    pub current: Key,
    /// Is accepted.
    pub previous: Option<Key>,
}

impl Keys {
    /// The keys of `file`, else those of the data directory, made when missing. The directory must be locked.
    ///
    /// # Errors
    /// The file cannot be read or holds no keys; no random bytes; the directory cannot be written.
    pub fn load(file: Option<&Path>, data_dir: &Path) -> Result<Self> {
        let kept = data_dir.join(FILE);
        let path = match file {
            Some(path) => path,
            None => {
                if !kept.exists() {
                    make(&kept).with_context(|| format!("{} cannot be written", kept.display()))?;
                }
                &kept
            }
        };
        let shown = path.display();
        let text =
            fs::read_to_string(path).with_context(|| format!("{shown} cannot be read (tokens.key_file)"))?;
        if fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o007 != 0) {
            tracing::warn!(file = %shown, "keys of task tokens can be read by every user of this machine: chmod 600");
        }
        parse(&text).with_context(|| format!("{shown} holds no keys of task tokens (tokens.key_file)"))
    }

    /// The keys that all nodes share, from rows of `control`; the first node makes one. The first row's key signs.
    ///
    /// # Errors
    /// The rows cannot be read or written; no random bytes.
    pub fn shared(rows: &dyn Control) -> Result<Vec<Vec<u8>>> {
        let found = || -> Result<Vec<Vec<u8>>> {
            let rows = rows.scan().map_err(anyhow::Error::msg)?;
            Ok(rows.iter().filter_map(|(row, value)| shared_key(row, value)).collect())
        };
        let there = found()?;
        if !there.is_empty() {
            return Ok(there);
        }
        let (name, key): ([u8; 16], [u8; KEY_BYTES]) = (random()?, random()?);
        let row = format!("{ROW}{}", hexadecimal(&name));
        rows.put(row.as_bytes(), hexadecimal(&key).as_bytes()).map_err(anyhow::Error::msg)?;
        found()
    }

    /// The one that signs first.
    pub fn in_order(&self) -> Vec<Vec<u8>> {
        [Some(&self.current), self.previous.as_ref()]
            .into_iter()
            .flatten()
            .map(|key| key.0.to_vec())
            .collect()
    }
}

/// Random bytes that nobody can guess.
///
/// # Errors
/// The system has none.
pub fn random<const BYTES: usize>() -> std::io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Written completely or not at all, and synced before it is used.
fn make(path: &Path) -> Result<()> {
    let key: [u8; KEY_BYTES] = random()?;
    let new = path.with_extension("new");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    writeln!(file, "{}", hexadecimal(&key))?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let folder = path.parent().context("it is in a directory")?;
    Ok(File::open(folder)?.sync_all()?)
}

fn parse(text: &str) -> Result<Keys> {
    let mut keys = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        keys.push(parse_key(line)?);
    }
    let mut keys = keys.into_iter();
    match (keys.next(), keys.next(), keys.next()) {
        (Some(current), previous, None) => Ok(Keys { current, previous }),
        _ => bail!("allowed are one or two lines"),
    }
}

/// Accepts the key of a row of `control`, if it is one. `shares_keys`: the node uses the shared keys; otherwise only
/// the operator's keys count.
pub fn learn(token_signer: &TokenSigner, row: &[u8], value: &[u8], shares_keys: bool) {
    if let Some(key) = shared_key(row, value).filter(|_| shares_keys) {
        token_signer.accept(&key);
    }
}

/// The shared key of a row; none where the row is another one.
fn shared_key(row: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    row.starts_with(ROW.as_bytes()).then_some(())?;
    let key = parse_key(std::str::from_utf8(value).ok()?).ok()?;
    Some(key.0.to_vec())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Errors never show the text.
fn parse_key(line: &str) -> Result<Key> {
    let digits = line.as_bytes();
    ensure!(
        digits.len() == 2 * KEY_BYTES,
        "a line has {} characters, allowed are 64 hexadecimal digits",
        digits.len()
    );
    let mut key = [0; KEY_BYTES];
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16);
        let (Some(high), Some(low)) = (value(pair[0]), value(pair[1])) else {
            bail!("a line has other characters than hexadecimal digits");
        };
        *byte = u8::try_from(high * 16 + low).expect("two hexadecimal digits fit into a byte");
    }
    Ok(Key(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_once_and_for_the_owner_only() {
        let dir = tempfile::tempdir().expect("a directory");
        let made = Keys::load(None, dir.path()).expect("they are made");
        assert_eq!(Keys::load(None, dir.path()).expect("they are there"), made);
        let mode = fs::metadata(dir.path().join(FILE)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().expect("a directory");
        assert_ne!(Keys::load(None, other.path()).expect("they are made"), made);
    }

    #[test]
    fn nodes_of_one_log_have_the_same_keys() {
        #[derive(Default)]
        struct Map(std::sync::Mutex<std::collections::BTreeMap<Vec<u8>, Vec<u8>>>);
        impl Control for Map {
            fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
                self.0.lock().expect("nobody panics").insert(key.to_vec(), value.to_vec());
                Ok(())
            }

            fn remove(&self, key: &[u8]) -> Result<(), String> {
                self.0.lock().expect("nobody panics").remove(key);
                Ok(())
            }

            fn scan(&self) -> Result<Vec<everlog_temporal::Row>, String> {
                Ok(self.0.lock().expect("nobody panics").clone().into_iter().collect())
            }
        }
        let rows = Map::default();
        rows.put(b"namespace/1", b"shop").expect("a map takes everything");
        let made = Keys::shared(&rows).expect("they are made");
        assert_eq!((made.len(), made[0].len()), (1, KEY_BYTES));
        assert_eq!(Keys::shared(&rows).expect("they are there"), made);
        assert_eq!(shared_key(b"token-key/00", b"no key"), None);
    }

    #[test]
    fn keys_of_control_count_only_where_no_operator_has_given_some() {
        let (row, shared) = (b"token-key/00", "0a".repeat(32));
        let token_signer = || TokenSigner::new(&[vec![1; KEY_BYTES]]).expect("long enough");
        let (operators, common) = (token_signer(), token_signer());
        learn(&operators, row, shared.as_bytes(), false);
        learn(&common, row, shared.as_bytes(), true);
        assert_eq!((operators.marks().len(), common.marks().len()), (1, 2));
        learn(&common, row, shared.as_bytes(), true);
        learn(&common, b"namespace/00", "0b".repeat(32).as_bytes(), true);
        assert_eq!(common.marks().len(), 2, "each key once, and no other row's value");
    }

    #[test]
    fn the_first_of_two_keys_signs() {
        let keys = parse(&format!("{}\n{}\n", "0a".repeat(32), "FF".repeat(32))).expect("two keys");
        assert_eq!(keys, Keys { current: Key([10; 32]), previous: Some(Key([255; 32])) });
    }

    #[test]
    fn a_file_without_keys_is_refused_and_not_shown() {
        let good = "0a".repeat(32);
        for bad in ["", "secret", &good[1..], &good.replace('a', "x"), &format!("{good}\n{good}\n{good}")] {
            let error = format!("{:?}", parse(bad).expect_err("it is refused"));
            assert!(!error.contains("secret") && !error.contains("0a0a"), "{error}");
        }
    }
}
