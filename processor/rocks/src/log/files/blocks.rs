//! The framing that RocksDB's write-ahead logs and manifests share: blocks of 32 KiB, records in checksummed pieces.
//!
//! A piece is: masked crc32c of what follows the length (u32 LE), length (u16 LE), kind (u8), bytes. A record is
//! one full piece, or a first, middles and a last; a rest of a block too short for a header is skipped.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use everlog_log::Error;

const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;

const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;
/// Kinds from here on may be skipped by a reader that does not know them.
const IGNORABLE: u8 = 128;

pub(super) enum Next {
    /// A whole record.
    Record(Found),
    /// The file ends between two records.
    End,
    /// From this byte on there is no whole record.
    Fault { at: u64, reason: &'static str },
}

pub(super) struct Found {
    /// The record's beginning, cut at the limit given to `open`.
    pub(super) head: Vec<u8>,
    /// Where it begins in the file.
    pub(super) at: u64,
}

/// Reads a file record by record and checks every checksum.
pub(super) struct Blocks {
    file: File,
    path: PathBuf,
    head_bytes_max: usize,
    block: Vec<u8>,
    /// Place of the block in the file, and of the next piece in the block.
    block_at: u64,
    at: usize,
}

struct Piece {
    kind: u8,
    at: usize,
    end: usize,
}

impl Blocks {
    pub(super) fn open(path: &Path, head_bytes_max: usize) -> Result<Self, Error> {
        let file = File::open(path).map_err(|e| Error::io("open", path, &e))?;
        let mut blocks =
            Blocks { file, path: path.into(), head_bytes_max, block: Vec::new(), block_at: 0, at: 0 };
        blocks.load()?;
        Ok(blocks)
    }

    pub(super) fn next(&mut self) -> Result<Next, Error> {
        let mut begun: Option<Found> = None;
        loop {
            while self.block.len() == BLOCK_BYTES && self.at + HEADER_BYTES > BLOCK_BYTES {
                self.block_at += BLOCK_BYTES as u64;
                self.load()?;
            }
            let here = begun.as_ref().map_or(self.block_at + self.at as u64, |begun| begun.at);
            if self.at == self.block.len() {
                return Ok(match begun {
                    None => Next::End,
                    Some(_) => Next::Fault { at: here, reason: "the file ends in the middle of a record" },
                });
            }
            let piece = match self.piece(self.at) {
                Ok(piece) => piece,
                Err(reason) => return Ok(Next::Fault { at: here, reason }),
            };
            self.at = piece.end;
            match (piece.kind, &mut begun) {
                (FULL, None) => {
                    return Ok(Next::Record(Found { head: self.head(&piece, 0), at: here }));
                }
                (FIRST, None) => begun = Some(Found { head: self.head(&piece, 0), at: here }),
                (MIDDLE | LAST, Some(found)) => {
                    let more = self.head(&piece, found.head.len());
                    found.head.extend_from_slice(&more);
                    if piece.kind == LAST {
                        return Ok(begun.map_or(Next::End, Next::Record));
                    }
                }
                (IGNORABLE.., _) => {}
                _ => {
                    return Ok(Next::Fault { at: here, reason: "the pieces of a record are out of order" });
                }
            }
        }
    }

    /// The beginnings of all records that are still to be read.
    pub(super) fn beginnings(&mut self) -> Result<Vec<Found>, Error> {
        self.beginnings_from(self.at, None)
    }

    /// After a fault: the beginnings of records further on, whose own checksums are right.
    pub(super) fn beginnings_after(&mut self, fault_at: u64) -> Result<Vec<Found>, Error> {
        // The fault may be a record that began some blocks ago: then this block is looked at from its start.
        let at = fault_at.checked_sub(self.block_at).map_or(0, |at| at as usize + 1);
        self.beginnings_from(at, Some(self.block_at))
    }

    /// In the block of a fault no length can be trusted, so every byte of it is tried.
    fn beginnings_from(&mut self, mut at: usize, bytewise_block: Option<u64>) -> Result<Vec<Found>, Error> {
        let mut found = Vec::new();
        loop {
            while at + HEADER_BYTES <= self.block.len() {
                match self.piece(at) {
                    Ok(piece) => {
                        if piece.kind == FULL || piece.kind == FIRST {
                            let place = self.block_at + at as u64;
                            found.push(Found { head: self.head(&piece, 0), at: place });
                        }
                        at = piece.end;
                    }
                    Err(_) if bytewise_block == Some(self.block_at) => at += 1,
                    Err(_) => break,
                }
            }
            if self.block.len() < BLOCK_BYTES {
                return Ok(found);
            }
            self.block_at += BLOCK_BYTES as u64;
            self.load()?;
            at = 0;
        }
    }

    fn piece(&self, at: usize) -> Result<Piece, &'static str> {
        let rest = self.block.get(at..).unwrap_or_default();
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Err("the file ends in the header of a record");
        };
        let [c0, c1, c2, c3, l0, l1, kind] = *header;
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        if kind == 0 && length == 0 {
            return Err("zeros stand where a record should begin");
        }
        if !matches!(kind, FULL..=LAST | IGNORABLE..) {
            return Err("a record of an unknown kind");
        }
        if length > rest.len() {
            return Err("a record is longer than the rest of its block");
        }
        let begin = at + HEADER_BYTES;
        let masked = u32::from_le_bytes([c0, c1, c2, c3]);
        if crc32c(&self.block[begin - 1..begin + length]) != unmask(masked) {
            return Err("a record fails its checksum");
        }
        Ok(Piece { kind, at: begin, end: begin + length })
    }

    fn head(&self, piece: &Piece, taken: usize) -> Vec<u8> {
        let bytes = &self.block[piece.at..piece.end];
        bytes[..bytes.len().min(self.head_bytes_max.saturating_sub(taken))].to_vec()
    }

    fn load(&mut self) -> Result<(), Error> {
        self.block.clear();
        self.at = 0;
        let read = (&mut self.file).take(BLOCK_BYTES as u64).read_to_end(&mut self.block);
        read.map(drop).map_err(|e| Error::io("read", &self.path, &e))
    }
}

fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}

/// Castagnoli's crc, eight bytes at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    static TABLES: [[u32; 256]; 8] = tables();
    let mut crc = u32::MAX;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let [a, b, c, d] = (u32::from_le_bytes([word[0], word[1], word[2], word[3]]) ^ crc).to_le_bytes();
        let at = |table: usize, byte: u8| TABLES[table][usize::from(byte)];
        crc = at(7, a) ^ at(6, b) ^ at(5, c) ^ at(4, d);
        crc ^= at(3, word[4]) ^ at(2, word[5]) ^ at(1, word[6]) ^ at(0, word[7]);
    }
    for byte in rest {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][n] = crc;
        n += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut n = 0;
        while n < 256 {
            let before = tables[table - 1][n];
            tables[table][n] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            n += 1;
        }
        table += 1;
    }
    tables
}

/// Writes a record into a file that has room for it in its current block.
#[cfg(test)]
pub(super) fn write_record(file: &mut Vec<u8>, record: &[u8]) {
    let mut checked = vec![FULL];
    checked.extend_from_slice(record);
    let masked = crc32c(&checked).rotate_right(15).wrapping_add(0xa282_ead8);
    file.extend_from_slice(&masked.to_le_bytes());
    file.extend_from_slice(&(record.len() as u16).to_le_bytes());
    file.extend_from_slice(&checked);
    assert!(file.len() <= BLOCK_BYTES, "one block is enough for a test");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }
}
