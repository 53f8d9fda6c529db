//! OperatorService: all of its calls come later.

use everlog_temporal_api::operatorservice::operator_service_server::OperatorService;

/// Answers every call with UNIMPLEMENTED.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operator;

#[tonic::async_trait]
impl OperatorService for Operator {}
