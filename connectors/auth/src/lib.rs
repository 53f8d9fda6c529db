//! Who a caller is, and what it may do: [`Principal`]s with their [`Grants`], and the [`Access`] that each call needs.
//!
//! The crate knows no RPC, no HTTP route and no namespace of the registry: it judges names. It is asked before anything is
//! looked up, so a refusal says nothing about what there is.

mod access;
mod principal;
mod roles;

pub use access::Access;
pub use principal::{Grants, Principal, PrincipalKind};
pub use roles::Roles;

/// The name that stands for the cluster among the namespaces of a grant: `temporal-system:read`.
pub const SYSTEM: &str = "temporal-system";
