//! Opaque API keys: a file has the SHA-256 of each, with a name and grants. The keys themselves are nowhere.
//!
//! A key has 256 random bits, so a plain hash protects it. The look-up compares hashes only: its time says nothing of a key.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, SubsecRound, Utc};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::{DenialClass, Unidentified};
use crate::principal::{Grants, Principal, PrincipalKind};

/// How each key begins, which no JWT does.
pub const KEY_PREFIX: &str = "elk_";
const KEY_RANDOM_BYTES: usize = 32;
/// What a longer name would make of log lines.
const NAME_BYTES_MAX: usize = 128;

type Hash = [u8; 32];

/// The keys of a file.
#[derive(Default)]
pub(crate) struct ApiKeys {
    by_hash: HashMap<Hash, ApiKey>,
}

struct ApiKey {
    principal: Arc<Principal>,
    expires_s: Option<f64>,
}

impl ApiKeys {
    /// Reads lines: `NAME NAMESPACE:ROLE[,...] SHA-256 [EXPIRES]`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut keys = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (hash, key) = read_line(line).map_err(|fault| format!("line {number}: {fault}"))?;
            if keys.by_hash.insert(hash, key).is_some() {
                return Err(format!("line {number}: an earlier line has the same key"));
            }
        }
        Ok(keys)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Whose key it is.
    pub(crate) fn identify(&self, key: &str, now_s: f64) -> Result<Arc<Principal>, Unidentified> {
        let Some(found) = self.by_hash.get(&hash(key.as_bytes())) else {
            return Err(Unidentified::denied(DenialClass::UnknownKey, "the API key is unknown"));
        };
        if found.expires_s.is_some_and(|expires_s| expires_s <= now_s) {
            let name = &found.principal.name;
            return Err(Unidentified::denied(
                DenialClass::Expired,
                format!("the API key of {name} has expired"),
            ));
        }
        Ok(found.principal.clone())
    }
}

/// Faults name words by their place: a key may stand where it does not belong.
fn read_line(line: &str) -> Result<(Hash, ApiKey), String> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(grants), Some(hash)) = (words.next(), words.next(), words.next()) else {
        return Err("a line is NAME NAMESPACE:ROLE[,...] SHA-256 [EXPIRES]".into());
    };
    check_name(name)?;
    let grants = read_grants(grants)?;
    let hash = read_hash(hash).ok_or("the third word is not 64 hexadecimal digits, the SHA-256 of a key")?;
    let expires_s = words.next().map(read_time).transpose()?;
    if words.next().is_some() {
        return Err("there is a fifth word; a line is NAME NAMESPACE:ROLE[,...] SHA-256 [EXPIRES]".into());
    }
    let principal = Principal { kind: PrincipalKind::ApiKey, name: name.to_owned(), grants };
    Ok((hash, ApiKey { principal: Arc::new(principal), expires_s }))
}

fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with('#')
        && !name.contains(|c: char| c.is_whitespace() || c.is_control());
    if !is_allowed {
        return Err(format!("the name is not one word of at most {NAME_BYTES_MAX} bytes"));
    }
    // Names are in log lines.
    if name.starts_with(KEY_PREFIX) {
        return Err("the name has the form of a key".into());
    }
    Ok(())
}

/// Grants between commas, at least one.
pub(crate) fn read_grants(text: &str) -> Result<Grants, String> {
    let mut grants = Grants::default();
    for (number, grant) in (1..).zip(text.split(',')) {
        grants.add_text(grant).map_err(|_quoted| {
            format!("grant {number} is not NAMESPACE:ROLE with the role read, write, worker or admin")
        })?;
    }
    Ok(grants)
}

fn read_hash(text: &str) -> Option<Hash> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = Hash::default();
    for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(hash)
}

fn read_time(text: &str) -> Result<f64, String> {
    let time = DateTime::parse_from_rfc3339(text)
        .map_err(|_unparsed| "the fourth word is not a time such as 2027-01-31T00:00:00Z")?;
    // Exact for thousands of years.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are exact until the year 280,000")]
    Ok(time.timestamp_millis() as f64 / 1_000.0)
}

fn hash(key: &[u8]) -> Hash {
    let mut hash = Hash::default();
    hash.copy_from_slice(digest(&SHA256, key).as_ref());
    hash
}

/// A key that was just made.
pub struct NewApiKey {
    /// The key, which nothing else remembers.
    pub key: String,
    /// Its line for the file.
    pub line: String,
}

impl fmt::Debug for NewApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NewApiKey(hidden)")
    }
}

