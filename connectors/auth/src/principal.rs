//! Principals and what is granted to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::SYSTEM;
use crate::access::Access;
use crate::roles::Roles;

/// How a principal showed who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrincipalKind {
    /// By an API key.
    ApiKey,
    /// By a JWT.
    Jwt,
    /// By a certificate of TLS.
    Certificate,
    /// It is the server itself: a batch job, a schedule.
    Server,
}

impl PrincipalKind {
    /// As in log lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "api-key",
            Self::Jwt => "jwt",
            Self::Certificate => "certificate",
            Self::Server => "server",
        }
    }
}

/// Roles in the cluster and in namespaces, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    system: Roles,
    namespaces: BTreeMap<String, Roles>,
}

impl Grants {
    /// Adds roles in a namespace, or in the cluster where the name is [`SYSTEM`].
    pub fn add(&mut self, namespace: &str, roles: Roles) {
        if namespace.eq_ignore_ascii_case(SYSTEM) {
            self.system = self.system.and(roles);
        } else {
            let granted = self.namespaces.entry(namespace.to_owned()).or_default();
            *granted = granted.and(roles);
        }
    }

    /// Adds what a text such as `orders:write` grants: a namespace, the first colon, a role.
    ///
    /// # Errors
    /// Why it grants nothing.
    pub fn add_text(&mut self, text: &str) -> Result<(), String> {
        let (namespace, word) =
            text.split_once(':').ok_or_else(|| format!("{text:?} is not namespace:role"))?;
        let roles =
            Roles::named(word).ok_or_else(|| format!("{word:?} is none of read, write, worker, admin"))?;
        if namespace.is_empty() {
            return Err(format!("{text:?} names no namespace"));
        }
        self.add(namespace, roles);
        Ok(())
    }

    /// True if nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.system.is_none() && self.namespaces.values().all(|roles| roles.is_none())
    }

    /// True if they suffice for an access in a namespace. It is named as in the call, and need not exist.
    pub fn allow(&self, access: Access, namespace: &str) -> bool {
        match access {
            Access::Open => true,
            // Whoever has a token of a public issuer, and no grant, is a stranger.
            Access::Known => !self.is_empty(),
            Access::Somewhere(roles) => self.allow_somewhere(Access::Namespace(roles)),
            Access::System(roles) => self.system.has_any(roles),
            Access::Namespace(roles) => {
                let own = self.namespaces.get(namespace).copied().unwrap_or_default();
                self.system.has_any(roles) || own.has_any(roles)
            }
        }
    }

    /// True if they suffice for an access in the cluster or in any namespace.
    pub fn allow_somewhere(&self, access: Access) -> bool {
        self.allow(access, "") || self.namespaces.keys().any(|namespace| self.allow(access, namespace))
    }
}

/// Who calls, as it travels among the extensions of a request. Cheap to clone.
pub type Caller = Arc<Principal>;

/// Who calls. Each call has one, from one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// How it showed that.
    pub kind: PrincipalKind,
    /// Its name: of the key, the token's subject, the certificate's rule.
    pub name: String,
    /// What it may do.
    pub grants: Grants,
}

impl Principal {
    /// The server itself, as a writer in one namespace.
    pub fn server(name: &str, namespace: &str) -> Self {
        let mut grants = Grants::default();
        grants.add(namespace, Roles::WRITER.and(Roles::READER).and(Roles::WORKER));
        Self { kind: PrincipalKind::Server, name: name.to_owned(), grants }
    }

    /// True if it may.
    pub fn may(&self, access: Access, namespace: &str) -> bool {
        self.grants.allow(access, namespace)
    }

    /// As text for another node of the cluster: JSON in ASCII.
    pub fn to_wire(&self) -> String {
        let mut wire = String::new();
        let json = serde_json::to_string(self).expect("it has nothing that JSON cannot say");
        for character in json.chars() {
            match character {
                ' '..='~' => wire.push(character),
                // JSON escapes its own control characters; the rest is above them.
                other => {
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        wire.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        wire
    }

    /// What [`Self::to_wire`] has written; none for anything else.
    pub fn from_wire(wire: &str) -> Option<Self> {
        serde_json::from_str(wire).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(texts: &[&str]) -> Grants {
        let mut grants = Grants::default();
        for text in texts {
            grants.add_text(text).expect(text);
        }
        grants
    }

    #[test]
    fn a_role_counts_in_its_namespace_and_one_of_the_system_everywhere() {
        let grants = granted(&["orders:write", "stock:worker", "temporal-system:read"]);
        let allowed = |access, namespace| grants.allow(access, namespace);
        assert!(allowed(Access::WRITE, "orders") && allowed(Access::READ, "orders"));
        assert!(allowed(Access::WORK, "orders") && allowed(Access::WORK, "stock"));
        assert!(!allowed(Access::WRITE, "stock") && !allowed(Access::ADMIN, "orders"));
        assert!(
            allowed(Access::READ, "stock") && allowed(Access::READ, "other") && allowed(Access::READ, "")
        );
        assert!(allowed(Access::SYSTEM_READ, "") && !allowed(Access::SYSTEM_ADMIN, ""));
        assert!(!allowed(Access::WRITE, "Orders"), "names are compared as they are");
        assert!(allowed(Access::Known, "") && !Grants::default().allow(Access::Known, "orders"));
        assert!(Grants::default().allow(Access::Open, ""));
    }

    #[test]
    fn a_worker_works_and_nothing_else() {
        let grants = granted(&["orders:worker"]);
        assert!(grants.allow(Access::WORK, "orders") && grants.allow(Access::READ_OR_WORK, "orders"));
        for access in [Access::READ, Access::WRITE, Access::ADMIN, Access::SYSTEM_READ] {
            assert!(!grants.allow(access, "orders"), "{access:?}");
        }
        assert!(!grants.allow(Access::WORK, "stock") && !grants.allow(Access::WORK, ""));
    }

    #[test]
    fn the_first_colon_separates_and_what_is_no_grant_grants_nothing() {
        let mut grants = Grants::default();
        for (text, why) in [("orders", "namespace:role"), (":read", "no namespace"), ("a:b:read", "none of")]
        {
            assert!(grants.add_text(text).is_err_and(|told| told.contains(why)), "{text}");
        }
        assert!(grants.is_empty());
    }

    #[test]
    fn another_node_reads_what_was_written_and_it_is_ascii() {
        let mut principal = Principal::server("Zoë \u{1f980} \"\\ \n", "ordérs");
        principal.kind = PrincipalKind::Jwt;
        let wire = principal.to_wire();
        assert!(wire.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{wire}");
        assert_eq!(Principal::from_wire(&wire), Some(principal));
        assert_eq!(Principal::from_wire("{}"), None);
    }
}
