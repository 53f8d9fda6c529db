//! The index alone: what a run costs in it, and how long lists and counts take with many runs, in all partitions of one node.
//!
//! Rows are written and read as a partition does it, into databases of its kind; what is around them, from the network to the
//! state of a run that lists show, is not measured. CPU is that of the thread, so that other work on the machine does not count.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use bytes::{BufMut, Bytes, BytesMut};
use everlog_engine::api_types::MapEntry;
use everlog_rocks::rows::{DatabaseMemory, LocalRows};
use everlog_store::{Error, Space, Store};
use everlog_visibility::derived::keyword;
use everlog_visibility::index::{
    CountRequest, CountScan, CounterChanges, IndexFormat, IndexRows, ListPosition, ListRequest, ListScan,
    RunCounts, WriteIndexRows, change, merge,
};
use everlog_visibility::query::{Query, RunAttributes};
use everlog_visibility::record::Record;
use uuid::Uuid;

const PARTITIONS: usize = 8;
const NAMESPACE: Uuid = Uuid::from_u128(0x7d4c_be0a_32c5_5c0f_8d6c_0e8f_6f3d_2a11);
/// Runs that have a keyword in common.
const RUNS_OF_A_CUSTOMER: u64 = 100;
/// Changes of runs that are written together.
const RUNS_OF_A_COMMIT: u64 = 100;
const MEMORY_BYTES: usize = 64 << 20;
/// As a partition has it: rows that are read in a turn, and for a page.
const SLICE_ROWS: usize = 1_000;
const VISITS_MAX: usize = 100_000;
/// Likewise, while an index is made anew.
const BUILD_ROWS: usize = 200;
/// A prime, by which runs are scattered as the buckets of their ids scatter them.
const SCATTER: u64 = 1_000_003;
/// Of the Web UI.
const PAGE_RUNS: usize = 100;
const REPETITIONS: usize = 300;
const BEGUN_MS: i64 = 1_790_000_000_000;

/// The rows of one partition.
struct PartitionRows(Store<LocalRows>);

impl PartitionRows {
    fn commit(&mut self) -> Result<(), Error> {
        self.0.begin_commit();
        self.0.committed(None)
    }
}

impl IndexRows for PartitionRows {
    type Error = Error;

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.0.get(Space::Index, &stored(key))
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), Error> {
        self.0.scan(Space::Index, &stored(from), &stored(to), &mut |key, value| visit(&key[4..], value))
    }
}

impl WriteIndexRows for PartitionRows {
    fn put(&mut self, key: Bytes, value: Bytes) {
        self.0.put(Space::Index, stored(&key), value);
    }

    fn put_new(&mut self, key: Bytes, value: Bytes) {
        self.0.put_new(Space::Index, stored(&key), value);
    }

    fn delete(&mut self, key: Bytes) {
        self.0.delete(Space::Index, stored(&key));
    }
}

/// Keys begin with the partition.
fn stored(key: &[u8]) -> Bytes {
    let mut stored = BytesMut::with_capacity(4 + key.len());
    stored.put_u32(0);
    stored.put_slice(key);
    stored.freeze()
}

/// Prints a table, of so many open runs and as many closed ones, in a folder of its own below `dir`.
///
/// # Errors
/// The databases cannot be written or read.
pub fn run(dir: Option<PathBuf>, open: u64) -> anyhow::Result<()> {
    let dir = dir.unwrap_or_else(std::env::temp_dir).join(format!("everlog-bench-{}", std::process::id()));
    let outcome = table(&dir, open);
    std::fs::remove_dir_all(&dir).ok();
    outcome
}

