//! The settings of the node itself: addresses, log, memory, threads, partitions, queues, cluster, keys, log lines.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use everlog_partition::QueueLimits;
use hyper::header::HeaderValue;

use crate::setting::{Given, Refusal, Setting, choice, section};

/// A shorter secret could be guessed.
const SECRET_BYTES_MIN: usize = 16;
const DAY_MS: u64 = 86_400_000;

choice! {
    /// When an append counts as durable.
    Sync {
        /// When the disk has it.
        Always = "always",
        /// When the operating system has it.
        Never = "never",
    }
}

choice! {
    /// What to do about a damaged data directory.
    Recover {
        /// Stop, unless nothing acknowledged is lost.
        Strict = "strict",
        /// Go on with what is readable.
        AcceptLoss = "accept-loss",
    }
}

choice! {
    /// How log lines look.
    LogFormat {
        /// Pretty on a terminal, JSON otherwise.
        Auto = "auto",
        /// For people.
        Pretty = "pretty",
        /// One JSON object per line.
        Json = "json",
    }
}

section! {
    /// Where the node listens and where it keeps its data.
    Server = "server" {
        /// Name of the node in its records, to other nodes, and in its answers to `temporal operator cluster
        /// describe`.
        name: String = "everlog".into(), "any text";
        /// Where SDKs and command line tools connect (gRPC). Port 0 takes a free one.
        address: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7233)), ();
        /// Where metrics and health are served (HTTP). Port 0 takes a free one.
        metrics_address: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 9233)), ();
        /// Where everything durable is kept; made when missing. One process at a time can use it,
        /// and always with the same kind of log: the embedded one, or one on Kafka.
        data_dir: PathBuf = PathBuf::from("./everlog-data"), ();
    }
}

section! {
    /// The embedded log.
    Log = "log" {
        /// When an append counts as durable, and so when a call is answered: "always" survives a loss of power,
        /// "never" only the end of the process.
        sync: Sync = Sync::Always, ();
        /// Slices that the Workflow Ids are spread over. Fixed when the data directory is made.
        partitions: u32 = 8, 1..=256;
        /// What to do about damage that is found at the start: "strict" stops and names the file, "accept-loss" goes
        /// on with the longest readable beginning. Meant for one start, not for good.
        recover: Recover = Recover::Strict, ();
        /// Appends that may wait for the disk; beyond it calls get RESOURCE_EXHAUSTED.
        waiting_appends_max: usize = 65_536, 64..=1_000_000;
        /// Bytes of the appends that may wait for the disk; beyond it calls get RESOURCE_EXHAUSTED.
        waiting_bytes_max: usize = 64 << 20, 32 << 20..=4 << 30;
        /// Free space on the disk below which nothing new is taken and the node is not ready. Never less than
        /// `memory.database_bytes` and 8 MiB are kept, which the database needs to write what it holds in memory.
        free_bytes_min: u64 = 64 << 20, 1 << 20..=1 << 40;
        /// How long the entries of the public topics (`events`, `replies`, `rejections`) stay. No workflow needs them;
        /// each is forgotten then, or up to an eighth of the time later.
        public_retention_ms: u64 = 7 * DAY_MS, 1_000..=3_660 * DAY_MS;
    }
}

section! {
    /// Memory that the node takes for good; what open calls need comes on top of it.
    Memory = "memory" {
        /// Cache and write buffers of the database, half each, at most: on the embedded log each of them has a sixth of what the
        /// rows take on the disk, from 32 MiB on. Where the log is Kafka's, the write buffers are 32 MiB at most: what they hold is
        /// read from the log again after a crash.
        database_bytes: usize = 256 << 20, 8 << 20..=1 << 40;
        /// Rows that wait for a commit, in all partitions together. A commit begins early when a partition has its
        /// share. Starts and signals get RESOURCE_EXHAUSTED when it has twice its share and 32 MiB, or all together
        /// have this.
        uncommitted_bytes_max: usize = 64 << 20, 1 << 20..=1 << 40;
        /// Runs that are kept decoded, in all partitions together.
        cached_runs_max: usize = 10_000, 1..=10_000_000;
    }
}

section! {
    /// Threads.
    Threads = "threads" {
        /// Threads that the partitions are spread over; 0 = one per core.
        processor: usize = 0, 0..=256;
        /// Threads that serve connections; 0 = one per core.
        gateway: usize = 0, 0..=256;
    }
}

