//! Calls as bytes: any method by its path, any request, also such as no client would send.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes};
use prost::{Message, Name};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

/// Calls a method, such as `/temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo`, with encoded bytes.
///
/// # Errors
/// What the server answers.
pub async fn call(channel: &Channel, path: &str, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    let mut client = Grpc::new(channel.clone()).max_decoding_message_size(64 << 20);
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = path.parse().map_err(|_invalid| Status::internal("the path is not valid"))?;
    client.unary(request, path, BytesCodec).await
}

/// Calls a method of the workflow service with its request, and gives the encoded answer.
///
/// # Errors
/// What the server answers.
pub async fn send<M: Message + Name>(channel: &Channel, request: M) -> Result<Bytes, Status> {
    let answer = call(channel, &path_of::<M>(), Request::new(request.encode_to_vec().into())).await;
    answer.map(Response::into_inner)
}

/// The method of the workflow service that takes this request.
pub fn path_of<M: Name>() -> String {
    let service =
        if M::PACKAGE.ends_with("operatorservice.v1") { "OperatorService" } else { "WorkflowService" };
    format!("/{}.{service}/{}", M::PACKAGE, M::NAME.trim_end_matches("Request"))
}

/// True where the server's health service says so.
pub async fn is_serving(address: SocketAddr) -> bool {
    let Ok(endpoint) = Endpoint::from_shared(format!("http://{address}")) else {
        return false;
    };
    let Ok(channel) = endpoint.connect().await else {
        return false;
    };
    let answer = call(&channel, "/grpc.health.v1.Health/Check", Request::new(Bytes::new())).await;
    // HealthCheckResponse { status = 1: SERVING }
    answer.is_ok_and(|answer| answer.get_ref()[..] == [8, 1])
}

/// Messages as they stand on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
