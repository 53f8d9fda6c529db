//! A body that comes in pieces, as one: where it comes in a single piece that is used as it is.

use bytes::{Bytes, BytesMut};

/// Beyond the largest message; enough for its prefix.
pub(crate) const PREFIX_ROOM_BYTES: usize = 64;

/// What has come so far.
#[derive(Default)]
pub(crate) struct BodyBuffer {
    first: Bytes,
    /// All of it, once there is more than one.
    whole: BytesMut,
}

impl BodyBuffer {
    /// Adds what has come next.
    pub(crate) fn add(&mut self, piece: Bytes) {
        if self.len() == 0 {
            self.first = piece;
            return;
        }
        if self.whole.is_empty() {
            self.whole.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.whole.extend_from_slice(&piece);
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.whole.len()
    }

    /// All of them.
    pub(crate) fn into_bytes(self) -> Bytes {
        if self.whole.is_empty() { self.first } else { self.whole.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_piece_is_used_as_it_is_and_several_are_put_together() {
        let single = Bytes::from_static(b"single");
        let mut buffer = BodyBuffer::default();
        buffer.add(Bytes::new());
        buffer.add(single.clone());
        assert_eq!(buffer.len(), 6);
        assert_eq!(buffer.into_bytes().as_ptr(), single.as_ptr());
        let mut buffer = BodyBuffer::default();
        [&b"a"[..], b"", b"bc", b"d"].into_iter().for_each(|piece| buffer.add(Bytes::from_static(piece)));
        assert_eq!((buffer.len(), buffer.into_bytes()), (4, Bytes::from_static(b"abcd")));
    }
}
