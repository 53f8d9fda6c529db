//! Everything that the checker compares: requests, replies, the contents of topics, and what consumers and workers
//! saw.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use prost::Message;

use crate::checker::deliveries::Trouble;
use crate::checker::terms::Terms;
use crate::client_log::Call;
use crate::environment;
use crate::event::{Event, fields, number, schema, text};
use crate::listed::ListedState;
use crate::polls::Poll;
use crate::reader::{Entry, read};
use crate::register::Read;
use crate::waits::Wait;

/// The name of the header that every output carries.
const HEADER: &str = "everlog";
/// Slices of the Workflow Ids.
const BUCKETS: u32 = 16_384;
/// What keys of the changelog begin with that are no state: positions and fences.
const RESERVED: [u8; 2] = [0xff, 0xff];
const POSITION: u8 = b'p';
/// The kind of row that holds what changes with every step of a run.
const HEAD: u8 = b'h';

/// What the header of an output says of the commit that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub topic: &'static str,
    pub partition: i32,
    pub offset: i64,
    pub fence: u64,
    pub commit: u64,
    pub applied: u64,
    pub place: u32,
    /// The row that closes a commit.
    pub is_position: bool,
}

/// What the changelog holds of a run in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub next_event_id: i64,
    pub status: i64,
    /// Where it stands, and where all of its Workflow Id belongs.
    pub partition: i32,
    pub home: i32,
}

/// An event as it stands in a history: its kind and time.
pub type Line = (i64, String, i64);

/// What became of a command that came as a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandReply {
    pub command_id: String,
    /// Of a reply its status, of a rejection its code.
    pub what: String,
    /// Where the command stood.
    pub at: (i64, i64),
}

#[derive(Clone, Debug, Default)]
pub struct Observations {
    pub calls: Vec<Call>,
    pub events: Vec<Event>,
    pub marks: Vec<Mark>,
    /// By run id.
    pub heads: BTreeMap<String, Head>,
    /// The `history` topic, by run id.
    pub kept: BTreeMap<String, Vec<Line>>,
    /// What the node answered at the end, by run id.
    pub told: BTreeMap<String, Vec<Line>>,
    /// What lists said at the end, by run id; none where nobody asked.
    pub listed: Option<BTreeMap<String, ListedState>>,
    /// What a consumer of `events` saw that read along, and what one sees afterwards, by partition and offset.
    pub seen: BTreeMap<(i32, i64), Entry>,
    pub later: BTreeMap<(i32, i64), Entry>,
    /// Where the records of `commands` stand that finished transactions left and that ask for a reply, by command id.
    pub commands: Vec<((i64, i64), String)>,
    pub replies: Vec<CommandReply>,
    pub rejections: Vec<CommandReply>,
    /// What was seen of registers.
    pub reads: Vec<Read>,
    /// What workers got, by the identities of their polls.
    pub polls: BTreeMap<String, Poll>,
    /// How long calls waited.
    pub waits: Vec<Wait>,
    /// When something was harmed; none where nobody noted it.
    pub troubles: Option<Vec<Trouble>>,
    /// Who had which partition when.
    pub terms: Terms,
    /// Old rows may be gone.
    pub is_compacted: bool,
    /// Old events may be gone.
    pub is_trimmed: bool,
    /// What went wrong in the reading itself.
    pub faults: Vec<String>,
}

