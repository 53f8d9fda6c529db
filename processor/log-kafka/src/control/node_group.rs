//! The consumer group of the nodes that share a log: the brokers detect a dead member and elect the coordinator.
//!
//! The group has one partition, that of `control`; its owner is the coordinator. No record is read through the group.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use everlog_log::Error;
use parking_lot::Mutex;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaRespErr;

use crate::client::consumer::FOLLOW_WAIT;
use crate::client::group_offsets::committed_offsets;
use crate::client::librdkafka::Live;
use crate::client::librdkafka::{self, Roll};
use crate::client::log_lines::{ClientLog, logs_as_client};
use crate::errors::{io, io_text};
use crate::options::Options;
use crate::permissions::{AclOperation, AclResource};

/// The group's name after the prefix.
const GROUP: &str = "nodes";
/// The shortest that brokers allow by default.
const SESSION_TIMEOUT_MS: &str = "6000";
const HEARTBEAT_MS: &str = "2000";
/// How long the thread waits for an event of the group.
const POLL: Duration = Duration::from_millis(50);
/// Timeout of a request for the members.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// Prefix and suffix of a node's name in its member's client id.
const CLIENT_PREFIX: &str = "everlog-";
const CLIENT_SUFFIX: &str = "-nodes";

/// This node among the others. Dropping it leaves the group, which the brokers hear of at once.
pub struct NodeGroup {
    told: Arc<GroupState>,
    /// Asks who is there.
    asker: Mutex<Live<BaseConsumer<ClientLog>>>,
    options: Options,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct GroupState {
    is_placer: AtomicBool,
    is_away: AtomicBool,
    is_over: AtomicBool,
}

/// Callbacks of the group, called inside of the consumer's poll only.
struct NodeGroupListener {
    told: Arc<GroupState>,
    wake: Box<dyn Fn() + Send + Sync>,
    client_log: ClientLog,
}

logs_as_client!(NodeGroupListener);

impl NodeGroup {
    /// Joins the group; `wake` is called when this node begins to place, or ends to.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn join(options: &Options, wake: impl Fn() + Send + Sync + 'static) -> Result<Self, Error> {
        may_be_described(options)?;
        let told: Arc<GroupState> = Arc::default();
        let mut config = options.member(GROUP, FOLLOW_WAIT);
        config.set("client.id", format!("{CLIENT_PREFIX}{}{CLIENT_SUFFIX}", options.node));
        if options.property("session.timeout.ms").is_none() {
            config.set("session.timeout.ms", SESSION_TIMEOUT_MS);
            config.set("heartbeat.interval.ms", HEARTBEAT_MS);
        }
        let topic = options.topic("control");
        let tidings = NodeGroupListener {
            told: Arc::clone(&told),
            wake: Box::new(wake),
            client_log: ClientLog::new("nodes"),
        };
        let consumer: Live<BaseConsumer<NodeGroupListener>> = config
            .create_with_context(tidings)
            .map_err(|error| io("a member of the nodes' group", &error))?;
        consumer.subscribe(&[&topic]).map_err(|error| io("joining the nodes' group", &error))?;
        let asker = asker(options)?;
        let thread = std::thread::Builder::new().name("nodes".into());
        let shared = Arc::clone(&told);
        let thread = thread.spawn(move || {
            let mut was_away = false;
            while !shared.is_over.load(Ordering::Relaxed) {
                let is_away = shared.is_away.load(Ordering::Relaxed);
                if is_away != was_away {
                    was_away = is_away;
                    if is_away {
                        consumer.unsubscribe();
                    } else if let Err(error) = consumer.subscribe(&[&topic]) {
                        tracing::error!(%error, "the node group cannot be joined again");
                    }
                }
                // Nothing is fetched: what comes is the group's, or an error that was logged.
                drop(consumer.poll(POLL));
            }
        });
        let thread = thread.map_err(|error| io_text(format!("a thread: {error}")))?;
        Ok(NodeGroup { told, asker: Mutex::new(asker), options: options.clone(), thread: Some(thread) })
    }

    /// True while this node is the one that places.
    pub fn is_placer(&self) -> bool {
        self.told.is_placer.load(Ordering::Relaxed)
    }

    /// Leaves the group for a while, or comes back: nobody who is away places, or counts as alive.
    pub fn is_away(&self, is_away: bool) {
        self.told.is_away.store(is_away, Ordering::Relaxed);
    }

    /// The names of all nodes that the brokers take for alive.
    ///
    /// # Errors
    /// `Io`: the brokers do not answer, or do not know yet that this node is the coordinator.
    pub fn live(&self) -> Result<Vec<String>, Error> {
        let rolls = {
            let asker = self.asker.lock();
            rolls(&asker, &self.options)?
        };
        let names = match self.is_placer() {
            true => as_the_placer_is_told(rolls, &self.options.node),
            false => Some(all(rolls)),
        };
        names.ok_or_else(|| io_text("no broker says yet that this node places".to_owned()))
    }
}

/// The same for a process that is not a member.
pub(crate) fn live(asker: &Live<BaseConsumer<ClientLog>>, options: &Options) -> Result<Vec<String>, Error> {
    let names = all(rolls(asker, options)?);
    if names.is_empty() {
        may_be_described(options)?;
    }
    Ok(names)
}

