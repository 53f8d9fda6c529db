//! TZif: the binary form of a zone's changes (RFC 8536), which a user may send. Its sender is not trusted.

use crate::zone::OffsetChange;
use crate::zone::posix_rule::PosixRule;

/// The longest content, in bytes: those of the database have less than four thousand.
const TZIF_MAX_BYTES: usize = 64 << 10;
/// Changes from 1970 on: those of the database have less than 250, and each may cost a search anew.
const CHANGES_MAX: usize = 600;
/// No clock is further from UTC, in seconds (RFC 8536, section 3.2).
const OFFSET_MAX_S: i32 = 26 * 3_600;
/// Years whose changes come from the rule at the end.
const LAST_YEAR: i64 = 2101;
const HEADER_BYTES: usize = 44;

/// A kind of local time.
#[derive(Clone, Copy)]
struct LocalKind {
    offset_s: i32,
    is_dst: bool,
}

/// The offset at the beginning and the changes of it since 1970; none if it is malformed or too large.
pub(super) fn read(bytes: &[u8]) -> Option<(i32, Vec<OffsetChange>)> {
    if bytes.len() > TZIF_MAX_BYTES {
        return None;
    }
    let (first, behind) = Block::read(bytes, 4)?;
    let (block, footer) = if first.version == 0 { (first, &[][..]) } else { Block::read(behind, 8)? };
    let (mut offset_s, all) = block.changes()?;
    let mut changes = Vec::new();
    for change in all {
        if change.at_s < 0 {
            offset_s = change.offset_s
        } else {
            changes.push(change)
        }
        if changes.len() > CHANGES_MAX {
            return None;
        }
    }
    if let Some(rule) = footer_rule(footer) {
        let last_s = changes.last().map_or(-1, |change| change.at_s);
        let has_changes = !changes.is_empty();
        if let Some(fixed) = rule.fixed_offset_s().filter(|_fixed| !has_changes && block.times.is_empty()) {
            offset_s = fixed;
        }
        changes.extend((1970..=LAST_YEAR).flat_map(|year| rule.changes(year)).filter(|c| c.at_s > last_s));
        changes.sort_by_key(|change| change.at_s);
    }
    Some((offset_s, changes))
}

/// The rule between the two line feeds at the end.
fn footer_rule(footer: &[u8]) -> Option<PosixRule> {
    let text = footer.strip_prefix(b"\n")?;
    let end = text.iter().position(|byte| *byte == b'\n')?;
    PosixRule::read(std::str::from_utf8(&text[..end]).ok()?)
}

/// The data of one version.
struct Block<'a> {
    version: u8,
    width: usize,
    times: &'a [u8],
    indexes: &'a [u8],
    kinds: Vec<LocalKind>,
}

impl<'a> Block<'a> {
    /// The data whose times have `width` bytes, and what is behind.
    fn read(bytes: &'a [u8], width: usize) -> Option<(Self, &'a [u8])> {
        let (header, mut rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let version = *header.strip_prefix(b"TZif")?.first()?;
        let count = |place: usize| {
            let count = header[20 + 4 * place..].first_chunk::<4>()?;
            usize::try_from(u32::from_be_bytes(*count)).ok()
        };
        let (ut, standard, leap) = (count(0)?, count(1)?, count(2)?);
        let (times, kinds, letters) = (count(3)?, count(4)?, count(5)?);
        let mut take = |length: Option<usize>| {
            let (taken, behind) = rest.split_at_checked(length?)?;
            rest = behind;
            Some(taken)
        };
        let block = Self {
            version,
            width,
            times: take(times.checked_mul(width))?,
            indexes: take(Some(times))?,
            kinds: local_kinds(take(kinds.checked_mul(6))?, letters)?,
        };
        take(Some(letters))?;
        take(leap.checked_mul(width + 4))?;
        take(Some(standard))?;
        take(Some(ut))?;
        (!block.kinds.is_empty()).then_some((block, rest))
    }

    /// The offset at the beginning, and all changes in order of their times.
    fn changes(&self) -> Option<(i32, Vec<OffsetChange>)> {
        let mut changes = Vec::with_capacity(self.indexes.len());
        for (time, index) in self.times.chunks_exact(self.width).zip(self.indexes) {
            let at_s = match time {
                &[a, b, c, d] => i32::from_be_bytes([a, b, c, d]).into(),
                &[a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
                _other_width => return None,
            };
            let kind = self.kinds.get(usize::from(*index))?;
            if changes.last().is_some_and(|last: &OffsetChange| last.at_s > at_s) {
                return None;
            }
            changes.push(OffsetChange { at_s, offset_s: kind.offset_s });
        }
        Some((self.first_kind().offset_s, changes))
    }

    /// What holds before the first change: kind 0 if no change leads to it; else the kind before the first one that is
    /// summer time, if that is where the first change leads; else the first that is not summer time. So does Go.
    fn first_kind(&self) -> LocalKind {
        let first = self.kinds[0];
        if !self.indexes.contains(&0) {
            return first;
        }
        if let Some(index) = self.indexes.first().map(|index| usize::from(*index))
            && self.kinds.get(index).is_some_and(|kind| kind.is_dst)
            && let Some(kind) = self.kinds[..index].iter().rev().find(|kind| !kind.is_dst)
        {
            return *kind;
        }
        self.kinds.iter().find(|kind| !kind.is_dst).copied().unwrap_or(first)
    }
}

fn local_kinds(bytes: &[u8], letters: usize) -> Option<Vec<LocalKind>> {
    let kind = |bytes: &[u8]| {
        let &[a, b, c, d, is_dst, name] = bytes else { return None };
        let offset_s = i32::from_be_bytes([a, b, c, d]);
        let is_sound = offset_s.checked_abs()? <= OFFSET_MAX_S && usize::from(name) < letters;
        is_sound.then_some(LocalKind { offset_s, is_dst: is_dst != 0 })
    };
    bytes.chunks_exact(6).map(kind).collect()
}