impl Observations {
    /// Reads all topics of a prefix. Of `events` what was seen before it was deleted counts too, where that is so.
    pub fn read(&mut self, bootstrap: &str, prefix: &str) -> anyhow::Result<()> {
        let topic = |name: &str| read(bootstrap, &format!("{prefix}{name}"));
        let events = topic("events")?;
        if self.is_trimmed {
            let first = |partition| {
                let mut left = events.iter().filter(|entry| entry.partition == partition);
                left.next().map_or(i64::MAX, |entry| entry.offset)
            };
            let gone = self.seen.iter().filter(|((partition, offset), _)| *offset < first(*partition));
            self.later = gone.map(|(place, entry)| (*place, entry.clone())).collect();
        }
        self.later.extend(events.into_iter().map(|entry| ((entry.partition, entry.offset), entry)));
        let events: Vec<Entry> = self.later.values().cloned().collect();
        for entry in &events {
            self.note("events", entry);
            match Event::read(entry) {
                Ok(event) => self.events.push(event),
                Err(error) => {
                    self.faults.push(format!("events {}-{}: {error:#}", entry.partition, entry.offset));
                }
            }
        }
        let changelog = topic("changelog")?;
        changelog.iter().for_each(|entry| self.note("changelog", entry));
        self.heads = heads(&changelog)?;
        for entry in changelog.iter().filter(|entry| is_position(entry)) {
            self.terms.note_position(entry)?;
        }
        topic("control")?.iter().try_for_each(|entry| self.terms.note_control(entry))?;
        topic("journal")?.iter().try_for_each(|entry| self.terms.note_journal(entry))?;
        let history = topic("history")?;
        history.iter().for_each(|entry| self.note("history", entry));
        self.kept = kept(&history)?;
        topic("timers")?.iter().for_each(|entry| self.note("timers", entry));
        for entry in topic("commands")? {
            let header = |name: &str| entry.headers.iter().find(|(key, _)| key == name);
            let Some((_, Some(id))) = header("command-id").filter(|_| header("reply-topic").is_some()) else {
                continue;
            };
            let place = (i64::from(entry.partition), entry.offset);
            self.commands.push((place, String::from_utf8_lossy(id).into_owned()));
        }
        let outcome = schema(include_str!("../../schemas/Outcome.avsc"));
        for entry in topic("replies")? {
            self.note("replies", &entry);
            match told(&outcome, &entry, "status") {
                Ok(told) => self.replies.push(told),
                Err(error) => {
                    self.faults.push(format!("replies {}-{}: {error:#}", entry.partition, entry.offset))
                }
            }
        }
        let rejection = schema(include_str!("../../schemas/Rejection.avsc"));
        for entry in topic("rejections")? {
            self.note("rejections", &entry);
            match told(&rejection, &entry, "code") {
                Ok(told) => self.rejections.push(told),
                Err(error) => {
                    self.faults.push(format!("rejections {}-{}: {error:#}", entry.partition, entry.offset));
                }
            }
        }
        Ok(())
    }

    /// Notes the mark of an output; one without came from somebody else.
    fn note(&mut self, topic: &'static str, entry: &Entry) {
        match Mark::read(topic, entry) {
            Some(mark) => self.marks.push(mark),
            None => self.faults.push(format!("{topic} {}-{} has no mark", entry.partition, entry.offset)),
        }
    }
}

impl Mark {
    fn read(topic: &'static str, entry: &Entry) -> Option<Self> {
        let (_, header) = entry.headers.iter().find(|(name, _)| name == HEADER)?;
        let bytes: [u8; 28] = header.as_deref()?.try_into().ok()?;
        let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Some(Self {
            topic,
            partition: entry.partition,
            offset: entry.offset,
            fence: long(0),
            commit: long(8),
            applied: long(16),
            place: u32::from_be_bytes(bytes[24..].try_into().expect("four bytes")),
            is_position: topic == "changelog" && is_position(entry),
        })
    }
}

/// A position row, of the changelog.
fn is_position(entry: &Entry) -> bool {
    let key = entry.key.as_deref().unwrap_or_default();
    key.starts_with(&RESERVED) && key.get(2) == Some(&POSITION)
}

fn told(schema: &apache_avro::Schema, entry: &Entry, what: &str) -> anyhow::Result<CommandReply> {
    let fields = fields(schema, entry.value.as_deref())?;
    Ok(CommandReply {
        command_id: text(&fields, "command_id").unwrap_or_default(),
        what: text(&fields, what)?,
        at: (number(&fields, "partition")?, number(&fields, "offset")?),
    })
}

/// The partition that the Workflow Id of a row's key belongs to: of 16,384 buckets in order each has as many. The bucket is the
/// CRC-32 of the namespace's UUID, a zero byte and the Workflow Id.
fn home_of(key: &[u8]) -> Option<i32> {
    let length = usize::from(u16::from_be_bytes(key.get(18..20)?.try_into().ok()?));
    let namespace: String = key.get(2..18)?.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut hash = crc32fast::Hasher::new();
    hash.update(uuid(&namespace).as_bytes());
    hash.update(&[0]);
    hash.update(key.get(20..20 + length)?);
    let partitions: u32 = environment::PARTITIONS.parse().ok()?;
    i32::try_from(hash.finalize() % BUCKETS * partitions / BUCKETS).ok()
}

