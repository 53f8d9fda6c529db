//! The metrics of several nodes on one log.

use everlog_cluster::Cluster;
use everlog_cluster::metrics::{AWAY_BOUNDS_MS, ClusterCounters, ClusterGauges, Outcome};

use super::*;

pub(super) const GAUGES: &[Row<ClusterGauges>] = rows! {
    Stands "everlog_cluster_nodes" "Nodes that partition groups are assigned to." |s| s.nodes as f64;
    Stands "everlog_cluster_nodes_gone" "Nodes that died and are not forgotten yet." |s| s.gone as f64;
    Stands "everlog_cluster_nodes_unreachable" "Nodes that this node has not reached for 5 s, though they are members." |s| {
        s.unreachable as f64
    };
    Stands "everlog_cluster_assigned" "1 while partition groups may be assigned to this node." |s| {
        f64::from(u8::from(s.is_assigned))
    };
    Stands "everlog_cluster_drained" "1 while an operator has drained this node." |s| {
        f64::from(u8::from(s.is_drained))
    };
    Stands "everlog_cluster_is_coordinator" "1 on the node that assigned partition groups last." |s| {
        f64::from(u8::from(s.is_coordinator))
    };
    Stands "everlog_cluster_groups_owned" "Partition groups that this node owns." |s| s.groups_owned as f64;
    Stands "everlog_cluster_groups_wanted" "Partition groups that are assigned to this node." |s| {
        s.groups_wanted as f64
    };
    Stands "everlog_cluster_offers_waiting" "Task offers that wait to be sent to other nodes." |s| {
        s.offers_waiting as f64
    };
    Stands "everlog_cluster_receipts_open" "Tasks whose delivery to a worker is not confirmed yet." |s| {
        s.receipts_open as f64
    };
};

pub(super) const COUNTERS: &[Row<ClusterCounters>] = rows! {
    Counts "everlog_cluster_takeovers_total" "Partition groups that this node has taken over." |c| load(&c.taken);
    Counts "everlog_cluster_takeover_failures_total" "Take-overs of partition groups that failed." |c| load(&c.failed);
    Counts "everlog_cluster_groups_handed_over_total" "Partition groups that this node has handed over to other nodes." |c| {
        load(&c.groups_handed_over)
    };
    Counts "everlog_cluster_forwarded_in_total" "Calls that other nodes have forwarded to this node." |c| {
        load(&c.forwarded_in)
    };
    Counts "everlog_cluster_offers_sent_total" "Task offers that this node has sent to other nodes." |c| {
        load(&c.offers_sent)
    };
    Counts "everlog_cluster_offers_received_total" "Task offers that this node has received from other nodes." |c| {
        load(&c.offers_received)
    };
    Counts "everlog_cluster_receipts_expired_total" "Tasks that were requeued because their delivery was not confirmed in time." |c| {
        load(&c.receipts_expired)
    };
};

pub(super) const OUTCOMES: &[Row<Ways>] = rows! {
    Counts "everlog_cluster_forwarded_out_total" "Calls that this node has forwarded to other nodes, by outcome." |w| {
        w.forwarded_out as f64
    };
    Counts "everlog_cluster_claims_total" "Tasks that this node has claimed from other nodes, by outcome." |w| {
        w.claims as f64
    };
    Counts "everlog_cluster_claimed_total" "Tasks that other nodes have claimed from this node, by outcome." |w| {
        w.claimed as f64
    };
};

/// Counters of one outcome.
pub(super) struct Ways {
    forwarded_out: u64,
    claims: u64,
    claimed: u64,
}

pub(super) const AWAY: (&str, &str) =
    ("everlog_cluster_takeover_seconds", "How long partition groups were unavailable during a take-over.");

/// Adds the cluster.
pub fn watch_cluster(registry: &Registry, cluster: &Arc<Cluster>) {
    let weak = || Arc::downgrade(cluster);
    let seen = weak();
    add(registry, GAUGES, None, move |visit| {
        if let Some(cluster) = seen.upgrade() {
            visit("", &cluster.gauges());
        }
    });
    let seen = weak();
    add(registry, COUNTERS, None, move |visit| {
        if let Some(cluster) = seen.upgrade() {
            visit("", cluster.counters());
        }
    });
    let seen = weak();
    add(registry, OUTCOMES, Some("outcome"), move |visit| {
        let Some(cluster) = seen.upgrade() else { return };
        let ClusterCounters { forwarded_out, claims, claimed, .. } = cluster.counters();
        for outcome in Outcome::ALL {
            let (forwarded_out, claims, claimed) =
                (forwarded_out.of(outcome), claims.of(outcome), claimed.of(outcome));
            visit(outcome.name(), &Ways { forwarded_out, claims, claimed });
        }
    });
    let away = Away { cluster: weak(), desc: desc(AWAY.0, AWAY.1, None) };
    registry.register(Box::new(away)).expect("no name stands twice in the tables above");
}

/// The histogram of the times that groups are unavailable during a take-over.
struct Away {
    cluster: Weak<Cluster>,
    desc: Desc,
}

impl Collector for Away {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(cluster) = self.cluster.upgrade() else { return Vec::new() };
        let ClusterCounters { away, away_ms, .. } = cluster.counters();
        let bounds = AWAY_BOUNDS_MS.iter().map(|bound_ms| *bound_ms as f64 / 1e3);
        let counts: Vec<u64> = away.iter().map(|count| count.load(Relaxed)).collect();
        vec![histograms(AWAY, histogram(bounds, &counts, load(away_ms) / 1e3))]
    }
}
