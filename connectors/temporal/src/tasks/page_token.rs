//! Page tokens of histories: where the next page of a reader or a worker begins.

use bytes::Bytes;
use everlog_engine::Run;
use everlog_partition::Address;
use prost::Message;
use tonic::Status;

use crate::codec::status::invalid;
use crate::tasks::response::ResponseContext;
use crate::tasks::token::Purpose;

/// The body of a page token. The token is bound to the namespace and the Workflow Id.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PageToken {
    /// The run, which the first page has resolved.
    #[prost(string, tag = "1")]
    pub run_id: String,
    /// The first event of the next page; newest first, the event after the next page.
    #[prost(int64, tag = "2")]
    pub event_id: i64,
    /// The pages end before this event, because a worker sees no more than its task has. 0 = no end.
    #[prost(int64, tag = "3")]
    pub end_event_id: i64,
}

impl PageToken {
    pub(crate) fn of(run: &Run, event_id: i64) -> Self {
        Self { run_id: run.start.run_id.clone(), event_id, end_event_id: 0 }
    }

    pub(crate) fn seal(&self, context: ResponseContext<'_>, workflow_id: &str) -> Bytes {
        self.seal_for(context, Purpose::History, workflow_id)
    }

    pub(crate) fn seal_for(
        &self,
        context: ResponseContext<'_>,
        purpose: Purpose,
        workflow_id: &str,
    ) -> Bytes {
        context.token_signer.seal(purpose, &[&context.namespace.record.id, workflow_id], self)
    }

    /// Reads and checks a page token; none if the request has none.
    pub(crate) fn open(
        context: ResponseContext<'_>,
        purpose: Purpose,
        address: &Address,
        token: &Bytes,
    ) -> Result<Option<Self>, Status> {
        if token.is_empty() {
            return Ok(None);
        }
        let bound_to = [context.namespace.record.id.as_str(), address.workflow_id.as_str()];
        let page_token: Option<Self> = context.token_signer.open(purpose, &bound_to, token);
        let page_token = page_token.ok_or_else(|| invalid("Invalid NextPageToken."))?;
        if !address.run_id.is_empty() && address.run_id != page_token.run_id {
            return Err(invalid("RunId in the request does not match the NextPageToken."));
        }
        Ok(Some(page_token))
    }
}
