//! Tokens that only this server can make: task tokens for workers, page tokens for readers.
//!
//! Layout: version (1 byte), HMAC-SHA256 (32 bytes), body. The HMAC covers the purpose, the context and the body. So no token
//! passes for one of another purpose, and no page token for one of another workflow.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use everlog_engine::machine::{activity_attempt, workflow_task};
use hmac::{Hmac, Mac};
use prost::Message;
use sha2::Sha256;
use tonic::Status;

use crate::codec::status::invalid;

const VERSION: u8 = 1;
const TAG_BYTES: usize = 32;
/// Bytes of a mark: two keys with the same mark are practically impossible.
const MARK_BYTES: usize = 8;
/// The shortest permitted key, in bytes: the length of the HMAC.
pub const KEY_BYTES_MIN: usize = 32;

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no key to sign with.
    #[error("there is no token key; at least one is needed")]
    Missing,
    /// A key is too short, and could be guessed.
    #[error("token key {index} has {bytes} bytes; at least {KEY_BYTES_MIN} are needed")]
    Short {
        /// Its index in the list, from 0.
        index: usize,
        /// Its length in bytes.
        bytes: usize,
    },
}

/// Signs and checks tokens. Clones share the keys.
#[derive(Clone)]
pub struct TokenSigner {
    keys: Arc<ArcSwap<Vec<Key>>>,
}

/// A key and its mark.
#[derive(Clone)]
struct Key {
    mac: Hmac<Sha256>,
    mark: [u8; MARK_BYTES],
}

/// The task that an activity's task token names.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityTask {
    /// The namespace's UUID.
    pub namespace_id: String,
    /// The Workflow Id.
    pub workflow_id: String,
    /// The run.
    pub run_id: String,
    /// The attempt.
    pub target: activity_attempt::Target,
}

/// The purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The task token of a worker.
    Task = 1,
    /// A page of a history.
    History = 2,
    /// A page of a history, newest first.
    Reverse = 3,
    /// A page of namespaces.
    Namespaces = 4,
}

impl TokenSigner {
    /// The first key signs, and all keys check. During a rotation there are two.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn new(keys: &[Vec<u8>]) -> Result<Self, KeyError> {
        if keys.is_empty() {
            return Err(KeyError::Missing);
        }
        if let Some((index, key)) = keys.iter().enumerate().find(|(_, key)| key.len() < KEY_BYTES_MIN) {
            return Err(KeyError::Short { index, bytes: key.len() });
        }
        let token_signer = Self { keys: Arc::default() };
        keys.iter().for_each(|key| token_signer.accept(key));
        Ok(token_signer)
    }

    /// Adds a key that checks. A known key is not added again, because each key makes the check of a forged token longer.
    pub fn accept(&self, key: &[u8]) {
        let key = Key::new(key);
        self.keys.rcu(|keys| {
            let is_known = keys.iter().any(|known| known.mark == key.mark);
            keys.iter().cloned().chain((!is_known).then(|| key.clone())).collect::<Vec<_>>()
        });
    }

    /// The marks of the keys, that of the signing key first. A mark reveals nothing of its key.
    pub fn marks(&self) -> Vec<String> {
        let hexadecimal = |key: &Key| key.mark.iter().map(|byte| format!("{byte:02x}")).collect();
        self.keys.load().iter().map(hexadecimal).collect()
    }

    /// The activity task that a token names; none if it names another task, or was not signed here.
    pub fn activity(&self, token: &Bytes) -> Option<ActivityTask> {
        let TaskToken { namespace_id, workflow_id, run_id, subject } =
            self.open(Purpose::Task, &[], token)?;
        match subject {
            Some(Subject::Activity(target)) => {
                Some(ActivityTask { namespace_id, workflow_id, run_id, target })
            }
            Some(Subject::Workflow(_) | Subject::Query(_)) | None => None,
        }
    }

    pub(crate) fn seal(&self, purpose: Purpose, context: &[&str], body: &impl Message) -> Bytes {
        let mut token = Vec::with_capacity(1 + TAG_BYTES + body.encoded_len());
        token.push(VERSION);
        token.extend_from_slice(&[0; TAG_BYTES]);
        body.encode_raw(&mut token);
        let keys = self.keys.load();
        let key = keys.first().expect("a signer has at least one key");
        let tag = authenticate(&key.mac, purpose, context, &token[1 + TAG_BYTES..]).finalize().into_bytes();
        token[1..=TAG_BYTES].copy_from_slice(&tag);
        token.into()
    }

    /// The body of a token that was signed for this purpose and context; none if it was not.
    pub(crate) fn open<B: Message + Default>(
        &self,
        purpose: Purpose,
        context: &[&str],
        token: &Bytes,
    ) -> Option<B> {
        if token.len() <= TAG_BYTES || token[0] != VERSION {
            return None;
        }
        let (tag, body) = (&token[1..=TAG_BYTES], token.slice(1 + TAG_BYTES..));
        let made_here = self
            .keys
            .load()
            .iter()
            .any(|key| authenticate(&key.mac, purpose, context, &body).verify_slice(tag).is_ok());
        if made_here { B::decode(body).ok() } else { None }
    }
}

