//! The clients: they start, signal, read, query and wait, and retry what is refused for now.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::api_types::{ReusePolicy, Status};
use everlog_engine::event::History;
use everlog_engine::machine::{signal, start};
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::{Rejection, Reply};
use everlog_partition::{
    Address, CallFailure, CallResult, QueryOutcome, QueryRequest, QueueKey, Reading, Router, Want,
};
use prost::Message;

use crate::clock::Clock;
use crate::dice::Dice;
use crate::exchange::Desk;
use crate::gateway::{CommandReply, Gateway};
use crate::observations::{Observations, Sent};
use crate::rules::POISON;
use crate::workflow::{Program, QUEUE};

pub const NAMESPACE: &str = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";
/// The type of the workflows that clients start.
pub const TYPE: &str = "Program";
/// How long a call may take once there are no more faults, in ms.
const ANSWERED_WITHIN_MS: i64 = 40_000;
const POISONED: &str = "a poisoned signal";

/// The start of a workflow of a type.
pub fn beginning(kind: &str, workflow_id: &str, program: &Program, dice: &mut Dice) -> start::Begin {
    start::Begin {
        request_id: format!("start-{workflow_id}"),
        workflow_type: kind.into(),
        task_queue: QUEUE.into(),
        input: Some(program.encode()),
        task_timeout_ms: dice.span(1_000, 5_000),
        retention_ms: 30 * 86_400_000,
        ..start::Begin::default()
    }
}

/// How clients reach a node.
#[derive(Clone)]
pub struct Endpoint {
    pub router: Router,
    pub gateway: Option<Rc<Gateway>>,
    pub desk: Option<Arc<Desk>>,
}

/// What all clients share.
#[derive(Clone)]
pub struct ClientContext {
    pub clock: Clock,
    pub observations: Rc<RefCell<Observations>>,
    /// The nodes that can be reached, the likely owner first.
    pub endpoints: Rc<RefCell<Vec<Endpoint>>>,
    /// When the last fault is over.
    pub peace_ms: i64,
}

pub fn address(workflow_id: &str, run_id: &str) -> Address {
    Address { namespace_id: NAMESPACE.into(), workflow_id: workflow_id.into(), run_id: run_id.into() }
}

pub fn input(workflow_id: &str, run_id: &str, order: Request) -> RequestRecord {
    RequestRecord {
        namespace_id: NAMESPACE.into(),
        workflow_id: workflow_id.into(),
        run_id: run_id.into(),
        sender: None,
        request: Some(order),
    }
}

impl Endpoint {
    /// By Temporal's API where the node has a gateway, else by the partition's own.
    async fn start(&self, workflow_id: &str, begin: &start::Begin) -> CallResult<CommandReply> {
        if let Some(gateway) = &self.gateway {
            return gateway.start(workflow_id, begin).await;
        }
        let reply =
            self.router.order(input(workflow_id, "", Request::Start(Box::new(begin.clone())))).await?;
        Ok(match reply {
            Reply::Started(started) => CommandReply::Started(started.first_run_id),
            Reply::Rejected(Rejection::AlreadyStarted { first_run_id, .. }) => {
                CommandReply::Started(first_run_id)
            }
            other => CommandReply::Other(format!("{other:?}")),
        })
    }

    /// Without a request id the gateway would make one: it is asked only with one.
    async fn signal(
        &self,
        workflow_id: &str,
        run_id: &str,
        order: &signal::Signal,
    ) -> CallResult<CommandReply> {
        let gateway = self.gateway.as_ref().filter(|_| !order.request_id.is_empty());
        if let Some(gateway) = gateway {
            return gateway.signal(workflow_id, run_id, order).await;
        }
        let reply = self.router.order(input(workflow_id, run_id, Request::Signal(order.clone()))).await?;
        Ok(match reply {
            Reply::Done => CommandReply::Done,
            Reply::Rejected(Rejection::NotFound(_)) => CommandReply::NotFound,
            Reply::Rejected(Rejection::Busy(_)) => CommandReply::Busy,
            other => CommandReply::Other(format!("{other:?}")),
        })
    }
}

