//! The doctor's check of the index: whether it says of each run what the state does.

use std::path::Path;

use everlog_log::{BUCKETS, Log, buckets_of};
use everlog_partition::index_differences;
use everlog_rocks::log::Embedded;
use everlog_rocks::rows::{DatabaseMemory, LocalRows, SharedRows};

use crate::doctor::Finding;

const ABOUT: &str = "index";
/// Differences that are shown of a partition.
const SHOWN_MAX: usize = 3;
const MEMORY_BYTES: usize = 64 << 20;

/// What the comparison of all partitions has come to.
#[derive(Default)]
struct IndexComparison {
    same: usize,
    /// Those whose index is not complete.
    unmade: Vec<u32>,
    wrong: Vec<String>,
}

/// Compares the rows of a log that no node has open.
pub(super) fn of_log(log: &Embedded) -> Finding {
    let mut compared = IndexComparison::default();
    for partition in 0..log.partitions() {
        let buckets = buckets_of(partition, log.partitions());
        let differences = SharedRows::new(log.database())
            .map_err(everlog_partition::Error::from)
            .and_then(|rows| index_differences(partition, buckets, rows, SHOWN_MAX));
        compared.add(partition, differences);
    }
    compared.finding("lists and counts are wrong there, workflows are not: report it with these lines")
}

/// Compares the rows that are kept beside a log on Kafka, of each partition that no node has open. None where there are none.
pub(super) fn of_rows(dir: &Path) -> Option<Finding> {
    let entries = std::fs::read_dir(dir).ok()?;
    let partition = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let mut partitions: Vec<u32> = entries.flatten().filter_map(partition).collect();
    partitions.sort_unstable();
    let memory = DatabaseMemory::new(MEMORY_BYTES);
    let mut compared = IndexComparison::default();
    for partition in &partitions {
        let rows = match LocalRows::open(&dir.join(partition.to_string()), &memory) {
            Ok(rows) => rows,
            Err(everlog_store::Error::Io { detail }) => {
                let found = format!("rows of partition {partition} cannot be opened: {detail}");
                return Some(Finding::warn(ABOUT, found, "stop the node that uses them, and look again"));
            }
            Err(error) => {
                compared.add(*partition, Err(error.into()));
                continue;
            }
        };
        // The rows of no other partition are in that database.
        compared.add(*partition, index_differences(*partition, 0..BUCKETS, rows, SHOWN_MAX));
    }
    let fix = format!("remove the folders of these partitions in {}: a node restores them", dir.display());
    (!partitions.is_empty()).then(|| compared.finding(&fix))
}

impl IndexComparison {
    fn add(&mut self, partition: u32, differences: Result<Option<Vec<String>>, everlog_partition::Error>) {
        match differences {
            Ok(Some(found)) if found.is_empty() => self.same += 1,
            Ok(Some(found)) => self.wrong.push(format!("partition {partition}: {}", found.join("; "))),
            Ok(None) => self.unmade.push(partition),
            Err(error) => self.wrong.push(format!("partition {partition}: {error}")),
        }
    }

    fn finding(&self, fix: &str) -> Finding {
        if !self.wrong.is_empty() {
            return Finding::fail(ABOUT, self.wrong.join("\n      "), fix);
        }
        let found = format!("it says what the state does, in {} partitions", self.same);
        if self.unmade.is_empty() {
            return Finding::good(ABOUT, found);
        }
        let found = format!("{found}; it is not made yet in {:?}", self.unmade);
        Finding::warn(ABOUT, found, "a node makes it as soon as it serves them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::CheckVerdict;

    #[test]
    fn one_wrong_partition_fails_all() {
        let mut compared = IndexComparison::default();
        let finding = |compared: &IndexComparison| compared.finding("the way out");
        compared.add(0, Ok(Some(Vec::new())));
        assert_eq!(finding(&compared).text(), "ok    index: it says what the state does, in 1 partitions");
        compared.add(1, Ok(None));
        assert_eq!(finding(&compared).verdict, CheckVerdict::Warn);
        compared.add(2, Ok(Some(vec!["a row too many".into(), "one too few".into()])));
        let text = "fail  index: partition 2: a row too many; one too few\n      fix: the way out";
        assert_eq!(finding(&compared).text(), text);
    }
}