impl Key {
    fn new(key: &[u8]) -> Self {
        let mac: Hmac<Sha256> = Hmac::new_from_slice(key).expect("HMAC takes keys of every length");
        // No token begins with this: the first byte is its version.
        let tag = mac.clone().chain_update(b"mark").finalize().into_bytes();
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(&tag[..MARK_BYTES]);
        Self { mac, mark }
    }
}

fn authenticate(key: &Hmac<Sha256>, purpose: Purpose, context: &[&str], body: &[u8]) -> Hmac<Sha256> {
    let mut mac = key.clone();
    mac.update(&[VERSION, purpose as u8]);
    for part in context {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    mac.update(body);
    mac
}

/// The body of a task token.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskToken {
    /// The namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
    /// The Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// The run.
    #[prost(string, tag = "3")]
    pub run_id: String,
    /// The task.
    #[prost(oneof = "Subject", tags = "4, 5, 6")]
    pub subject: Option<Subject>,
}

/// The task of the run.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Subject {
    /// A workflow task.
    #[prost(message, tag = "4")]
    Workflow(workflow_task::Token),
    /// An attempt at an activity.
    #[prost(message, tag = "5")]
    Activity(activity_attempt::Target),
    /// A query that is not part of a workflow task, by its id.
    #[prost(string, tag = "6")]
    Query(String),
}

impl TaskToken {
    pub(crate) fn seal(&self, token_signer: &TokenSigner) -> Bytes {
        token_signer.seal(Purpose::Task, &[], self)
    }

    /// Reads and checks a task token.
    pub(crate) fn open(token_signer: &TokenSigner, token: &Bytes) -> Result<Self, Status> {
        if token.is_empty() {
            return Err(invalid("Task token not set on request."));
        }
        token_signer.open(Purpose::Task, &[], token).ok_or_else(unreadable)
    }
}

