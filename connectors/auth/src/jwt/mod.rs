//! JWTs: a signature by a key of a known issuer, times, issuer, audience, subject, and the grants of the claims.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation};
use serde_json::{Map, Value};

use crate::authenticator::AuthSettings;
use crate::clock::Clocks;
use crate::counts::AuthCounts;
use crate::error::{DenialClass, OpenError, Unidentified};
use crate::jwks::verified::{self, Validity, VerifiedToken};
use crate::jwks::{Jwks, Key};
use crate::permissions::PermissionFormat;
use crate::principal::{Principal, PrincipalKind};
use crate::ring_provider::{self, ALGORITHMS};
use crate::rules::GrantRules;

/// A longer subject is refused: it is in log lines.
const SUBJECT_BYTES_MAX: usize = 1_024;

type Claims = Map<String, Value>;

/// Judges tokens.
pub(crate) struct Jwts {
    jwks: Jwks,
    clock: Arc<dyn Clocks>,
    counts: Arc<AuthCounts>,
    wanted: Wanted,
    permissions_claim: String,
    permission_format: PermissionFormat,
}

/// What the claims of a token must say.
struct Wanted {
    issuers: Vec<String>,
    audience: Option<String>,
    require_expiry: bool,
    leeway_s: f64,
}

impl Jwts {
    pub(crate) fn open(
        settings: &AuthSettings,
        clock: Arc<dyn Clocks>,
        counts: Arc<AuthCounts>,
    ) -> Result<Self, OpenError> {
        ring_provider::install();
        let jwks = Jwks::open(
            &settings.jwks,
            settings.jwks_allow_http,
            settings.jwks_ca_file.as_deref(),
            settings.jwks_refresh_every,
            clock.clone(),
            counts.clone(),
        )?;
        let wanted = Wanted {
            issuers: settings.issuers.clone(),
            audience: settings.audience.clone(),
            require_expiry: settings.require_expiry,
            leeway_s: settings.leeway.as_secs_f64(),
        };
        let permission_format = PermissionFormat::read(settings.permissions_regex.as_deref())?;
        let permissions_claim = settings.permissions_claim.clone();
        Ok(Self { jwks, clock, counts, wanted, permissions_claim, permission_format })
    }

    /// Keeps the keys fresh. It does not end.
    pub(crate) async fn keep_fresh(&self) {
        self.jwks.keep_fresh().await;
    }

    /// Whose token it is.
    pub(crate) async fn identify(
        &self,
        token: &str,
        rules: Option<Arc<GrantRules>>,
    ) -> Result<Arc<Principal>, Unidentified> {
        let hash = verified::hash(token);
        let keys = self.jwks.present();
        let now_s = self.clock.wall_s();
        if let Some(known) = keys.and_then(|keys| keys.verified.find(&hash, rules.as_ref())) {
            self.wanted.judge_times(known.validity, now_s)?;
            return Ok(known.principal);
        }
        let (algorithm, id) = header(token)?;
        let keys = self.jwks.with_key(&id).await?;
        let claims = verify(token, algorithm, keys.find(&id).unwrap_or_default())?;
        // Keys may have been waited for.
        let now_s = self.clock.wall_s();
        let validity = self.wanted.validity(&claims)?;
        self.wanted.judge_times(validity, now_s)?;
        self.wanted.judge(&claims)?;
        let principal = Arc::new(self.principal(&claims, rules.as_deref())?);
        keys.verified.remember(hash, VerifiedToken { principal: principal.clone(), validity, rules }, now_s);
        Ok(principal)
    }

