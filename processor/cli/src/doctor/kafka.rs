//! The doctor's checks of a log on Kafka.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::Result;
use everlog_config::Config;
use everlog_log::clock::now_ms;
use everlog_log_kafka::AclDenial;
use everlog_log_kafka::topics::Difference;
use everlog_log_kafka::topics::inspect::{
    AppliedPosition, CommandsReport, Inspection, JournalReport, OpenTransaction, inspect,
};

use crate::doctor::{CheckVerdict, Finding};

/// More journal records that are not applied mean that nobody serves, or not fast enough.
const LAG_RECORDS: u64 = 50_000;
/// Clocks further apart make timers noticeably late.
const SKEW_MS: i64 = 1_000;
/// The longest transaction of any producer that brokers allow by default.
const FOREIGN_TRANSACTION_MS: i64 = 15 * 60_000;

/// Checks it.
///
/// # Errors
/// The brokers do not answer.
pub fn look(config: &Config) -> Result<Vec<Finding>> {
    let options = config.kafka.options("doctor");
    let began_ms = now_ms();
    let examined = inspect(&options).map_err(|error| config.kafka.explain(error))?;
    Ok(judge(&examined, config, began_ms..now_ms()))
}

/// `looked_ms`: begin and end of the examination by the local clock. It takes seconds where a broker or a node was
/// just lost. So ages count from its begin, and only what is ahead of its end is ahead of the local clock.
fn judge(examined: &Inspection, config: &Config, looked_ms: Range<i64>) -> Vec<Finding> {
    if !examined.denials.is_empty() {
        return denials(&examined.denials);
    }
    let mut findings = vec![Finding::good("permissions", "the brokers let all be looked at")];
    findings.extend(topics(examined));
    findings.extend(transactions(&examined.open, config, looked_ms.start));
    findings.extend(positions(&examined.journals));
    findings.extend(clocks(&examined.journals, looked_ms.end));
    findings.extend(commands(&examined.commands));
    findings
}

/// What may not be looked at would look like what is not there.
fn denials(denials: &[AclDenial]) -> Vec<Finding> {
    let finding = |denial: &AclDenial| Finding::fail("permissions", &denial.denied, &denial.fix);
    denials.iter().map(finding).collect()
}

fn topics(examined: &Inspection) -> Vec<Finding> {
    if examined.differences.is_empty() {
        return vec![Finding::good("topics", "all are there, and as they must be")];
    }
    // The wish for replicas is one setting of ours, not one of each topic.
    let is_of_replicas = |difference: &&Difference| difference.setting == "replication";
    let (replicas, others): (Vec<_>, Vec<_>) = examined.differences.iter().partition(is_of_replicas);
    let finding = |difference: &Difference| {
        let found = format!(
            "{}: {} is {}, wanted is {}: {}",
            difference.topic, difference.setting, difference.found, difference.wanted, difference.meaning
        );
        let verdict = if difference.refuses { CheckVerdict::Fail } else { CheckVerdict::Warn };
        Finding { about: "topics", verdict, found, fix: Some(difference.fix.clone()) }
    };
    replication(&replicas).into_iter().chain(others.into_iter().map(finding)).collect()
}

/// One finding for all topics with fewer replicas than `kafka.replication`.
fn replication(differences: &[&Difference]) -> Option<Finding> {
    let wanted = &differences.first()?.wanted;
    let found: BTreeSet<&str> = differences.iter().map(|difference| difference.found.as_str()).collect();
    let found = found.into_iter().collect::<Vec<_>>().join(" or ");
    let topics = differences.len();
    Some(Finding::warn(
        "topics",
        format!("{topics} topics have a replication of {found}, and kafka.replication is {wanted}"),
        format!("set kafka.replication to {found}, or add replicas with kafka-reassign-partitions.sh"),
    ))
}