impl NewApiKey {
    /// Makes a key. Grants are texts such as `orders:write`.
    ///
    /// # Errors
    /// The name or a grant is not allowed, or the system has no randomness.
    pub fn generate(name: &str, grants: &[String], expires: Option<DateTime<Utc>>) -> Result<Self, String> {
        let mut random = [0; KEY_RANDOM_BYTES];
        SystemRandom::new().fill(&mut random).map_err(|_unspecified| "the system gives no random bytes")?;
        let key = format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        let hexadecimal: String = hash(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut line = format!("{name} {} {hexadecimal}", grants.join(","));
        if let Some(expires) = expires {
            line.push(' ');
            // Its Debug is RFC 3339.
            line.push_str(&format!("{:?}", expires.trunc_subsecs(0)));
        }
        check_name(name)?;
        read_grants(&grants.join(","))?;
        // Such as a space in a namespace.
        match ApiKeys::parse(&line) {
            Ok(keys) if keys.len() == 1 => Ok(Self { key, line }),
            Ok(_) => Err("the name begins a comment".into()),
            Err(fault) => Err(fault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Roles};

    const NOW_S: f64 = 1_767_225_600.0;

    fn made(name: &str, grants: &[&str]) -> NewApiKey {
        let grants: Vec<String> = grants.iter().map(|grant| (*grant).to_owned()).collect();
        NewApiKey::generate(name, &grants, None).expect("it is made")
    }

    #[test]
    fn a_key_that_was_made_is_identified_by_its_line() {
        let (orders, ops) =
            (made("orders", &["orders:worker", "orders:read"]), made("ops", &["temporal-system:admin"]));
        assert!(orders.key.starts_with("elk_") && orders.key.len() == 47, "{}", orders.key.len());
        let file = format!("# keys\n\n{}\n  {}  \n", orders.line, ops.line);
        let keys = ApiKeys::parse(&file).expect("the file is right");
        assert_eq!(keys.len(), 2);
        let principal = keys.identify(&orders.key, NOW_S).expect("it is known");
        assert_eq!((principal.kind, principal.name.as_str()), (PrincipalKind::ApiKey, "orders"));
        assert!(principal.may(Access::WORK, "orders") && principal.may(Access::READ, "orders"));
        assert!(!principal.may(Access::WRITE, "orders") && !principal.may(Access::READ, "other"));
        assert!(keys.identify(&ops.key, NOW_S).is_ok_and(|ops| ops.may(Access::SYSTEM_ADMIN, "")));
        let other = made("orders", &["orders:read"]);
        let unknown = keys.identify(&other.key, NOW_S).expect_err("no line has it");
        assert_eq!(unknown, Unidentified::denied(DenialClass::UnknownKey, "the API key is unknown"));
        assert!(keys.identify(&orders.key[..46], NOW_S).is_err());
        assert!(keys.identify(&format!("{}A", orders.key), NOW_S).is_err());
    }

    #[test]
    fn a_key_is_denied_from_the_moment_when_it_expires() {
        let expires = DateTime::from_timestamp(NOW_S as i64, 0).expect("a time");
        let made = NewApiKey::generate("late", &["a:read".into()], Some(expires)).expect("it is made");
        assert!(made.line.ends_with(" 2026-01-01T00:00:00Z"), "its time ends the line");
        let keys = ApiKeys::parse(&made.line).expect("the line is right");
        assert!(keys.identify(&made.key, NOW_S - 0.001).is_ok());
        for now_s in [NOW_S, NOW_S + 60.0] {
            let denied = keys.identify(&made.key, now_s).expect_err("it has expired");
            assert_eq!(denied, Unidentified::denied(DenialClass::Expired, "the API key of late has expired"));
        }
    }

    #[test]
    fn two_keys_may_have_one_name_so_that_one_replaces_the_other() {
        let (old, new) = (made("orders", &["orders:read"]), made("orders", &["orders:write"]));
        let keys = ApiKeys::parse(&format!("{}\n{}", old.line, new.line)).expect("the file is right");
        let granted = |made: &NewApiKey| keys.identify(&made.key, NOW_S).expect("it is known").grants.clone();
        assert!(
            !granted(&old).allow(Access::WRITE, "orders") && granted(&new).allow(Access::WRITE, "orders")
        );
    }

    #[test]
    fn a_fault_names_its_line_and_repeats_nothing_of_it() {
        let hash = "ab".repeat(32);
        let key = "elk_canarycanarycanarycanary";
        for (line, fault) in [
            ("orders".to_owned(), "a line is NAME"),
            (format!("orders {hash}"), "a line is NAME"),
            (format!("{key} orders:read {hash}"), "the name has the form of a key"),
            (format!("orders {key} {hash}"), "grant 1 is not"),
            (format!("orders orders:read,{key} {hash}"), "grant 2 is not"),
            (format!("orders orders:owner {hash}"), "grant 1 is not"),
            (format!("orders orders:read, {hash}"), "grant 2 is not"),
            (format!("orders orders:read {key}"), "the third word is not 64"),
            (format!("orders orders:read {hash}a"), "the third word is not 64"),
            (format!("orders orders:read {}é", "a".repeat(62)), "the third word is not 64"),
            (format!("orders orders:read {hash} {key}"), "the fourth word is not a time"),
            (format!("orders orders:read {hash} 2027-01-31"), "the fourth word is not a time"),
            (format!("orders orders:read {hash} 2027-01-31T00:00:00Z {key}"), "a fifth word"),
        ] {
            let told = ApiKeys::parse(&format!("# first\n{line}")).err().expect(&line);
            assert!(told.starts_with("line 2: ") && told.contains(fault), "{line}: {told}");
            assert!(!told.contains("canary") && !told.contains("abab"), "{told}");
        }
        let twice = ApiKeys::parse(&format!("a a:read {hash}\nb b:read {}", hash.to_uppercase()));
        assert_eq!(twice.err().as_deref(), Some("line 2: an earlier line has the same key"));
    }

    #[test]
    fn what_no_line_could_say_is_not_made() {
        for (name, grant) in [
            ("", "a:read"),
            ("two words", "a:read"),
            ("#comment", "a:read"),
            ("elk_name", "a:read"),
            ("orders", "a"),
            ("orders", "a:owner"),
            ("orders", "a b:read"),
            ("orders", "a:read\nroot temporal-system:admin"),
        ] {
            assert!(NewApiKey::generate(name, &[grant.into()], None).is_err(), "{name:?} {grant:?}");
        }
        assert!(NewApiKey::generate("orders", &[], None).is_err());
        let made = made("orders", &["a:read"]);
        assert!(!format!("{made:?}").contains(&made.key[4..]));
        assert!(!made.line.contains(&made.key));
        assert!(Roles::named("read").is_some());
    }
}
