//! Who calls: an API key or a JWT in the header `authorization`, otherwise a client certificate. A call has one identity;
//! a second one is not looked at, and never added to the first.

use std::path::PathBuf;
use std::sync::Arc;

use crate::api_keys::ApiKeys;
use crate::bearer::{self, Bearer};
use crate::clock::{Clock, SystemClock};
use crate::counts::AuthCounts;
use crate::error::{AuthError, DenialClass, OpenError, Refusal};
use crate::principal::{Grants, Principal, PrincipalKind};
use crate::watched_file::WatchedFile;

/// Where identities come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthSettings {
    /// The file of API keys.
    pub api_keys_file: Option<PathBuf>,
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
    clock: Arc<dyn Clock>,
    api_keys: Option<WatchedFile<ApiKeys>>,
    counts: Arc<AuthCounts>,
}

impl Authenticator {
    /// Reads the files.
    ///
    /// # Errors
    /// A setting or a file has a fault, which is named.
    pub fn open(settings: &AuthSettings) -> Result<Self, OpenError> {
        Self::with_clock(settings, Arc::new(SystemClock::new()))
    }

    pub(crate) fn with_clock(settings: &AuthSettings, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let now = clock.steady();
        let api_keys = match &settings.api_keys_file {
            Some(path) => Some(WatchedFile::open("api_keys_file", path, ApiKeys::parse, now)?),
            None => None,
        };
        Ok(Self { clock, api_keys, counts: Arc::default() })
    }

    /// Its counters.
    pub fn counts(&self) -> Arc<AuthCounts> {
        self.counts.clone()
    }

    /// Keeps the keys of token issuers fresh. It does not end.
    pub async fn keep_fresh(&self) {
        std::future::pending().await
    }

    /// Who the caller is; none where it shows nothing. A principal may have no grants.
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

    async fn principal(&self, credentials: Credentials<'_>) -> Result<Option<Arc<Principal>>, Refusal> {
        match bearer::read(credentials.authorization)? {
            Some(Bearer::ApiKey(key)) => self.of_api_key(key).map(Some),
            Some(Bearer::Jwt(_)) => Err(Refusal::denied(DenialClass::Token, "no issuer of tokens is known")),
            None => Ok(credentials.certificate.map(|_| {
                let name = "certificate".to_owned();
                Arc::new(Principal { kind: PrincipalKind::Certificate, name, grants: Grants::default() })
            })),
        }
    }

    fn of_api_key(&self, key: &str) -> Result<Arc<Principal>, Refusal> {
        let Some(file) = &self.api_keys else {
            return Err(Refusal::denied(DenialClass::UnknownKey, "there are no API keys"));
        };
        file.content(self.clock.steady()).identify(key, self.clock.wall_s())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::NewApiKey;
    use crate::clock::testing::TestClock;

    #[tokio::test]
    async fn a_key_is_identified_until_it_is_taken_out_of_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys");
        let made = NewApiKey::generate("orders", &["orders:write".into()], None).expect("it is made");
        std::fs::write(&path, &made.line).expect("it is written");
        let clock = Arc::new(TestClock::new());
        let settings = AuthSettings { api_keys_file: Some(path.clone()) };
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
}
