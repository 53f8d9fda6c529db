//! The required topics and their settings, and how existing ones differ. No request is sent from here.

use std::collections::BTreeMap;

use everlog_log::Topic;

use crate::options::{Options, RECORD_OVERHEAD_BYTES};

/// Tombstones are kept for 7 days, so that rows on a node that was down for less can be restored from their checkpoint.
const DELETE_RETENTION_MS: i64 = 7 * 24 * 3_600_000;
/// With less a restore from a checkpoint may miss deletions.
const DELETE_RETENTION_MIN_MS: i64 = 24 * 3_600_000;
/// Rows that a later commit has changed are kept for an hour, so that an export can read those of one commit while nodes
/// serve. It may take half of that.
const COMPACTION_LAG_MS: i64 = 3_600_000;
/// With less the export of a small log may be refused.
const COMPACTION_LAG_MIN_MS: i64 = 600_000;
/// Segments of compacted topics: only closed ones are compacted.
const COMPACTED_SEGMENT_BYTES: i64 = 128 << 20;

/// What a topic is for: what its policy follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// The only truth: trimmed by position, stamped by the broker.
    Journal,
    /// The last value of each key.
    Rows,
    /// As long as its owner likes.
    Stream,
    /// Trimmed by position, unless its owner decides otherwise.
    Commands,
}

/// A topic as it must be.
#[derive(Clone, Debug)]
pub struct TopicDefinition {
    /// With the prefix.
    pub name: String,
    /// Fixed when it is made; of `commands` only the wish.
    pub partitions: u32,
    /// Of each partition.
    pub replication: u16,
    purpose: Use,
    message_bytes_max: usize,
}

/// A topic as it is.
#[derive(Clone, Debug, Default)]
pub struct ExistingTopic {
    /// Count of partitions.
    pub partitions: u32,
    /// Replicas of the partition that has the fewest.
    pub replication: u16,
    /// Its settings, defaults included.
    pub settings: BTreeMap<String, String>,
}

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The topic.
    pub topic: String,
    /// The setting, or "topic", "topic id", "partitions", "replication".
    pub setting: String,
    /// What is there.
    pub found: String,
    /// What must or should be.
    pub wanted: String,
    /// What it leads to.
    pub meaning: &'static str,
    /// How it is put right.
    pub fix: String,
    /// Serving on it would lose data or stop: it is refused.
    pub refuses: bool,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference { topic, setting, found, wanted, meaning, fix, .. } = self;
        write!(f, "{topic}: {setting} is {found}, wanted is {wanted}: {meaning}. {fix}")
    }
}

/// The topics of a log with so many partitions.
pub fn wanted(options: &Options, partitions: u32) -> Vec<TopicDefinition> {
    let topics = std::iter::once(("journal", Use::Journal))
        .chain(Topic::compacted().map(|topic| (topic.name(), Use::Rows)))
        .chain([("control", Use::Rows)])
        .chain(Topic::append_only().map(|topic| (topic.name(), Use::Stream)))
        .chain([("commands", Use::Commands)]);
    let topic = |(name, purpose)| TopicDefinition {
        name: options.topic(name),
        partitions: if name == "control" { 1 } else { partitions },
        replication: options.replication,
        purpose,
        message_bytes_max: options.record_bytes_max + RECORD_OVERHEAD_BYTES,
    };
    topics.map(topic).collect()
}

/// How long the topics of rows tell at least that one was deleted, in ms; none: for ever.
pub(crate) fn tombstones_ms(existing: &BTreeMap<String, ExistingTopic>, options: &Options) -> Option<i64> {
    let topics = Topic::compacted().map(|topic| existing.get(&options.topic(topic.name())));
    let kept = topics.flatten().filter_map(|topic| topic.settings.get("delete.retention.ms"));
    let kept_ms = kept.filter_map(|text| text.parse().ok()).filter(|kept_ms: &i64| *kept_ms >= 0);
    kept_ms.min()
}

/// How long the topics of rows keep at least what was changed, in ms.
pub(crate) fn compaction_lag_ms(existing: &BTreeMap<String, ExistingTopic>, options: &Options) -> i64 {
    let lag_ms = |topic: Topic| {
        let topic = existing.get(&options.topic(topic.name()))?;
        topic.settings.get("min.compaction.lag.ms")?.parse().ok()
    };
    Topic::compacted().map(|topic| lag_ms(topic).unwrap_or(0)).min().unwrap_or(0)
}

