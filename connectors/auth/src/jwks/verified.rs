//! Tokens that were verified: a signature is checked once, times at each call.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};

use crate::principal::Principal;
use crate::rules::GrantRules;

/// Tokens that are remembered. Beyond it those that have expired are forgotten, and if none has, all are.
const TOKENS_MAX: usize = 10_000;

/// The SHA-256 of a token: the token itself is not kept.
pub(crate) type TokenHash = [u8; 32];

/// Times between which a token is accepted, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Validity {
    pub(crate) not_before_s: Option<f64>,
    pub(crate) expires_s: Option<f64>,
}

/// A token that was verified.
#[derive(Clone)]
pub(crate) struct VerifiedToken {
    pub(crate) principal: Arc<Principal>,
    pub(crate) validity: Validity,
    /// The rules that the grants came from, if there were any.
    pub(crate) rules: Option<Arc<GrantRules>>,
}

/// Tokens that were verified with the keys of a set.
#[derive(Default)]
pub(crate) struct VerifiedTokens(Mutex<HashMap<TokenHash, VerifiedToken>>);

pub(crate) fn hash(token: &str) -> TokenHash {
    let mut hash = TokenHash::default();
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

impl VerifiedTokens {
    /// A token that was verified while there were these rules.
    pub(crate) fn find(&self, hash: &TokenHash, rules: Option<&Arc<GrantRules>>) -> Option<VerifiedToken> {
        let tokens = self.0.lock();
        let found = tokens.get(hash)?;
        let is_current = match (&found.rules, rules) {
            (None, None) => true,
            (Some(then), Some(now)) => Arc::ptr_eq(then, now),
            _ => false,
        };
        is_current.then(|| found.clone())
    }

    pub(crate) fn remember(&self, hash: TokenHash, token: VerifiedToken, now_s: f64) {
        let mut tokens = self.0.lock();
        if tokens.len() >= TOKENS_MAX {
            tokens.retain(|_, token| token.validity.expires_s.is_none_or(|expires_s| expires_s > now_s));
            if tokens.len() >= TOKENS_MAX {
                tokens.clear();
            }
        }
        tokens.insert(hash, token);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grants, PrincipalKind};

    fn token(expires_s: f64) -> VerifiedToken {
        let principal =
            Principal { kind: PrincipalKind::Jwt, name: "orders".into(), grants: Grants::default() };
        let validity = Validity { not_before_s: None, expires_s: Some(expires_s) };
        VerifiedToken { principal: Arc::new(principal), validity, rules: None }
    }

    #[test]
    fn no_more_than_ten_thousand_are_remembered_and_expired_ones_go_first() {
        let tokens = VerifiedTokens::default();
        for number in 0..TOKENS_MAX {
            let expires_s = if number < 4_000 { 10.0 } else { 1_000.0 };
            tokens.remember(hash(&number.to_string()), token(expires_s), 0.0);
        }
        assert_eq!(tokens.len(), TOKENS_MAX);
        tokens.remember(hash("one more"), token(1_000.0), 10.0);
        assert_eq!(tokens.len(), TOKENS_MAX - 4_000 + 1);
        assert!(tokens.find(&hash("3999"), None).is_none() && tokens.find(&hash("4000"), None).is_some());
        for number in TOKENS_MAX..2 * TOKENS_MAX {
            tokens.remember(hash(&number.to_string()), token(1_000.0), 10.0);
            assert!(tokens.len() <= TOKENS_MAX);
        }
        assert!(tokens.find(&hash(&(2 * TOKENS_MAX - 1).to_string()), None).is_some());
    }

    #[test]
    fn other_rules_make_it_be_judged_again() {
        let tokens = VerifiedTokens::default();
        let rules = Arc::new(GrantRules::default());
        let by_rules = VerifiedToken { rules: Some(rules.clone()), ..token(10.0) };
        tokens.remember(hash("a"), by_rules, 0.0);
        assert!(tokens.find(&hash("a"), Some(&rules)).is_some());
        assert!(tokens.find(&hash("a"), Some(&Arc::new(GrantRules::default()))).is_none());
        assert!(tokens.find(&hash("a"), None).is_none());
    }
}
