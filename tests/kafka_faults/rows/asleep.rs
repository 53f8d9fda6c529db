//! Calls to a paused node: what it replies when it resumes after its successor took over.

use std::time::Duration;

use anyhow::ensure;
use everlog_tests::patience;
use tokio::task::JoinSet;

use crate::client::Connection;
use crate::environment::Environment;
use crate::register;

/// Registers, so that some are of partitions that the sleeper had.
const REGISTERS: usize = 8;
/// How long requests lie before the node wakes.
const LIE: Duration = Duration::from_millis(300);

/// Registers that are set before a node sleeps and while it does.
pub struct Asleep {
    ids: Vec<String>,
    answers: JoinSet<Option<i64>>,
}

impl Asleep {
    /// Sets all of them to 1.
    pub async fn begin(environment: &Environment, round: u64) -> anyhow::Result<Self> {
        let ids: Vec<_> =
            (0..REGISTERS).map(|number| format!("{}-asleep-{round}-{number}", register::PREFIX)).collect();
        for id in &ids {
            environment.client.start(id).await?;
            register::set(&environment.client, id, 1).await?;
        }
        Ok(Self { ids, answers: JoinSet::new() })
    }

    /// Sets them to 2 at those that are awake, and asks the sleeper, who has it all before him when he wakes.
    pub async fn ask(&mut self, environment: &Environment, sleeper: &Connection) -> anyhow::Result<()> {
        for id in &self.ids {
            register::set(&environment.client, id, 2).await?;
            let (client, place, id) = (environment.client.clone(), sleeper.clone(), id.clone());
            self.answers.spawn(async move { register::read_at(&client, &place, &id, 2).await });
        }
        patience::pass(LIE).await;
        while let Some(early) = self.answers.try_join_next() {
            // One that has gone elsewhere by now was not answered.
            ensure!(early?.is_none(), "a node that sleeps answers");
        }
        Ok(())
    }

    /// How many were answered. Whether that was right, the checker says.
    pub async fn end(self, environment: &Environment) -> anyhow::Result<usize> {
        let answered = self.answers.join_all().await.into_iter().flatten().count();
        for id in &self.ids {
            environment.client.terminate(id).await?;
        }
        Ok(answered)
    }
}
