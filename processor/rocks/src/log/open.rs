//! Opening: take the lock, look at the files before RocksDB does, open, compare with what was acknowledged.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use everlog_log::{Error, Offset, PartitionId, Topic};
use rocksdb::{DB, WriteBatch, WriteOptions};

use super::disk_reserve::DiskReserve;
use super::durable_watermark::{Bound, DurableWatermark, PARTITIONS_MAX};
use super::memory::LogMemory;
use super::read::{error_of, last_row, translate, walk};
use super::rows;
use super::shared::{PublishedPartition, Shared};
use super::writer::{LogWriter, PartitionTail};
use super::{Embedded, Options, Recover, Recovery, WAY_OUT, database_options, files};

pub(super) fn open(options: Options) -> Result<Embedded, Error> {
    validate(&options)?;
    std::fs::create_dir_all(&options.dir).map_err(|e| Error::io("create", &options.dir, &e))?;
    let lock = lock(&options.dir)?;
    let mut recovery = Recovery::default();
    let acked = match DurableWatermark::open(&options.dir.join("acked")) {
        Err(Error::Corrupt { .. }) if options.recover == Recover::AcceptLoss => None,
        other => other?,
    };
    let database_dir = options.dir.join("db");
    if !database_dir.exists() {
        create(&options, acked.as_ref().map(|(_, bound)| bound))?;
        recovery.created = true;
    }
    let acked = if recovery.created { DurableWatermark::open(&options.dir.join("acked"))? } else { acked };
    let bound = acked.as_ref().map(|(_, bound)| bound.clone());
    if options.recover == Recover::Strict {
        let Some(bound) = &bound else {
            return Err(acked_missing(&options.dir));
        };
        recovery.torn_bytes = files::examine(&database_dir, bound.sequence)?;
    }
    let mut memory = LogMemory::new(&options);
    let db = database_options::open(&options, &memory, &database_dir)?;
    memory.fit(&db);
    let incarnation = check_meta(&db, &options)?;
    let (tails, unapplied) = load_tails(&db, &options)?;
    recovery.unapplied_records = unapplied;
    let acked = match (acked, bound) {
        (Some((acked, _)), Some(bound)) if options.recover == Recover::Strict => {
            check_bound(&db, incarnation, &bound, &tails)?;
            acked
        }
        _ => {
            let ends = tails.iter().map(|tail| tail.next).collect();
            DurableWatermark::create(
                &options.dir.join("acked"),
                &Bound { incarnation, sequence: db.latest_sequence_number(), ends },
            )?
        }
    };
    start(options, lock, (Arc::new(db), memory), incarnation, tails, acked, recovery)
}

fn start(
    options: Options,
    lock: File,
    (db, memory): (Arc<DB>, LogMemory),
    incarnation: [u8; 16],
    tails: Vec<PartitionTail>,
    acked: DurableWatermark,
    recovery: Recovery,
) -> Result<Embedded, Error> {
    let acked_sequence = db.latest_sequence_number();
    let slots = tails.iter().map(published).collect();
    let kept_bytes = options.free_bytes_kept();
    let Options { dir, free_bytes, limits, .. } = options;
    let space = DiskReserve::new(dir, free_bytes, kept_bytes);
    let shared = Arc::new(Shared::new(db, space, incarnation, limits, slots));
    let writer = LogWriter {
        shared: Arc::clone(&shared),
        tails,
        acked,
        acked_sequence,
        sync: options.sync,
        clock: options.clock,
        looked: None,
        memory,
        written_bytes: 0,
        refused_since: None,
    };
    let thread = std::thread::Builder::new().name("everlog-log".into()).spawn(move || writer.run());
    let thread = thread.map_err(|e| Error::Io { detail: format!("start the writer thread: {e}") })?;
    Ok(Embedded { shared, writer: Some(thread), recovery, _lock: lock })
}

fn published(tail: &PartitionTail) -> PublishedPartition {
    let slot = PublishedPartition::default();
    slot.journal.publish(tail.start, tail.next);
    for topic in Topic::append_only() {
        let (start, next) = tail.topics[topic];
        slot.topics[topic].publish(start, next);
    }
    slot
}

