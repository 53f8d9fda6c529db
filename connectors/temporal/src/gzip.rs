//! Compressed answers: on a thread of their own, a few at a time, and where it pays.

use std::io::Write;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use everlog_listen::Budget;
use flate2::Compression;
use flate2::write::GzEncoder;
use tonic::codegen::http::HeaderMap;

/// Bytes before a gRPC message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// True where whoever calls takes compressed answers.
pub(crate) fn is_taken(headers: &HeaderMap) -> bool {
    let accepted = headers.get("grpc-accept-encoding").and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.split(',').any(|encoding| encoding.trim() == "gzip"))
}

/// An answer with its prefix, compressed; none where that does not pay, or where so many are being compressed that this one would
/// have to wait.
pub(crate) async fn packed(places: &Arc<Budget>, answer: &Bytes) -> Option<Bytes> {
    let place = places.take(1)?;
    let answer = answer.clone();
    let packed = tokio::task::spawn_blocking(move || {
        let _place = place;
        pack(&answer)
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
        let places = Budget::new(1);
        let noise: Vec<u8> =
            (0..100_000_u32).flat_map(|number| number.wrapping_mul(0x9e37_79b9).to_be_bytes()).collect();
        let noise: Vec<u8> = noise.chunks(4).flat_map(|word| [word[0], word[1]]).collect();
        assert_eq!(packed(&places, &answer(&noise)).await, None);
        let taken = places.take(1).expect("free");
        assert_eq!(packed(&places, &answer(&b"durable ".repeat(10_000))).await, None);
        drop(taken);
        assert!(packed(&places, &answer(&b"durable ".repeat(10_000))).await.is_some());
        assert_eq!(packed(&places, &Bytes::from_static(b"\0\0\0\0\x09short")).await, None);
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