fn table(dir: &Path, open: u64) -> anyhow::Result<()> {
    let memory = DatabaseMemory::new(MEMORY_BYTES);
    let mut partitions = Vec::with_capacity(PARTITIONS);
    for number in 0..PARTITIONS {
        let path = dir.join(number.to_string());
        std::fs::create_dir_all(&path)?;
        partitions.push(PartitionRows(Store::new(LocalRows::open(&path, &memory)?)));
    }
    let (starts, begun) = (open * 2, process_cpu_s()?);
    write(&mut partitions, starts, |number| (None, Some(started(number, starts))))?;
    let after_starts = process_cpu_s()?;
    println!("| CPU of the process, compactions included | us |\n|---|---|");
    println!("| a start | {:.1} |", (after_starts - begun) * 1e6 / starts as f64);
    write(&mut partitions, open, |number| {
        (Some(started(number, starts)), Some(closed(started(number, starts))))
    })?;
    println!("| a close | {:.1} |", (process_cpu_s()? - after_starts) * 1e6 / open as f64);
    println!(
        "\n| {open} open, {open} closed runs | CPU ms, median / p99 | wall ms, median / p99 |\n|---|---|---|"
    );
    let custom: BTreeMap<String, i32> = [("Customer".to_owned(), 2)].into();
    let query = |text: &str| Query::for_list(text, &RunAttributes { custom: &custom });
    let grouped = |text: &str| Query::for_count(text, &RunAttributes { custom: &custom });
    let by_status = grouped("GROUP BY ExecutionStatus")?;
    let customers = (starts / RUNS_OF_A_CUSTOMER).max(1);
    row("the first page and counts by status", |_| {
        list(&partitions, &query("")?)?;
        count(&partitions, &by_status).map(|counts| counts.groups.len())
    })?;
    row("counts by status", |_| count(&partitions, &by_status).map(|counts| counts.groups.len()))?;
    row("a list of the 100 runs with a keyword", |turn| {
        let customer = turn * 7_919 % customers;
        list(&partitions, &query(&format!("Customer = 'customer-{customer}'"))?)
    })?;
    row("a count of the 100 runs with a keyword", |turn| {
        let text = format!("Customer = 'customer-{}'", turn * 104_729 % customers);
        let counted = count(&partitions, &grouped(&text)?)?;
        Ok(usize::try_from(counted.count)?)
    })?;
    row("closed runs of a type, the first page", |_| {
        list(&partitions, &query("WorkflowType = 'Order' AND ExecutionStatus = 'Completed'")?)
    })?;
    row("a list by Workflow Id", |turn| {
        let number = turn * 7_919 % starts;
        let partition = partition_of(number);
        let query = query(&format!("WorkflowId = 'order-{number}'"))?;
        list(&partitions[partition..=partition], &query)
    })?;
    println!("\n| the process | |\n|---|---|\n| memory, MB | {} |", resident_mb()?);
    let before = process_cpu_s()?;
    for rows in &mut partitions {
        clear(rows)?;
    }
    let cleared = process_cpu_s()?;
    println!("| a run is cleared, CPU us | {:.1} |", (cleared - before) * 1e6 / starts as f64);
    for (number, rows) in partitions.iter_mut().enumerate() {
        derive(rows, number as u64, open, starts)?;
    }
    let derived_s = process_cpu_s()? - cleared;
    println!("| runs entered anew, per CPU second | {:.0} |", starts as f64 / derived_s);
    let counted = count(&partitions, &by_status)?.count;
    anyhow::ensure!(counted == starts as i64, "{counted} runs are there again");
    Ok(())
}

/// Deletes all rows, as of an index of another format.
fn clear(rows: &mut PartitionRows) -> anyhow::Result<()> {
    let mut format = IndexFormat::read(rows).map_err(|error| anyhow::anyhow!("{error}"))?;
    loop {
        let is_clear = format.clear(rows, BUILD_ROWS).map_err(|error| anyhow::anyhow!("{error}"))?;
        rows.commit()?;
        if is_clear {
            return Ok(());
        }
    }
}

/// Enters the runs of a partition, in an order that has nothing to do with when they started.
fn derive(rows: &mut PartitionRows, partition: u64, open: u64, runs: u64) -> anyhow::Result<()> {
    let mut format = IndexFormat::read(rows).map_err(|error| anyhow::anyhow!("{error}"))?;
    let of_partition = (runs + PARTITIONS as u64 - 1 - partition) / PARTITIONS as u64;
    let mut counters = CounterChanges::default();
    for from in (0..of_partition).step_by(BUILD_ROWS) {
        let to = of_partition.min(from + BUILD_ROWS as u64);
        let entered: Vec<_> = (from..to)
            .map(|at| {
                let number = (at * SCATTER % of_partition) * PARTITIONS as u64 + partition;
                let record = started(number, runs);
                (at.to_be_bytes(), if number < open { closed(record) } else { record })
            })
            .collect();
        let entered = entered.iter().map(|(key, record)| (&key[..], NAMESPACE, record));
        format.derive(entered, to == of_partition, rows, &mut counters);
        counters.flush(rows).map_err(|error| anyhow::anyhow!("{error}"))?;
        rows.commit()?;
    }
    Ok(())
}

/// Measures one kind of reads.
fn row(name: &str, mut read: impl FnMut(u64) -> anyhow::Result<usize>) -> anyhow::Result<()> {
    let (mut cpu_ms, mut wall_ms) = (Vec::new(), Vec::new());
    for turn in 0..REPETITIONS as u64 {
        let (begun, cpu) = (Instant::now(), thread_cpu_ms()?);
        anyhow::ensure!(read(turn)? > 0, "{name}: nothing is found");
        cpu_ms.push(thread_cpu_ms()? - cpu);
        wall_ms.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    let shown = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        format!("{:.2} / {:.2}", values[values.len() / 2], values[values.len() * 99 / 100])
    };
    println!("| {name} | {} | {} |", shown(cpu_ms), shown(wall_ms));
    Ok(())
}

