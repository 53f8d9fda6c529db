//! A node with schedules of every overlap policy is killed again and again: no time is lost, none has two actions.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use everlog_temporal_api::enums::ScheduleOverlapPolicy as Policy;
use everlog_temporal_api::schedule::ScheduleInfo;
use everlog_tests::patience;

use crate::nodes::Nodes;
use crate::planner::each_second;

/// How much is tried.
struct Size {
    schedules: usize,
    /// Of each schedule, one a second.
    times: i64,
    kills: i64,
}

impl Size {
    fn wanted() -> Self {
        if std::env::var_os("EVERLOG_FULL").is_some() {
            Self { schedules: 1_000, times: 80, kills: 20 }
        } else {
            Self { schedules: 240, times: 12, kills: 4 }
        }
    }
}

const POLICIES: [Policy; 6] = [
    Policy::AllowAll,
    Policy::Skip,
    Policy::BufferOne,
    Policy::BufferAll,
    Policy::CancelOther,
    Policy::TerminateOther,
];

/// What became of the times of a schedule that are behind it.
fn accounted(info: &ScheduleInfo) -> i64 {
    info.action_count
        + info.missed_catchup_window
        + info.overlap_skipped
        + info.buffer_dropped
        + info.buffer_size
}

/// True where an action waits for as long as nobody ends a run. Under other policies one waits only while its start is under way.
fn waits_for_ever(policy: Policy) -> bool {
    matches!(policy, Policy::BufferOne | Policy::BufferAll | Policy::CancelOther)
}

/// Nobody works at the runs: they stay open until a policy ends them.
fn check(policy: Policy, times: i64, info: &ScheduleInfo) -> Result<(), String> {
    let counts = (info.action_count, info.overlap_skipped, info.buffer_size);
    let is_right = match policy {
        Policy::AllowAll => counts == (times, 0, 0),
        Policy::Skip => counts == (1, times - 1, 0),
        Policy::BufferOne => counts == (1, times - 2, 1),
        Policy::BufferAll => counts == (1, 0, times - 1),
        // The newest waits for the end of a run that nobody cancels.
        Policy::CancelOther => counts.0 == 1 && counts.2 == 1,
        // Times that come while an end is under way, or together after a kill, give way to the newest.
        Policy::TerminateOther => counts.0 >= 1,
        Policy::Unspecified => false,
    };
    if is_right { Ok(()) } else { Err(format!("{policy:?}: started, skipped, waiting {counts:?}: {info:?}")) }
}

#[tokio::test]
async fn each_time_has_one_action_or_is_counted_through_kills() -> anyhow::Result<()> {
    let Size { schedules, times, kills } = Size::wanted();
    let dir = tempfile::tempdir()?;
    let mut nodes = Nodes::start(dir.path().into()).await?;
    let mut planner = nodes.planner().await?;
    let now_s = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    // They are made while the first times pass: what was due before a schedule is there has no action, so they begin later.
    let start_s = now_s + 5 + i64::try_from(schedules / 50)?;
    let end_s = start_s + times - 1;
    let schedules: Vec<_> = POLICIES.iter().copied().cycle().take(schedules).enumerate().collect();
    for (number, policy) in &schedules {
        let create = each_second(&format!("s{number}"), (*policy).into(), start_s, end_s);
        planner.0.send(create).await?;
    }
    let made_s = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    if made_s >= start_s {
        // A machine this slow shows nothing: its schedules came after their times.
        eprintln!("the schedules took {} s to make; nothing is shown", made_s - now_s);
        return Ok(());
    }
    for kill in 1..=kills {
        patience::until("the schedules go on", async || {
            planner.info("s0").await.is_ok_and(|info| info.action_count >= times * kill / (kills + 1))
        })
        .await?;
        planner = nodes.kill_one().await?;
    }
    for (number, policy) in &schedules {
        let id = format!("s{number}");
        let mut last = ScheduleInfo::default();
        let settled = patience::until("each time is worked off", async || {
            let Ok(info) = planner.info(&id).await else { return false };
            last = info;
            accounted(&last) >= times && (waits_for_ever(*policy) || last.buffer_size == 0)
        });
        settled.await.map_err(|error| anyhow::anyhow!("{error}: {policy:?} {last:?}"))?;
        ensure!(accounted(&last) == times, "{policy:?}: a time counts once: {last:?}");
        check(*policy, times, &last).map_err(anyhow::Error::msg)?;
        let runs = planner.count(format!("TemporalScheduledById = '{id}'")).await?;
        ensure!(runs == last.action_count, "{policy:?}: {runs} runs of {last:?}");
        let open = format!("TemporalScheduledById = '{id}' AND ExecutionStatus = 'Running'");
        let open = planner.count(open).await?;
        ensure!(*policy == Policy::AllowAll || open == 1, "{policy:?}: {open} runs are open: {last:?}");
    }
    Ok(())
}