fn transactions(open: &[OpenTransaction], config: &Config, now_ms: i64) -> Vec<Finding> {
    let ours_ms = i64::try_from(config.kafka.transaction_timeout_ms).unwrap_or(i64::MAX).saturating_mul(2);
    let commands = format!("{}commands", config.kafka.prefix);
    let mut findings = Vec::new();
    for open in open {
        let age_ms = open.since_ms.map_or(0, |since| now_ms.saturating_sub(since)).max(0);
        let (topic, partition, from, behind) = (&open.topic, open.partition, open.from, open.behind);
        let (limit_ms, whose) = if *topic == commands {
            (FOREIGN_TRANSACTION_MS, "a producer of commands")
        } else {
            (ours_ms, "a node")
        };
        // Transactions of a node that commits are open for a moment, ten times a second.
        if age_ms <= limit_ms && *topic != commands {
            continue;
        }
        let found = format!(
            "{topic}-{partition} has a transaction open from offset {from} on, {} s old; {behind} records stand \
             behind it, and nobody who reads committed records sees them",
            age_ms / 1_000
        );
        findings.push(if age_ms > limit_ms {
            let fix = format!(
                "it is of {whose} that is gone, and the brokers have not ended it: kafka-transactions.sh find-hanging, \
                 then abort, with --topic {topic} --partition {partition} --start-offset {from}"
            );
            Finding::fail("transactions", found, fix)
        } else {
            Finding::warn("transactions", found, "wait for its producer to end it, or for its timeout")
        });
    }
    if findings.is_empty() {
        findings.push(Finding::good("transactions", "none is open for long"));
    }
    findings
}

fn positions(journals: &[JournalReport]) -> Vec<Finding> {
    let (mut findings, mut lag, mut applied) = (Vec::new(), 0, 0);
    for journal in journals {
        let (partition, start, end) = (journal.partition, journal.bounds.start, journal.bounds.end);
        let lost = "stop every node and find out who deleted records or made the topic again; then restore the \
                    topics from a backup of the cluster, or begin anew with another prefix";
        let Some(position) = journal.position else {
            if start > 0 {
                let found =
                    format!("partition {partition}: nothing is applied, and the journal begins at {start}");
                findings.push(Finding::fail("positions", found, lost));
            }
            lag += end;
            continue;
        };
        applied += 1;
        if !position.is_of_these_topics {
            let found =
                format!("partition {partition}: its position belongs to topics that were made before these");
            findings.push(Finding::fail("positions", found, lost));
        } else if position.next < start || position.next > end {
            let found = format!(
                "partition {partition} is applied up to {}, and its journal holds {start} to {end}",
                position.next
            );
            findings.push(Finding::fail("positions", found, lost));
        } else {
            lag += end - position.next;
        }
    }
    if journals.is_empty() {
        return vec![Finding::warn("positions", "there are no journals to look at", "make the topics first")];
    }
    if findings.is_empty() {
        let count = journals.len();
        findings.push(Finding::good(
            "positions",
            format!("{applied} of {count} partitions have one, all in their journals"),
        ));
    }
    findings.push(if lag > LAG_RECORDS {
        let fix = "start a node, or look at the metrics of the one that runs: it applies less than comes in";
        Finding::warn("journal", format!("{lag} records are not applied and committed yet"), fix)
    } else {
        Finding::good("journal", format!("{lag} records are not applied and committed yet"))
    });
    findings
}

/// Journals have the brokers' clock, committed rows the nodes' clock. A record cannot come from the future, and a
/// commit cannot be earlier than what it applies. A late commit says nothing, because a take-over delays it.
fn clocks(journals: &[JournalReport], now_ms: i64) -> Vec<Finding> {
    let fix = "keep the clocks of brokers and nodes together (NTP): timers fire by the brokers' and are looked for by \
               the nodes'";
    let mut findings = Vec::new();
    let mut amiss = |found: String| findings.push(Finding::fail("clocks", found, fix));
    let positions = || journals.iter().filter_map(|journal| journal.position);
    let appended = journals.iter().filter_map(|journal| journal.last_ms).max();
    let committed = positions().filter_map(|position| position.committed_ms).max();
    for (whose, stamp_ms) in [("the brokers' clock", appended), ("the clock of a node", committed)] {
        let ahead_ms = stamp_ms.map_or(0, |stamp_ms| stamp_ms - now_ms);
        if ahead_ms > SKEW_MS {
            amiss(format!("{whose} is at least {ahead_ms} ms ahead of the one here"));
        }
    }
    let latest = positions().filter_map(lag).max_by_key(|(committed_ms, _)| *committed_ms);
    if let Some((_, lag_ms)) = latest.filter(|(_, lag_ms)| *lag_ms < -SKEW_MS) {
        amiss(format!("the node that committed last was at least {} ms behind the brokers", -lag_ms));
    }
    if findings.is_empty() {
        let known = |(_, lag_ms)| {
            format!("the last commit is {lag_ms} ms behind the append that it applied, by both clocks")
        };
        let found = latest.map_or_else(|| "not known: nothing was committed yet".to_owned(), known);
        findings.push(Finding::good("clocks", found));
    }
    findings
}

