//! The keys of token issuers, as a JWKS has them (RFC 7517), and the tokens that were verified with them.

use std::collections::HashMap;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use serde::Deserialize;
use serde_json::Value;

use crate::jwks::verified::VerifiedTokens;
use crate::ring_provider::ALGORITHMS;

/// The range of what `ring` verifies with.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1_024;

/// A key that verifies signatures.
#[derive(Debug)]
pub(crate) struct Key {
    /// What it is used with; never empty.
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) decoding: DecodingKey,
    jwk: Jwk,
}

/// The keys of all sources, by their ids. One id may have several keys, if several issuers chose the same.
#[derive(Default)]
pub(crate) struct KeySet {
    keys: HashMap<String, Vec<Key>>,
    /// Forgotten with the set: what a removed key has signed is not accepted any more.
    pub(crate) verified: VerifiedTokens,
}

impl KeySet {
    /// Adds the usable keys of a JWKS, and says how many there are. Keys of unknown kinds, for other uses or without an id
    /// are skipped.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<usize, String> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let document: Document =
            serde_json::from_slice(bytes).map_err(|_quoted| "the answer is no JSON with a list of keys")?;
        let mut added = 0;
        for (id, key) in document.keys.into_iter().filter_map(read) {
            let keys = self.keys.entry(id).or_default();
            if !keys.iter().any(|known| known.jwk == key.jwk) {
                keys.push(key);
            }
            added += 1;
        }
        Ok(added)
    }

    /// The keys of an id.
    pub(crate) fn find(&self, id: &str) -> Option<&[Key]> {
        self.keys.get(id).map(Vec::as_slice)
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }

    /// True if both have the same keys.
    pub(crate) fn has_the_keys_of(&self, other: &Self) -> bool {
        let has =
            |id: &String, key: &Key| other.find(id).is_some_and(|keys| keys.iter().any(|k| k.jwk == key.jwk));
        self.len() == other.len() && self.keys.iter().all(|(id, keys)| keys.iter().all(|key| has(id, key)))
    }
}

fn read(value: Value) -> Option<(String, Key)> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let common = &jwk.common;
    let is_for_signatures =
        common.public_key_use.as_ref().is_none_or(|r#use| *r#use == PublicKeyUse::Signature)
            && common
                .key_operations
                .as_ref()
                .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    if !is_for_signatures {
        return None;
    }
    let id = common.key_id.clone().filter(|id| !id.is_empty())?;
    let (decoding, can): (_, fn(Algorithm) -> bool) = match &jwk.algorithm {
        AlgorithmParameters::RSA(key) => {
            let decoding = DecodingKey::from_rsa_components(&key.n, &key.e).ok()?;
            if !has_usable_length(&decoding) {
                return None;
            }
            (decoding, |algorithm| !matches!(algorithm, Algorithm::ES256 | Algorithm::ES384))
        }
        AlgorithmParameters::EllipticCurve(key) => {
            let decoding = DecodingKey::from_ec_components(&key.x, &key.y).ok()?;
            match key.curve {
                EllipticCurve::P256 => (decoding, |algorithm| algorithm == Algorithm::ES256),
                EllipticCurve::P384 => (decoding, |algorithm| algorithm == Algorithm::ES384),
                _ => return None,
            }
        }
        _ => return None,
    };
    let is_wanted = |algorithm: &Algorithm| match common.key_algorithm {
        None => true,
        Some(own) => own == KeyAlgorithm::from(*algorithm),
    };
    let algorithms: Vec<_> = ALGORITHMS.into_iter().filter(|a| can(*a)).filter(is_wanted).collect();
    (!algorithms.is_empty()).then_some((id, Key { algorithms, decoding, jwk }))
}

fn has_usable_length(key: &DecodingKey) -> bool {
    let DecodingKeyKind::RsaModulusExponent { n, .. } = key.kind() else { return false };
    let zeros = n.iter().take_while(|byte| **byte == 0).count();
    RSA_BYTES.contains(&(n.len() - zeros))
}
