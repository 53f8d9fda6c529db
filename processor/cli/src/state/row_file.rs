//! A file of rows: written and read from its beginning to its end, a row in memory at a time.
//!
//! Layout: MAGIC; for each row the length of its key (u32), the length of its value (u32), key and value; then END (u32)
//! and the count of rows (u64). All numbers are big endian.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 8] = b"evlrows1";
const END: u32 = u32::MAX;
const BUFFER_BYTES: usize = 1 << 20;
/// A key or a value is no longer: the largest record of a log has half of it.
const PART_BYTES_MAX: u32 = 1 << 30;

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

/// Writes a file.
pub struct RowWriter {
    path: PathBuf,
    file: BufWriter<File>,
    hash: Sha256,
    rows: u64,
    bytes: u64,
}

impl RowWriter {
    /// Makes the file, for its owner alone.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::options().write(true).create_new(true).mode(0o600).open(path);
        let file = file.with_context(|| format!("{} cannot be made", path.display()))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let mut writer = Self { path: path.into(), file, hash: Sha256::new(), rows: 0, bytes: 0 };
        writer.write(MAGIC)?;
        Ok(writer)
    }

    /// Adds a row.
    pub fn row(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(&length(key)?.to_be_bytes())?;
        self.write(&length(value)?.to_be_bytes())?;
        self.write(key)?;
        self.write(value)?;
        self.rows += 1;
        Ok(())
    }

    /// Ends the file; it is durable then.
    pub fn finish(self) -> Result<Written> {
        let path = self.path.clone();
        let (file, written) = self.close()?;
        file.sync_all().with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(written)
    }

    /// Ends a file that is read by this process only.
    pub fn close(mut self) -> Result<(File, Written)> {
        self.write(&END.to_be_bytes())?;
        let rows = self.rows;
        self.write(&rows.to_be_bytes())?;
        let path = self.path;
        let file = self.file.into_inner().map_err(|error| error.into_error());
        let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
        Ok((file, Written { rows, bytes: self.bytes, sha256: hexadecimal(&self.hash.finalize()) }))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

fn length(part: &[u8]) -> Result<u32> {
    let length = u32::try_from(part.len()).ok().filter(|length| *length <= PART_BYTES_MAX);
    length.with_context(|| format!("a row has a part of {} bytes", part.len()))
}

/// A row: key and value.
pub type Row = (Vec<u8>, Vec<u8>);

/// Reads a file.
pub struct RowReader {
    path: PathBuf,
    file: BufReader<File>,
    rows: u64,
    has_ended: bool,
}

impl RowReader {
    /// Opens the file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let file = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut reader = Self { path: path.into(), file, rows: 0, has_ended: false };
        let magic: [u8; 8] = reader.take()?;
        ensure!(magic == *MAGIC, "{} is no file of rows", path.display());
        Ok(reader)
    }

    /// The next row; none at the end.
    pub fn read(&mut self) -> Result<Option<Row>> {
        if self.has_ended {
            return Ok(None);
        }
        let key_bytes = u32::from_be_bytes(self.take()?);
        if key_bytes == END {
            let rows = u64::from_be_bytes(self.take()?);
            ensure!(rows == self.rows, "{} has {} rows and says {rows}", self.path.display(), self.rows);
            self.has_ended = true;
            return Ok(None);
        }
        let value_bytes = u32::from_be_bytes(self.take()?);
        let row = (self.part(key_bytes)?, self.part(value_bytes)?);
        self.rows += 1;
        Ok(Some(row))
    }

    fn part(&mut self, bytes: u32) -> Result<Vec<u8>> {
        ensure!(bytes <= PART_BYTES_MAX, "{} is damaged: a row of {bytes} bytes", self.path.display());
        let mut part = vec![0; bytes as usize];
        self.fill(&mut part)?;
        Ok(part)
    }

    fn take<const BYTES: usize>(&mut self) -> Result<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        match self.file.read_exact(bytes) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                bail!("{} is cut short", self.path.display())
            }
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", self.path.display())),
        }
    }
}

/// SHA-256 and length of a file, which is read once.
pub fn digest(path: &Path) -> Result<(String, u64)> {
    let failed = || format!("{} cannot be read", path.display());
    let mut file = File::open(path).with_context(failed)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer).with_context(failed)? {
            0 => return Ok((hexadecimal(&hash.finalize()), bytes)),
            read => {
                hash.update(&buffer[..read]);
                bytes += read as u64;
            }
        }
    }
}

pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path) -> Written {
        let mut writer = RowWriter::create(path).expect("a new file");
        writer.row(b"a", b"1").expect("there is room");
        writer.row(b"", &[7; 3_000_000]).expect("there is room");
        writer.finish().expect("there is room")
    }

    fn rows(path: &Path) -> Result<Vec<Row>> {
        let mut reader = RowReader::open(path)?;
        let mut rows = Vec::new();
        while let Some(row) = reader.read()? {
            rows.push(row);
        }
        Ok(rows)
    }

    #[test]
    fn rows_read_back_as_they_were_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.rows");
        let written = written(&path);
        assert_eq!(written.rows, 2);
        assert_eq!(digest(&path).expect("it is there"), (written.sha256, written.bytes));
        let wanted = vec![(b"a".to_vec(), b"1".to_vec()), (Vec::new(), vec![7; 3_000_000])];
        assert_eq!(rows(&path).expect("it is whole"), wanted);
        assert!(RowWriter::create(&path).is_err(), "no file is written over");
    }

    #[test]
    fn a_file_that_is_cut_is_said_to_be() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.rows");
        let whole = written(&path).bytes;
        for bytes in [whole - 1, whole - 9, whole - 1_000, 30, 8, 3] {
            File::options().write(true).open(&path).expect("ours").set_len(bytes).expect("ours");
            assert!(
                format!("{:#}", rows(&path).expect_err("it is cut")).ends_with("is cut short"),
                "{bytes}"
            );
        }
    }
}
