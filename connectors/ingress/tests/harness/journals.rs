//! Journals in memory: they refuse, lose answers, and lose the beginning of an append whose end arrives.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use everlog_ingress::Undelivered;
use everlog_wire::Body;
use everlog_wire::public_command::SourcePosition;
use tokio::sync::watch;

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    None,
    /// Nothing is appended.
    Refused,
    /// All is appended, and nobody hears of it.
    AnswerLost,
    /// All behind the record at this place is appended, and nobody hears of it.
    Part(usize),
}

#[derive(Clone)]
pub struct Journals {
    state: Arc<Mutex<State>>,
    closed: Arc<watch::Sender<bool>>,
}

struct State {
    journals: Vec<Journal>,
    under_way: Vec<usize>,
    faults: VecDeque<Fault>,
}

#[derive(Clone, Default)]
pub struct Journal(Vec<Body>);

impl Journal {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// What counts of it, by the rules of whoever applies it.
    pub fn applied(&self) -> Vec<Body> {
        let mut marks: Vec<SourcePosition> = Vec::new();
        let mut applied = Vec::new();
        for body in &self.0 {
            let source = source(body);
            let mark = marks.iter_mut().find(|mark| mark.partition == source.partition);
            let next = mark.as_ref().map_or(0, |mark| mark.offset);
            if source.offset < next || next < source.follows {
                continue;
            }
            match mark {
                Some(mark) => mark.offset = source.offset + 1,
                None => marks.push(SourcePosition { offset: source.offset + 1, ..source.clone() }),
            }
            applied.push(body.clone());
        }
        applied
    }
}

fn source(body: &Body) -> &SourcePosition {
    let source = match body {
        Body::PublicCommand(forwarded) => forwarded.source.as_ref(),
        Body::InvalidCommand(unreadable) => unreadable.source.as_ref(),
        other => panic!("nobody brings {other:?}"),
    };
    source.expect("it has a place")
}

impl Journals {
    pub fn new(partitions: usize) -> Self {
        let (journals, under_way) = (vec![Journal::default(); partitions], vec![0; partitions]);
        let state = State { journals, under_way, faults: VecDeque::new() };
        Self { state: Arc::new(Mutex::new(state)), closed: Arc::new(watch::channel(false).0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics")
    }

    pub fn all(&self) -> Vec<Journal> {
        self.state().journals.clone()
    }

    pub fn faults(&self, faults: impl Iterator<Item = Fault>) {
        self.state().faults.extend(faults);
    }

    /// While they are closed nothing is answered.
    pub fn close(&self, closed: bool) {
        self.closed.send_replace(closed);
    }

    pub fn waiting(&self) -> usize {
        self.state().under_way.iter().sum()
    }
}

/// An append that is under way; it may be dropped.
struct UnderWay<'a>(&'a Journals, usize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.state().under_way[self.1] -= 1;
    }
}

impl everlog_ingress::Journals for Journals {
    fn partitions(&self) -> u32 {
        self.state().journals.len() as u32
    }

    async fn deliver(&self, partition: u32, bodies: &[Body]) -> Result<(), Undelivered> {
        let index = partition as usize;
        {
            let under_way = &mut self.state().under_way[index];
            *under_way += 1;
            assert_eq!(*under_way, 1, "one append per journal at a time");
        }
        let _under_way = UnderWay(self, index);
        self.closed.subscribe().wait_for(|closed| !closed).await.expect("it is kept");
        tokio::task::yield_now().await;
        let mut state = self.state();
        let fault = state.faults.pop_front().unwrap_or(Fault::None);
        let lost = Err(Undelivered("nobody knows".into()));
        let (from, to, answer) = match fault {
            Fault::None => (0, bodies.len(), Ok(())),
            Fault::Refused => (0, 0, lost),
            Fault::AnswerLost => (0, bodies.len(), lost),
            Fault::Part(from) => ((from + 1).min(bodies.len()), bodies.len(), lost),
        };
        state.journals[index].0.extend_from_slice(&bodies[from..to]);
        answer
    }
}
