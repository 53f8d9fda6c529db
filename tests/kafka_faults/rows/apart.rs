//! Network partitions: brokers and nodes have network namespaces of their own, and are cut from each other.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use everlog_tests::patience;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::metadata::MetadataPartition;

use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, Size, TOOK_A_GROUP};
use crate::load::Load;
use crate::net::Net;
use crate::reader;
use crate::rows::several::{until_shared, until_taken};

const BROKERS: usize = 3;
/// Each kind of cut so often in the full form: 30 cuts of two nodes, and as many of three, of 2 minutes about.
const TIMES: u64 = 10;
/// Each question is a new client.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// What a node says that does not reach others, and when it reaches them again.
const MISSES: &str = "nodes unreachable";
const REACHES: &str = "all nodes reachable";

/// F9: a broker from the others but not from the nodes; a node from the brokers but not from the other nodes; nodes
/// from each other.
pub async fn cut<const NODES: usize>(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut net = Net::lay(BROKERS + NODES)?;
    let brokers = (0..BROKERS).map(|number| net.host(number)).collect();
    let cluster = FaultCluster::apart(brokers).await?;
    let hosts: Vec<_> = (0..NODES).map(|number| net.host(BROKERS + number)).collect();
    let mut environment = Environment::of_quorum(&cluster, &format!("f9x{NODES}"), size, &hosts).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    let mut seen = [0; 3];
    for round in 0..if size.is_full { TIMES } else { 1 } as usize {
        let (broker, node) = (round % BROKERS, round % NODES);
        seen[0] += u64::from(broker_cut(&mut environment, &mut load, &mut net, broker).await?);
        seen[1] += u64::from(node_cut::<NODES>(&mut environment, &mut load, &mut net, node).await?);
        seen[2] += u64::from(nodes_cut::<NODES>(&mut environment, &mut load, &mut net, node).await?);
        outcome.injected += 3;
    }
    outcome.seen = seen.iter().sum();
    let [broker, node, nodes] = seen;
    outcome.how = format!(
        "{broker} times a broker was missed by the others, {node} times a node by the brokers, {nodes} times nodes had \
         lost each other"
    );
    Ok(environment.finish(load, outcome).await?.0)
}

/// Begins a cut of one place from others, once each node has a part: one that has none would leave nothing to take over.
async fn begin(
    environment: &Environment,
    load: &mut Load,
    net: &mut Net,
    place: usize,
    others: impl Iterator<Item = usize>,
) -> anyhow::Result<()> {
    load.further(environment.size.open as u64 / 2).await?;
    until_shared(environment).await?;
    environment.troubles.begin();
    others.filter(|other| *other != place).try_for_each(|other| net.cut(place, other))
}

/// A cut ends, and all goes on.
async fn heal(environment: &mut Environment, load: &mut Load, net: &mut Net) -> anyhow::Result<()> {
    net.heal()?;
    environment.troubles.end();
    load.further(environment.size.open as u64 / 2).await.context("when it is healed")?;
    for number in 0..environment.nodes().count() {
        let node = environment.node_at(number);
        ensure!(node.is_alive()?, "a node has ended: {}", node.last_words());
    }
    Ok(())
}

/// A broker loses the others, which do without it; all clients reach it still. What it led may rest as long: a client
/// that asks it who leads is told that it does.
async fn broker_cut(
    environment: &mut Environment,
    load: &mut Load,
    net: &mut Net,
    broker: usize,
) -> anyhow::Result<bool> {
    let journal = environment.topic("journal");
    let address = |number: usize| environment.bootstrap.split(',').nth(number % BROKERS).map(str::to_owned);
    let (Some(itself), Some(other)) = (address(broker), address(broker + 1)) else {
        bail!("there are three")
    };
    begin(environment, load, net, broker, 0..BROKERS).await?;
    let id = i32::try_from(broker + 1)?;
    let (asked, topic) = (other.clone(), journal.clone());
    let is_missed = move || leaders(&asked, &topic).is_some_and(|leaders| !leaders.contains(&id));
    let missed = until_so(is_missed).await?;
    net.heal()?;
    // Its connections rest for a while yet, and until then it says that it leads.
    let agree = move || leaders(&itself, &journal).is_some_and(|leaders| is_led(&other, &journal, &leaders));
    ensure!(until_so(agree).await?, "broker {id} is not back");
    heal(environment, load, net).await?;
    Ok(missed)
}

fn is_led(bootstrap: &str, topic: &str, by: &[i32]) -> bool {
    leaders(bootstrap, topic).is_some_and(|leaders| leaders == by)
}

/// Who leads the partitions of a topic, as one broker says: a new client asks it before it knows of others.
fn leaders(bootstrap: &str, topic: &str) -> Option<Vec<i32>> {
    let asker: BaseConsumer = reader::client(bootstrap).create().ok()?;
    let told = asker.fetch_metadata(Some(topic), patience::most()).ok()?;
    let partitions = told.topics().iter().flat_map(|topic| topic.partitions());
    Some(partitions.map(MetadataPartition::leader).collect())
}

/// Looks until it is so; false where it does not come to be.
async fn until_so(is_so: impl Fn() -> bool + Clone + Send + 'static) -> anyhow::Result<bool> {
    let (deadline, mut looks) = (patience::deadline(), tokio::time::interval(ASK_EVERY));
    while !deadline.is_over() {
        looks.tick().await;
        if tokio::task::spawn_blocking(is_so.clone()).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A node loses all brokers; the others take its partitions over, and it has some again when it is healed.
async fn node_cut<const NODES: usize>(
    environment: &mut Environment,
    load: &mut Load,
    net: &mut Net,
    node: usize,
) -> anyhow::Result<bool> {
    begin(environment, load, net, BROKERS + node, 0..BROKERS).await?;
    // Groups that moved before the cut, and to the node itself, say nothing.
    let before = taken_by_others(environment, node);
    let others_take = async || taken_by_others(environment, node) > before;
    patience::until("others take over what a node had that is cut off", others_take).await?;
    load.further(environment.size.open as u64 / 2).await.context("while it is cut")?;
    let takes = environment.node_at(node).times_said(TOOK_A_GROUP);
    heal(environment, load, net).await?;
    environment.node_at(node).until_said(TOOK_A_GROUP, takes + 1).await?;
    Ok(true)
}

fn taken_by_others(environment: &mut Environment, node: usize) -> u64 {
    environment.times_said(TOOK_A_GROUP) - environment.node_at(node).times_said(TOOK_A_GROUP)
}

/// A node loses the other nodes, and all have their brokers: one is left out, and everything goes on without it.
async fn nodes_cut<const NODES: usize>(
    environment: &mut Environment,
    load: &mut Load,
    net: &mut Net,
    node: usize,
) -> anyhow::Result<bool> {
    let times = |environment: &mut Environment, what| environment.node_at(node).times_said(what);
    let (missed, reached) = (times(environment, MISSES), times(environment, REACHES));
    begin(environment, load, net, BROKERS + node, BROKERS..BROKERS + NODES).await?;
    environment.node_at(node).until_said(MISSES, missed + 1).await?;
    load.further(environment.size.open as u64 / 2).await.context("while nodes are apart")?;
    let taken = environment.times_said(TOOK_A_GROUP);
    heal(environment, load, net).await?;
    environment.node_at(node).until_said(REACHES, reached + 1).await?;
    until_taken(environment, taken).await?;
    Ok(true)
}