fn validate(options: &Options) -> Result<(), Error> {
    let partitions = options.partitions;
    if !(1..=PARTITIONS_MAX).contains(&partitions) {
        return Err(Error::refused(format!("partitions = {partitions}, allowed are 1 to {PARTITIONS_MAX}")));
    }
    for (name, value, min) in [
        ("block_cache_bytes", options.block_cache_bytes, 1 << 20),
        ("write_buffer_bytes", options.write_buffer_bytes, 1 << 20),
        ("waiting_items_max", options.limits.waiting_items_max, 1),
        ("waiting_bytes_max", options.limits.waiting_bytes_max, 1),
        ("batch_bytes_max", options.limits.batch_bytes_max, 1),
    ] {
        if value < min {
            return Err(Error::refused(format!("{name} = {value}, allowed is {min} or more")));
        }
    }
    Ok(())
}

fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|e| Error::io("open", &path, &e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { dir: dir.into() }),
        Err(TryLockError::Error(e)) => Err(Error::io("lock", &path, &e)),
    }
}

/// Makes the database under another name and renames it when it is whole, so that `db/` is never half made.
fn create(options: &Options, bound: Option<&Bound>) -> Result<(), Error> {
    let (database_dir, new_dir) = (options.dir.join("db"), options.dir.join("db.new"));
    if bound.is_some_and(|bound| bound.ends.iter().any(|end| *end > 0)) && options.recover == Recover::Strict
    {
        return Err(Error::Corrupt {
            path: database_dir,
            detail: "the directory is gone, but records were acknowledged in it".into(),
            way_out: WAY_OUT.into(),
        });
    }
    if new_dir.exists() {
        std::fs::remove_dir_all(&new_dir).map_err(|e| Error::io("remove", &new_dir, &e))?;
    }
    let incarnation = random_id()?;
    let mut batch = WriteBatch::default();
    batch.put_log_data(0u64.to_le_bytes());
    batch.put(rows::KEY_FORMAT, rows::FORMAT_VERSION.to_be_bytes());
    batch.put(rows::KEY_INCARNATION, incarnation);
    batch.put(rows::KEY_PARTITIONS, u64::from(options.partitions).to_be_bytes());
    let db = database_options::create(options, &new_dir)?;
    let mut durable = WriteOptions::default();
    durable.set_sync(true);
    db.write_opt(batch, &durable).map_err(|e| translate(&new_dir, &e))?;
    let bound = Bound { incarnation, sequence: 0, ends: vec![0; options.partitions as usize] };
    drop(db);
    DurableWatermark::create(&options.dir.join("acked"), &bound)?;
    std::fs::rename(&new_dir, &database_dir).map_err(|e| Error::io("rename", &new_dir, &e))?;
    files::sync_dir(&options.dir)
}

fn random_id() -> Result<[u8; 16], Error> {
    let path = Path::new("/dev/urandom");
    let mut id = [0; 16];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut id));
    read.map(|()| id).map_err(|e| Error::io("read", path, &e))
}

fn acked_missing(dir: &Path) -> Error {
    Error::Corrupt {
        path: dir.join("acked"),
        detail: "the file is gone, so nothing says how much was acknowledged".into(),
        way_out: WAY_OUT.into(),
    }
}

/// The incarnation, once version and partition count are as wanted.
fn check_meta(db: &DB, options: &Options) -> Result<[u8; 16], Error> {
    let number = |key: &[u8]| -> Result<u64, Error> {
        let row = db.get(key).map_err(|e| error_of(db, &e))?;
        row.and_then(|row| Some(u64::from_be_bytes(row.try_into().ok()?))).ok_or_else(|| meta_missing(db))
    };
    for (what, key, wanted) in [
        ("format version", rows::KEY_FORMAT, rows::FORMAT_VERSION),
        ("partitions", rows::KEY_PARTITIONS, u64::from(options.partitions)),
    ] {
        let stored = number(key)?;
        if stored != wanted {
            return Err(Error::Mismatch { what, stored, wanted });
        }
    }
    let row = db.get(rows::KEY_INCARNATION).map_err(|e| error_of(db, &e))?;
    row.and_then(|row| row.try_into().ok()).ok_or_else(|| meta_missing(db))
}

fn meta_missing(db: &DB) -> Error {
    damaged(db, "the rows that say what this directory is are missing".into())
}

fn damaged(db: &DB, detail: String) -> Error {
    Error::Corrupt { path: db.path().into(), detail, way_out: WAY_OUT.into() }
}

