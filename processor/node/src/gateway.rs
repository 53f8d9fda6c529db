//! The gateway within the node: what it is made of, and its life from the first call to the last.

use std::sync::{Arc, Weak};

use anyhow::{Context, Result, anyhow};
use everlog_log::Log;
use everlog_temporal::{About, Control, Metrics, Namespaces, Sealer};
use prometheus::Registry;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::driver::Running;
use crate::home::Home;
use crate::keys::Keys;

/// A gateway that serves.
pub struct Gateway {
    stop: oneshot::Sender<()>,
    /// None once its end has been told.
    served: Option<JoinHandle<Result<(), everlog_temporal::Error>>>,
}

impl Gateway {
    /// Begins to take calls from the listener.
    ///
    /// # Errors
    /// The namespaces cannot be read; a limit or key cannot be used.
    pub fn start(
        calls: TcpListener,
        config: &Config,
        keys: &Keys,
        home: &Home,
        running: &Running,
        registry: &Registry,
    ) -> Result<Self> {
        let metrics = Metrics::register(registry).context("the metrics of calls cannot be registered")?;
        let (rows, limits) = (Arc::new(Rows { log: Arc::downgrade(&home.log()) }), config.gateway.limits());
        let namespaces = Namespaces::open(rows, &limits, &metrics);
        let namespaces = namespaces.map_err(|why| anyhow!("the namespaces cannot be read: {why}"))?;
        let gateway = everlog_temporal::Gateway::new(everlog_temporal::Config {
            about: about(config, home),
            limits,
            settings: config.limits.engine(),
            sealer: Sealer::new(&keys.in_order())?,
            namespaces: Arc::new(namespaces),
            router: running.router.clone(),
            metrics,
        })?;
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(Arc::new(gateway).serve(calls, async {
            // A sender that is gone means the same.
            drop(stopped.await);
        }));
        Ok(Self { stop, served: Some(served) })
    }

    /// Waits until the gateway ends by itself, and why it did.
    pub async fn ended(&mut self) -> String {
        let Some(served) = &mut self.served else {
            return std::future::pending().await;
        };
        let ended = served.await;
        self.served = None;
        match ended {
            Ok(Ok(())) => "the gateway has ended".into(),
            Ok(Err(error)) => error.to_string(),
            Err(panicked) => format!("the gateway has ended: {panicked}"),
        }
    }

    /// Takes no more calls, ends open polls, and gives other calls the time to finish that the configuration grants.
    pub async fn stop(self) {
        // One that has ended already hears nothing.
        let _ = self.stop.send(());
        if let Some(served) = self.served
            && let Err(error) = served.await.map_err(anyhow::Error::from).and_then(|ended| Ok(ended?))
        {
            tracing::warn!(%error, "the gateway did not end well");
        }
    }
}

fn about(config: &Config, home: &Home) -> About {
    let log = home.log();
    About {
        server_version: env!("CARGO_PKG_VERSION").into(),
        cluster_id: uuid::Builder::from_random_bytes(log.incarnation()).into_uuid().to_string(),
        cluster_name: config.server.name.clone(),
        partitions: log.partitions(),
        persistence_store: home.store_name().into(),
        visibility_store: String::new(),
    }
}

/// The rows that namespaces are kept in. Does not keep the log open.
struct Rows {
    log: Weak<dyn Log>,
}

impl Rows {
    fn log(&self) -> Result<Arc<dyn Log>, String> {
        self.log.upgrade().ok_or_else(|| everlog_log::Error::Closed.to_string())
    }
}

impl Control for Rows {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.log()?.control_put(key, Some(value)).map_err(|error| error.to_string())
    }

    fn scan(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>, String> {
        let mut rows = Vec::new();
        let scanned = self.log()?.control_scan(&mut |key, value| rows.push((key.to_vec(), value.to_vec())));
        scanned.map(|()| rows).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use everlog_log::embedded::{Embedded, Options};

    use super::*;

    #[test]
    fn namespaces_outlive_the_log_that_they_were_put_into() {
        let dir = tempfile::tempdir().expect("a directory");
        let open =
            || -> Arc<dyn Log> { Arc::new(Embedded::open(Options::new(dir.path())).expect("it is free")) };
        let log = open();
        let rows = Rows { log: Arc::downgrade(&log) };
        rows.put(b"namespace/1", b"shop").expect("it is open");
        drop(log);
        assert_eq!(rows.scan(), Err("the log is closed".into()));
        let log = open();
        let rows = Rows { log: Arc::downgrade(&log) };
        assert_eq!(rows.scan(), Ok(vec![(b"namespace/1".to_vec(), b"shop".to_vec())]));
    }
}