section! {
    /// The partitions' loops.
    Partition = "partition" {
        /// Time between two commits of a partition's rows. A longer one saves writes and makes a restart replay more.
        commit_interval_ms: i64 = 100, 1..=60_000;
        /// Starts and signals that may wait for one partition; completions and cancellations up to twice as many.
        /// Beyond it calls get RESOURCE_EXHAUSTED.
        waiting_orders_max: usize = 10_000, 1..=1_000_000;
        /// Reads and queries that may wait for one partition. Beyond it calls get RESOURCE_EXHAUSTED.
        waiting_reads_max: usize = 10_000, 1..=1_000_000;
        /// How long a thread may take for one turn before the node counts as hung: not alive, and not ready.
        hung_after_ms: u64 = 60_000, 1_000..=3_600_000;
        /// Appends of one partition that may be under way at once.
        appends_max: usize = 2, 1..=16;
        /// Records of one append.
        append_records_max: usize = 1_000, 1..=10_000;
        /// Due timers that become records at a time; the next come when these have been appended, so that many timers at
        /// once do not keep calls waiting.
        wakes_max: usize = 32, 1..=100_000;
        /// Queries that may wait for a workflow task of one run.
        buffered_queries_max: usize = 100, 1..=10_000;
        /// Journal records that are kept after they are applied and committed, to look into what happened.
        journal_keep_records: u64 = 1_000, 0..=1_000_000_000;
    }
}

section! {
    /// Task queues, which clients make by naming them; of each node those that have their home there.
    Queues = "queues" {
        /// Task queues of one namespace at which polls may wait. Beyond it polls of further ones get RESOURCE_EXHAUSTED, unless a
        /// task or a query waits there.
        namespace_polled_max: usize = 10_000, 1..=1_000_000;
        /// The same of all namespaces.
        polled_max: usize = 50_000, 1..=1_000_000;
        /// Pollers of one namespace that `DescribeTaskQueue` remembers for five minutes where no poll of their queue waits and
        /// nothing is ready; those that polled last.
        namespace_remembered_max: usize = 1_000, 0..=1_000_000;
        /// The same of all namespaces.
        remembered_max: usize = 10_000, 0..=1_000_000;
    }
}

impl Queues {
    /// As limits of the dispatcher.
    pub fn limits(&self) -> QueueLimits {
        QueueLimits {
            namespace_polled_max: self.namespace_polled_max,
            polled_max: self.polled_max,
            namespace_remembered_max: self.namespace_remembered_max,
            remembered_max: self.remembered_max,
        }
    }
}

section! {
    /// Several nodes on one Kafka: each `everlog serve` with its own `server.name` and data directory joins them.
    Cluster = "cluster" {
        /// Where other nodes reach this one (HTTP/2); published in the topic `control`. Port 0 takes a free one.
        address: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 0)), ();
        /// The address that is published instead, if others reach the node by another one; empty = `cluster.address`.
        /// Required where that is 0.0.0.0 or [::].
        advertised: String = String::new(), "host:port or \"\"";
        /// A file with a secret that nodes show each other; a connection without it is refused. The same on all
        /// nodes.
        secret_file: Option<PathBuf> = None, ();
        /// A node that is gone for so long without a word is forgotten: its row in the topic `control` is deleted. It
        /// may come back later.
        forget_after_ms: u64 = 3_600_000, 1_000..=30 * DAY_MS;
        /// How many other nodes follow the rows of each group of partitions, so that taking it over restores nothing; the
        /// same on all nodes.
        replicas: u32 = 0, 0..=1;
        /// A file of PEM with the certificate that this node shows others, and the ones between it and the authority. With it
        /// nodes speak TLS (1.3) with each other and nothing else. It is read again when it changes, as the next two are.
        certificate_file: Option<PathBuf> = None, ();
        /// A file of PEM with the certificate's private key.
        key_file: Option<PathBuf> = None, ();
        /// A file of PEM with the authorities that sign the certificates of nodes; a connection without such a
        /// certificate is refused.
        ca_file: Option<PathBuf> = None, ();
        /// The name that the certificates of all nodes have; empty = each has the host of its own address.
        server_name: String = String::new(), "a name, or \"\"";
    }
}

impl Cluster {
    /// Checks that concern several keys, where there may be other nodes.
    pub(super) fn check(&self, is_on_kafka: bool, faults: &mut Vec<String>) {
        if is_on_kafka {
            faults.extend(self.unreachable());
        }
        let files = [
            ("certificate_file", &self.certificate_file),
            ("key_file", &self.key_file),
            ("ca_file", &self.ca_file),
        ];
        let Some((given, _)) = files.iter().find(|(_, file)| file.is_some()) else { return };
        for (key, _) in files.iter().filter(|(_, file)| file.is_none()) {
            faults
                .push(format!("cluster.{key} = \"\" is not allowed with cluster.{given}; allowed is a path"));
        }
    }

