//! What a run has shown, for people and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::process::Usage;
use super::session::Session;

/// The result of one run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: &'static str,
    /// The whole command line.
    pub command: String,
    /// Operations per second that were asked for; absent in the closed loop.
    pub rate: Option<f64>,
    /// Seconds that were measured.
    pub seconds: f64,
    /// Operations that succeeded in them.
    pub operations: u64,
    /// The same per second.
    pub operations_per_second: f64,
    /// The same in each second.
    pub timeline: Vec<u64>,
    /// Milliseconds by what was timed; in the open loop from the intended moment.
    pub latency_ms: BTreeMap<String, Latency>,
    /// Whatever went wrong, also before and after the measured seconds.
    pub failures: Vec<Failure>,
    /// The server's processes, if they were named.
    pub server: Option<Cost>,
    /// This process.
    pub client: Cost,
    /// What an fdatasync cost on the named disk, in milliseconds.
    pub fdatasync_ms: Option<Latency>,
}

/// A distribution, in milliseconds.
#[derive(Debug, Serialize)]
pub struct Latency {
    /// How many were timed.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// 90 of 100 are not above it.
    pub p90: f64,
    /// 99 of 100 are not above it.
    pub p99: f64,
    /// 999 of 1,000 are not above it.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Failures of one kind.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// The call or what else failed.
    pub what: &'static str,
    /// The gRPC code, or another short word.
    pub code: String,
    /// How often.
    pub count: u64,
    /// What the first one said.
    pub message: String,
}

/// What processes have used.
#[derive(Debug, Serialize)]
pub struct Cost {
    /// User and system time within the measured seconds.
    pub cpu_seconds: f64,
    /// Operations for each of them.
    pub operations_per_cpu_second: f64,
    /// Resident memory at the end of the measured seconds.
    pub rss_bytes: u64,
    /// The highest resident memory since the processes began.
    pub rss_peak_bytes: u64,
}

/// Seconds that were measured, and what was used before and after them.
pub(super) struct Measured {
    pub seconds: f64,
    pub server: (Usage, Usage),
    pub client: (Usage, Usage),
}

impl Report {
    pub(super) fn new(
        scenario: &'static str,
        session: &Session,
        measured: Measured,
        fdatasync_us: Option<&Histogram<u64>>,
    ) -> Self {
        let timeline = session.tally.timeline();
        let operations = timeline.iter().sum();
        let latencies = session.tally.latencies();
        let failure = |((what, code), failures): ((&'static str, String), super::tally::Failures)| Failure {
            what,
            code,
            count: failures.count,
            message: failures.message,
        };
        Self {
            scenario,
            command: std::env::args().collect::<Vec<_>>().join(" "),
            rate: session.load.rate,
            seconds: measured.seconds,
            operations,
            operations_per_second: operations as f64 / measured.seconds,
            timeline,
            latency_ms: latencies.iter().map(|(name, one)| (name.to_string(), Latency::of_us(one))).collect(),
            failures: session.tally.failures().into_iter().map(failure).collect(),
            server: (!session.load.pid.is_empty()).then(|| Cost::of(measured.server, operations)),
            client: Cost::of(measured.client, operations),
            fdatasync_ms: fdatasync_us.map(Latency::of_us),
        }
    }

    /// Whether operations succeeded and nothing failed.
    pub fn is_clean(&self) -> bool {
        self.operations > 0 && self.failures.is_empty()
    }

    /// The report as indented JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

impl Latency {
    pub(crate) fn of_us(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1_000.0;
        Self {
            count: histogram.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1_000.0,
        }
    }
}

impl Cost {
    fn of((before, after): (Usage, Usage), operations: u64) -> Self {
        let cpu_seconds = after.cpu_seconds - before.cpu_seconds;
        Self {
            cpu_seconds,
            // Less than a tick of CPU is no measure.
            operations_per_cpu_second: if cpu_seconds > 0.0 { operations as f64 / cpu_seconds } else { 0.0 },
            rss_bytes: after.rss_bytes,
            rss_peak_bytes: after.rss_peak_bytes,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pace = match self.rate {
            Some(rate) => format!("open loop at {rate}/s"),
            None => "closed loop".to_string(),
        };
        let Self { scenario, operations, seconds, operations_per_second, .. } = self;
        writeln!(f, "{scenario}, {pace}: {operations} in {seconds:.1} s = {operations_per_second:.1}/s")?;
        writeln!(
            f,
            "{:<42}{:>9}{:>10}{:>10}{:>10}{:>10}{:>10}",
            "ms", "count", "p50", "p90", "p99", "p99.9", "max"
        )?;
        let disk = self.fdatasync_ms.iter().map(|latency| ("fdatasync 4 KiB", latency));
        for (name, latency) in
            self.latency_ms.iter().map(|(name, latency)| (name.as_str(), latency)).chain(disk)
        {
            let Latency { count, p50, p90, p99, p999, max } = latency;
            writeln!(f, "{name:<42}{count:>9}{p50:>10.2}{p90:>10.2}{p99:>10.2}{p999:>10.2}{max:>10.2}")?;
        }
        for (name, cost) in self.server.iter().map(|cost| ("server", cost)).chain([("client", &self.client)])
        {
            let (rss, peak) = (cost.rss_bytes >> 20, cost.rss_peak_bytes >> 20);
            writeln!(
                f,
                "{name}: {:.2} CPU s, {:.0} operations per CPU s, {rss} MiB resident (peak {peak})",
                cost.cpu_seconds, cost.operations_per_cpu_second
            )?;
        }
        for Failure { what, code, count, message } in &self.failures {
            writeln!(f, "FAILED {count} x {what}: {code}: {message}")?;
        }
        Ok(())
    }
}
