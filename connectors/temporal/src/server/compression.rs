//! Compressed messages. Requests are decompressed where they arrive. Responses are compressed on blocking threads, a few at a
//! time, and only if they get smaller.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Instant;

use bytes::{BufMut, Bytes, BytesMut};
use everlog_listen::Budget;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use tokio::sync::oneshot;
use tonic::Status;
use tonic::codegen::http::HeaderMap;
use tonic::metadata::MetadataValue;

use crate::server::transport::too_large;

/// Bytes before a gRPC message: whether it is compressed, and its length.
pub(crate) const PREFIX_BYTES: usize = 5;

/// True if the caller accepts gzip.
pub(crate) fn is_taken(headers: &HeaderMap) -> bool {
    let accepted = headers.get("grpc-accept-encoding").and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.split(',').any(|encoding| encoding.trim() == "gzip"))
}

/// A request with its prefix, decompressed. A request that is not compressed, or is not a whole message, stays as it is: the service
/// says what is wrong.
pub(crate) fn unpacked(
    request: Bytes,
    encoding: Option<&[u8]>,
    message_bytes_max: usize,
) -> Result<Bytes, Status> {
    let Some((&[1, ..], message)) = request.split_at_checked(PREFIX_BYTES) else { return Ok(request) };
    match encoding {
        Some(b"gzip") => {}
        Some(other) if other != b"identity" => {
            let other = String::from_utf8_lossy(other).into_owned();
            let mut status = Status::unimplemented(format!(
                "content is compressed with `{other}`, which is not supported"
            ));
            status.metadata_mut().insert("grpc-accept-encoding", MetadataValue::from_static("gzip,identity"));
            return Err(status);
        }
        Some(_) | None => {
            return Err(Status::internal("grpc: a message is compressed, and its request names no encoding"));
        }
    }
    let mut whole = vec![0; PREFIX_BYTES];
    let most = u64::try_from(message_bytes_max).unwrap_or(u64::MAX);
    let read = MultiGzDecoder::new(message).take(most.saturating_add(1)).read_to_end(&mut whole);
    read.map_err(|error| {
        Status::internal(format!("grpc: failed to decompress the received message: {error}"))
    })?;
    let length = whole.len() - PREFIX_BYTES;
    if length > message_bytes_max {
        let text = format!("grpc: received message after decompression larger than max {message_bytes_max}");
        return Err(too_large(text));
    }
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    if let Some(prefix) = whole.get_mut(1..PREFIX_BYTES) {
        prefix.copy_from_slice(&length.to_be_bytes());
    }
    Ok(whole.into())
}

/// A response with its prefix, compressed. None if it does not get smaller, or if the budget of compressions is exhausted. A share is
/// kept for twice the time that its work took, because calls have the first claim to the cores.
pub(crate) async fn packed(places: &Arc<Budget>, answer: &Bytes) -> Option<Bytes> {
    let place = places.take(1)?;
    let answer = answer.clone();
    let (sender, packed) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        let began = Instant::now();
        // The caller may have gone.
        let _ = sender.send(pack(&answer));
        std::thread::sleep(began.elapsed());
        drop(place);
    });
    packed.await.ok().flatten()
}

/// The fastest level: slower ones take several times as long for a tenth.
fn pack(answer: &[u8]) -> Option<Bytes> {
    let (prefix, message) = answer.split_at_checked(PREFIX_BYTES)?;
    let length = u32::from_be_bytes(prefix.get(1..)?.try_into().ok()?);
    // One message, not compressed yet.
    if prefix.first() != Some(&0) || usize::try_from(length) != Ok(message.len()) {
        return None;
    }
    let mut out = BytesMut::with_capacity(answer.len() / 2).writer();
    out.get_mut().put_bytes(0, PREFIX_BYTES);
    let mut encoder = GzEncoder::new(out, Compression::fast());
    encoder.write_all(message).ok()?;
    let mut packed = encoder.finish().ok()?.into_inner();
    if packed.len() > answer.len() / 8 * 7 {
        return None;
    }
    let length = u32::try_from(packed.len() - PREFIX_BYTES).ok()?;
    packed.get_mut(..PREFIX_BYTES)?.copy_from_slice(&[&[1][..], &length.to_be_bytes()].concat());
    Some(packed.freeze())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use tonic::Code;

    use super::*;

    fn answer(message: &[u8]) -> Bytes {
        let length = u32::try_from(message.len()).expect("short");
        [&[0][..], &length.to_be_bytes(), message].concat().into()
    }

    #[tokio::test]
    async fn what_is_compressed_reads_as_it_was() {
        let message = b"durable ".repeat(10_000);
        let packed = packed(&Budget::new(1), &answer(&message)).await.expect("it pays");
        assert_eq!(packed[0], 1);
        let length = u32::from_be_bytes(packed[1..5].try_into().expect("four bytes"));
        assert_eq!(length as usize, packed.len() - PREFIX_BYTES);
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&packed[PREFIX_BYTES..]).read_to_end(&mut read).expect("gzip");
        assert_eq!(read, message);
    }

    #[tokio::test]
    async fn what_does_not_get_smaller_or_would_wait_stays_as_it_is() {
        let noise: Vec<u8> =
            (0..100_000_u32).flat_map(|number| number.wrapping_mul(0x9e37_79b9).to_be_bytes()).collect();
        let noise: Vec<u8> = noise.chunks(4).flat_map(|word| [word[0], word[1]]).collect();
        let (free, full) = (|| Budget::new(1), Budget::new(0));
        assert_eq!(packed(&free(), &answer(&noise)).await, None);
        assert_eq!(packed(&full, &answer(&b"durable ".repeat(10_000))).await, None);
        assert!(packed(&free(), &answer(&b"durable ".repeat(10_000))).await.is_some());
        assert_eq!(packed(&free(), &Bytes::from_static(b"\0\0\0\0\x09short")).await, None);
    }

    #[tokio::test]
    async fn a_request_is_unpacked_as_far_as_a_message_may_be() {
        let message = b"durable ".repeat(1_000);
        let packed = packed(&Budget::new(1), &answer(&message)).await.expect("it pays");
        let unpack = |most| unpacked(packed.clone(), Some(b"gzip"), most);
        assert_eq!(unpack(message.len()).expect("it is gzip"), answer(&message));
        assert_eq!(unpack(message.len() - 1).expect_err("too large").code(), Code::ResourceExhausted);
        let refused = |encoding| unpacked(packed.clone(), encoding, 1 << 20).expect_err("not gzip").code();
        assert_eq!((refused(Some(b"br")), refused(None)), (Code::Unimplemented, Code::Internal));
        let plain = answer(&message);
        assert_eq!(unpacked(plain.clone(), Some(b"gzip"), 1).expect("as it is"), plain);
        let torn = Bytes::from_static(b"\x01\0\0\0\x03abc");
        assert_eq!(unpacked(torn, Some(b"gzip"), 1 << 20).expect_err("no gzip").code(), Code::Internal);
    }

    #[test]
    fn gzip_is_found_among_what_is_taken() {
        let told = |told: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-accept-encoding", told.parse().expect("ASCII"));
            is_taken(&headers)
        };
        assert!(told("gzip") && told("identity, deflate, gzip"));
        assert!(!told("identity") && !told("gzip2"));
        assert!(!is_taken(&HeaderMap::new()));
    }
}
