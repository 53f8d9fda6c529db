//! The settings of identities.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use everlog_auth::AuthSettings;

use crate::setting::{Given, Refusal, Setting, Words, section};

section! {
    /// Who may call, and what: docs/security.md. A caller shows an API key or a JWT in the header `authorization`, or a
    /// certificate.
    Auth = "auth" {
        /// Whether callers must show who they are, and are refused what they have no role for. Without it, any client that
        /// reaches an address may do everything there.
        enabled: bool = false, ();
        /// A file of API keys, one a line: a name, grants such as "orders:write,orders:worker", the key's SHA-256, and perhaps
        /// a time when it expires. `everlog auth key` makes them. It is read again when it changes.
        api_keys_file: Option<PathBuf> = None, ();
        /// A file of rules that give grants to certificates, and to tokens without permissions, by their names and claims. It
        /// is read again when it changes.
        rules_file: Option<PathBuf> = None, ();
        /// Where the keys of token issuers are (JWKS). Whoever has one of these keys can be anybody. `everlog config` hides what a
        /// URL asks with.
        jwks: KeySources = KeySources::default(), ();
        /// A file of PEM with authorities that are trusted for `auth.jwks` besides those of the system. It is read at the start.
        jwks_ca_file: Option<PathBuf> = None, ();
        /// The time between two fetches of the keys. A token with an unknown key leads to one as well, at most every 5 s.
        jwks_refresh_s: u64 = 900, 10..=86_400;
        /// Whether `auth.jwks` may have http:// as well, where nobody else reaches the network between.
        jwks_allow_http: bool = false, ();
        /// The issuers (`iss`) whose tokens are accepted; empty = any that the keys have signed for.
        issuers: Words = Words::of(&[]), "a list of names";
        /// The audience (`aud`) that a token must have; empty = none is asked for.
        audience: String = String::new(), "a name, or \"\"";
        /// The claim that has the grants of a token: a list of texts such as "orders:write".
        permissions_claim: String = "permissions".into(), "a name";
        /// How the texts of that list are read instead, as a regular expression that matches all of a text and has the groups
        /// `namespace` and `role`, such as `everlog/(?<namespace>[^/]+)/(?<role>.+)`.
        permissions_regex: String = String::new(), "a regular expression, or \"\"";
        /// Whether a token without expiry (`exp`) is refused.
        require_expiry: bool = true, ();
        /// By how much the clocks of issuers and of this node may differ.
        leeway_s: u64 = 0, 0..=300;
    }
}

/// URLs and files of keys. Never shows the query of a URL, which may have a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeySources(pub Vec<String>);

impl KeySources {
    fn shown(&self) -> Words {
        let without_query = |source: &String| match source.split_once('?') {
            Some((place, _)) if !source.starts_with("file:") => format!("{place}?(hidden)"),
            _ => source.clone(),
        };
        Words(self.0.iter().map(without_query).collect())
    }
}

impl fmt::Debug for KeySources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().fmt(formatter)
    }
}

impl Setting for KeySources {
    type Allowed = ();

    fn read(given: Given, (): &()) -> Option<Self> {
        Words::read(given, &"").map(|words| Self(words.0))
    }

    fn write(&self) -> String {
        self.shown().write()
    }

    fn describe((): &()) -> String {
        "a list of https://HOST/PATH and file:PATH".into()
    }
}

impl Auth {
    /// As settings of the authenticator; none where callers are not asked who they are.
    pub fn settings(&self) -> Option<AuthSettings> {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        self.enabled.then(|| AuthSettings {
            api_keys_file: self.api_keys_file.clone(),
            rules_file: self.rules_file.clone(),
            jwks: self.jwks.0.clone(),
            jwks_ca_file: self.jwks_ca_file.clone(),
            jwks_refresh_every: Duration::from_secs(self.jwks_refresh_s),
            jwks_allow_http: self.jwks_allow_http,
            issuers: self.issuers.0.clone(),
            audience: given(&self.audience),
            permissions_claim: self.permissions_claim.clone(),
            permissions_regex: given(&self.permissions_regex),
            require_expiry: self.require_expiry,
            leeway: Duration::from_secs(self.leeway_s),
        })
    }

