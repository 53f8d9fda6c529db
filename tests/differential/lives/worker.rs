//! A worker without an SDK: it ends one run, and leaves the others open.

use std::sync::Arc;

use anyhow::{Result, ensure};
use everlog_tests::patience;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::lives::life::RunFate;
use crate::runner::call;
use crate::schema::Schema;

/// A busy server takes its time.
const WITHIN_S: u64 = 60;
const POLL_WITHIN_S: u64 = 10;

/// One life's worker at one server.
pub struct LifeWorker {
    pub channel: Channel,
    pub schema: Arc<Schema>,
    /// What stands for `~`.
    pub own: String,
}

impl LifeWorker {
    /// Makes a call of the namespace.
    pub async fn call(&self, method: &'static str, mut request: Value) -> Result<Value> {
        request["namespace"] = "default".into();
        let within_s = if method.starts_with("Poll") { POLL_WITHIN_S } else { WITHIN_S };
        call(self.channel.clone(), self.schema.clone(), method, request, within_s).await
    }

    /// Lets a run meet its fate, and gives the answer of the call that does it.
    pub async fn end(&self, workflow_id: &str, run_id: &str, fate: RunFate) -> Result<Value> {
        let execution = json!({"workflow_id": workflow_id, "run_id": run_id});
        match fate {
            RunFate::IsTerminated => {
                let request = json!({"workflow_execution": execution, "reason": "by its life"});
                self.call("TerminateWorkflowExecution", request).await
            }
            RunFate::IsAskedToCancel => {
                let request = json!({"workflow_execution": execution, "reason": "by its life"});
                self.call("RequestCancelWorkflowExecution", request).await
            }
            RunFate::IsDeleted => {
                let request = json!({ "workflow_execution": execution });
                let answer = self.call("DeleteWorkflowExecution", request).await?;
                // It is so behind the call.
                patience::until("a run is gone", async || {
                    let request = json!({ "execution": execution });
                    let described = self.call("DescribeWorkflowExecution", request).await;
                    described
                        .is_ok_and(|described| described.pointer("/error/code") == Some(&"NotFound".into()))
                })
                .await?;
                Ok(answer)
            }
            RunFate::Completes(_)
            | RunFate::CompletesWithoutResult
            | RunFate::Fails
            | RunFate::EndsCancelled
            | RunFate::ContinuesAsNew => {
                // So that it has a task, whoever has answered the one before.
                let request = json!({"workflow_execution": execution, "signal_name": "go"});
                self.call("SignalWorkflowExecution", request).await?;
                self.answer(run_id, &self.command(fate)).await
            }
        }
    }

    /// Takes tasks until that of the run comes, and answers it with a command; those of others without any.
    async fn answer(&self, run_id: &str, command: &Value) -> Result<Value> {
        let deadline = patience::deadline();
        loop {
            let poll = json!({ "task_queue": {"name": format!("{}q", self.own)}, "identity": "worker" });
            let task = self.call("PollWorkflowTaskQueue", poll).await?;
            ensure!(!deadline.is_over(), "the task of {run_id} does not come");
            let Some(token) = task.get("task_token") else { continue };
            let is_it = task["workflow_execution"]["run_id"] == run_id;
            let commands = if is_it { json!([command]) } else { json!([]) };
            let request = json!({"task_token": token, "commands": commands, "identity": "worker"});
            let answer = self.call("RespondWorkflowTaskCompleted", request).await?;
            if is_it {
                return Ok(answer);
            }
        }
    }

    fn command(&self, fate: RunFate) -> Value {
        let of_type = |kind: &str, attributes: Value| {
            let field = format!("{}_command_attributes", kind.to_lowercase());
            json!({ "command_type": format!("COMMAND_TYPE_{kind}"), field: attributes })
        };
        let payload = |text: &str| json!({"metadata": {"encoding": "json/plain"}, "data": text});
        match fate {
            RunFate::Completes(result) => {
                let result = json!({ "payloads": [payload(&format!("\"result {result}\""))] });
                of_type("COMPLETE_WORKFLOW_EXECUTION", json!({ "result": result }))
            }
            RunFate::Fails => {
                let failure = json!({
                    "message": "it fails",
                    "application_failure_info": {"type": "Sample"},
                });
                of_type("FAIL_WORKFLOW_EXECUTION", json!({ "failure": failure }))
            }
            RunFate::EndsCancelled => of_type("CANCEL_WORKFLOW_EXECUTION", json!({})),
            RunFate::ContinuesAsNew => of_type(
                "CONTINUE_AS_NEW_WORKFLOW_EXECUTION",
                json!({
                    "workflow_type": {"name": "next"},
                    "task_queue": {"name": format!("{}q", self.own)},
                }),
            ),
            RunFate::CompletesWithoutResult
            | RunFate::IsTerminated
            | RunFate::IsAskedToCancel
            | RunFate::IsDeleted => of_type("COMPLETE_WORKFLOW_EXECUTION", json!({})),
        }
    }
}
