//! Which rows of `control` an export has, and where the keys of task tokens are in each kind of log.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use everlog_config::Config;
use everlog_log::{IMPORT_MARK, Log};

use super::row_file::Row;

/// Rows that belong to the nodes of a log, or to the offsets of its topics.
const LEFT_OUT: [&str; 6] = ["node/", "gone/", "owner/", "pin/", "drain/", "retention/"];
const ASSIGNMENT: &[u8] = b"placement";
/// The keys of task tokens, of a log on Kafka.
const TOKEN_KEY: &str = "token-key/";
/// The same, in the data directory of an embedded log: a line each, the first one signs.
const TOKEN_KEYS_FILE: &str = "token-keys";
/// Lines that a node accepts in that file.
const TOKEN_KEYS_MAX: usize = 2;

/// The rows that another log needs.
pub fn exported(log: &dyn Log) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    log.control_scan(&mut |key, value| {
        let is_left_out = LEFT_OUT.iter().any(|prefix| key.starts_with(prefix.as_bytes()));
        if !is_left_out && key != ASSIGNMENT && key != IMPORT_MARK {
            rows.push((key.to_vec(), value.to_vec()));
        }
    })?;
    Ok(rows)
}

/// The keys of the data directory, as rows in the order in which they count. None where the operator has them in a file.
pub fn token_keys_of(config: &Config, data_dir: &Path) -> Result<Vec<Row>> {
    let path = data_dir.join(TOKEN_KEYS_FILE);
    if config.tokens.key_file.is_some() || !path.exists() {
        return Ok(Vec::new());
    }
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let row = |(number, line): (usize, &str)| {
        (format!("{TOKEN_KEY}{number:032x}").into_bytes(), line.as_bytes().to_vec())
    };
    Ok(lines.enumerate().map(row).collect())
}

/// Whether a row has a key of task tokens.
pub fn is_token_key(row: &Row) -> bool {
    row.0.starts_with(TOKEN_KEY.as_bytes())
}

/// Writes keys of rows into a data directory.
pub fn write_token_keys(data_dir: &Path, rows: &[Row]) -> Result<()> {
    let mut keys: Vec<&Row> = rows.iter().filter(|row| is_token_key(row)).collect();
    if keys.is_empty() {
        return Ok(());
    }
    keys.sort();
    let path = data_dir.join(TOKEN_KEYS_FILE);
    let write = || {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        for (_, key) in keys.into_iter().take(TOKEN_KEYS_MAX) {
            file.write_all(key)?;
            file.write_all(b"\n")?;
        }
        file.sync_all()
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}
