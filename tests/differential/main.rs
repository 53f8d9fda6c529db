//! The same programs at Everlog and at a Temporal server: every answer, history and description is compared field by field.
//!
//! Without a Temporal server a fixed set of programs runs against its recorded answers, but for those that
//! `allowed::OPEN` names. With
//! `EVERLOG_REFERENCE=<address, or path of the temporal command>` programs run on both, side by side:
//!
//! | variable | what it says |
//! |---|---|
//! | `EVERLOG_DIFFERENTIAL_SEEDS` | how many programs, or which: `3,` or `7,40..60`; of recorded ones those of `allowed::OPEN` as well |
//! | `EVERLOG_DIFFERENTIAL_LIVES` | the same of the lives of schedules |
//! | `EVERLOG_DIFFERENTIAL_AT_ONCE` | how many of them at a time |
//! | `EVERLOG_DIFFERENTIAL_RECORD` | write the answers to the fixed set again; `under way`, `operated` or `administered`: from the programs of that name on; `lives`: those to the lives of schedules only |
//! | `EVERLOG_DIFFERENTIAL_NOTED` | print all that both servers answer |
//! | `EVERLOG_DIFFERENTIAL_ONCE` | do not run programs that differ once more, nor lives |
//! | `EVERLOG_DIFFERENTIAL_SHRINK` | drop steps of programs that differ for as long as they differ |
//!
//! Programs of seeds from 100,000 on are made of `moves::under_way`, from 200,000 on of `moves::operators`, from 300,000
//! on of `moves::administration`. Where a number is asked for, a tenth as many of each run beside.
//!
//! `coverage.txt` is what the latest live run of 2,000 programs has met, and how often.
//!
//! `lists` asks both for lists and counts of generated runs. With `EVERLOG_DIFFERENTIAL_RECORD` and the name of its test,
//! `lists_are`, it writes the answers again.
//!
//! The bugs of `planted.toml`, one at a time in a server, must each make the fixed set differ: `./check planted`.

mod allowed;
mod compare;
mod coverage;
mod generator;
mod lists;
mod live;
mod lives;
mod moves;
mod plain;
mod program;
mod recorded;
mod recording;
mod runner;
mod schema;
mod servers;
mod shrink;

use anyhow::Result;

/// What says that the answers to the lives of schedules are to be written again.
const LIVES: &str = "lives";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_go_as_at_a_temporal_server() -> Result<()> {
    let report = match std::env::var("EVERLOG_REFERENCE") {
        Ok(place) => match std::env::var("EVERLOG_DIFFERENTIAL_RECORD") {
            Ok(what) if what == LIVES => return Ok(()),
            Ok(what) => return recorded::record(&place, &what).await,
            Err(_none) => live::run(&place).await?,
        },
        Err(_none) => recorded::run().await?,
    };
    println!("{report}");
    assert!(
        report.programs > 0,
        "none of the programs asked for is recorded: EVERLOG_REFERENCE runs any of them"
    );
    assert!(report.lacking.is_empty(), "too seldom met: {:#?}", report.lacking);
    assert!(report.differing.is_empty(), "{} programs differ", report.differing.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lives_of_schedules_go_as_at_a_temporal_server() -> Result<()> {
    let report = match std::env::var("EVERLOG_REFERENCE") {
        Ok(place) => match std::env::var("EVERLOG_DIFFERENTIAL_RECORD") {
            Ok(what) if what == LIVES => return lives::record(&place).await,
            Ok(_of_programs) => return Ok(()),
            Err(_none) => lives::run_live(&place).await?,
        },
        Err(_none) => lives::run().await?,
    };
    println!("{report}");
    assert!(report.lives > 0, "none of the lives asked for is recorded: EVERLOG_REFERENCE plays any of them");
    assert!(report.differing.is_empty(), "{} lives differ", report.differing.len());
    Ok(())
}
