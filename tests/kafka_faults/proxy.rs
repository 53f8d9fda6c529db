//! A proxy in front of a broker that knows what is asked for: it holds, delays, loses and repeats by seeded rules.
//!
//! The broker's advertised listener points here, so that every client comes this way. Rules are for Everlog's clients
//! only: those of the tests pass.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::Context;
use everlog_tests::dice::Dice;
use everlog_tests::patience;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::frame::{self, Key, Request};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It waits, and with it all that comes after it on its connection.
    Delay(Duration),
    /// The connection breaks before the broker has it.
    Reset,
    /// The broker does it, and the connection breaks in place of the answer.
    LoseAnswer,
    /// The broker does it, and the answer never comes.
    Silence,
    /// The connection breaks, and the broker gets the request later, when its client has sent it again.
    Late(When),
}

/// When a late request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After so long.
    After(Duration),
    /// While a transaction of the same client is half written.
    MidTransaction,
}

/// To whom it happens.
#[derive(Clone, Debug)]
pub struct Rule {
    pub key: Key,
    /// What the client's id contains.
    pub client: &'static str,
    pub act: Act,
    /// In so many of a thousand requests.
    pub permille: u32,
    /// So many times at most.
    pub times: u64,
}

/// What happened so far.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Requests that came, by what they asked for.
    pub requests: BTreeMap<Key, u64>,
    /// Requests that a rule hit.
    pub hit: u64,
    /// Late requests that the broker got and answered.
    pub late: u64,
    /// Of those, the ones that came while another transaction was half written.
    pub mid_transaction: u64,
    /// What late ends of transactions were answered: the protocol's numbers of errors.
    pub late_errors: BTreeMap<i16, u64>,
}

/// A running proxy; it ends with the runtime.
#[derive(Clone)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    inner: Mutex<Inner>,
    /// A Produce of some client was answered.
    answered: Notify,
}

struct Inner {
    upstream: Option<SocketAddr>,
    dice: Dice,
    rules: Vec<Rule>,
    counts: Counts,
    /// Waits for the middle of a transaction, by client.
    late: BTreeMap<String, Request>,
    /// Produce requests of a client since its last EndTxn: sent, and answered.
    produced: BTreeMap<String, (u64, u64)>,
}

impl Proxy {
    /// Listens; the broker is named later, since it must be told this address first.
    pub async fn start(seed: u64) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let inner = Inner {
            upstream: None,
            dice: Dice::new(seed),
            rules: Vec::new(),
            counts: Counts::default(),
            late: BTreeMap::new(),
            produced: BTreeMap::new(),
        };
        let state = Arc::new(State { inner: Mutex::new(inner), answered: Notify::new() });
        let proxy = Self { address: listener.local_addr()?, state: Arc::clone(&state) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, Arc::clone(&state)));
            }
        });
        Ok(proxy)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From here on connections go there.
    pub fn lead_to(&self, upstream: &str) -> anyhow::Result<()> {
        self.open().upstream = Some(upstream.parse().context("an address")?);
        Ok(())
    }

    /// From here on these rules hold, and no others; counts begin anew.
    pub fn set(&self, rules: Vec<Rule>) {
        let mut inner = self.open();
        (inner.rules, inner.counts) = (rules, Counts::default());
    }

    pub fn counts(&self) -> Counts {
        self.open().counts.clone()
    }

    fn open(&self) -> MutexGuard<'_, Inner> {
        self.state.open()
    }
}

impl State {
    fn open(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics while it is open")
    }

    /// What becomes of a request.
    fn decide(&self, request: &Request) -> Option<Act> {
        let mut inner = self.open();
        let inner = &mut *inner;
        *inner.counts.requests.entry(request.key).or_default() += 1;
        if request.key == Key::END_TXN {
            inner.produced.remove(&request.client);
        }
        for rule in &mut inner.rules {
            let waits = inner.late.contains_key(&request.client);
            let fits = rule.key == request.key && request.client.contains(rule.client);
            let may = fits && rule.times > 0 && !(waits && rule.act == Act::Late(When::MidTransaction));
            if may && inner.dice.permille(rule.permille) {
                rule.times -= 1;
                inner.counts.hit += 1;
                return Some(rule.act);
            }
        }
        None
    }

