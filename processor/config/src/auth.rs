//! The settings of identities.

use std::path::PathBuf;

use everlog_auth::AuthSettings;

use crate::setting::{Given, Refusal, Setting, section};

section! {
    /// Who may call: identities of callers, and their roles. docs/security.md describes them.
    Auth = "auth" {
        /// Whether callers are identified and judged. Without it whoever reaches an address may do everything there.
        enabled: bool = false, ();
        /// A file of API keys: a line each with a name, roles, the SHA-256 of the key, and when it expires. `everlog auth key` makes
        /// such a line. It is read again when it changes.
        api_keys_file: Option<PathBuf> = None, ();
    }
}

impl Auth {
    /// Checks that concern several keys.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        if self.enabled && self.api_keys_file.is_none() {
            faults.push(
                "auth.enabled = true is not allowed without a source of identities; allowed is auth.api_keys_file".into(),
            );
        }
    }

    /// As settings of the authenticator; none where callers are not judged.
    pub fn settings(&self) -> Option<AuthSettings> {
        self.enabled.then(|| AuthSettings { api_keys_file: self.api_keys_file.clone() })
    }
}
