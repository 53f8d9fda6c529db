//! Creates, checks and removes the topics.

use std::time::{Duration, Instant};

use everlog_log::Error;

use crate::client::consumer::TopicEnds;
use crate::control::control_topic::ControlTopic;
use crate::errors::refused;
use crate::options::Options;
use crate::permissions::AclDenial;
use crate::record_format::Incarnation;
use crate::topics::admin::Admin;
use crate::topics::definition::{Difference, plan, wanted};
use crate::topics::identity::{self, TopicIds};
use crate::topics::permitted::TopicsUse;

/// How often it is checked whether created topics are listed.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What differs from how the topics of the cluster must be, the worst first.
///
/// # Errors
/// No broker answers, or it does not let us look.
pub fn check(options: &Options) -> Result<Vec<Difference>, Error> {
    options.validate()?;
    let admin = permitted(options)?;
    let ends = std::sync::Arc::new(TopicEnds::open(options)?);
    match recorded(options, &admin, &ends)? {
        Some((control, fixed)) => compare(options, &admin, fixed.partitions, &control.topic_ids()?),
        None => compare(options, &admin, options.partitions, &TopicIds::new()),
    }
}

/// What [`create`] did.
#[derive(Debug)]
pub struct Creation {
    /// The full names of the topics that were created, in order.
    pub created: Vec<String>,
    /// What differs from how the topics of the cluster must be, the worst first.
    pub differences: Vec<Difference>,
}

/// Creates missing topics and records the partition counts. Existing topics are not changed.
///
/// # Errors
/// No broker answers, or it does not let us; `Refused` where topics are there, but not the record of what was fixed.
pub fn create(options: &Options) -> Result<Creation, Error> {
    options.validate()?;
    let mut created = Vec::new();
    let admin = permitted(options)?;
    let ends = std::sync::Arc::new(TopicEnds::open(options)?);
    let (control, fixed) = match recorded(options, &admin, &ends)? {
        Some(recorded) => recorded,
        None => {
            let topics = wanted(options, options.partitions);
            let there = admin.topics(&topics)?;
            let control = options.topic("control");
            if !there.contains_key(&control) && there.contains_key(&options.topic("journal")) {
                return Err(refused(format!(
                    "there is a journal but no {control}: it would be taken for a new one, and what it holds for \
                     nothing. Restore the topic, or begin anew with another prefix"
                )));
            }
            // First of all the topic that says which count of partitions holds: two that differ must not mix.
            let missing =
                topics.iter().filter(|topic| topic.name == control && !there.contains_key(&control));
            let missing: Vec<_> = missing.collect();
            admin.create(&missing)?;
            created.extend(missing.iter().map(|topic| topic.name.clone()));
            let wish = Incarnation {
                id: random_id()?,
                partitions: options.partitions,
                group_partitions: options.group_partitions,
            };
            let control = ControlTopic::open(options, std::sync::Arc::clone(&ends))?;
            let fixed = control.propose(wish)?;
            (control, fixed)
        }
    };
    let known = control.topic_ids()?;
    identity::refuse_missing(options, &known, &identity::found(options, &admin)?)?;
    let topics = wanted(options, fixed.partitions);
    let there = admin.topics(&topics)?;
    let missing: Vec<_> = topics.iter().filter(|topic| !there.contains_key(&topic.name)).collect();
    admin.create(&missing)?;
    created.extend(missing.iter().map(|topic| topic.name.clone()));
    refuse_denied(options, &admin)?;
    // A broker acknowledges a topic before it lists it.
    let deadline = Instant::now() + options.call_timeout();
    loop {
        let differences = compare(options, &admin, fixed.partitions, &known)?;
        let is_shown = differences.iter().all(|difference| difference.setting != "topic");
        if is_shown || missing.is_empty() || Instant::now() > deadline {
            identity::record(&control, &known, &identity::found(options, &admin)?)?;
            return Ok(Creation { created, differences });
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Removes every topic of the prefix, and with them all that is in them.
///
/// # Errors
/// No broker answers, or it does not let us.
pub fn remove(options: &Options) -> Result<(), Error> {
    options.validate()?;
    let topics = wanted(options, 1);
    let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
    Admin::open(options)?.remove(&names)
}

/// Where topics may be looked at: what may not be described would count as missing.
fn permitted(options: &Options) -> Result<Admin, Error> {
    let admin = Admin::open(options)?;
    refuse_denied(options, &admin)?;
    Ok(admin)
}

fn refuse_denied(options: &Options, admin: &Admin) -> Result<(), Error> {
    let denials = admin.denials(options, TopicsUse::CheckTopics)?;
    if denials.is_empty() { Ok(()) } else { Err(AclDenial::all(denials)) }
}

/// The topic that says what was fixed when the topics were made, and what that is; if they were.
fn recorded(
    options: &Options,
    admin: &Admin,
    ends: &std::sync::Arc<TopicEnds>,
) -> Result<Option<(ControlTopic, Incarnation)>, Error> {
    let control: Vec<_> =
        wanted(options, 1).into_iter().filter(|topic| topic.name == options.topic("control")).collect();
    if admin.topics(&control)?.is_empty() {
        return Ok(None);
    }
    let control = ControlTopic::open(options, std::sync::Arc::clone(ends))?;
    Ok(control.incarnation()?.map(|fixed| (control, fixed)))
}

/// What differs from how the topics must be; `known`: the ids of those that the log was made with.
pub(crate) fn compare(
    options: &Options,
    admin: &Admin,
    partitions: u32,
    known: &TopicIds,
) -> Result<Vec<Difference>, Error> {
    let topics = wanted(options, partitions);
    let mut differences = plan(&admin.topics(&topics)?, &topics);
    if !known.is_empty() {
        identity::compare(options, known, &identity::found(options, admin)?, &mut differences);
    }
    differences.sort_by_key(|difference| !difference.refuses);
    Ok(differences)
}

fn random_id() -> Result<[u8; 16], Error> {
    use std::io::Read;
    let mut id = [0; 16];
    let source = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut id));
    source.map_err(|error| Error::Io { detail: format!("/dev/urandom: {error}") })?;
    Ok(id)
}