/// The tails of all partitions, and how many unapplied records were verified on the way.
fn load_tails(db: &DB, options: &Options) -> Result<(Vec<PartitionTail>, u64), Error> {
    let mut unapplied = 0;
    let tails = (0..options.partitions).map(|partition| {
        let tail = load_tail(db, partition)?;
        unapplied += verify_unapplied(db, partition, &tail)?;
        Ok(tail)
    });
    let tails = tails.collect::<Result<Vec<_>, Error>>()?;
    Ok((tails, unapplied))
}

fn load_tail(db: &DB, partition: PartitionId) -> Result<PartitionTail, Error> {
    let row = |key: &[u8]| db.get(key).map_err(|e| error_of(db, &e));
    let mut tail = PartitionTail::default();
    if let Some(start) = row(&rows::start_key(partition))? {
        let decoded = rows::decode_u64_and(&start);
        let stamp =
            decoded.and_then(|(start, stamp)| Some((start, i64::from_be_bytes(stamp.try_into().ok()?))));
        let too_short = || damaged(db, format!("the start row of partition {partition} is too short"));
        (tail.start, tail.stamp_ms) = stamp.ok_or_else(too_short)?;
    }
    tail.next = tail.start;
    let prefix = partition.to_be_bytes();
    if let Some((key, row)) =
        last_row(db, rows::JOURNAL, &prefix, &rows::journal_key(partition, Offset::MAX))?
    {
        let last = rows::key_offset(&key).and_then(|offset| rows::decode_record(partition, offset, &row));
        let fails =
            || damaged(db, format!("the last journal record of partition {partition} fails its checksum"));
        let last = last.ok_or_else(fails)?;
        tail.next = tail.next.max(last.offset + 1);
        tail.stamp_ms = tail.stamp_ms.max(last.stamp_ms);
    }
    tail.applied = super::read::position(db, partition)?.map_or(0, |(applied, _)| applied);
    if let Some(fence) = row(&rows::fence_key(partition))? {
        tail.fence = rows::decode_u64_and(&fence).map_or(0, |(fence, _)| fence);
    }
    for topic in Topic::append_only() {
        let (start, next) = &mut tail.topics[topic];
        let stored = row(&rows::topic_start_key(topic, partition))?;
        *start = stored.and_then(|row| Some(rows::decode_u64_and(&row)?.0)).unwrap_or(0);
        let top = rows::topic_key(topic, partition, Offset::MAX);
        let last = last_row(db, rows::TOPICS, &top[..5], &top)?;
        *next =
            last.and_then(|(key, _)| rows::key_offset(&key)).map_or(*start, |last| (last + 1).max(*start));
    }
    Ok(tail)
}

/// Reads what recovery will replay: no gap, every checksum right.
fn verify_unapplied(db: &DB, partition: PartitionId, tail: &PartitionTail) -> Result<u64, Error> {
    if tail.applied > tail.next || (tail.applied < tail.start && tail.start > 0) {
        let PartitionTail { applied, start, next, .. } = tail;
        return Err(damaged(
            db,
            format!("partition {partition}: position {applied} is outside its journal {start}..{next}"),
        ));
    }
    let mut expected = tail.applied;
    let (first, last) = (rows::journal_key(partition, expected), rows::journal_key(partition, tail.next));
    walk(db, rows::JOURNAL, &first, Some(&last), |key, row| {
        let intact = rows::key_offset(key) == Some(expected)
            && rows::decode_record(partition, expected, row).is_some();
        expected += u64::from(intact);
        Ok(intact)
    })?;
    if expected != tail.next {
        let detail =
            format!("journal of partition {partition}: offset {expected} is missing or fails its checksum");
        return Err(damaged(db, detail));
    }
    Ok(expected - tail.applied)
}

/// Everything that was acknowledged must be there again.
fn check_bound(db: &DB, incarnation: [u8; 16], bound: &Bound, tails: &[PartitionTail]) -> Result<(), Error> {
    if bound.incarnation != incarnation {
        return Err(damaged(db, "the file `acked` beside it belongs to another database".into()));
    }
    let sequence = db.latest_sequence_number();
    if sequence < bound.sequence {
        let wanted = bound.sequence;
        return Err(damaged(db, format!("it ends at write {sequence}, but write {wanted} was acknowledged")));
    }
    for (partition, (tail, end)) in tails.iter().zip(&bound.ends).enumerate() {
        if tail.next < *end {
            let next = tail.next;
            let detail =
                format!("journal of partition {partition} ends at {next}, but {end} was acknowledged");
            return Err(damaged(db, detail));
        }
    }
    Ok(())
}
