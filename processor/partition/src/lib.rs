//! When it happens: the single-threaded owner of a partition, its alarms, its task hand-out and its recovery.
//!
//! A [`Partition`] owns no thread, socket or timer: whoever drives it brings events, the time, and a log.

mod address;
mod alarm_rows;
mod alarms;
mod apply;
mod ask;
mod audit;
mod behind;
mod claims;
mod commit;
mod delayed;
mod delivery;
mod dispatch;
mod due;
mod error;
mod event;
mod exchange;
mod flights;
mod former;
mod furnish;
mod handout;
mod homes;
mod ingest;
mod journal;
mod leftovers;
mod partition;
mod past;
mod post;
mod precedence;
mod promise;
mod publish;
mod query;
mod reading;
mod recovery;
mod refusal;
mod removal;
mod reply;
mod restore;
mod room;
mod router;
mod rules;
mod runs;
mod stats;
mod time;
mod update;
mod watch;

pub use address::{Address, BUCKETS, RunKey, WorkflowKey};
pub use delivery::{
    ActivityTask, Completion, Delivery, Page, Poll, QueryAnswer, QueryOutcome, QueryRequest, QueryTask,
    Reading, Receipt, Told, UpdateNews, Want, WorkflowTask,
};
pub use dispatch::{
    Backlog, Dispatcher, LevelStatus, PollTicket, PollerStatus, QueueCounts, QueueKey, QueueLimits,
    QueueStatus, Ready, ReadyId, STICKY_LIVE_MS, TaskRef, Waiting,
};
pub use error::{Error, RowsFault};
pub use event::Event;
pub use exchange::{Claimed, Exchange, Later, Line, Whereabouts, add_kept_back};
pub use former::Former;
pub use homes::{Homes, KeptBack, Offer};
pub use partition::{Config, Partition};
pub use precedence::Precedence;
pub use publish::{Public, Unnamed};
pub use room::Room;
pub use router::{Admission, Answer, Failure, Router, Send, Slot, UpdateCall};
pub use rules::{Kept, Rule, Rules};
pub use stats::{Rejections, Stats};