    /// Why other nodes could not reach the published address; none where they could.
    fn unreachable(&self) -> Option<String> {
        let Self { address, advertised, .. } = self;
        let allowed = "allowed is a name or an address by which other nodes reach this one, with its port, such as \
                       \"node-a.internal:7235\"";
        if advertised.is_empty() {
            let fault = format!(
                "cluster.advertised = \"\" is not allowed with cluster.address = \"{address}\", which is no address for \
                 other nodes; {allowed}"
            );
            return address.ip().is_unspecified().then_some(fault);
        }
        let is_reachable = |(host, port): (&str, &str)| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let is_unspecified = host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
            !host.is_empty() && !is_unspecified && port.parse().is_ok_and(|port: u16| port != 0)
        };
        let fault = format!("cluster.advertised = \"{advertised}\" is not allowed; {allowed}");
        (!advertised.rsplit_once(':').is_some_and(is_reachable)).then_some(fault)
    }

    /// A warning about authentication of nodes; none where they authenticate, or the address is local.
    pub fn remark(&self) -> Option<String> {
        let knows_nodes = self.secret_file.is_some() || self.tls_files().is_some();
        (!self.address.ip().is_loopback() && !knows_nodes).then(|| {
            format!(
                "whoever reaches cluster.address = {} is taken for a node: set cluster.secret_file, and \
                 cluster.certificate_file, cluster.key_file and cluster.ca_file, or keep it on a network that only nodes reach",
                self.address
            )
        })
    }

    /// The files of TLS between nodes, if they use it: certificate, key and authorities.
    pub fn tls_files(&self) -> Option<[PathBuf; 3]> {
        Some([self.certificate_file.clone()?, self.key_file.clone()?, self.ca_file.clone()?])
    }

    /// The secret of the nodes, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or is not one line of printable characters.
    pub fn secret(&self) -> anyhow::Result<Option<HeaderValue>> {
        let Some(file) = &self.secret_file else { return Ok(None) };
        let shown = file.display();
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("{shown} cannot be read (cluster.secret_file)"))?;
        let secret =
            HeaderValue::from_str(text.trim()).ok().filter(|secret| secret.len() >= SECRET_BYTES_MIN);
        let mut secret = secret.with_context(|| {
            format!("{shown} holds no secret: wanted is a line of {SECRET_BYTES_MIN} printable characters or more (cluster.secret_file)")
        })?;
        secret.set_sensitive(true);
        Ok(Some(secret))
    }
}

section! {
    /// The key that authenticates task tokens.
    Tokens = "tokens" {
        /// A file of one or two lines, each a key of 64 hexadecimal digits. The first signs, both are accepted, so
        /// that a key can be changed without refusing open tasks. Without a file, a key is made at the first start.
        /// It is kept in the data directory, on Kafka in the topic `control`, for all nodes.
        key_file: Option<PathBuf> = None, ();
    }
}

section! {
    /// Log lines. They go to the standard error stream and never hold payloads.
    Logs = "logs" {
        /// Format of the log lines; "auto" = text on a terminal, JSON otherwise.
        format: LogFormat = LogFormat::Auto, ();
        /// Which log lines are written. The variables EVERLOG_LOG and, failing that, RUST_LOG go before it.
        filter: String = "info".into(), "a level (error, warn, info, debug, trace) or a list such as \"info,everlog_log=debug\"";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(address: &str, advertised: &str) -> Cluster {
        let address = address.parse().expect("an address");
        Cluster { address, advertised: advertised.into(), ..Cluster::default() }
    }

    fn faults(address: &str, advertised: &str) -> Vec<String> {
        let mut faults = Vec::new();
        cluster(address, advertised).check(true, &mut faults);
        faults
    }

    #[test]
    fn what_other_nodes_are_told_leads_to_this_one() {
        for (address, advertised) in [
            ("127.0.0.1:0", ""),
            ("10.0.0.1:7235", ""),
            ("0.0.0.0:7235", "node-a.internal:7235"),
            ("[::]:7235", "[fd00::1]:7235"),
        ] {
            assert_eq!(faults(address, advertised), [] as [&str; 0], "{address} {advertised}");
        }
        for (address, advertised) in [
            ("0.0.0.0:7235", ""),
            ("[::]:7235", ""),
            ("0.0.0.0:7235", "0.0.0.0:7235"),
            ("10.0.0.1:7235", "[::]:7235"),
            ("10.0.0.1:7235", "node-a"),
            ("10.0.0.1:7235", "node-a:0"),
            ("10.0.0.1:7235", ":7235"),
        ] {
            let told = faults(address, advertised).join("\n");
            assert!(told.contains("cluster.advertised") && told.contains("node-a.internal:7235"), "{told}");
        }
        let mut told = Vec::new();
        cluster("0.0.0.0:7235", "").check(false, &mut told);
        assert_eq!(told, [] as [&str; 0], "there are no others on the embedded log");
    }

    #[test]
    fn an_address_that_takes_anybody_for_a_node_is_remarked() {
        let open = cluster("0.0.0.0:7235", "node-a.internal:7235");
        assert!(open.remark().is_some_and(|remark| remark.contains("cluster.secret_file")));
        assert_eq!(Cluster { secret_file: Some("/secret".into()), ..open }.remark(), None);
        assert_eq!(Cluster::default().remark(), None);
    }
}
