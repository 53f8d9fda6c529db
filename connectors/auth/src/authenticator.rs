//! Who calls: an API key or a JWT in the header `authorization`, otherwise a client certificate. A call has one identity;
//! a second one is not looked at, and never added to the first.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::api_keys::ApiKeys;
use crate::bearer::{self, Bearer};
use crate::certificate::CertificateNames;
use crate::clock::{Clocks, SystemClocks};
use crate::counts::AuthCounts;
use crate::error::{AuthError, DenialClass, OpenError, Unidentified};
use crate::jwks;
use crate::jwt::Jwts;
use crate::permissions::PermissionFormat;
use crate::principal::{Grants, Principal, PrincipalKind};
use crate::rules::GrantRules;
use crate::watched_file::WatchedFile;

/// 2025-01-01 in seconds since 1970, before the first release: an earlier clock is wrong, and says nothing of expiry.
const CLOCK_MIN_S: f64 = 1_735_689_600.0;

/// Where identities come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// The file of API keys.
    pub api_keys_file: Option<PathBuf>,
    /// The file of rules for certificates and for tokens without permissions.
    pub rules_file: Option<PathBuf>,
    /// Sources of the keys of token issuers: `https://...`, `file:...`. Without one, tokens are denied.
    pub jwks: Vec<String>,
    /// Authorities besides those of the system for `https://`.
    pub jwks_ca_file: Option<PathBuf>,
    /// The time between two fetches of the keys.
    pub jwks_refresh_every: Duration,
    /// Whether a source may be `http://...`.
    pub jwks_allow_http: bool,
    /// Issuers whose tokens are accepted; empty = all that the keys have signed.
    pub issuers: Vec<String>,
    /// The audience that a token must have.
    pub audience: Option<String>,
    /// The claim with the grants.
    pub permissions_claim: String,
    /// How its elements are read, instead of `NAMESPACE:ROLE`.
    pub permissions_regex: Option<String>,
    /// Whether a token without expiry is refused.
    pub require_expiry: bool,
    /// By how much clocks may differ.
    pub leeway: Duration,
}

impl Default for AuthSettings {
    fn default() -> Self {
        Self {
            api_keys_file: None,
            rules_file: None,
            jwks: Vec::new(),
            jwks_ca_file: None,
            jwks_refresh_every: Duration::from_secs(900),
            jwks_allow_http: false,
            issuers: Vec::new(),
            audience: None,
            permissions_claim: "permissions".into(),
            permissions_regex: None,
            require_expiry: true,
            leeway: Duration::ZERO,
        }
    }
}

impl AuthSettings {
    /// Checks what can be checked without a file.
    ///
    /// # Errors
    /// A source of keys or the expression is not allowed.
    pub fn check(&self) -> Result<(), OpenError> {
        jwks::check(&self.jwks, self.jwks_allow_http)?;
        PermissionFormat::read(self.permissions_regex.as_deref())?;
        Ok(())
    }
}

/// What a caller shows.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// All values of the header `authorization`.
    pub authorization: &'a [&'a [u8]],
    /// The leaf of the client's certificate as DER. TLS has verified it.
    pub certificate: Option<&'a [u8]>,
}

/// Identifies callers.
pub struct Authenticator {
    clock: Arc<dyn Clocks>,
    api_keys: Option<WatchedFile<ApiKeys>>,
    rules: Option<WatchedFile<GrantRules>>,
    jwts: Option<Jwts>,
    counts: Arc<AuthCounts>,
}

impl Authenticator {
    /// Reads the files. Keys of token issuers are fetched later.
    ///
    /// # Errors
    /// A setting or a file has a fault, which is named.
    pub fn open(settings: &AuthSettings) -> Result<Self, OpenError> {
        Self::with_clock(settings, Arc::new(SystemClocks::new()))
    }

    pub(crate) fn with_clock(settings: &AuthSettings, clock: Arc<dyn Clocks>) -> Result<Self, OpenError> {
        let now = clock.steady();
        let counts = Arc::<AuthCounts>::default();
        let open_keys = |path: &PathBuf| WatchedFile::open("api_keys_file", path, ApiKeys::parse, now);
        let open_rules = |path: &PathBuf| WatchedFile::open("rules_file", path, GrantRules::parse, now);
        let api_keys = settings.api_keys_file.as_ref().map(open_keys).transpose()?;
        let rules = settings.rules_file.as_ref().map(open_rules).transpose()?;
        let jwts = match settings.jwks.as_slice() {
            [] => None,
            _ => Some(Jwts::open(settings, clock.clone(), counts.clone())?),
        };
        let authenticator = Self { clock, api_keys, rules, jwts, counts };
        authenticator.read_files();
        Ok(authenticator)
    }

    /// Its counters.
    pub fn counts(&self) -> &Arc<AuthCounts> {
        &self.counts
    }

    /// Keeps the keys of token issuers fresh. It does not end.
    pub async fn keep_fresh(&self) {
        match &self.jwts {
            Some(jwts) => jwts.keep_fresh().await,
            None => std::future::pending().await,
        }
    }

    /// Who the caller is; none where it shows nothing. A principal may have no grants: no rule or permission is for it.
    ///
    /// # Errors
    /// What it shows is not accepted, or cannot be judged now.
    pub async fn identify(&self, credentials: Credentials<'_>) -> Result<Option<Arc<Principal>>, AuthError> {
        let identified = self.principal(credentials).await;
        match &identified {
            Ok(Some(principal)) => self.counts.count_identified(principal.kind),
            Ok(None) => {}
            Err(refusal) => self.counts.count_refused(refusal),
        }
        Ok(identified?)
    }

