//! Kafka's protocol as far as the proxy reads it: where a request ends, what it asks for, and what it was answered.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Larger than any request or answer of these tests.
const FRAME_BYTES_MAX: usize = 256 << 20;

/// What a request asks for, by its number in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub i16);

impl Key {
    pub const PRODUCE: Self = Self(0);
    pub const FETCH: Self = Self(1);
    pub const INIT_PRODUCER_ID: Self = Self(22);
    pub const ADD_PARTITIONS_TO_TXN: Self = Self(24);
    pub const END_TXN: Self = Self(26);

    pub fn name(self) -> String {
        match self {
            Self::PRODUCE => "Produce".into(),
            Self::FETCH => "Fetch".into(),
            Self::INIT_PRODUCER_ID => "InitProducerId".into(),
            Self::ADD_PARTITIONS_TO_TXN => "AddPartitionsToTxn".into(),
            Self::END_TXN => "EndTxn".into(),
            Self(other) => format!("request {other}"),
        }
    }
}

/// A request with its length in front, as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub bytes: Vec<u8>,
    pub key: Key,
    pub correlation: i32,
    /// The client's id, by which one client is told from another.
    pub client: String,
}

impl Request {
    /// None: not a request.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let key = i16::from_be_bytes(bytes.get(4..6)?.try_into().ok()?);
        let correlation = i32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
        let length = i16::from_be_bytes(bytes.get(12..14)?.try_into().ok()?);
        let client = bytes.get(14..14 + usize::try_from(length).unwrap_or(0))?;
        let client = String::from_utf8_lossy(client).into_owned();
        Some(Self { bytes, key: Key(key), correlation, client })
    }
}

/// The correlation id of an answer.
pub fn correlation(answer: &[u8]) -> Option<i32> {
    Some(i32::from_be_bytes(answer.get(4..8)?.try_into().ok()?))
}

/// What EndTxn (versions 0 and 1) was answered: throttle time, then the error.
pub fn end_error(answer: &[u8]) -> Option<i16> {
    Some(i16::from_be_bytes(answer.get(12..14)?.try_into().ok()?))
}

/// One frame with its length in front; none where the other side ended.
pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await.ok()?;
    let body = usize::try_from(i32::from_be_bytes(length)).ok().filter(|size| *size <= FRAME_BYTES_MAX)?;
    let mut frame = vec![0; 4 + body];
    frame[..4].copy_from_slice(&length);
    from.read_exact(&mut frame[4..]).await.ok()?;
    Some(frame)
}
