//! A body collected from its frames. A body of one frame is not copied.

use bytes::{Bytes, BytesMut};

/// Bytes beyond the largest message that are still read: more than its prefix, so that the service sees that it is too large.
pub(crate) const PREFIX_ROOM_BYTES: usize = 64;

/// The frames so far.
#[derive(Default)]
pub(crate) struct BodyBuffer {
    first: Bytes,
    /// All frames, once there is more than one.
    whole: BytesMut,
}

impl BodyBuffer {
    /// Adds a frame.
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

    /// The number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.whole.len()
    }

    /// The body.
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