/// When it was committed, and how much later the record that it applied was appended.
fn lag(position: AppliedPosition) -> Option<(i64, i64)> {
    let (committed, appended) = (position.committed_ms?, position.appended_ms?);
    Some((committed, committed - appended))
}

fn commands(partitions: &[CommandsReport]) -> Vec<Finding> {
    let (mut findings, mut lag) = (Vec::new(), 0);
    for commands in partitions {
        let (partition, start, end) = (commands.partition, commands.bounds.start, commands.bounds.end);
        let way_out = "see docs/operating-kafka.md, 'Commands that are not read': set the offsets of the group by \
                       kafka-consumer-groups.sh --reset-offsets while no node runs";
        match commands.committed {
            Some((_, false)) => {
                let found = format!(
                    "partition {partition} was read in another topic of that name: it was made again"
                );
                findings.push(Finding::fail("commands", found, way_out));
            }
            Some((next, true)) if next < start || next > end => {
                let found =
                    format!("partition {partition} was read up to {next}, and holds {start} to {end}");
                findings.push(Finding::fail("commands", found, way_out));
            }
            Some((next, true)) => lag += end - next,
            None => lag += end - start,
        }
    }
    if !partitions.is_empty() && findings.is_empty() {
        findings.push(Finding::good("commands", format!("{lag} records are not taken in yet")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000;
    /// How long the examination took.
    const LOOKED_MS: i64 = 4_000;

    fn journal(position: AppliedPosition) -> JournalReport {
        JournalReport { partition: 3, bounds: 10..100, position: Some(position), last_ms: Some(NOW - 500) }
    }

    fn good() -> AppliedPosition {
        AppliedPosition {
            next: 100,
            is_of_these_topics: true,
            committed_ms: Some(NOW - 400),
            appended_ms: Some(NOW - 500),
        }
    }

    fn examined() -> Inspection {
        let commands = CommandsReport { partition: 0, bounds: 5..9, committed: Some((9, true)) };
        Inspection {
            denials: vec![],
            differences: vec![],
            journals: vec![journal(good())],
            open: vec![],
            commands: vec![commands],
        }
    }

    fn verdicts(change: impl FnOnce(&mut Inspection)) -> Vec<(&'static str, CheckVerdict)> {
        let mut examined = examined();
        change(&mut examined);
        let findings = judge(&examined, &Config::default(), NOW - LOOKED_MS..NOW);
        let bad = findings.iter().filter(|finding| finding.verdict != CheckVerdict::Good);
        assert!(bad.clone().all(|finding| finding.fix.is_some()));
        bad.map(|finding| (finding.about, finding.verdict)).collect()
    }

    #[test]
    fn a_log_that_fares_well_is_told_so() {
        assert_eq!(verdicts(|_| {}), []);
        let abouts: Vec<_> =
            judge(&examined(), &Config::default(), NOW..NOW).iter().map(|f| f.about).collect();
        assert_eq!(
            abouts,
            ["permissions", "topics", "transactions", "positions", "journal", "clocks", "commands"]
        );
    }

    #[test]
    fn a_missing_permission_is_all_that_is_told() {
        let denial = AclDenial { denied: "the brokers deny it".into(), fix: "kafka-acls.sh".into() };
        let found = verdicts(|examined| {
            examined.denials = vec![denial];
            examined.journals = vec![];
        });
        assert_eq!(found, [("permissions", CheckVerdict::Fail)]);
    }

    #[test]
    fn fewer_replicas_than_wished_are_one_finding() {
        let difference = |topic: &str, found: &str| Difference {
            topic: topic.into(),
            setting: "replication".into(),
            found: found.into(),
            wanted: "3".into(),
            meaning: "",
            fix: String::new(),
            refuses: false,
        };
        let mut examined = examined();
        examined.differences = ["journal", "timers", "control"].map(|topic| difference(topic, "1")).into();
        let told = topics(&examined);
        assert_eq!((told.len(), told[0].verdict), (1, CheckVerdict::Warn));
        assert_eq!(told[0].found, "3 topics have a replication of 1, and kafka.replication is 3");
        assert!(told[0].fix.as_deref().is_some_and(|fix| fix.starts_with("set kafka.replication to 1, ")));
        let missing =
            Difference { setting: "topic".into(), refuses: true, ..difference("events", "missing") };
        examined.differences.push(missing);
        let verdicts: Vec<_> = topics(&examined).iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [CheckVerdict::Warn, CheckVerdict::Fail]);
    }

    #[test]
    fn a_position_outside_of_its_journal_fails() {
        for position in [
            AppliedPosition { next: 9, ..good() },
            AppliedPosition { next: 101, ..good() },
            AppliedPosition { is_of_these_topics: false, ..good() },
        ] {
            let found = verdicts(|examined| examined.journals = vec![journal(position)]);
            assert_eq!(found, [("positions", CheckVerdict::Fail)], "{position:?}");
        }
        let lost = JournalReport { position: None, ..journal(good()) };
        assert!(
            verdicts(|examined| examined.journals = vec![lost]).contains(&("positions", CheckVerdict::Fail))
        );
    }

    #[test]
    fn a_transaction_that_outlived_its_timeout_fails() {
        let open = |topic: &str, age_ms: i64| OpenTransaction {
            topic: topic.into(),
            partition: 1,
            from: 7,
            behind: 3,
            since_ms: Some(NOW - age_ms),
        };
        for (topic, age_ms, expected) in [
            ("everlog.events", 100, vec![]),
            ("everlog.events", 32_000, vec![]),
            ("everlog.events", 60_000, vec![("transactions", CheckVerdict::Fail)]),
            ("everlog.commands", 100, vec![("transactions", CheckVerdict::Warn)]),
            ("everlog.commands", 3_600_000, vec![("transactions", CheckVerdict::Fail)]),
        ] {
            assert_eq!(
                verdicts(|examined| examined.open = vec![open(topic, age_ms)]),
                expected,
                "{topic} {age_ms}"
            );
        }
    }

    #[test]
    fn clocks_that_are_apart_are_told() {
        let ahead = JournalReport { last_ms: Some(NOW + 5_000), ..journal(good()) };
        assert_eq!(verdicts(|examined| examined.journals = vec![ahead]), [("clocks", CheckVerdict::Fail)]);
        let behind = AppliedPosition { committed_ms: Some(NOW - 9_000), ..good() };
        assert_eq!(verdicts(|e| e.journals = vec![journal(behind)]), [("clocks", CheckVerdict::Fail)]);
        let early = AppliedPosition { committed_ms: Some(NOW + 9_000), ..good() };
        assert_eq!(verdicts(|e| e.journals = vec![journal(early)]), [("clocks", CheckVerdict::Fail)]);
    }

    #[test]
    fn what_a_take_over_delays_says_nothing_of_clocks() {
        let meanwhile = JournalReport { last_ms: Some(NOW - 100), ..journal(good()) };
        assert_eq!(
            verdicts(|examined| examined.journals = vec![meanwhile]),
            [],
            "appended while it was looked"
        );
        let late = AppliedPosition { appended_ms: Some(NOW - 20_000), ..good() };
        assert_eq!(verdicts(|e| e.journals = vec![journal(late)]), [], "committed after a take-over");
    }

    #[test]
    fn commands_that_cannot_be_read_fail() {
        for committed in [(4, true), (10, true), (7, false)] {
            let commands = CommandsReport { partition: 0, bounds: 5..9, committed: Some(committed) };
            assert_eq!(
                verdicts(|e| e.commands = vec![commands]),
                [("commands", CheckVerdict::Fail)],
                "{committed:?}"
            );
        }
    }

    #[test]
    fn much_that_is_not_applied_is_told() {
        let behind = JournalReport { bounds: 10..1_000_000, ..journal(good()) };
        assert_eq!(verdicts(|examined| examined.journals = vec![behind]), [("journal", CheckVerdict::Warn)]);
    }
}
