//! Orders as records of `commands`: plain, in transactions, and in transactions that are aborted.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::{Context, anyhow};
use everlog_tests::dice::Dice;
use everlog_tests::fate::Fate;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::client::{NAMESPACE, QUEUE, TASK_TIMEOUT_S};
use crate::ledger::{Deed, Ledger, Via};
use crate::reader;

const WITHIN: Duration = Duration::from_secs(180);
/// Of a thousand orders, those that are first sent in a transaction which is aborted, and those in one that is not.
const ABORTED_PERMILLE: u32 = 250;
const COMMITTED_PERMILLE: u32 = 500;
/// Orders that are sent together.
const TOGETHER_MAX: usize = 100;

/// The way to the thread that has the producers.
pub struct Commands {
    orders: Sender<Order>,
    ledger: Ledger,
    /// What was sent for good: Workflow Id, identity, order.
    sent: Mutex<Vec<(String, String, Value)>>,
}

/// What is to be sent, and what its sender is told. Until then nothing else is sent for the same workflow.
struct Order {
    id: String,
    body: Value,
    ways: Vec<(Way, String)>,
    done: oneshot::Sender<Result<(), String>>,
}

/// How an order is sent, under an identity of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Aborted,
    Committed,
    Plain,
}

impl Commands {
    pub fn new(bootstrap: &str, prefix: &str, ledger: &Ledger) -> anyhow::Result<Self> {
        let producers = Producers::new(bootstrap, prefix)?;
        let (orders, received) = channel();
        std::thread::Builder::new().name("orders".into()).spawn(move || producers.serve(&received))?;
        Ok(Self { orders, ledger: ledger.clone(), sent: Mutex::default() })
    }

    pub async fn start(&self, id: &str, dice: &mut Dice) -> anyhow::Result<()> {
        let timeout_ms = TASK_TIMEOUT_S * 1_000;
        let start =
            json!({"workflow_type": "order", "task_queue": QUEUE, "workflow_task_timeout_ms": timeout_ms});
        self.order(id, &Deed::Start, json!({"type": "start", "start": start}), dice).await
    }

    pub async fn signal(&self, id: &str, name: &str, dice: &mut Dice) -> anyhow::Result<()> {
        let deed = Deed::Signal { name: name.into(), in_order: true };
        self.order(id, &deed, json!({"type": "signal", "signal": {"name": name}}), dice).await
    }

    /// Perhaps once in vain, then for good.
    async fn order(&self, id: &str, deed: &Deed, body: Value, dice: &mut Dice) -> anyhow::Result<()> {
        let (in_vain, in_transaction) = (dice.permille(ABORTED_PERMILLE), dice.permille(COMMITTED_PERMILLE));
        let last = if in_transaction { Way::Committed } else { Way::Plain };
        let ways = in_vain.then_some(Way::Aborted).into_iter().chain([last]);
        let calls: Vec<_> = ways.map(|way| (way, self.ledger.sent(id, deed.clone(), Via::Record))).collect();
        let ways = calls.iter().map(|(way, (_, identity))| (*way, identity.clone())).collect();
        self.send(id, body.clone(), ways).await?;
        for (way, (call, identity)) in calls {
            self.ledger.settle(call, if way == Way::Aborted { Fate::Refused } else { Fate::Acked });
            if way != Way::Aborted {
                self.sent.lock().expect("nobody panics while it is held").push((
                    id.to_owned(),
                    identity,
                    body.clone(),
                ));
            }
        }
        Ok(())
    }

    /// Sends orders again that were sent before, under the same command ids, each a few times; how many records that were.
    pub async fn again(&self, orders: usize, dice: &mut Dice) -> anyhow::Result<u64> {
        // A command id holds within a run: the later runs of a chain know none of those before.
        let sent = self.sent.lock().expect("nobody panics while it is held").clone();
        let sent: Vec<_> = sent.into_iter().filter(|(id, ..)| !id.starts_with("chain")).collect();
        let mut records = 0;
        for _ in 0..orders.min(sent.len()) {
            let (id, identity, body) = &sent[dice.index(sent.len())];
            let times = 2 + dice.below(8);
            let ways = (0..times).map(|_| (Way::Plain, identity.clone())).collect();
            self.send(id, body.clone(), ways).await?;
            records += times;
        }
        Ok(records)
    }

    async fn send(&self, id: &str, body: Value, ways: Vec<(Way, String)>) -> anyhow::Result<()> {
        let (done, told) = oneshot::channel();
        let order = Order { id: id.into(), body, ways, done };
        self.orders.send(order).map_err(|_| anyhow!("the producers are gone"))?;
        told.await.context("the producers are gone")?.map_err(|error| anyhow!("{error}"))
    }
}

/// Two producers, one of them transactional.
struct Producers {
    plain: BaseProducer,
    transactional: BaseProducer,
    topic: String,
    replies: String,
}

impl Producers {
    fn new(bootstrap: &str, prefix: &str) -> anyhow::Result<Self> {
        let mut config = reader::client(bootstrap);
        config.set("enable.idempotence", "true").set("linger.ms", "0");
        let plain = config.create()?;
        config.set("transactional.id", format!("{prefix}orders"));
        let transactional: BaseProducer = config.create()?;
        transactional.init_transactions(WITHIN)?;
        Ok(Self {
            plain,
            transactional,
            topic: format!("{prefix}commands"),
            replies: format!("{prefix}replies"),
        })
    }

    /// The thread: as long as somebody may order.
    fn serve(&self, orders: &Receiver<Order>) {
        while let Ok(first) = orders.recv() {
            let rest = orders.try_iter().take(TOGETHER_MAX - 1);
            let together: Vec<Order> = std::iter::once(first).chain(rest).collect();
            let outcome = self.send(&together).map_err(|error| format!("{error:#}"));
            for order in together {
                // Whoever has gone needs no answer.
                let _ = order.done.send(outcome.clone());
            }
        }
    }

    /// What is aborted first, so that nobody's order for good is overtaken by it.
    fn send(&self, orders: &[Order]) -> anyhow::Result<()> {
        for way in [Way::Aborted, Way::Committed, Way::Plain] {
            let of_it = orders.iter().flat_map(|order| {
                let ways = order.ways.iter().filter(move |(other, _)| *other == way);
                ways.map(move |(_, identity)| (order, identity))
            });
            let of_it: Vec<_> = of_it.collect();
            if of_it.is_empty() {
                continue;
            }
            let producer = if way == Way::Plain { &self.plain } else { &self.transactional };
            if way != Way::Plain {
                producer.begin_transaction()?;
            }
            for (order, identity) in of_it {
                self.produce(producer, order, identity)?;
            }
            producer.flush(WITHIN).context("orders were not delivered")?;
            match way {
                Way::Aborted => producer.abort_transaction(WITHIN)?,
                Way::Committed => producer.commit_transaction(WITHIN)?,
                Way::Plain => {}
            }
        }
        Ok(())
    }

    fn produce(&self, producer: &BaseProducer, order: &Order, identity: &str) -> anyhow::Result<()> {
        let mut body = order.body.clone();
        body["identity"] = identity.into();
        let body = body.to_string();
        let mut headers = OwnedHeaders::new();
        for (key, value) in
            [("namespace", NAMESPACE), ("command-id", identity), ("reply-topic", &self.replies)]
        {
            headers = headers.insert(Header { key, value: Some(value) });
        }
        let record = BaseRecord::to(&self.topic).key(&order.id).payload(&body).headers(headers);
        producer.send(record).map_err(|(error, _)| error).context("an order")
    }
}