impl ClientContext {
    pub fn is_peace(&self) -> bool {
        self.clock.now_ms() >= self.peace_ms
    }

    /// A node, mostly the one that is thought to be the owner.
    pub fn router(&self, dice: &mut Dice) -> Option<Router> {
        self.endpoint(dice).map(|endpoint| endpoint.router)
    }

    /// The home of a queue where nodes share it, by the word of one of them; else a node.
    pub fn home(&self, queue: &QueueKey, dice: &mut Dice) -> Option<Router> {
        let endpoint = self.endpoint(dice)?;
        let Some(desk) = &endpoint.desk else { return Some(endpoint.router) };
        let home = desk.home(queue)?;
        let endpoints = self.endpoints.borrow();
        let at_home =
            endpoints.iter().find(|endpoint| endpoint.desk.as_ref().is_some_and(|desk| desk.id == home));
        at_home.map(|endpoint| endpoint.router.clone())
    }

    fn endpoint(&self, dice: &mut Dice) -> Option<Endpoint> {
        let endpoints = self.endpoints.borrow();
        if endpoints.is_empty() {
            return None;
        }
        let likely = self.is_peace() || dice.permille(700);
        let index = if likely { 0 } else { dice.index(endpoints.len()) };
        endpoints.get(index).cloned()
    }

    /// Makes a call, with a deadline that may be the caller's own; who has none must be answered.
    pub async fn call<T>(
        &self,
        what: &str,
        dice: &mut Dice,
        call: impl Future<Output = CallResult<T>>,
    ) -> CallResult<T> {
        let now_ms = self.clock.now_ms();
        let patient = self.is_peace() || dice.permille(500);
        let until_ms = match patient {
            true => now_ms.max(self.peace_ms) + ANSWERED_WITHIN_MS,
            false => now_ms + dice.span(200, 6_000),
        };
        let ticket = (dice.throw(), format!("{what} since {now_ms}"));
        self.observations.borrow_mut().waiting.insert(ticket.clone());
        let answer = self.clock.within(until_ms - now_ms, call).await;
        let mut observations = self.observations.borrow_mut();
        observations.waiting.remove(&ticket);
        match answer {
            Some(Ok(answer)) => {
                observations.answers += 1;
                Ok(answer)
            }
            Some(Err(failure)) => {
                observations.refusals += 1;
                if failure == CallFailure::Internal && what != POISONED {
                    observations.violate(format!("{what}: internal error"));
                }
                Err(failure)
            }
            None if patient => {
                observations.violate(format!("{what} that began at {now_ms} is not answered at {until_ms}"));
                Err(CallFailure::Unavailable)
            }
            None => Err(CallFailure::Unavailable),
        }
    }

    pub async fn rest(&self, dice: &mut Dice) {
        let most_ms = if self.is_peace() { 200 } else { 600 };
        self.clock.sleep(dice.span(20, most_ms)).await;
    }

    /// Starts a workflow, until it is known to be started.
    pub async fn start(self, workflow_id: String, program: Program, mut dice: Dice) {
        let begin = start::Begin {
            // A run that went on as another one does not know the request any more.
            reuse_policy: ReusePolicy::RejectDuplicate.into(),
            ..beginning(TYPE, &workflow_id, &program, &mut dice)
        };
        loop {
            if let Some(endpoint) = self.endpoint(&mut dice) {
                match self.call("a start", &mut dice, endpoint.start(&workflow_id, &begin)).await {
                    Ok(CommandReply::Started(first_run_id)) => {
                        let mut observations = self.observations.borrow_mut();
                        observations.started.insert(workflow_id.clone(), first_run_id);
                        observations.people_left -= 1;
                        return;
                    }
                    Ok(CommandReply::Busy) | Err(_) => {}
                    Ok(other) => {
                        let what = format!("the start of {workflow_id} yields {other:?}");
                        self.observations.borrow_mut().violate(what);
                    }
                }
            }
            self.rest(&mut dice).await;
        }
    }