    pub(super) fn check(&self, faults: &mut Vec<String>) {
        if self.permissions_claim.is_empty() {
            faults.push("auth.permissions_claim = \"\" is not allowed; allowed is a name".into());
        }
        let Some(settings) = self.settings() else { return };
        if self.api_keys_file.is_none() && self.rules_file.is_none() && self.jwks.0.is_empty() {
            faults.push(
                "auth.enabled = true is not allowed alone, because nobody could call; allowed is it with \
                 auth.api_keys_file, auth.jwks or auth.rules_file"
                    .into(),
            );
        }
        faults.extend(settings.check().err().map(|error| error.to_string()));
    }

    /// A warning about settings that have no effect; none where they have one.
    pub fn remark(&self) -> Option<String> {
        let has_no_effect = !self.enabled && *self != Self::default();
        has_no_effect.then(|| "the settings in [auth] have no effect, because auth.enabled = false".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(change: impl FnOnce(&mut Auth)) -> Vec<String> {
        let mut auth = Auth { enabled: true, ..Auth::default() };
        change(&mut auth);
        let mut faults = Vec::new();
        auth.check(&mut faults);
        faults
    }

    fn source(text: &str) -> KeySources {
        KeySources(vec![text.into()])
    }

    #[test]
    fn the_defaults_are_those_of_the_authenticator() {
        let auth = Auth { enabled: true, ..Auth::default() };
        assert_eq!(auth.settings(), Some(AuthSettings::default()));
        assert_eq!(Auth::default().settings(), None);
    }

    #[test]
    fn what_a_url_of_keys_asks_with_is_never_shown() {
        let given = Given::Environment("https://id.example.org/keys?token=canary,file:/etc/keys?.json");
        let sources = KeySources::read(given, &()).expect("they are sources");
        assert_eq!(sources.0[0], "https://id.example.org/keys?token=canary");
        let shown = r#"["https://id.example.org/keys?(hidden)", "file:/etc/keys?.json"]"#;
        assert_eq!(sources.write(), shown);
        assert!(!format!("{sources:?}").contains("canary"));
    }

    #[test]
    fn a_source_of_identities_is_needed() {
        assert_eq!(faults(|auth| auth.enabled = false), [] as [&str; 0]);
        let alone = faults(|_| ());
        assert!(matches!(alone.as_slice(), [fault] if fault.contains("nobody could call")), "{alone:?}");
        assert_eq!(faults(|auth| auth.api_keys_file = Some("keys".into())), [] as [&str; 0]);
        assert_eq!(faults(|auth| auth.rules_file = Some("rules".into())), [] as [&str; 0]);
        assert_eq!(faults(|auth| auth.jwks = source("https://id.example.org/keys")), [] as [&str; 0]);
    }

    #[test]
    fn what_would_never_work_is_refused_with_what_is_allowed() {
        let http = faults(|auth| auth.jwks = source("http://id.example.org/keys"));
        assert!(matches!(http.as_slice(), [fault] if fault.contains("jwks_allow_http = true")), "{http:?}");
        let keys = || Some("keys".into());
        let regex = faults(|auth| (auth.api_keys_file, auth.permissions_regex) = (keys(), "(".into()));
        assert!(
            matches!(regex.as_slice(), [fault] if fault.starts_with("auth.permissions_regex: ")),
            "{regex:?}"
        );
        let claim = faults(|auth| (auth.api_keys_file, auth.permissions_claim) = (keys(), String::new()));
        assert_eq!(claim, ["auth.permissions_claim = \"\" is not allowed; allowed is a name"]);
    }

    #[test]
    fn what_has_no_effect_is_remarked() {
        let off = Auth { audience: "everlog".into(), ..Auth::default() };
        assert!(off.remark().is_some_and(|remark| remark.contains("auth.enabled = false")));
        assert_eq!(Auth { enabled: true, ..off }.remark(), None);
        assert_eq!(Auth::default().remark(), None);
    }
}