/// The differences between existing topics and required ones.
pub fn plan(existing: &BTreeMap<String, ExistingTopic>, wanted: &[TopicDefinition]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for topic in wanted {
        match existing.get(&topic.name) {
            Some(found) => topic.compare(found, &mut differences),
            None => differences.push(Difference {
                topic: topic.name.clone(),
                setting: "topic".into(),
                found: "missing".into(),
                wanted: "there".into(),
                meaning: "nothing can be written to it",
                fix: "Make it: everlog topics create".into(),
                refuses: true,
            }),
        }
    }
    differences
}

impl TopicDefinition {
    /// How it is made.
    pub(crate) fn settings(&self) -> Vec<(&'static str, &'static str)> {
        let rules = self.rules();
        let made = rules.into_iter().filter_map(|rule| Some((rule.setting, rule.made_with?)));
        // Topics are made seldom: the texts of their settings may stay.
        made.map(|(setting, value)| (setting, &*value.leak())).collect()
    }

    /// How long its records are kept, in words.
    pub fn retention(&self) -> &'static str {
        match self.purpose {
            Use::Journal => "kept until they are applied",
            Use::Rows => "compacted",
            Use::Stream => "kept as long as the brokers' default says",
            Use::Commands => "kept until they are read",
        }
    }

    /// The state of the log is made of its records.
    pub(crate) fn holds_state(&self) -> bool {
        matches!(self.purpose, Use::Journal | Use::Rows)
    }

    fn min_insync(&self) -> u16 {
        if self.replication >= 3 { 2 } else { 1 }
    }

    fn rules(&self) -> Vec<SettingRule> {
        let mut rules = self.rules_of_use();
        let largest = SettingRule::at_least(
            "max.message.bytes",
            self.message_bytes_max as i64,
            "large records would be refused by the broker, and their partition stop",
        );
        rules.extend([
            // What others may send is for them to know who let them.
            if self.purpose == Use::Commands { SettingRule { fits: Fits::Any, ..largest } } else { largest },
            SettingRule::exactly(
                "unclean.leader.election.enable",
                "false",
                "a broker that lags may become the leader, and acknowledged records be lost",
            ),
            SettingRule::at_least(
                "min.insync.replicas",
                self.min_insync().into(),
                "an acknowledged record may be on one disk only, and be lost with it",
            ),
        ]);
        rules
    }

    fn rules_of_use(&self) -> Vec<SettingRule> {
        let forever = |setting, meaning| SettingRule::exactly(setting, "-1", meaning);
        let deletes = |meaning| SettingRule::exactly("cleanup.policy", "delete", meaning);
        match self.purpose {
            Use::Journal => vec![
                deletes(
                    "records without keys cannot be compacted, and none may be forgotten before it is applied",
                ),
                forever("retention.ms", "records are deleted by time, applied or not"),
                forever("retention.bytes", "records are deleted by size, applied or not"),
                SettingRule::exactly(
                    "message.timestamp.type",
                    "LogAppendTime",
                    "time would be that of whoever appends, and run backwards",
                ),
            ],
            Use::Rows => vec![
                SettingRule::exactly(
                    "cleanup.policy",
                    "compact",
                    "rows are deleted by time, or old ones are kept for ever",
                ),
                SettingRule {
                    made_with: Some(DELETE_RETENTION_MS.to_string()),
                    refuses: false,
                    ..SettingRule::at_least(
                        "delete.retention.ms",
                        DELETE_RETENTION_MIN_MS,
                        "a node that was away for half as long must restore everything",
                    )
                },
                SettingRule {
                    made_with: Some(COMPACTION_LAG_MS.to_string()),
                    refuses: false,
                    ..SettingRule::at_least(
                        "min.compaction.lag.ms",
                        COMPACTION_LAG_MIN_MS,
                        "an export of the log that takes longer than half of it is refused while nodes serve",
                    )
                },
                SettingRule {
                    setting: "segment.bytes",
                    made_with: Some(COMPACTED_SEGMENT_BYTES.to_string()),
                    fits: Fits::Any,
                    refuses: false,
                    meaning: "",
                },
            ],
            Use::Stream => vec![deletes("only the last record of each workflow would be kept")],
            Use::Commands => vec![
                deletes("only the last command to each workflow would be kept"),
                SettingRule {
                    refuses: false,
                    ..forever("retention.ms", "commands that wait too long are deleted")
                },
                SettingRule {
                    refuses: false,
                    ..forever("retention.bytes", "commands that wait are deleted by size")
                },
            ],
        }
    }

    fn compare(&self, found: &ExistingTopic, differences: &mut Vec<Difference>) {
        let mut differ = |setting: &str, found: String, wanted: String, meaning, fix: String, refuses| {
            let (topic, setting) = (self.name.clone(), setting.to_owned());
            differences.push(Difference { topic, setting, found, wanted, meaning, fix, refuses });
        };
        if self.purpose != Use::Commands && found.partitions != self.partitions {
            differ(
                "partitions",
                found.partitions.to_string(),
                self.partitions.to_string(),
                "a workflow's records would be looked for in the wrong partition",
                "The count is fixed with the topics: nobody may change it; restore the topic".into(),
                true,
            );
        }
        if found.replication < self.replication {
            differ(
                "replication",
                found.replication.to_string(),
                self.replication.to_string(),
                "fewer brokers may fail than was wished",
                "Add replicas with kafka-reassign-partitions.sh, or set kafka.replication to what there is"
                    .into(),
                false,
            );
        }
        for rule in self.rules() {
            let value = found.settings.get(rule.setting);
            let wanted = match rule.verdict(value.map(String::as_str), found.replication) {
                Some(wanted) => wanted,
                None => continue,
            };
            let fix = format!(
                "Set it: kafka-configs.sh --alter --entity-type topics --entity-name {} --add-config {}={}",
                self.name,
                rule.setting,
                rule.made_with.as_deref().unwrap_or(&wanted)
            );
            // What a broker does not tell cannot be held against it.
            let refuses = rule.refuses && value.is_some();
            let value = value.map_or("not told", String::as_str).to_owned();
            differ(rule.setting, value, wanted, rule.meaning, fix, refuses);
        }
    }
}

