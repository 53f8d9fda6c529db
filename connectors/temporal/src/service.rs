//! The two services of the API, made from the table of RPCs: each call is opened, and its handler answers.

use std::sync::Arc;

use everlog_temporal_api::operatorservice::operator_service_server::OperatorService;
use everlog_temporal_api::operatorservice::*;
use everlog_temporal_api::workflowservice::workflow_service_server::WorkflowService;
use everlog_temporal_api::workflowservice::*;
use pastey::paste;
use tonic::{Request, Response, Status};

use crate::Gateway;
use crate::handlers::*;
use crate::rpc::rpcs;
use crate::server::call::Call;

/// The two services of a gateway: what clients call.
pub struct ApiServices(pub Arc<Gateway>);

macro_rules! services {
    ($($service:ident { $(
        $rpc:ident = $($handler:ident)::+, $namespace:ident, $needs:ident, $key:ident, $long_poll:ident, $again:ident;
    )* })*) => { paste! { $(
        // RPCs without a row answer UNIMPLEMENTED.
        #[tonic::async_trait]
        impl $service for ApiServices {$(
            async fn [<$rpc:snake>](
                &self,
                request: Request<[<$rpc Request>]>,
            ) -> Result<Response<[<$rpc Response>]>, Status> {
                let call = Call::open(&self.0, &request)?;
                call.answer($($handler)::+(&call, request.into_inner())).await
            }
        )*}
    )* } };
}
rpcs!(services);