    /// Sends signals one after the other.
    pub async fn signal(self, workflow_id: String, count: usize, sender: usize, mut dice: Dice) {
        let run_id = self.first_run(&workflow_id, &mut dice).await;
        for number in 0..count {
            let name = format!("{workflow_id}/{sender}/{number}");
            self.send(&workflow_id, &run_id, name, true, &mut dice).await;
            if dice.permille(300) {
                let name = format!("{workflow_id}/{sender}/{number}/once");
                self.send(&workflow_id, &run_id, name, false, &mut dice).await;
            }
            self.rest(&mut dice).await;
        }
        self.observations.borrow_mut().people_left -= 1;
    }

    /// Sends a signal that makes the engine panic, until it has a definite reply.
    pub async fn poison(self, workflow_id: String, mut dice: Dice) {
        let run_id = self.first_run(&workflow_id, &mut dice).await;
        let name = format!("{POISON}/{workflow_id}");
        let order = signal::Signal { name, ..signal::Signal::default() };
        loop {
            if let Some(router) = self.router(&mut dice) {
                let order = input(&workflow_id, &run_id, Request::Signal(order.clone()));
                match self.call(POISONED, &mut dice, router.order(order)).await {
                    Err(CallFailure::Internal) => break,
                    Err(_) => {}
                    Ok(other) => {
                        self.observations.borrow_mut().violate(format!("poison yields {other:?}"));
                        break;
                    }
                }
            }
            self.rest(&mut dice).await;
        }
        self.observations.borrow_mut().people_left -= 1;
    }

    async fn first_run(&self, workflow_id: &str, dice: &mut Dice) -> String {
        loop {
            let known = self.observations.borrow().started.get(workflow_id).cloned();
            match known {
                Some(run_id) => return run_id,
                None => self.rest(dice).await,
            }
        }
    }

    /// Without a request id a signal is sent once, whatever the reply.
    async fn send(&self, workflow_id: &str, run_id: &str, name: String, again: bool, dice: &mut Dice) {
        let request_id = if again { name.clone() } else { String::new() };
        let order = signal::Signal { name: name.clone(), request_id, ..signal::Signal::default() };
        let sent = Sent { workflow_id: workflow_id.to_owned(), acknowledged: false };
        self.observations.borrow_mut().signals.insert(name.clone(), sent);
        loop {
            let Some(endpoint) = self.endpoint(dice) else {
                self.rest(dice).await;
                continue;
            };
            match self.call("a signal", dice, endpoint.signal(workflow_id, run_id, &order)).await {
                Ok(CommandReply::Done) => {
                    let mut observations = self.observations.borrow_mut();
                    *observations.acknowledged.entry(run_id.to_owned()).or_default() += 1;
                    if let Some(sent) = observations.signals.get_mut(&name) {
                        sent.acknowledged = true;
                    }
                    return;
                }
                Ok(CommandReply::NotFound) => return,
                Ok(CommandReply::Busy) | Err(_) => {}
                Ok(other) => {
                    self.observations.borrow_mut().violate(format!("signal {name} yields {other:?}"));
                    return;
                }
            }
            if !again {
                return;
            }
            self.rest(dice).await;
        }
    }

