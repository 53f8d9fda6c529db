//! A scenario from its beginning to its report.

mod histories;
mod open;
mod programs;
mod reads;
mod sends;
mod standing_workflows;
mod workflows;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;

use super::disk;
use super::options::{Options, Scenario};
use super::pace::{self, Operation};
use super::process::Usage;
use super::report::{Measured, Report};
use super::session::Session;
use super::window::Window;
use super::worker::{Program, Worker};

use histories::Histories;
use open::Open;
use reads::{Question, Reads};
use sends::{Sending, Sends};
use workflows::Workflows;

/// Of `step`, where the command line gives none.
const STEP_RATE: f64 = 20.0;

/// Puts the load on the server and reports; fails if the server cannot be reached or prepared.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let mut load = options.load.clone();
    if matches!(options.scenario, Scenario::Step) {
        load.rate = load.rate.or(Some(STEP_RATE));
    }
    let fdatasync_us = load.fdatasync.as_deref().map(disk::fdatasync_us).transpose()?;
    let session = Arc::new(Session::open(&load).await?);
    let measured = match &options.scenario {
        Scenario::Start => {
            let worker = worker(&session, programs::nothing(&session), false);
            measure(&session, Some(worker), Workflows::new(&session)).await?
        }
        Scenario::Activities { count, parallel: true, .. } => {
            let worker = worker(&session, programs::activities_at_once(&session, *count), false);
            measure(&session, Some(worker), Workflows::new(&session)).await?
        }
        Scenario::Activities { count, parallel: false, .. } => {
            let worker = worker(&session, programs::activities_in_sequence(&session, *count), true);
            measure(&session, Some(worker), Workflows::new(&session)).await?
        }
        Scenario::Step => {
            let worker = worker(&session, programs::activities_in_sequence(&session, 1), true);
            measure(&session, Some(worker), Workflows::new(&session)).await?
        }
        Scenario::Timers { count, timer_ms } => {
            let worker = worker(&session, programs::timers(&session, *count, *timer_ms), false);
            measure(&session, Some(worker), Workflows::new(&session)).await?
        }
        Scenario::Signals { signals_per_run } => {
            let worker = worker(&session, programs::standing(), false);
            measure(&session, Some(worker), Sends::new(&session, Sending::Signal, *signals_per_run)).await?
        }
        Scenario::Updates { updates_per_run } => {
            let worker = worker(&session, programs::standing(), false);
            measure(&session, Some(worker), Sends::new(&session, Sending::Update, *updates_per_run)).await?
        }
        Scenario::Children { count, wave } => {
            let worker = worker(&session, programs::parent(&session, *count, *wave), false);
            measure(&session, Some(worker), Workflows::new(&session)).await?
        }
        Scenario::History { markers } => {
            let worker = worker(&session, programs::markers(&session, *markers), false);
            measure(&session, Some(worker), Histories::new(&session, *markers)).await?
        }
        Scenario::Queries => {
            let worker = worker(&session, programs::standing(), false);
            measure(&session, Some(worker), Reads::new(&session, Question::Query)).await?
        }
        Scenario::Describe => {
            let worker = worker(&session, programs::standing(), false);
            measure(&session, Some(worker), Reads::new(&session, Question::Describe)).await?
        }
        Scenario::Open => measure(&session, None, Open::new(&session)).await?,
    };
    Ok(Report::new(options.scenario.name(), &session, measured, fdatasync_us.as_ref()))
}

fn worker(session: &Arc<Session>, program: Program, stepwise: bool) -> Arc<Worker> {
    Arc::new(Worker::new(session.clone(), program, stepwise))
}

async fn measure<O: Operation>(
    session: &Arc<Session>,
    worker: Option<Arc<Worker>>,
    operation: O,
) -> anyhow::Result<Measured> {
    let polls = worker.as_ref().map(|worker| worker.poll());
    let operation = Arc::new(operation);
    operation.prepare().await.context("nothing could be measured")?;
    let window = match session.load.operations {
        Some(_) => Window::of_operations(),
        None => Window::of_duration(session.load.warmup, session.load.duration),
    };
    session.tally.open(window);
    let mut driving = tokio::spawn(pace::drive(session.clone(), operation.clone(), window));
    tokio::time::sleep_until(window.from.into()).await;
    let before = (Usage::of(&session.load.pid)?, Usage::of_this_process()?);
    let is_over = tokio::select! {
        over = &mut driving => { over?; true }
        () = tokio::time::sleep_until(window.until.into()) => false,
    };
    let seconds = (Instant::now() - window.from).as_secs_f64();
    let server_after = Usage::of(&session.load.pid).unwrap_or_else(|error| {
        session.tally.failed("server", "Gone", &format!("{error:#}"));
        before.0
    });
    let client_after = Usage::of_this_process()?;
    if !is_over {
        driving.await?;
    }
    operation.check().await;
    drop(polls);
    if let Err(failed) = operation.clean_up().await {
        session.tally.refused(failed.call, &failed.status);
    }
    Ok(Measured { seconds, server: (before.0, server_after), client: (before.1, client_after) })
}
