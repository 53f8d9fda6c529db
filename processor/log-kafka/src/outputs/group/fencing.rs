//! Fences of a partition group: partitions that are taken at about the same moment share one transaction.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use everlog_log::{Error, Fence, Offset, PartitionId, Topic};

use crate::errors::{corrupt, io_text};
use crate::group_context::GroupContext;
use crate::outputs::fence_table::{FenceState, FenceStatus};
use crate::outputs::group::{Fenced, GroupJob, GroupWorker};
use crate::outputs::transaction::{Connected, OutputRecord, TransactionLost};
use crate::outputs::{coordinator_wakeup, hanging_transactions};
use crate::record_format;
use crate::restore::committed::after;

impl GroupWorker {
    /// The fences that wait, up to the next job of another kind. A producer is seen to first: those of the other
    /// partitions come meanwhile.
    pub(super) fn gather_fences(
        &mut self,
        jobs: &Receiver<GroupJob>,
        first: (PartitionId, Fenced),
    ) -> Vec<(PartitionId, Fenced)> {
        if self.transactions.is_none() {
            self.connect();
        }
        let mut wanted = vec![first];
        while let Some(job) = self.backlog.pop_front().or_else(|| jobs.try_recv().ok()) {
            match job {
                GroupJob::Fence(partition, answer) if wanted.iter().all(|(other, _)| *other != partition) => {
                    wanted.push((partition, answer));
                }
                other => {
                    self.backlog.push_front(other);
                    break;
                }
            }
        }
        wanted
    }

    /// Makes the producer of the next fence ready, as far as that takes nothing from anybody.
    pub(super) fn connect(&mut self) {
        if self.transactions.is_some() || self.connected.is_some() {
            return;
        }
        let context = &self.context;
        match Connected::open(
            &self.config,
            &context.topics,
            context.options.transaction_timeout(),
            &context.counters,
        ) {
            Ok(connected) => self.connected = Some((connected, Instant::now())),
            // The fence tries again, and says so.
            Err(error) => tracing::debug!(%error, "no producer could be prepared"),
        }
    }

    /// Takes partitions: from here on no earlier fence of them commits, wherever it was given.
    pub(super) fn fence(&mut self, wanted: Vec<(PartitionId, Fenced)>) {
        for (partition, _) in &wanted {
            // Whatever comes of this, the former fence is over.
            let mut owned = self.context.table.of(*partition);
            let (given, reached, marks, trimmed) = (owned.given, owned.reached, owned.marks, owned.trimmed);
            *owned = FenceState { given, reached, marks, trimmed, ..FenceState::default() };
        }
        let partitions: Vec<_> = wanted.iter().map(|(partition, _)| *partition).collect();
        match self.take(&partitions) {
            Ok(fences) => self.begin_at_positions(wanted.into_iter().zip(fences).collect()),
            Err(error) => {
                for (_, answer) in wanted {
                    // A caller that waits no longer needs no answer.
                    let _ = answer.send(Err(error.clone()));
                }
            }
        }
    }

