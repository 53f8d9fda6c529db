//! The rows: one function for each fault, the table of them all.

mod apart;
mod asleep;
mod brokers;
mod checker_mutations;
mod gateways;
mod inputs;
mod kin_mutations;
mod moves;
mod nodes;
mod quorum;
mod several;
mod soak;
pub mod state;
mod topics;
mod wire;

use std::pin::Pin;

use crate::cluster::FaultCluster;
use crate::environment::{Outcome, Size};

type Run = fn(FaultCluster, Size) -> Pin<Box<dyn Future<Output = anyhow::Result<Outcome>>>>;

/// A fault, by the number that the project's list gives it.
pub struct Row {
    pub name: &'static str,
    pub claim: &'static str,
    pub run: Run,
    pub seen: Seen,
    /// It is part of the short form.
    pub is_short: bool,
    /// It runs only where it is named.
    pub is_asked_for: bool,
}

/// How often a fault that was injected must be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Each time.
    Each,
    /// By its nature not each time: twenty times in the full form, and once in the short one.
    Twenty,
    /// The row waits for it once, or looks for it only at its end.
    Once,
}

impl Seen {
    /// Whether so often is often enough.
    pub fn is_enough(self, injected: u64, seen: u64, is_full: bool) -> bool {
        let least = match self {
            Self::Each => injected,
            Self::Twenty if is_full => 20,
            Self::Twenty | Self::Once => 1,
        };
        injected > 0 && seen >= least
    }
}

macro_rules! rows {
    ($($name:literal $form:ident $seen:ident $claim:literal $run:path;)*) => {
        &[$(Row {
            name: $name,
            claim: $claim,
            run: |cluster, size| Box::pin($run(cluster, size)),
            seen: Seen::$seen,
            is_short: matches!(Form::$form, Form::Short),
            is_asked_for: matches!(Form::$form, Form::Named),
        }),*]
    };
}

enum Form {
    Short,
    Full,
    Named,
}

pub const ROWS: &[Row] = rows! {
    "checker_mutations" Short Each "the checker finds every planted damage" checker_mutations::all;
    "F1" Short Each "a node that is killed at random loses and doubles nothing" nodes::killed;
    "F2" Short Each "a stopped node that wakes behind its successor changes nothing" nodes::overtaken;
    "F7" Short Each "a broker that ends, well or killed, costs time only" brokers::ended;
    "F8" Full Each "two of three brokers go on, whichever is away" brokers::each_of_three;
    "F10" Full Each "another broker coordinates the transactions, and none is lost" brokers::coordinator;
    "F11" Short Twenty "an end of a transaction that comes late ends no other" wire::late_end;
    "F11r" Short Each "the same with a producer that is used again tears, and that is seen" wire::late_end_reused;
    "F12" Short Twenty "a produce that comes late doubles nothing" wire::late_produce;
    "F12i" Short Once "a late request for a transactional id ends no node" wire::late_init;
    "F13" Short Each "a lost answer is no lost or doubled order" wire::lost_answers;
    "F17" Short Each "rows that are gone come back from the log, byte for byte" state::gone;
    "F18" Full Once "damaged rows are found, set aside and brought again" state::damaged;
    "F19" Full Each "rows of another log are not used" state::foreign;
    "F20" Full Each "an old copy of the rows is brought up to date" state::old;
    "F21" Full Each "a node without space loses nothing and goes on when there is some" state::full;
    "F22" Full Once "a broker without space loses nothing" brokers::full;
    "F25" Short Twenty "records that come again have one effect" inputs::repeated;
    "F28" Short Twenty "what is too large is refused, and stops no producer" inputs::oversized;
    "F34" Full Each "topics that were deleted, remade or widened are refused with the way out" topics::harmed;
    "F35" Full Once "what compaction leaves restores everything" topics::compacted;
    "F36" Short Twenty "an owner that is killed while it takes over leaves nothing half done" nodes::killed_early;
    "F1x2" Short Each "one of two nodes that is killed loses and doubles nothing" several::killed::<2>;
    "F2x2" Short Each "one of two nodes that sleeps past its session changes nothing, and joins again" several::paused::<2>;
    "F4x2" Short Each "all nodes killed at once lose and double nothing" several::all_killed::<2>;
    "F5x2" Short Each "nodes that are restarted in order, one after the other, fail no call" several::rolled::<2>;
    "F6x2" Short Each "clients of a node that dies go on at another, with the same runs" gateways::killed::<2>;
    "F7x2" Short Each "two nodes go on when their broker does" several::broker_ended::<2>;
    "F8x2" Short Each "two nodes go on with two of three brokers, whichever is away" quorum::each_of_three::<2>;
    "F9x2" Short Each "a broker or a node that is cut off loses and doubles nothing" apart::cut::<2>;
    "F10x2" Short Each "two nodes lose no transaction when another broker coordinates them" quorum::transactions::<2>;
    "F15x2" Short Each "a node that comes and goes keeps nobody from going on" several::flapping::<2>;
    "F16x2" Short Each "another broker coordinates the nodes, and misses a dead one" quorum::members::<2>;
    "F17x2" Short Each "rows of one of two nodes that are gone come back from the log" several::rows_gone::<2>;
    "F1sx2" Full Each "a node whose groups another one follows is killed, and loses and doubles nothing" moves::killed_with_standby;
    "movex2" Full Each "groups that are moved and nodes that are drained lose and double nothing" moves::moved::<2>;
    "movex3" Full Each "three nodes: groups are moved and nodes drained" moves::moved::<3>;
    "F1x3" Full Each "one of three nodes that is killed loses and doubles nothing" several::killed::<3>;
    "F2x3" Full Each "one of three nodes that sleeps past its session changes nothing" several::paused::<3>;
    "F4x3" Full Each "three nodes killed at once lose and double nothing" several::all_killed::<3>;
    "F5x3" Full Each "three nodes that are restarted in order fail no call" several::rolled::<3>;
    "F6x3" Full Each "clients of one of three nodes that dies go on at another" gateways::killed::<3>;
    "F7x3" Full Each "three nodes go on when their broker does" several::broker_ended::<3>;
    "F8x3" Full Each "three nodes go on with two of three brokers" quorum::each_of_three::<3>;
    "F9x3" Full Each "three nodes: who is cut off loses and doubles nothing" apart::cut::<3>;
    "F10x3" Full Each "three nodes lose no transaction when another broker coordinates them" quorum::transactions::<3>;
    "F15x3" Full Each "a node that comes and goes keeps none of three from going on" several::flapping::<3>;
    "F16x3" Full Each "another broker coordinates three nodes, and misses a dead one" quorum::members::<3>;
    "F17x3" Full Each "rows of one of three nodes that are gone come back from the log" several::rows_gone::<3>;
    "late" Full Each "a node that is away for longer than events are kept goes on" topics::outlived;
    "append" Short Each "a late append of a former owner does nothing" wire::late_append;
    "soak3" Named Each "two nodes on three brokers outlive kills and bounces for minutes" soak::three;
    "soak1" Named Each "two nodes on one busy broker outlive kills for minutes" soak::one;
    "away" Full Each "commits that fail for long lose nothing" wire::no_commits;
};