/// The refusal of a token that cannot be read, or is not one for this RPC.
pub(crate) fn unreadable() -> Status {
    invalid("Error deserializing task token.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_signer(byte: u8) -> TokenSigner {
        TokenSigner::new(&[vec![byte; 32]]).expect("long enough")
    }

    fn token() -> TaskToken {
        TaskToken {
            namespace_id: "5bbe3c42-7bc0-4a94-a8a9-1b8e3a6ef5b1".into(),
            workflow_id: "order-1".into(),
            run_id: "0c1b2f6f-3fc4-4d6a-9f4b-6c9a63f4c9d2".into(),
            subject: Some(Subject::Workflow(workflow_task::Token {
                scheduled_event_id: 5,
                attempt: 2,
                claim: 77,
            })),
        }
    }

    #[test]
    fn a_token_reads_as_it_was_made() {
        let sealed = token().seal(&token_signer(1));
        assert_eq!(TaskToken::open(&token_signer(1), &sealed).expect("made here"), token());
    }

    #[test]
    fn a_token_of_an_activity_names_its_attempt_and_no_other_token_does() {
        let target =
            activity_attempt::Target { activity_id: "charge".into(), ..activity_attempt::Target::default() };
        let sealed =
            TaskToken { subject: Some(Subject::Activity(target.clone())), ..token() }.seal(&token_signer(1));
        let task = token_signer(1).activity(&sealed).expect("made here");
        assert_eq!((task.workflow_id.as_str(), task.target), ("order-1", target));
        assert_eq!(token_signer(2).activity(&sealed), None);
        assert_eq!(
            token_signer(1).activity(&token().seal(&token_signer(1))),
            None,
            "it is a workflow task's"
        );
        assert_eq!(token_signer(1).activity(&Bytes::new()), None);
    }

    #[test]
    fn a_flipped_bit_never_passes() {
        let sealed = token().seal(&token_signer(1));
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.to_vec();
            forged[bit / 8] ^= 1 << (bit % 8);
            let status = TaskToken::open(&token_signer(1), &forged.into()).expect_err("forged");
            assert_eq!(status.message(), "Error deserializing task token.", "bit {bit}");
        }
    }

    #[test]
    fn a_truncated_lengthened_or_foreign_token_never_passes() {
        let sealed = token().seal(&token_signer(1));
        for bytes in 1..sealed.len() {
            assert!(TaskToken::open(&token_signer(1), &sealed.slice(..bytes)).is_err(), "{bytes} bytes");
        }
        let longer = Bytes::from([sealed.as_ref(), b"\x0a\x01x"].concat());
        assert!(TaskToken::open(&token_signer(1), &longer).is_err());
        assert!(TaskToken::open(&token_signer(2), &sealed).is_err());
        let unsigned = Bytes::from(token().encode_to_vec());
        assert!(TaskToken::open(&token_signer(1), &unsigned).is_err());
    }

    #[test]
    fn an_empty_token_has_a_message_of_its_own() {
        let status = TaskToken::open(&token_signer(1), &Bytes::new()).expect_err("empty");
        assert_eq!(status.message(), "Task token not set on request.");
    }

    #[test]
    fn both_keys_of_a_rotation_are_taken_and_the_first_makes_tokens() {
        let rotating = TokenSigner::new(&[vec![2; 32], vec![1; 32]]).expect("long enough");
        assert!(TaskToken::open(&rotating, &token().seal(&token_signer(1))).is_ok());
        assert!(TaskToken::open(&token_signer(2), &token().seal(&rotating)).is_ok());
        assert!(TaskToken::open(&token_signer(1), &token().seal(&rotating)).is_err());
    }

    #[test]
    fn a_key_that_is_accepted_already_is_not_accepted_once_more() {
        let token_signer = TokenSigner::new(&[vec![2; 32], vec![1; 32], vec![2; 32]]).expect("long enough");
        let marks = token_signer.marks();
        assert_eq!(marks.len(), 2);
        token_signer.accept(&[1; 32]);
        assert_eq!(token_signer.marks(), marks);
        token_signer.accept(&[3; 32]);
        assert_eq!(
            (token_signer.marks().len(), &token_signer.marks()[..2]),
            (3, &marks[..]),
            "the first still signs"
        );
        assert!(marks.iter().all(|mark| mark.len() == 2 * MARK_BYTES) && marks[0] != marks[1]);
    }

    #[test]
    fn a_token_is_bound_to_its_purpose_and_context() {
        let token_signer = token_signer(1);
        let sealed = token_signer.seal(Purpose::History, &["ns", "order-1"], &token());
        let open =
            |purpose, context: &[&str]| token_signer.open::<TaskToken>(purpose, context, &sealed).is_some();
        assert!(open(Purpose::History, &["ns", "order-1"]));
        assert!(!open(Purpose::Reverse, &["ns", "order-1"]));
        assert!(!open(Purpose::History, &["ns", "order-2"]));
        assert!(!open(Purpose::History, &["nso", "rder-1"]));
        assert!(!open(Purpose::Task, &[]));
    }

    #[test]
    fn a_short_key_is_refused() {
        assert_eq!(TokenSigner::new(&[]).err(), Some(KeyError::Missing));
        assert_eq!(
            TokenSigner::new(&[vec![1; 32], vec![1; 31]]).err(),
            Some(KeyError::Short { index: 1, bytes: 31 })
        );
    }
}
