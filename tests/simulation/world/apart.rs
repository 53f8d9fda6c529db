//! What the nodes of a world do beside their partition: they ingest public commands and share task queues.

use std::sync::atomic::Ordering;

use super::World;
use crate::commands::PARTITIONS as SOURCES;
use crate::ingress::Connector;
use crate::node::Node;

impl World {
    /// Where there are public commands, every node brings them in.
    pub(super) fn connect(&mut self) {
        if !self.plan.forwards {
            return;
        }
        self.connectors.resize_with(self.nodes.len(), || None);
        for (node, connector) in self.nodes.iter().zip(&mut self.connectors) {
            if node.is_some() && connector.is_none() {
                *connector = Some(Connector::start(&self.commands, &self.broker, &self.clock));
            }
        }
    }

    pub(super) fn rebalance(&mut self) {
        if self.plan.forwards && self.dice.permille(150) {
            let partition = SOURCES[self.dice.index(SOURCES.len())];
            let index = self.dice.index(self.connectors.len());
            if let Some(connector) = &self.connectors[index] {
                self.commands.move_to(partition, connector.member);
            }
        }
    }

    /// Lets every ingress go on whose node is not stopped.
    pub(super) fn bring(&mut self) {
        if !self.plan.forwards {
            return;
        }
        if self.commands.incarnation() != self.commands_seen {
            self.commands_seen = self.commands.incarnation();
            self.connectors.clear();
            self.connect();
        }
        let now_ms = self.clock.now_ms();
        for (node, connector) in self.nodes.iter().zip(&self.connectors) {
            let awake = node.as_ref().is_some_and(|node| node.asleep_until_ms <= now_ms);
            if let Some(connector) = connector.as_ref().filter(|_| awake)
                && !connector.run()
            {
                self.context.observations.borrow_mut().violate("an ingress has ended".into());
            }
        }
    }

    /// Until all wait, those too that others have begun.
    pub(super) fn run_tasks(&mut self) {
        self.tasks.run();
        while let Some(net) = &self.net {
            let begun = net.begun();
            if begun.is_empty() {
                return;
            }
            begun.into_iter().for_each(|task| self.tasks.spawn(task));
            self.tasks.run();
        }
    }

    /// Every ready task is somewhere, by the word of whoever has its partition and of the home of its queue.
    pub(super) fn look_for_forgotten(&mut self) {
        if self.net.is_none() {
            return;
        }
        let serving = |node: &&Node| node.partition.as_ref().is_some_and(|partition| partition.is_serving());
        let term = |node: &&Node| node.partition.as_ref().map(|partition| partition.term());
        let owner = self.nodes.iter().flatten().filter(serving).max_by_key(term);
        self.verdict.violations.extend(owner.and_then(Node::forgotten));
    }

    /// Nodes that are new share queues with the others, where they do.
    pub(super) fn share(&mut self) {
        let Some(net) = &self.net else { return };
        for node in self.nodes.iter_mut().flatten() {
            if node.desk.is_none() {
                self.instances += 1;
                node.share(net, self.instances);
            }
            if let Some(desk) = &node.desk {
                let serves = node.partition.as_ref().is_some_and(|partition| partition.is_serving());
                desk.serves.store(serves, Ordering::Relaxed);
                desk.taken_ms.store(node.recovered_ms, Ordering::Relaxed);
                desk.asleep_until_ms.store(node.asleep_until_ms, Ordering::Relaxed);
            }
        }
    }
}
