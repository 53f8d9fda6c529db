//! The brokers of a row, with a proxy in front of a single one, and the faults of brokers.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use everlog_tests::kafka::{Cluster, Version};

use crate::net::Host;
use crate::proxy::Proxy;

/// Brokers; a single one is behind a proxy. Cheap to clone.
#[derive(Clone)]
pub struct FaultCluster {
    cluster: Arc<Cluster>,
    proxy: Option<Proxy>,
}

impl FaultCluster {
    /// Starts a broker that sends everybody to the proxy, with further properties.
    pub async fn start(seed: u64, properties: &[&str]) -> anyhow::Result<Self> {
        Self::start_in(seed, properties, None).await
    }

    /// The same with what the broker keeps in a directory of ours.
    pub async fn start_in(seed: u64, properties: &[&str], dir: Option<&Path>) -> anyhow::Result<Self> {
        let proxy = Proxy::start(seed).await?;
        let port = proxy.address().port();
        let (dir, properties) = (dir.map(Path::to_owned), properties.join(";"));
        let start = move || {
            let properties: Vec<&str> =
                properties.split(';').filter(|property| !property.is_empty()).collect();
            match dir {
                Some(dir) => Cluster::start_in(Version::V4_4_0, &dir, port, &properties),
                None => Cluster::start_behind(Version::V4_4_0, &[port], &properties),
            }
        };
        let cluster = Arc::new(tokio::task::spawn_blocking(start).await??);
        proxy.lead_to(cluster.address(1)?)?;
        Ok(Self { cluster, proxy: Some(proxy) })
    }

    /// Starts three brokers, each record on all of them.
    pub async fn of_three() -> anyhow::Result<Self> {
        let start = || Cluster::start(Version::V4_4_0, 3);
        let cluster = Arc::new(tokio::task::spawn_blocking(start).await??);
        Ok(Self { cluster, proxy: None })
    }

    /// The same with each broker at a host of its own.
    pub async fn apart(hosts: Vec<Host>) -> anyhow::Result<Self> {
        let start = move || {
            let places = hosts.iter().map(|host| {
                let space = host.space.clone().context("a host of its own")?;
                Ok((host.address.to_string(), space))
            });
            Cluster::start_apart(Version::V4_4_0, &places.collect::<anyhow::Result<Vec<_>>>()?)
        };
        let cluster = Arc::new(tokio::task::spawn_blocking(start).await??);
        Ok(Self { cluster, proxy: None })
    }

    /// Where clients begin.
    pub fn bootstrap(&self) -> String {
        self.cluster.bootstrap().to_owned()
    }

    /// What rules the way to the broker.
    pub fn proxy(&self) -> &Proxy {
        self.proxy.as_ref().expect("a single broker has one")
    }

    /// From here on nothing is done to what goes by.
    pub fn calm(&self) {
        self.proxy.iter().for_each(|proxy| proxy.set(Vec::new()));
    }

    pub async fn kill(&self, node: u32) -> anyhow::Result<()> {
        self.on_cluster(move |cluster| cluster.kill(node)).await
    }

    pub async fn restart(&self, node: u32) -> anyhow::Result<()> {
        self.on_cluster(move |cluster| cluster.restart(node)).await
    }

    /// Asks a broker to end, and returns when it has.
    pub async fn end(&self, node: u32) -> anyhow::Result<()> {
        self.on_cluster(move |cluster| cluster.stop(node)).await
    }

    /// Whether a broker's process is there.
    pub fn is_alive(&self, node: u32) -> anyhow::Result<bool> {
        Ok(is_alive(self.cluster.pid(node)?))
    }

    async fn on_cluster(
        &self,
        act: impl FnOnce(&Cluster) -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let cluster = Arc::clone(&self.cluster);
        tokio::task::spawn_blocking(move || act(&cluster)).await?
    }
}

/// A process that has ended and was not waited for is dead.
fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