    fn principal(&self, claims: &Claims, rules: Option<&GrantRules>) -> Result<Principal, Unidentified> {
        let subject = claims.get("sub").and_then(Value::as_str).filter(|subject| !subject.is_empty());
        let name = subject.ok_or_else(|| claim("the token has no text as subject"))?;
        if name.len() > SUBJECT_BYTES_MAX {
            return Err(claim("the token's subject is longer than 1,024 bytes"));
        }
        let grants = match claims.get(&self.permissions_claim) {
            Some(permissions) => self.permission_format.grants(permissions, &self.counts.permissions_skipped),
            None => rules.and_then(|rules| rules.of_claims(claims)).unwrap_or_default(),
        };
        Ok(Principal { kind: PrincipalKind::Jwt, name: name.to_owned(), grants })
    }
}

fn claim(reason: &str) -> Unidentified {
    Unidentified::denied(DenialClass::Claims, reason)
}

fn malformed(reason: &str) -> Unidentified {
    Unidentified::denied(DenialClass::Token, reason)
}

/// The algorithm and the key's id. What else is there, such as `jku`, `x5u` and `jwk`, is not looked at.
fn header(token: &str) -> Result<(Algorithm, String), Unidentified> {
    // Algorithms that the crate does not know are an error here, `none` among them.
    let header = jsonwebtoken::decode_header(token).map_err(|_quoted| {
        malformed("the token's header cannot be read, or its algorithm is not accepted")
    })?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(malformed("the token's algorithm is not accepted"));
    }
    match header.kid {
        Some(id) if !id.is_empty() => Ok((header.alg, id)),
        _ => Err(malformed("the token's header has no id of a key")),
    }
}

/// The claims, if one of the keys has signed them.
fn verify(token: &str, algorithm: Algorithm, keys: &[Key]) -> Result<Claims, Unidentified> {
    let mut validation = Validation::new(algorithm);
    // All claims are judged here, by a clock that tests move.
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let mut refusal = malformed("the token's key is not for the token's algorithm");
    for key in keys.iter().filter(|key| key.algorithms.contains(&algorithm)) {
        match jsonwebtoken::decode::<Claims>(token, &key.decoding, &validation) {
            Ok(decoded) => return Ok(decoded.claims),
            Err(error) => {
                refusal = match error.kind() {
                    ErrorKind::InvalidSignature => {
                        Unidentified::denied(DenialClass::Signature, "the token's signature is wrong")
                    }
                    _ => malformed("the token cannot be read"),
                };
            }
        }
    }
    Err(refusal)
}

impl Wanted {
    fn validity(&self, claims: &Claims) -> Result<Validity, Unidentified> {
        let time = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(_) => Err(claim("a time in the token is no number")),
        };
        let validity = Validity { not_before_s: time("nbf")?, expires_s: time("exp")? };
        if validity.expires_s.is_none() && self.require_expiry {
            return Err(claim("the token has no expiry"));
        }
        Ok(validity)
    }

    fn judge_times(&self, validity: Validity, now_s: f64) -> Result<(), Unidentified> {
        if validity.expires_s.is_some_and(|expires_s| expires_s + self.leeway_s <= now_s) {
            return Err(Unidentified::denied(DenialClass::Expired, "the token has expired"));
        }
        if validity.not_before_s.is_some_and(|not_before_s| not_before_s - self.leeway_s > now_s) {
            return Err(claim("the token is not valid yet"));
        }
        Ok(())
    }

    fn judge(&self, claims: &Claims) -> Result<(), Unidentified> {
        let issuer = claims.get("iss").and_then(Value::as_str);
        let is_known = issuer.is_some_and(|issuer| self.issuers.iter().any(|known| known == issuer));
        if !self.issuers.is_empty() && !is_known {
            return Err(claim("the token's issuer is not one of auth.issuers"));
        }
        let Some(audience) = &self.audience else { return Ok(()) };
        let is_for_us = match claims.get("aud") {
            Some(Value::String(one)) => one == audience,
            Some(Value::Array(several)) => several.iter().any(|one| one.as_str() == Some(audience)),
            _ => false,
        };
        if is_for_us { Ok(()) } else { Err(claim("the token is not for auth.audience")) }
    }
}