fn partition_of(number: u64) -> usize {
    (number % PARTITIONS as u64) as usize
}

/// Writes a change of each run, in commits.
fn write(
    partitions: &mut [PartitionRows],
    runs: u64,
    change_of: impl Fn(u64) -> (Option<Record>, Option<Record>),
) -> anyhow::Result<()> {
    let stride = RUNS_OF_A_COMMIT * PARTITIONS as u64;
    for from in (0..runs).step_by(stride as usize) {
        for (place, rows) in partitions.iter_mut().enumerate() {
            let mut counters = CounterChanges::default();
            for number in (from..runs.min(from + stride)).filter(|number| partition_of(*number) == place) {
                let (before, after) = change_of(number);
                change(NAMESPACE, before.as_ref(), after.as_ref(), rows, &mut counters);
            }
            counters.flush(rows).map_err(|error| anyhow::anyhow!("{error}"))?;
            rows.commit()?;
        }
    }
    Ok(())
}

fn started(number: u64, runs: u64) -> Record {
    let customers = (runs / RUNS_OF_A_CUSTOMER).max(1);
    let customer =
        MapEntry { key: "Customer".into(), value: keyword(&format!("customer-{}", number * 7 % customers)) };
    Record {
        workflow_id: format!("order-{number}"),
        run_id: Uuid::from_u128(u128::from(number) << 64 | 0x7000_8000_0000_0000).to_string(),
        workflow_type: if number.is_multiple_of(3) { "Invoice".into() } else { "Order".into() },
        task_queue: "orders".into(),
        status: 1,
        start_ms: BEGUN_MS + number as i64 / 3,
        execution_ms: BEGUN_MS + number as i64 / 3,
        search_attributes: vec![customer],
        start_offset: number * 4,
        ..Record::default()
    }
}

fn closed(record: Record) -> Record {
    Record {
        status: 2,
        close_ms: record.start_ms + 60_000,
        history_length: 5,
        history_bytes: 800,
        transitions: 3,
        close_offset: record.start_offset + 1_000_000,
        ..record
    }
}

/// The first page, merged of all partitions as a gateway does it; the number of runs in it.
fn list(partitions: &[PartitionRows], query: &Query) -> anyhow::Result<usize> {
    let share = (PAGE_RUNS * 3).div_ceil(partitions.len() * 2) + 1;
    let mut pages = Vec::with_capacity(partitions.len());
    for rows in partitions {
        let mut scan = ListScan::new(ListRequest {
            namespace_id: NAMESPACE,
            filter: query.filter.clone(),
            order: query.order,
            position: ListPosition::END,
            after: None,
            rows_max: share.min(PAGE_RUNS),
            bytes_max: 1 << 20,
            visits_max: VISITS_MAX,
        });
        pages.push(loop {
            if let Some(page) = scan.read(rows, SLICE_ROWS).map_err(|error| anyhow::anyhow!("{error}"))? {
                break page;
            }
        });
    }
    Ok(merge(&mut pages, PAGE_RUNS).runs.len())
}

fn count(partitions: &[PartitionRows], query: &Query) -> anyhow::Result<RunCounts> {
    let mut all = RunCounts::default();
    for rows in partitions {
        let (filter, group_by) = (query.filter.clone(), query.group_by.clone());
        let request = CountRequest { namespace_id: NAMESPACE, filter, group_by, groups_max: 1_000 };
        let mut scan = CountScan::new(request);
        all.add(loop {
            if let Some(counts) = scan.read(rows, SLICE_ROWS).map_err(|error| anyhow::anyhow!("{error}"))? {
                break counts;
            }
        });
    }
    Ok(all)
}

/// What the thread has had of a core.
fn thread_cpu_ms() -> anyhow::Result<f64> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let spent_ns: f64 = line.split(' ').next().context("it has three numbers")?.parse()?;
    Ok(spent_ns / 1e6)
}

/// What all threads have had, those that write and compact included.
fn process_cpu_s() -> anyhow::Result<f64> {
    let mut spent_ns = 0.0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let Ok(line) = std::fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        spent_ns += line.split(' ').next().context("it has three numbers")?.parse::<f64>()?;
    }
    Ok(spent_ns / 1e9)
}

/// What the process has in memory, files that the system keeps in memory for it not included.
fn resident_mb() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("there is a size")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib >> 10)
}
