//! Requests as records of `commands`: without a transaction, in committed ones, and in aborted ones.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context, anyhow};
use everlog_tests::dice::Dice;
use everlog_tests::fate::Fate;
use everlog_tests::patience;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::client::{NAMESPACE, QUEUE, TASK_TIMEOUT_S};
use crate::client_log::{ClientLog, Deed, Via};
use crate::reader;

/// Of a thousand orders, those that are first sent in a transaction which is aborted, and those in one that is not.
const ABORTED_PERMILLE: u32 = 250;
const COMMITTED_PERMILLE: u32 = 500;
/// Orders that are sent together.
const TOGETHER_MAX: usize = 100;
/// How often they are sent while brokers fence the producer.
const TIMES_MAX: u32 = 5;
const ABORTED: &str = "aborted";
const COMMITTED: &str = "committed";

/// What begins the Workflow Ids of runs that follow one another.
const CHAIN: &str = "chain";
/// Without orders for so long, there may be none to come until something is ended.
const IDLE: Duration = Duration::from_secs(2);
/// After so long brokers that are away are asked again: orders wait meanwhile.
const ASKED_FOR: Duration = Duration::from_secs(5);

/// An order that was sent: Workflow Id, body, identity.
type Sent = (String, Value, String);

/// The way to the thread that has the producers.
pub struct Commands {
    orders: Sender<Order>,
    client_log: ClientLog,
    /// What was sent for good.
    sent: Mutex<Vec<Sent>>,
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
    pub fn new(bootstrap: &str, prefix: &str, client_log: &ClientLog) -> anyhow::Result<Self> {
        let mut producers = Producers::new(bootstrap, prefix)?;
        let (orders, received) = channel();
        std::thread::Builder::new().name("orders".into()).spawn(move || producers.serve(&received))?;
        Ok(Self { orders, client_log: client_log.clone(), sent: Mutex::default() })
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
        let calls: Vec<_> =
            ways.map(|way| (way, self.client_log.sent(id, deed.clone(), Via::Record))).collect();
        let ways = calls.iter().map(|(way, (_, identity))| (*way, identity.clone())).collect();
        self.send(id, body.clone(), ways).await?;
        for (way, (call, identity)) in calls {
            self.client_log.settle(call, if way == Way::Aborted { Fate::Refused } else { Fate::Acked });
            if way != Way::Aborted {
                self.sent.lock().expect("nobody panics while it is held").push((
                    id.to_owned(),
                    body.clone(),
                    identity,
                ));
            }
        }
        Ok(())
    }