enum Fits {
    Exactly(&'static str),
    AtLeast(i64),
    Any,
}

/// What a setting must be.
struct SettingRule {
    setting: &'static str,
    /// None: the broker's default.
    made_with: Option<String>,
    fits: Fits,
    meaning: &'static str,
    refuses: bool,
}

impl SettingRule {
    fn exactly(setting: &'static str, value: &'static str, meaning: &'static str) -> Self {
        let (made_with, fits) = (Some(value.to_owned()), Fits::Exactly(value));
        SettingRule { setting, made_with, fits, meaning, refuses: true }
    }

    fn at_least(setting: &'static str, value: i64, meaning: &'static str) -> Self {
        let (made_with, fits) = (Some(value.to_string()), Fits::AtLeast(value));
        SettingRule { setting, made_with, fits, meaning, refuses: true }
    }

    /// None: it is as it must be; else what it must be.
    fn verdict(&self, value: Option<&str>, replication: u16) -> Option<String> {
        match self.fits {
            Fits::Any => None,
            Fits::Exactly(wanted) => (value != Some(wanted)).then(|| wanted.to_owned()),
            Fits::AtLeast(least) => {
                let number: Option<i64> = value.and_then(|value| value.parse().ok());
                if self.setting == "min.insync.replicas" {
                    // Measured by the replicas there are: more than those, and nothing can be written.
                    let least = if replication >= 3 { 2 } else { 1 };
                    let fits = number.is_some_and(|n| (least..=i64::from(replication)).contains(&n));
                    return (!fits).then(|| least.to_string());
                }
                let fits = number.is_some_and(|number| number >= least || number == -1);
                (!fits).then(|| format!("at least {least}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options { partitions: 4, ..Options::new("localhost:9092") }
    }

    /// As `create` makes them.
    fn made(options: &Options) -> BTreeMap<String, ExistingTopic> {
        let topics = wanted(options, options.partitions).into_iter().map(|topic| {
            let settings = topic.settings().into_iter();
            let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            let existing =
                ExistingTopic { partitions: topic.partitions, replication: topic.replication, settings };
            (topic.name, existing)
        });
        topics.collect()
    }

    fn differences(
        options: &Options,
        change: impl FnOnce(&mut BTreeMap<String, ExistingTopic>),
    ) -> Vec<Difference> {
        let mut topics = made(options);
        change(&mut topics);
        plan(&topics, &wanted(options, options.partitions))
    }

    fn with(topic: &str, setting: &str, value: &str) -> (String, bool) {
        let options = options();
        let found = differences(&options, |topics| {
            let topic = topics.get_mut(&options.topic(topic)).expect("there");
            topic.settings.insert(setting.into(), value.into());
        });
        assert_eq!(found.len(), 1, "{topic} {setting} {value}: {found:?}");
        let difference = found.into_iter().next().expect("one");
        assert_eq!((difference.setting.as_str(), difference.found.as_str()), (setting, value));
        (difference.to_string(), difference.refuses)
    }

    #[test]
    fn how_large_commands_may_be_is_for_their_owner_to_say() {
        let options = options();
        let mut found = made(&options);
        let commands = found.get_mut("everlog.commands").expect("it is made");
        commands.settings.insert("max.message.bytes".into(), "1048588".into());
        assert!(plan(&found, &wanted(&options, options.partitions)).is_empty());
    }

    #[test]
    fn topics_as_they_are_made_do_not_differ() {
        for replication in [1, 2, 3] {
            let options = Options { replication, ..options() };
            assert_eq!(differences(&options, |_| {}), []);
        }
    }

    #[test]
    fn what_would_lose_data_refuses_and_says_how_it_is_put_right() {
        for (topic, setting, value) in [
            ("journal", "retention.ms", "604800000"),
            ("journal", "retention.bytes", "1000000"),
            ("journal", "cleanup.policy", "compact"),
            ("journal", "message.timestamp.type", "CreateTime"),
            ("journal", "max.message.bytes", "1048588"),
            ("journal", "min.insync.replicas", "1"),
            ("journal", "min.insync.replicas", "4"),
            ("changelog", "cleanup.policy", "delete"),
            ("changelog", "cleanup.policy", "compact,delete"),
            ("control", "cleanup.policy", "delete"),
            ("history", "unclean.leader.election.enable", "true"),
            ("events", "cleanup.policy", "compact"),
        ] {
            let (message, refuses) = with(topic, setting, value);
            assert!(refuses, "{message}");
            assert!(message.contains(&format!("--add-config {setting}=")), "{message}");
        }
    }

    #[test]
    fn what_its_owner_may_choose_is_only_told() {
        for (topic, setting, value) in [
            ("commands", "retention.ms", "1000"),
            ("timers", "delete.retention.ms", "1000"),
            ("history", "min.compaction.lag.ms", "0"),
        ] {
            assert!(!with(topic, setting, value).1);
        }
        let options = options();
        let events = options.topic("events");
        let chosen = differences(&options, |topics| {
            let settings = &mut topics.get_mut(&events).expect("there").settings;
            settings.insert("retention.ms".into(), "1000".into());
        });
        assert_eq!(chosen, []);
    }

    #[test]
    fn deletions_are_told_for_as_long_as_the_topic_that_forgets_first_keeps_them() {
        let options = options();
        let mut topics = made(&options);
        assert_eq!(tombstones_ms(&topics, &options), Some(DELETE_RETENTION_MS));
        let timers = topics.get_mut(&options.topic("timers")).expect("there");
        timers.settings.insert("delete.retention.ms".into(), "1000".into());
        assert_eq!(tombstones_ms(&topics, &options), Some(1_000));
    }

    #[test]
    fn changed_rows_are_kept_for_as_long_as_the_topic_that_is_compacted_first_keeps_them() {
        let options = options();
        let mut topics = made(&options);
        assert_eq!(compaction_lag_ms(&topics, &options), COMPACTION_LAG_MS);
        let history = topics.get_mut(&options.topic("history")).expect("there");
        history.settings.insert("min.compaction.lag.ms".into(), "5000".into());
        assert_eq!(compaction_lag_ms(&topics, &options), 5_000);
        topics.remove(&options.topic("timers"));
        assert_eq!(compaction_lag_ms(&topics, &options), 0, "it may be anything");
    }

    #[test]
    fn a_missing_topic_or_another_count_of_partitions_refuses() {
        let options = options();
        let (journal, timers, commands) =
            (options.topic("journal"), options.topic("timers"), options.topic("commands"));
        let found = differences(&options, |topics| {
            topics.remove(&journal);
            topics.get_mut(&timers).expect("there").partitions = 5;
            // Anybody may produce to any of its partitions.
            topics.get_mut(&commands).expect("there").partitions = 9;
        });
        let found: Vec<_> = found.iter().map(|d| (d.topic.as_str(), d.setting.as_str(), d.refuses)).collect();
        assert_eq!(found, [(journal.as_str(), "topic", true), (timers.as_str(), "partitions", true)]);
    }

    #[test]
    fn fewer_replicas_than_wished_are_told_and_measured_by_themselves() {
        let options = options();
        let journal = options.topic("journal");
        let found = differences(&options, |topics| {
            let topic = topics.get_mut(&journal).expect("there");
            topic.replication = 1;
            topic.settings.insert("min.insync.replicas".into(), "1".into());
        });
        let found: Vec<_> = found.iter().map(|d| (d.setting.as_str(), d.refuses)).collect();
        assert_eq!(found, [("replication", false)]);
    }
}