    /// Notes a Produce; true where a transaction is written by now and a late request waits for that.
    fn is_moment(&self, request: &Request) -> bool {
        let mut inner = self.open();
        if request.key != Key::PRODUCE {
            return false;
        }
        let (sent, _) = inner.produced.entry(request.client.clone()).or_default();
        *sent += 1;
        let is_second = *sent > 1;
        is_second && inner.late.contains_key(&request.client)
    }

    fn has_answer(&self, client: &str) -> bool {
        self.open().produced.get(client).is_some_and(|(_, answered)| *answered > 0)
    }

    fn note_answer(&self, client: &str) {
        self.open().produced.entry(client.to_owned()).or_default().1 += 1;
        self.answered.notify_waiters();
    }

    /// Brings a late request to the broker over a connection of its own, and waits for the answer.
    async fn deliver(&self, request: &Request, is_mid: bool) {
        let Some(upstream) = self.open().upstream else { return };
        let Ok(mut stream) = TcpStream::connect(upstream).await else { return };
        if stream.write_all(&request.bytes).await.is_err() {
            return;
        }
        let answer = frame::read(&mut stream).await;
        let mut inner = self.open();
        let Some(answer) = answer else { return };
        inner.counts.late += 1;
        inner.counts.mid_transaction += u64::from(is_mid);
        if let Some(error) = frame::end_error(&answer).filter(|_| request.key == Key::END_TXN) {
            *inner.counts.late_errors.entry(error).or_default() += 1;
        }
    }

    /// Lets the late request of a client arrive between two parts of its transaction.
    async fn interrupt(&self, client: &str) {
        let answered = async {
            loop {
                let told = self.answered.notified();
                if self.has_answer(client) {
                    return;
                }
                told.await;
            }
        };
        // It goes anyhow, where its moment does not come.
        let is_mid = patience::answer("the middle of a transaction", answered).await.is_ok();
        let late = self.open().late.remove(client);
        if let Some(late) = late {
            self.deliver(&late, is_mid).await;
        }
    }
}

/// What the two directions of a connection share.
#[derive(Default)]
struct Talk {
    /// What was asked, and by whom, by correlation id: requests of which the answer matters.
    asked: Mutex<BTreeMap<i32, (Key, String)>>,
    /// Answers that break the connection, and those that are kept back.
    lost: Mutex<BTreeSet<i32>>,
    kept: Mutex<BTreeSet<i32>>,
}

async fn serve(client: TcpStream, state: Arc<State>) {
    let upstream = state.open().upstream;
    let Some(upstream) = upstream else { return };
    let Ok(upstream) = TcpStream::connect(upstream).await else { return };
    let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = upstream.into_split();
    let talk = Talk::default();
    // Whichever direction ends first ends the other: both streams are closed.
    tokio::select! {
        () = requests(from_client, to_broker, &state, &talk) => {}
        () = answers(from_broker, to_client, &state, &talk) => {}
    }
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &Arc<State>, talk: &Talk) {
    while let Some(bytes) = frame::read(&mut from).await {
        let Some(request) = Request::new(bytes) else { return };
        let act = state.decide(&request);
        if state.is_moment(&request) {
            state.interrupt(&request.client).await;
        }
        match act {
            None => {}
            Some(Act::Delay(span)) => patience::pass(span).await,
            Some(Act::Reset) => return,
            Some(Act::LoseAnswer) => {
                lock(&talk.lost).insert(request.correlation);
            }
            Some(Act::Silence) => {
                lock(&talk.kept).insert(request.correlation);
            }
            Some(Act::Late(When::MidTransaction)) => {
                state.open().late.insert(request.client.clone(), request);
                return;
            }
            Some(Act::Late(When::After(span))) => {
                let state = Arc::clone(state);
                tokio::spawn(async move {
                    patience::pass(span).await;
                    state.deliver(&request, false).await;
                });
                return;
            }
        }
        lock(&talk.asked).insert(request.correlation, (request.key, request.client));
        if to.write_all(&request.bytes).await.is_err() {
            return;
        }
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &State, talk: &Talk) {
    while let Some(answer) = frame::read(&mut from).await {
        let Some(correlation) = frame::correlation(&answer) else { return };
        let asked = lock(&talk.asked).remove(&correlation);
        if let Some((Key::PRODUCE, client)) = asked {
            state.note_answer(&client);
        }
        if lock(&talk.lost).remove(&correlation) {
            return;
        }
        if !lock(&talk.kept).remove(&correlation) && to.write_all(&answer).await.is_err() {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while it is open")
}
