//! Who a caller is, and what it may do: the [`Authenticator`] makes [`Principal`]s with their [`Grants`] of what callers show,
//! and the [`Access`] that each call needs is compared with them.
//!
//! The crate knows no RPC, no HTTP route and no namespace of the registry: it judges names. It is asked before anything is
//! looked up, so a refusal says nothing about what there is.

mod access;
mod api_keys;
mod audit;
mod authenticator;
mod bearer;
#[cfg(test)]
mod canaries;
mod certificate;
mod clock;
mod counts;
mod error;
#[cfg(test)]
mod fuzz;
mod jwks;
mod jwt;
mod permissions;
mod principal;
mod ring_provider;
mod roles;
mod rules;
#[cfg(test)]
mod testing;
mod watched_file;

pub use access::Access;
pub use api_keys::{KEY_PREFIX, NewApiKey};
pub use audit::Audit;
pub use authenticator::{AuthSettings, Authenticator, Credentials};
pub use counts::AuthCounts;
pub use error::{AuthError, DenialClass, OpenError};
pub use principal::{Caller, Grants, Principal, PrincipalKind};
pub use roles::Roles;

/// The name that stands for the cluster among the namespaces of a grant: `temporal-system:read`.
pub const SYSTEM: &str = "temporal-system";
