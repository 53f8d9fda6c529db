//! Orders as records of `commands`: plain, in transactions, and in transactions that are aborted.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use everlog_tests::dice::Dice;
use everlog_tests::fate::Fate;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::{Value, json};

use crate::client::{NAMESPACE, QUEUE, TASK_TIMEOUT_S};
use crate::ledger::{Deed, Ledger, Via};
use crate::reader;

const WITHIN: Duration = Duration::from_secs(60);
/// Of a thousand orders, those that are first sent in a transaction which is aborted, and those in one that is not.
const ABORTED_PERMILLE: u32 = 250;
const COMMITTED_PERMILLE: u32 = 500;

/// Two producers, one of them transactional.
pub struct Commands {
    plain: Mutex<BaseProducer>,
    transactional: Mutex<BaseProducer>,
    topic: String,
    replies: String,
    ledger: Ledger,
    /// What was sent for good: Workflow Id, identity, order.
    sent: Mutex<Vec<(String, String, Value)>>,
}

impl Commands {
    pub fn new(bootstrap: &str, prefix: &str, ledger: &Ledger) -> anyhow::Result<Self> {
        let mut config = reader::client(bootstrap);
        config.set("enable.idempotence", "true").set("linger.ms", "0");
        let plain = config.create()?;
        config.set("transactional.id", format!("{prefix}orders"));
        let transactional: BaseProducer = config.create()?;
        transactional.init_transactions(WITHIN)?;
        Ok(Self {
            plain: Mutex::new(plain),
            transactional: Mutex::new(transactional),
            topic: format!("{prefix}commands"),
            replies: format!("{prefix}replies"),
            ledger: ledger.clone(),
            sent: Mutex::default(),
        })
    }

    pub async fn start(&self, id: &str, dice: &mut Dice) -> anyhow::Result<()> {
        let timeout_ms = TASK_TIMEOUT_S * 1_000;
        let start =
            json!({"workflow_type": "order", "task_queue": QUEUE, "workflow_task_timeout_ms": timeout_ms});
        self.order(id, &Deed::Start, &json!({"type": "start", "start": start}), dice).await
    }

    pub async fn signal(&self, id: &str, name: &str, dice: &mut Dice) -> anyhow::Result<()> {
        let deed = Deed::Signal { name: name.into(), in_order: true };
        self.order(id, &deed, &json!({"type": "signal", "signal": {"name": name}}), dice).await
    }

    /// Perhaps once in vain, then for good.
    async fn order(&self, id: &str, deed: &Deed, order: &Value, dice: &mut Dice) -> anyhow::Result<()> {
        let (in_vain, in_transaction) = (dice.permille(ABORTED_PERMILLE), dice.permille(COMMITTED_PERMILLE));
        // The clients block for a moment: other tasks go on meanwhile.
        tokio::task::block_in_place(|| {
            if in_vain {
                self.transact(id, deed, order, false)?;
            }
            if in_transaction { self.transact(id, deed, order, true) } else { self.send(id, deed, order) }
        })
    }

    fn transact(&self, id: &str, deed: &Deed, order: &Value, commits: bool) -> anyhow::Result<()> {
        let producer = self.transactional.lock().expect("nobody panics while it is held");
        let (call, identity) = self.ledger.sent(id, deed.clone(), Via::Record);
        producer.begin_transaction()?;
        self.produce(&producer, id, &identity, order)?;
        producer.flush(WITHIN)?;
        if commits {
            producer.commit_transaction(WITHIN)?;
        } else {
            producer.abort_transaction(WITHIN)?;
        }
        self.ledger.settle(call, if commits { Fate::Acked } else { Fate::Refused });
        if commits {
            self.keep(id, identity, order);
        }
        Ok(())
    }

    fn send(&self, id: &str, deed: &Deed, order: &Value) -> anyhow::Result<()> {
        let producer = self.plain.lock().expect("nobody panics while it is held");
        let (call, identity) = self.ledger.sent(id, deed.clone(), Via::Record);
        self.produce(&producer, id, &identity, order)?;
        producer.flush(WITHIN)?;
        self.ledger.settle(call, Fate::Acked);
        self.keep(id, identity, order);
        Ok(())
    }

    fn keep(&self, id: &str, identity: String, order: &Value) {
        let mut sent = self.sent.lock().expect("nobody panics while it is held");
        sent.push((id.to_owned(), identity, order.clone()));
    }

    /// Sends orders again that were sent before, under the same command ids, each a few times; how many records that were.
    pub fn again(&self, orders: usize, dice: &mut Dice) -> anyhow::Result<u64> {
        // A command id holds within a run: the later runs of a chain know none of those before.
        let sent = self.sent.lock().expect("nobody panics while it is held").clone();
        let sent: Vec<_> = sent.into_iter().filter(|(id, ..)| !id.starts_with("chain")).collect();
        let producer = self.plain.lock().expect("nobody panics while it is held");
        let mut records = 0;
        for _ in 0..orders.min(sent.len()) {
            let (id, identity, order) = &sent[dice.index(sent.len())];
            for _ in 0..2 + dice.below(8) {
                self.produce(&producer, id, identity, order)?;
                records += 1;
            }
        }
        Ok(records)
    }

    fn produce(
        &self,
        producer: &BaseProducer,
        id: &str,
        identity: &str,
        order: &Value,
    ) -> anyhow::Result<()> {
        let mut order = order.clone();
        order["identity"] = identity.into();
        let body = order.to_string();
        let mut headers = OwnedHeaders::new();
        for (key, value) in
            [("namespace", NAMESPACE), ("command-id", identity), ("reply-topic", &self.replies)]
        {
            headers = headers.insert(Header { key, value: Some(value) });
        }
        let record = BaseRecord::to(&self.topic).key(id).payload(&body).headers(headers);
        producer.send(record).map_err(|(error, _)| error).context("an order")?;
        let deadline = Instant::now() + WITHIN;
        while producer.in_flight_count() > 0 {
            producer.poll(Duration::from_millis(5));
            ensure!(Instant::now() < deadline, "an order was not delivered");
        }
        Ok(())
    }
}
