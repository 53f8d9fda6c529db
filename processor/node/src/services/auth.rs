//! Identities in the node: what knows callers, and keeps the keys of issuers fresh.

use std::sync::Arc;

use anyhow::Result;
use everlog_auth::{Audit, Authenticator};
use everlog_config::Config;
use everlog_temporal::Guard;

/// What judges callers; none where the settings say that everybody may do everything.
///
/// # Errors
/// A file or a setting of identities cannot be used.
pub fn open(config: &Config) -> Result<Option<Guard>> {
    let Some(settings) = config.auth.settings() else {
        remark(config);
        return Ok(None);
    };
    let authenticator = Arc::new(Authenticator::open(&settings)?);
    let fresh = Arc::clone(&authenticator);
    tokio::spawn(async move { fresh.keep_fresh().await });
    Ok(Some(Guard { authenticator, audit: Arc::new(Audit::default()) }))
}

/// Says what an address that others reach means without identities, and which settings have no effect.
fn remark(config: &Config) {
    if let Some(remark) = config.auth.remark() {
        tracing::warn!("{remark}");
    }
    for (key, address) in [("server.address", config.server.address), ("http.address", config.http.address)] {
        if !address.ip().is_loopback() {
            tracing::warn!(
                "whoever reaches {key} = {address} may do everything there: set auth.enabled, or keep it on a network that only \
                 permitted clients reach"
            );
        }
    }
}