    /// Reads the first run again and again until the workflow's chain has ended.
    pub async fn read(self, workflow_id: String, mut dice: Dice) {
        let mut run_id = self.first_run(&workflow_id, &mut dice).await;
        loop {
            let news_after = match dice.permille(300) {
                true => self.watch(&workflow_id, &run_id, &mut dice).await,
                false => None,
            };
            if let Some(router) = self.router(&mut dice) {
                let known = self.observations.borrow().known(&run_id);
                let want = Want::History { from_event_id: 1, batches_max: 0 };
                let call = router.read(address(&workflow_id, &run_id), want);
                match self.call("a read", &mut dice, call).await {
                    Ok(Some(reading)) => {
                        self.note(&workflow_id, &run_id, known, news_after, &reading);
                        let head = &reading.run.head;
                        if !head.successor_run_id.is_empty() {
                            run_id.clone_from(&head.successor_run_id);
                        } else if !reading.run.is_open() {
                            break;
                        }
                    }
                    Ok(None) => {
                        let what = format!("run {run_id} of {workflow_id} is not known");
                        self.observations.borrow_mut().violate(what);
                        break;
                    }
                    Err(_) => {}
                }
            }
            self.rest(&mut dice).await;
        }
        let mut observations = self.observations.borrow_mut();
        observations.finished.insert(workflow_id);
        observations.people_left -= 1;
    }

    /// Waits for new events; returns the length that was known before.
    async fn watch(&self, workflow_id: &str, run_id: &str, dice: &mut Dice) -> Option<i64> {
        let router = self.router(dice)?;
        let known = self.observations.borrow().known(run_id).0;
        let span_ms = dice.span(500, 8_000);
        let call = router.watch(address(workflow_id, run_id), known);
        match self.clock.within(span_ms, call).await {
            Some(Ok(())) => Some(known),
            Some(Err(_)) | None => None,
        }
    }

    fn note(
        &self,
        workflow_id: &str,
        run_id: &str,
        known: (i64, i64),
        news_after: Option<i64>,
        reading: &Reading,
    ) {
        let mut observations = self.observations.borrow_mut();
        let head = &reading.run.head;
        let length = head.next_event_id - 1;
        observations.read(run_id, known, (length, head.signals), "read");
        let history = History::decode(reading.page.history.clone()).map(|history| history.events);
        match history {
            Ok(events) => {
                let ids = events.iter().map(|event| event.event_id);
                if !ids.eq(1..=length) {
                    observations
                        .violate(format!("a read of {run_id} shows {} of {length} events", events.len()));
                }
                observations.saw(workflow_id, run_id, &events);
            }
            Err(error) => observations.violate(format!("the history of {run_id} cannot be read: {error}")),
        }
        if let Some(before) = news_after
            && length <= before
            && reading.run.is_open()
        {
            observations.violate(format!("a watch of {run_id} ended without news after event {before}"));
        }
        let status = Status::try_from(head.status);
        if !matches!(
            status,
            Ok(Status::Running | Status::Paused | Status::Completed | Status::ContinuedAsNew)
        ) {
            observations.violate(format!("run {run_id} stands as {status:?}"));
        }
        if let Some(seen) = observations.runs.get_mut(run_id) {
            seen.closed |= !reading.run.is_open();
        }
    }

    /// Asks how many signals the workflow has seen.
    pub async fn ask(self, workflow_id: String, mut dice: Dice) {
        let run_id = self.first_run(&workflow_id, &mut dice).await;
        loop {
            self.clock.sleep(dice.span(300, 2_500)).await;
            if self.observations.borrow().finished.contains(&workflow_id) {
                break;
            }
            let Some(router) = self.router(&mut dice) else { continue };
            let known = self.observations.borrow().known(&run_id);
            let request = QueryRequest {
                address: address(&workflow_id, &run_id),
                query: Bytes::from_static(b"signals"),
                only_open: false,
                only_completed_cleanly: false,
                patience_ms: 60_000,
                is_taken: Arc::default(),
            };
            let outcome = self.call("a query", &mut dice, router.query(request)).await;
            if let Ok(QueryOutcome::Answered(answer)) = outcome {
                let text = answer.result.map(|result| String::from_utf8_lossy(&result).into_owned());
                let found: i64 = text.and_then(|text| text.parse().ok()).unwrap_or(-1);
                let mut observations = self.observations.borrow_mut();
                observations.queries += 1;
                observations.read(&run_id, (0, known.1), (0, found), "query");
            }
        }
        self.observations.borrow_mut().people_left -= 1;
    }
}
