//! Rows that are kept beside the log: what they lack is brought from its compacted topics.

use bytes::Bytes;
use everlog_log::{Log, Offset, Topic};
use everlog_store::{Base, Space, Standing};
use everlog_wire::{Mark, Position};

use crate::error::Error;
use crate::partition::Partition;
use crate::rules::{Rule, Rules};

/// Bytes of rows that are written together.
const WRITE_BYTES: usize = 1 << 20;

impl<L: Log + ?Sized, B: Base, R: Rules> Partition<L, B, R> {
    /// Brings the rows to where the log's last commit left them; returns its position.
    pub(crate) fn restore(&mut self) -> Result<Option<(Offset, Bytes)>, Error> {
        let mark = match self.runs.store().base().standing()? {
            Standing::WithTheLog => return Ok(self.log.position(self.id)?),
            Standing::At(Some(_)) if !R::keeps(Rule::RowsFromTheirMark) => {
                return Ok(self.log.position(self.id)?);
            }
            Standing::At(None) if R::keeps(Rule::FinishedRestore) && self.holds_rows()? => {
                // A restore from the beginning tells nothing of what was deleted long ago.
                let detail = "their first restore was not finished".into();
                return Err(Error::Stale { partition: self.id, detail });
            }
            Standing::At(None) => Mark::default(),
            Standing::At(Some(mark)) => Mark::read(mark)?,
        };
        let known = self.known_position(&mark)?;
        let changelog = self.restore_topic(Topic::Changelog, Space::State, mark.changelog)?;
        let timers = self.restore_topic(Topic::Timers, Space::Timers, mark.timers)?;
        let history = self.restore_topic(Topic::History, Space::History, mark.history)?;
        let Some((applied, position)) = changelog.position.or(known) else { return Ok(None) };
        let mark = Mark {
            position: position.clone(),
            changelog: changelog.next,
            history: history.next,
            timers: timers.next,
            ..mark
        };
        self.runs.store().base().write(&mut std::iter::empty(), Some(&mark.encode()))?;
        Ok(Some((applied, position)))
    }

    /// The mark of a commit that is done.
    pub(crate) fn mark(&self, position: Bytes, now_ms: i64) -> Result<Mark, Error> {
        let next = self.log.marks(self.id)?;
        Ok(Mark {
            position,
            changelog: next.changelog,
            history: next.history,
            timers: next.timers,
            written_ms: now_ms,
        })
    }

    fn holds_rows(&mut self) -> Result<bool, Error> {
        let mut found = false;
        for space in [Space::State, Space::History, Space::Timers] {
            // Every key begins with its bucket, far below this.
            self.runs.store().base().scan(space, &[], &[u8::MAX], &mut |_, _| {
                found = true;
                false
            })?;
        }
        Ok(found)
    }

    /// The position that the rows stand at, if they are of this journal and not ahead of it.
    fn known_position(&self, mark: &Mark) -> Result<Option<(Offset, Bytes)>, Error> {
        if mark.position.is_empty() {
            return Ok(None);
        }
        let stale = |detail: String| Error::Stale { partition: self.id, detail };
        let position = Position::read(mark.position.clone())?;
        if !R::keeps(Rule::StaleRows) {
            return Ok(Some((position.applied, mark.position.clone())));
        }
        if position.incarnation != self.incarnation[..] {
            return Err(stale("they belong to other topics".into()));
        }
        let end = self.log.bounds(self.id)?.end;
        if position.applied > end {
            return Err(stale(format!("they stand at {}, the journal ends at {end}", position.applied)));
        }
        Ok(Some((position.applied, mark.position.clone())))
    }

    fn restore_topic(
        &mut self,
        topic: Topic,
        space: Space,
        from: Offset,
    ) -> Result<everlog_log::Restored, Error> {
        let base = self.runs.store().base();
        let mut rows = Rows { base, space, changes: Vec::new(), size_bytes: 0, failed: None };
        let restored = self.log.restore(topic, self.id, from, &mut |key, value| rows.take(key, value));
        rows.write();
        match rows.failed {
            Some(error) => Err(error.into()),
            None => restored.map_err(|error| match error {
                everlog_log::Error::OutOfRange { .. } => {
                    Error::Stale { partition: self.id, detail: error.to_string() }
                }
                error => error.into(),
            }),
        }
    }
}

/// Rows on their way from a topic into the base.
struct Rows<'a, B: Base> {
    base: &'a B,
    space: Space,
    changes: Vec<(Bytes, Option<Bytes>)>,
    size_bytes: usize,
    failed: Option<everlog_store::Error>,
}

impl<B: Base> Rows<'_, B> {
    fn take(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        self.size_bytes += key.len() + value.map_or(0, <[u8]>::len);
        self.changes.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
        if self.size_bytes >= WRITE_BYTES {
            self.write();
        }
        self.failed.is_none()
    }

    fn write(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        self.size_bytes = 0;
        let mut rows = changes.iter().map(|(key, value)| (self.space, key.as_ref(), value.as_deref()));
        if let Err(error) = self.base.write(&mut rows, None) {
            self.failed.get_or_insert(error);
        }
    }
}
