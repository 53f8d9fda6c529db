//! The two ways into the journals of a node.

use std::sync::Arc;

use everlog_ingress::{Journals, OwnedJournals, SharedJournals, Undelivered};
use everlog_log::Log;
use everlog_partition::{CallFailure, InboxMessage};
use everlog_rocks::log::{Embedded, Options};
use everlog_wire::public_command::{InvalidCommand, SourcePosition};
use everlog_wire::{Body, Record};

fn bodies() -> Vec<Body> {
    let body = |offset| {
        let source = Some(SourcePosition { offset, ..SourcePosition::default() });
        Body::InvalidCommand(InvalidCommand { source, ..InvalidCommand::default() })
    };
    (0..3).map(body).collect()
}

#[tokio::test]
async fn what_goes_by_way_of_the_log_stands_in_the_journal_in_order_and_under_no_term() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut options = Options::new(dir.path());
    options.partitions = 2;
    let log = Arc::new(Embedded::open(options).expect("the log opens"));
    let journals = SharedJournals::new(&log);
    assert_eq!(journals.partitions(), 2);
    journals.deliver(1, &bodies()).await.expect("it is durable");
    let records = log.read(1, 0, 1 << 20).expect("it can be read").into_iter();
    let read: Vec<_> = records.map(|record| Record::read(record.bytes).expect("a record")).collect();
    assert!(read.iter().all(|record| record.term == 0 && record.serial == 0));
    assert_eq!(read.into_iter().filter_map(|record| record.body).collect::<Vec<_>>(), bodies());
    assert!(journals.deliver(2, &bodies()).await.is_err(), "there is no such journal");
    drop(log);
    assert_eq!(journals.deliver(1, &bodies()).await, Err(Undelivered("the log is closed".into())));
}

#[tokio::test]
async fn what_goes_by_way_of_the_owner_is_delivered_only_when_the_owner_says_so() {
    let owned = |answer: Option<Result<(), CallFailure>>, is_here: bool| OwnedJournals {
        partitions: 1,
        post: Arc::new(move |partition, event| {
            let InboxMessage::Ingest { bodies: brought, done } = event else {
                panic!("nothing else is sent")
            };
            assert_eq!((partition, brought), (0, bodies()));
            if let Some(answer) = answer {
                done.send(answer).expect("somebody waits");
            }
            is_here
        }),
    };
    assert_eq!(owned(Some(Ok(())), true).deliver(0, &bodies()).await, Ok(()));
    for (answer, is_here) in [(Some(Err(CallFailure::Busy)), true), (None, true), (None, false)] {
        let undelivered: Result<(), Undelivered> = owned(answer, is_here).deliver(0, &bodies()).await;
        assert!(undelivered.is_err());
    }
}