/// Brokers that deny the description of a group list none.
///
/// # Errors
/// `Denied`
fn may_be_described(options: &Options) -> Result<(), Error> {
    let role = "nodes-asker";
    let member = options.member(GROUP, FOLLOW_WAIT).create_with_context(ClientLog::new(role));
    let member: Live<BaseConsumer<ClientLog>> = member.map_err(|error| io("a client", &error))?;
    let mut list = TopicPartitionList::new();
    list.add_partition(&options.topic("control"), 0);
    let group = options.group(GROUP);
    let needs = [(AclOperation::Read, AclResource::Group(&group))];
    match committed_offsets(&member, list, TOLD_WITHIN) {
        Ok(_) => Ok(()),
        Err(error) => match member.principal().fault("who is in the group of the nodes", &error, &needs) {
            denied @ Error::Denied { .. } => Err(denied),
            // It comes into being with its first member.
            _passing => Ok(()),
        },
    }
}

fn asker(options: &Options) -> Result<Live<BaseConsumer<ClientLog>>, Error> {
    let role = "nodes-asker";
    let asker = options.client(role).create_with_context(ClientLog::new(role));
    asker.map_err(|error| io("a client", &error))
}

/// The group as each broker that answers has it. A client's request fails while the client still knows a dead broker, for
/// minutes; a new client knows only live ones.
fn rolls(asker_so_far: &Live<BaseConsumer<ClientLog>>, options: &Options) -> Result<Vec<Roll>, Error> {
    let group = format!("{}{GROUP}", options.prefix);
    librdkafka::rolls(asker_so_far.client(), &group, TOLD_WITHIN).or_else(|refusal| {
        tracing::debug!(%refusal, "the members are requested again by a new client");
        librdkafka::rolls(asker(options)?.client(), &group, TOLD_WITHIN)
    })
}

/// The members in any roll: one name per process.
fn all(rolls: Vec<Roll>) -> Vec<String> {
    let members = rolls.into_iter().flatten();
    members.filter_map(|(client_id, _)| name_of(&client_id).map(str::to_owned)).collect()
}

/// The live nodes, for the coordinator: None where no roll says that this node is it. A broker that lost the others keeps
/// the group as it was, so a node that one roll lacks is dead, or joins a moment later.
fn as_the_placer_is_told(rolls: Vec<Roll>, me: &str) -> Option<Vec<String>> {
    let says_so = |roll: &Roll| {
        roll.iter().any(|(client_id, has_partitions)| *has_partitions && name_of(client_id) == Some(me))
    };
    let mut rolls = rolls.into_iter().filter(says_so).map(|roll| all(vec![roll]));
    let mut names = rolls.next()?;
    rolls.for_each(|other| names.retain(|name| other.contains(name)));
    Some(names)
}

fn name_of(client_id: &str) -> Option<&str> {
    client_id.strip_prefix(CLIENT_PREFIX)?.strip_suffix(CLIENT_SUFFIX)
}

impl Drop for NodeGroup {
    fn drop(&mut self) {
        self.told.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It drops the consumer, which leaves the group. One that has panicked left nothing to wait for.
            let _ = thread.join();
        }
    }
}

impl ConsumerContext for NodeGroupListener {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let is_given = code == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        let nothing = TopicPartitionList::new();
        let outcome = match is_given {
            true => consumer.incremental_assign(&nothing),
            false => consumer.incremental_unassign(&nothing),
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "a rebalance of the node group was not answered; the group will repeat it");
        }
        if list.count() > 0 {
            self.told.is_placer.store(is_given, Ordering::Relaxed);
            (self.wake)();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_coordinates_no_more_keeps_nobody_alive() {
        let roll = |members: &[(&str, bool)]| -> Roll {
            let members = members.iter();
            members.map(|(name, has)| (format!("{CLIENT_PREFIX}{name}{CLIENT_SUFFIX}"), *has)).collect()
        };
        let told = |rolls: Vec<Roll>| as_the_placer_is_told(rolls, "b").map(|names| names.join(" "));
        let now = || roll(&[("b", true), ("c", false)]);
        assert_eq!(told(vec![now()]).as_deref(), Some("b c"));
        let before = roll(&[("a", true), ("b", false), ("c", false)]);
        assert_eq!(told(vec![before.clone(), now()]).as_deref(), Some("b c"), "another one placed then");
        let with_a = roll(&[("a", false), ("b", true), ("c", false)]);
        assert_eq!(told(vec![with_a, now()]).as_deref(), Some("b c"), "it placed then as well");
        assert_eq!(told(vec![before.clone()]), None, "the one that coordinates now does not answer");
        assert_eq!(told(Vec::new()), None);
        assert_eq!(all(vec![before, now()]), ["a", "b", "c", "b", "c"]);
    }

    #[test]
    fn a_member_is_known_by_its_nodes_name() {
        assert_eq!(name_of("everlog-a-nodes-1-nodes"), Some("a-nodes-1"));
        assert_eq!(name_of("everlog-a-commands"), None);
        assert_eq!(name_of("rdkafka"), None);
    }
}