    /// Sends orders again that were sent before, under the same command ids, each a few times; how many records that were.
    pub async fn again(&self, orders: usize, dice: &mut Dice) -> anyhow::Result<u64> {
        // A command id holds within a run: the later runs of a chain know none of those before.
        let sent = self.sent.lock().expect("nobody panics while it is held").clone();
        let sent: Vec<_> = sent.into_iter().filter(|(id, ..)| !id.starts_with(CHAIN)).collect();
        let mut records = 0;
        for _ in 0..orders.min(sent.len()) {
            let (id, body, identity) = &sent[dice.index(sent.len())];
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

/// A producer for each way.
///
/// A broker that comes back may leave a transaction without its end (KAFKA-20734). Nobody reads past it until the same
/// producer's next one in that partition ends, and it ends in the same way: so what is aborted and what is committed have
/// producers of their own.
struct Producers {
    plain: BaseProducer,
    aborting: BaseProducer,
    committing: BaseProducer,
    /// Where a partition's records end, and where those do that may be read.
    ends: [BaseConsumer; 2],
    topic: String,
    replies: String,
    config: ClientConfig,
    prefix: String,
}

fn transactional(config: &ClientConfig, prefix: &str, what: &str) -> anyhow::Result<BaseProducer> {
    let producer: BaseProducer =
        config.clone().set("transactional.id", format!("{prefix}orders-{what}")).create()?;
    producer.init_transactions(patience::most())?;
    Ok(producer)
}

fn is_transactions(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(KafkaError::Transaction(_)))
}

impl Producers {
    fn new(bootstrap: &str, prefix: &str) -> anyhow::Result<Self> {
        let mut config = reader::client(bootstrap);
        config.set("enable.idempotence", "true").set("linger.ms", "0");
        Ok(Self {
            plain: config.create()?,
            aborting: transactional(&config, prefix, ABORTED)?,
            committing: transactional(&config, prefix, COMMITTED)?,
            ends: [
                reader::consumer(bootstrap, "read_uncommitted")?,
                reader::consumer(bootstrap, "read_committed")?,
            ],
            topic: format!("{prefix}commands"),
            replies: format!("{prefix}replies"),
            config,
            prefix: prefix.to_owned(),
        })
    }

    /// New ones in place of those that the brokers have fenced, as they do when a transaction takes too long.
    fn renew(&mut self) -> anyhow::Result<()> {
        self.aborting = transactional(&self.config, &self.prefix, ABORTED)?;
        self.committing = transactional(&self.config, &self.prefix, COMMITTED)?;
        Ok(())
    }

    /// The thread: as long as somebody may order.
    fn serve(&mut self, orders: &Receiver<Order>) {
        let mut harmless = None;
        let mut short = BTreeSet::new();
        loop {
            let first = match orders.recv_timeout(IDLE) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    // What was short the last time, too: the end of a transaction may be on its way.
                    let before = std::mem::replace(&mut short, self.short().unwrap_or_default());
                    // Brokers that are away are asked again.
                    let _ = self.end_hanging(&before & &short, harmless.as_ref());
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let rest = orders.try_iter().take(TOGETHER_MAX - 1);
            let together: Vec<Order> = std::iter::once(first).chain(rest).collect();
            let outcome = self.send_until_sent(&together).map_err(|error| format!("{error:#}"));
            for order in together {
                let committed = order.ways.iter().find(|(way, _)| *way == Way::Committed);
                if let Some((_, identity)) = committed.filter(|_| !order.id.starts_with(CHAIN)) {
                    harmless = Some((order.id.clone(), order.body.clone(), identity.clone()));
                }
                // Whoever has gone needs no answer.
                let _ = order.done.send(outcome.clone());
            }
        }
    }

    /// Sends orders, and again what may or may not have been sent: an order that comes again has one effect.
    fn send_until_sent(&mut self, orders: &[Order]) -> anyhow::Result<()> {
        let mut times = 1;
        loop {
            match self.send(orders) {
                Err(error) if times < TIMES_MAX && is_transactions(&error) => self.renew()?,
                outcome => return outcome,
            }
            times += 1;
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
            let producer = match way {
                Way::Aborted => &self.aborting,
                Way::Committed => &self.committing,
                Way::Plain => &self.plain,
            };
            if way != Way::Plain {
                producer.begin_transaction()?;
            }
            for (order, identity) in of_it {
                self.produce(producer, (&order.id, &order.body, identity), None)?;
            }
            producer.flush(patience::most()).context("orders were not delivered")?;
            match way {
                Way::Aborted => producer.abort_transaction(patience::most())?,
                Way::Committed => producer.commit_transaction(patience::most())?,
                Way::Plain => {}
            }
        }
        Ok(())
    }

    /// Ends what hangs while nothing is sent that would end it: with `order` once more, which was committed before.
    fn end_hanging(&self, hanging: BTreeSet<i32>, order: Option<&Sent>) -> anyhow::Result<()> {
        let Some((id, body, identity)) = order else { return Ok(()) };
        let mut hanging = hanging;
        for (producer, is_commit) in [(&self.aborting, false), (&self.committing, true)] {
            if hanging.is_empty() {
                return Ok(());
            }
            producer.begin_transaction()?;
            for partition in &hanging {
                self.produce(producer, (id, body, identity), Some(*partition))?;
            }
            producer.flush(patience::most()).context("orders were not delivered")?;
            match is_commit {
                true => producer.commit_transaction(patience::most())?,
                false => producer.abort_transaction(patience::most())?,
            }
            hanging = &hanging & &self.short()?;
        }
        Ok(())
    }

    /// Partitions whose last records may not be read, though no transaction is under way.
    fn short(&self) -> anyhow::Result<BTreeSet<i32>> {
        let metadata = self.plain.client().fetch_metadata(Some(&self.topic), ASKED_FOR)?;
        let partitions = metadata.topics().first().context("the topic is there")?.partitions().len();
        let mut short = BTreeSet::new();
        for partition in 0..i32::try_from(partitions)? {
            // Nothing is assigned, so nothing comes but what they say of brokers.
            self.ends.iter().for_each(|consumer| while consumer.poll(Duration::ZERO).is_some() {});
            let end = |consumer: &BaseConsumer| consumer.fetch_watermarks(&self.topic, partition, ASKED_FOR);
            let (_, end_of_all) = end(&self.ends[0])?;
            if end(&self.ends[1])?.1 < end_of_all {
                short.insert(partition);
            }
        }
        Ok(short)
    }

    /// Sends an order: its Workflow Id, body and identity.
    fn produce(
        &self,
        producer: &BaseProducer,
        (id, body, identity): (&str, &Value, &str),
        partition: Option<i32>,
    ) -> anyhow::Result<()> {
        let mut body = body.clone();
        body["identity"] = identity.into();
        let body = body.to_string();
        let mut headers = OwnedHeaders::new();
        for (key, value) in
            [("namespace", NAMESPACE), ("command-id", identity), ("reply-topic", &self.replies)]
        {
            headers = headers.insert(Header { key, value: Some(value) });
        }
        let mut record = BaseRecord::to(&self.topic).key(id).payload(&body).headers(headers);
        record.partition = partition;
        producer.send(record).map_err(|(error, _)| error).context("an order")
    }
}