    async fn principal(&self, credentials: Credentials<'_>) -> Result<Option<Arc<Principal>>, Unidentified> {
        let bearer = bearer::read(credentials.authorization)?;
        if bearer.is_some() && self.clock.wall_s() < CLOCK_MIN_S {
            return Err(Unidentified::Unavailable("the system's clock is before 2025".into()));
        }
        let (api_keys, rules) = self.read_files();
        match (bearer, credentials.certificate) {
            (Some(Bearer::ApiKey(key)), _) => {
                let unknown = || Unidentified::denied(DenialClass::UnknownKey, "there are no API keys");
                api_keys.ok_or_else(unknown)?.identify(key, self.clock.wall_s()).map(Some)
            }
            (Some(Bearer::Jwt(token)), _) => {
                let unknown = || Unidentified::denied(DenialClass::Token, "there are no issuers of tokens");
                self.jwts.as_ref().ok_or_else(unknown)?.identify(token, rules).await.map(Some)
            }
            (None, Some(der)) => of_certificate(der, rules.as_deref()).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// What the files say now.
    fn read_files(&self) -> (Option<Arc<ApiKeys>>, Option<Arc<GrantRules>>) {
        let now = self.clock.steady();
        let api_keys = self.api_keys.as_ref().map(|file| file.content(now));
        let rules = self.rules.as_ref().map(|file| file.content(now));
        let show = |counter: &AtomicU64, length: Option<usize>| {
            counter.store(length.unwrap_or_default() as u64, Ordering::Relaxed);
        };
        show(&self.counts.api_keys, api_keys.as_ref().map(|keys| keys.len()));
        show(&self.counts.rules, rules.as_ref().map(|rules| rules.len()));
        (api_keys, rules)
    }
}

fn of_certificate(der: &[u8], rules: Option<&GrantRules>) -> Result<Arc<Principal>, Unidentified> {
    let names = CertificateNames::read(der)?;
    let known = rules.and_then(|rules| rules.of_certificate(&names));
    let (name, grants) = known.unwrap_or_else(|| (names.any(), Grants::default()));
    Ok(Arc::new(Principal { kind: PrincipalKind::Certificate, name, grants }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::testing::TestClocks;
    use crate::{Access, NewApiKey};

    #[tokio::test]
    async fn a_key_is_identified_until_it_is_taken_out_of_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys");
        let made = NewApiKey::generate("orders", &["orders:write".into()], None).expect("it is made");
        std::fs::write(&path, &made.line).expect("it is written");
        let clock = Arc::new(TestClocks::new());
        let settings = AuthSettings { api_keys_file: Some(path.clone()), ..AuthSettings::default() };
        let authenticator = Authenticator::with_clock(&settings, clock.clone()).expect("it opens");
        let header = format!("Bearer {}", made.key);
        let values = [header.as_bytes()];
        let both = Credentials { authorization: &values, certificate: Some(b"never looked at") };
        let principal = authenticator.identify(both).await.expect("it is accepted").expect("it is known");
        assert_eq!((principal.kind, principal.name.as_str()), (PrincipalKind::ApiKey, "orders"));
        assert_eq!(authenticator.identify(Credentials::default()).await, Ok(None));

        std::fs::write(&path, "# none").expect("it is written");
        assert!(authenticator.identify(both).await.is_ok());
        clock.advance(Duration::from_secs(1));
        let denied =
            authenticator.identify(both).await.expect_err("a certificate does not stand in for a key");
        assert_eq!(denied, AuthError::Denied("the API key is unknown".into()));
        assert_eq!(authenticator.counts().denied(DenialClass::UnknownKey), 1);
    }

    #[tokio::test]
    async fn a_clock_that_is_wrong_denies_nobody() {
        let clock = Arc::new(TestClocks::new());
        let authenticator =
            Authenticator::with_clock(&AuthSettings::default(), clock.clone()).expect("it opens");
        let credentials = Credentials { authorization: &[b"Bearer elk_key"], certificate: None };
        assert!(matches!(authenticator.identify(credentials).await, Err(AuthError::Denied(_))));
        clock.set_wall_by_s(-1e9);
        assert!(matches!(authenticator.identify(credentials).await, Err(AuthError::Unavailable(_))));
        assert_eq!(authenticator.counts().unavailable.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_certificate_counts_where_there_is_no_header() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("rules");
        std::fs::write(&path, "certificate SAN=dns:orders.example.org orders:worker").expect("it is written");
        let settings = AuthSettings { rules_file: Some(path), ..AuthSettings::default() };
        let authenticator = Authenticator::open(&settings).expect("it opens");
        let der = |name: &str| {
            let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
            made.cert.der().to_vec()
        };
        let (known, stranger) = (der("orders.example.org"), der("other.example.org"));
        fn shows<'a>(der: &'a [u8], authorization: &'a [&'a [u8]]) -> Credentials<'a> {
            Credentials { authorization, certificate: Some(der) }
        }
        let principal =
            authenticator.identify(shows(&known[..], &[])).await.expect("it is read").expect("it is one");
        assert_eq!(principal.kind, PrincipalKind::Certificate);
        assert_eq!(principal.name, "SAN=dns:orders.example.org");
        assert!(principal.may(Access::WORK, "orders") && !principal.may(Access::READ, "orders"));
        let principal =
            authenticator.identify(shows(&stranger[..], &[])).await.expect("it is read").expect("it is one");
        assert_eq!((principal.name.as_str(), principal.grants.is_empty()), ("other.example.org", true));
        for header in [&b"Bearer elk_unknown"[..], b"Basic YTpi", b""] {
            let values = [header];
            let denied = authenticator.identify(shows(&known[..], &values)).await;
            assert!(matches!(denied, Err(AuthError::Denied(_))), "the certificate does not stand in for it");
        }
        assert_eq!(authenticator.counts().identified_by_certificate.load(Ordering::Relaxed), 2);
    }
}