/// A UUID of 32 hexadecimal digits.
fn uuid(hex: &str) -> String {
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The run id in a row's key and what follows it: bucket (2), namespace (16), length (2), Workflow Id, run id (16).
fn run_of(key: &[u8]) -> Option<(String, &[u8])> {
    let length = usize::from(u16::from_be_bytes(key.get(18..20)?.try_into().ok()?));
    let run = key.get(20 + length..36 + length)?;
    let hex: String = run.iter().map(|byte| format!("{byte:02x}")).collect();
    Some((uuid(&hex), &key[36 + length..]))
}

fn heads(changelog: &[Entry]) -> anyhow::Result<BTreeMap<String, Head>> {
    let mut heads = BTreeMap::new();
    for entry in changelog {
        let key = entry.key.as_deref().unwrap_or_default();
        let Some((run_id, suffix)) = run_of(key).filter(|_| !key.starts_with(&RESERVED)) else { continue };
        if suffix != [HEAD] {
            continue;
        }
        match &entry.value {
            Some(value) => {
                let numbers = varints(value).with_context(|| format!("the head of {run_id}"))?;
                let number = |tag| numbers.get(&tag).copied().unwrap_or(0) as i64;
                let home = home_of(key).context("a run belongs somewhere")?;
                let (next_event_id, status, partition) = (number(1), number(3), entry.partition);
                heads.insert(run_id, Head { next_event_id, status, partition, home });
            }
            None => {
                heads.remove(&run_id);
            }
        }
    }
    Ok(heads)
}

/// The batches of each run, put together: the last row of a key holds.
fn kept(history: &[Entry]) -> anyhow::Result<BTreeMap<String, Vec<Line>>> {
    let mut batches: BTreeMap<(String, &[u8]), Vec<Line>> = BTreeMap::new();
    for entry in history {
        let key = entry.key.as_deref().unwrap_or_default();
        if key.starts_with(&RESERVED) {
            // It was written for the end of its transaction only.
            ensure!(entry.value.is_none(), "a row of the log's own in history");
            continue;
        }
        let (run_id, suffix) = run_of(key).context("a key of history")?;
        match &entry.value {
            Some(value) => {
                let events = History::decode(value.as_slice())?.events;
                batches.insert((run_id, suffix), events.iter().map(line).collect());
            }
            None => drop(batches.remove(&(run_id, suffix))),
        }
    }
    let mut runs: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for ((run_id, _), lines) in batches {
        runs.entry(run_id).or_default().extend(lines);
    }
    Ok(runs)
}

/// An event of Temporal's own protobuf as a line.
pub fn line(event: &HistoryEvent) -> Line {
    let name = EventType::try_from(event.event_type).unwrap_or_default().as_str_name().to_owned();
    let words = name.trim_start_matches("EVENT_TYPE_").split('_');
    let kind = words.map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect();
    let time = event.event_time.unwrap_or_default();
    (event.event_id, kind, time.seconds * 1_000 + i64::from(time.nanos) / 1_000_000)
}

/// The whole numbers of a protobuf message by their tags; what else it holds is passed over.
fn varints(mut bytes: &[u8]) -> anyhow::Result<BTreeMap<u64, u64>> {
    let mut numbers = BTreeMap::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        match tag & 7 {
            0 => {
                numbers.insert(tag >> 3, varint(&mut bytes)?);
            }
            1 => bytes = bytes.get(8..).context("it ends too soon")?,
            2 => {
                let length = usize::try_from(varint(&mut bytes)?)?;
                bytes = bytes.get(length..).context("it ends too soon")?;
            }
            5 => bytes = bytes.get(4..).context("it ends too soon")?,
            other => anyhow::bail!("wire type {other}"),
        }
    }
    Ok(numbers)
}

/// A whole number of a protobuf message, taken from the front.
pub fn varint(bytes: &mut &[u8]) -> anyhow::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().context("it ends too soon")?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    ensure!(false, "a number of more than ten bytes");
    Ok(number)
}
