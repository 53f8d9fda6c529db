//! Ids of runs: in the order in which the runs began, in whatever way they did.

use everlog_engine::api_types::{ConflictPolicy, RetryPolicy};

use crate::world::{World, a_signal, an_update, application, seconds};

/// A way in which a run begins: its name, and what leads to it.
type Way = (&'static str, fn(&mut World));

const WAYS: [Way; 11] = [
    ("start", |world| {
        world.start("order-1");
    }),
    ("start that ends the run which is there", |world| {
        world.start_with("order-1", "", |begin| {
            begin.conflict_policy = ConflictPolicy::TerminateExisting.into();
        });
    }),
    ("continue as new", |world| {
        world.task(|t| t.continue_as_new(|_again| {}));
    }),
    ("reset of an open run", |world| {
        world.claim().reset(3);
    }),
    ("reset of a closed run", |world| {
        world.task(|t| t.complete("done")).reset(3);
    }),
    ("signal with start", |world| {
        world.start_with("order-2", "", |begin| begin.signal = Some(a_signal("go", "go")));
    }),
    ("update with start", |world| {
        world.start_with("order-3", "", |begin| begin.update = Some(an_update("u1")));
    }),
    ("start of a run that is tried again", |world| {
        world.start_with("order-4", "", |begin| {
            begin.retry_policy = Some(RetryPolicy { maximum_attempts: 2, ..RetryPolicy::default() });
            begin.cron_schedule = "@every 1s".into();
        });
    }),
    ("retry", |world| {
        world.advance(seconds(1)).task(|t| t.fail(application("Flaky", |_failure| {})));
    }),
    ("cron", |world| {
        world.advance(seconds(1)).task(|t| t.complete("done"));
    }),
    ("child", |world| {
        world.on("order-2").task(|t| t.child("parcel-1")).post().on("parcel-1");
    }),
];

/// Each run begins so long after the one before it, in ms.
fn each_after(span_ms: i64) {
    let mut world = World::new();
    let mut ids: Vec<String> = Vec::new();
    for (way, begin) in WAYS {
        world.pass(span_ms);
        begin(&mut world);
        let start = &world.run().start;
        let (id, began_ms) = (start.run_id.clone(), start.start_ms.max(start.reset_ms));
        assert_eq!(&id[14..15], "7", "{way}: a UUID of version 7");
        assert_eq!(id[..13].replace('-', ""), format!("{began_ms:012x}"), "{way}: it tells the time");
        assert_eq!(began_ms, world.now_ms, "{way}");
        assert!(ids.last().is_none_or(|before| *before < id), "{way}: {id} is behind {ids:?}");
        let is_first = start.continued_run_id.is_empty() && start.reset_ms == 0;
        assert_eq!(
            start.first_run_id == id,
            is_first,
            "{way}: the first of its chain is named by its own id"
        );
        assert!(is_first || ids.contains(&start.first_run_id), "{way}");
        ids.push(id);
    }
}

#[test]
fn ids_are_in_the_order_in_which_their_runs_began_however_that_was() {
    each_after(1);
    each_after(seconds(3_600));
}

#[test]
fn ids_of_one_millisecond_are_in_the_order_of_the_journal() {
    each_after(0);
}