    fn take(&mut self, partitions: &[PartitionId]) -> Result<Vec<Fence>, Error> {
        let began = Instant::now();
        let is_fresh = self.transactions.is_none();
        self.seen.leave(partitions.iter().copied());
        self.produce()?;
        let produced = Instant::now();
        self.end_hanging(partitions)?;
        let ended = Instant::now();
        let fences = self.draw(partitions, is_fresh)?;
        let drawn = Instant::now();
        self.settle(partitions)?;
        let ms = |from: Instant, to: Instant| u64::try_from((to - from).as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(
            ?partitions,
            producer_ms = ms(began, produced),
            hanging_ms = ms(produced, ended),
            rows_ms = ms(ended, drawn),
            settled_ms = ms(drawn, Instant::now()),
            "partitions fenced"
        );
        Ok(fences)
    }

    /// All that belongs to the outputs of partitions: the topics of one after those of the other.
    pub(super) fn places(&self, partitions: &[PartitionId]) -> Vec<(&str, i32, Offset)> {
        let names = &self.context.topics;
        let of = |partition: &PartitionId| {
            let partition = *partition as i32;
            names.iter().map(move |(_, name)| (name.as_str(), partition, 0))
        };
        partitions.iter().flat_map(of).collect()
    }

    /// Sees to a producer that a transaction can begin with.
    pub(super) fn produce(&mut self) -> Result<(), Error> {
        if self.is_spent() {
            self.give_up(TransactionLost::Unknown("an end of a transaction may come late".into()));
        }
        if self.transactions.is_none() {
            let context = &self.context;
            let (timeout, topics) = (context.options.transaction_timeout(), Arc::clone(&context.topics));
            self.drawn.clear();
            let connected = match self.connected.take() {
                Some((connected, _)) => connected,
                None => Connected::open(&self.config, &topics, timeout, &context.counters)?,
            };
            let (id, shared, partition) = (self.id.clone(), Arc::clone(context), self.partitions.start);
            let rouse = move || coordinator_wakeup::coordinator_of(&id, &shared, partition);
            self.transactions = Some(connected.begin(topics, timeout, Box::new(rouse))?);
        }
        Ok(())
    }

    /// What a former owner had begun is aborted by now: waits until every reader sees the same rows.
    fn settle(&self, partitions: &[PartitionId]) -> Result<(), Error> {
        let context = &self.context;
        let reached =
            |partition: PartitionId, topic: Topic| after(context.table.of(partition).reached[topic]);
        let places: Vec<_> = partitions
            .iter()
            .flat_map(|partition| {
                Topic::compacted().map(|topic| (topic, *partition, reached(*partition, topic)))
            })
            .collect();
        let named: Vec<_> = places
            .iter()
            .map(|(topic, partition, until)| (&*context.topics[*topic], *partition as i32, *until))
            .collect();
        for (place, is_settled) in named.iter().zip(context.ends.are_settled(&named)) {
            if !is_settled {
                let (topic, partition, until) = *place;
                context.ends.settled(topic, partition, until)?;
            }
        }
        Ok(())
    }

    /// Ends what hangs of the partitions' outputs, see `hanging_transactions.rs`: everything of it alike, and before the fence row,
    /// whose commit would commit what hangs in the changelog.
    fn end_hanging(&mut self, partitions: &[PartitionId]) -> Result<(), Error> {
        let settled = self.context.ends.are_settled(&self.places(partitions));
        for (partition, settled) in partitions.iter().zip(settled.chunks(Topic::COUNT)) {
            if !settled.iter().all(|is_settled| *is_settled) {
                self.end_hanging_of(*partition)?;
            }
        }
        Ok(())
    }

    fn end_hanging_of(&mut self, partition: PartitionId) -> Result<(), Error> {
        self.produce()?;
        let context = &self.context;
        let found = hanging_transactions::find(&context.options, &context.ends, &context.topics, partition)?;
        let (Some(hanging), Some(transactions)) = (found, &self.transactions) else { return Ok(()) };
        let (topics, is_commit) = (&hanging.topics, hanging.is_commit);
        tracing::warn!(
            partition,
            ?topics,
            is_commit,
            "the brokers left a transaction without an end: it is ended now"
        );
        let places: Vec<_> = topics.iter().map(|topic| (*topic, partition)).collect();
        let outcome = self.write_ends(transactions, &places, is_commit);
        self.ended = Some(Instant::now());
        outcome.map(|reached| self.reach(&reached)).map_err(|lost| {
            let (TransactionLost::Fenced(detail) | TransactionLost::Unknown(detail)) = self.give_up(lost);
            io_text(format!("ending what hangs of partition {partition}: {detail}"))
        })
    }

    /// Gets fence numbers and commits them, in one transaction: an error says that another process has the transactional
    /// id by now, then it is taken back once.
    ///
    /// The numbers are drawn behind `init_transactions`. Who commits under a number did so before the next owner's
    /// `init_transactions`, so numbers of owners that commit grow.
    fn draw(&mut self, partitions: &[PartitionId], mut is_fresh: bool) -> Result<Vec<Fence>, Error> {
        loop {
            self.produce()?;
            let context = &self.context;
            let Some(transactions) = &self.transactions else { return Err(Error::Closed) };
            let fences = context.control.fences(partitions, &context.options.node)?;
            self.drawn.extend(fences.iter().map(|fence| fence.0));
            let rows: Vec<_> = partitions
                .iter()
                .zip(&fences)
                .map(|(partition, fence)| {
                    (*partition, *fence, record_format::fence_key(*partition), fence.0.to_be_bytes())
                })
                .collect();
            let outgoing = rows.iter().map(|(partition, fence, key, value)| OutputRecord {
                topic: Topic::Changelog,
                partition: *partition,
                key,
                value: Some(value),
                header: record_format::header(*fence, 0, 0, 0),
                headers: &[],
            });
            self.rest();
            let outcome = transactions.run(outgoing, &context.counters);
            self.ended = Some(Instant::now());
            match outcome {
                Ok(reached) => {
                    self.reach(&reached);
                    return Ok(fences);
                }
                Err(lost) => {
                    let (TransactionLost::Fenced(detail) | TransactionLost::Unknown(detail)) =
                        self.give_up(lost);
                    if is_fresh {
                        return Err(io_text(format!("taking the partitions {partitions:?} over: {detail}")));
                    }
                    is_fresh = true;
                }
            }
        }
    }

    /// Each partition begins at what was committed last; they are read side by side.
    fn begin_at_positions(&self, taken: Vec<((PartitionId, Fenced), Fence)>) {
        let context = &*self.context;
        std::thread::scope(|threads| {
            for ((partition, answer), fence) in taken {
                threads.spawn(move || {
                    // A caller that waits no longer needs no answer.
                    let _ = answer.send(begin_at_position(context, partition, fence));
                });
            }
        });
    }
}

fn begin_at_position(context: &GroupContext, partition: PartitionId, fence: Fence) -> Result<Fence, Error> {
    let reached = context.table.of(partition).reached[Topic::Changelog];
    let position = context.read_position(partition, reached)?;
    let applied = position.as_ref().map_or(0, |(applied, _)| *applied);
    let end = context.journal_end(partition, applied)?;
    if applied > end {
        let detail = format!("it ends at {end}, but was applied up to {applied}: it was made again");
        return Err(corrupt(&context.options.topic("journal"), partition as i32, detail));
    }
    let mut owned = context.table.of(partition);
    (owned.given, owned.standing, owned.position) = (fence.0, FenceStatus::Good, position);
    Ok(fence)
}
