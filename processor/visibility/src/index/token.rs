//! ListPage tokens: where a list goes on, and what it was when it began.
//!
//! A token belongs to one query of one namespace, and to one journal: with another it is refused. Clients hand it back as they got
//! it, so what it says is checked like any other input.

use prost::Message;
use uuid::Uuid;

use crate::index::order_key::{ListPosition, OrderKey};
use crate::query::SortOrder;

/// The format of these tokens.
const FORMAT: u32 = 1;
/// Bytes of a token, at most: more than any has.
const TOKEN_BYTES_MAX: usize = 64 << 10;

/// What a token belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenScope {
    query: Uuid,
    order: Option<SortOrder>,
    incarnation: [u8; 16],
    partitions: usize,
}

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct ListToken {
    /// Behind the run that stands here.
    pub after: OrderKey,
    /// Where each partition stood when the list began, by its number.
    pub positions: Vec<ListPosition>,
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is no token of this release.
    #[error("the page token cannot be read")]
    Unreadable,
    /// It was given for another query, namespace or order.
    #[error("the page token belongs to another query")]
    OtherQuery,
    /// The journal was made anew, or has another number of partitions.
    #[error("the page token belongs to an earlier log: begin the list anew")]
    OtherLog,
}

#[derive(Clone, PartialEq, Message)]
struct EncodedToken {
    #[prost(uint32, tag = "1")]
    format: u32,
    #[prost(bytes = "vec", tag = "2")]
    query: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    incarnation: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    after: Vec<u8>,
    #[prost(uint64, repeated, tag = "5")]
    offsets: Vec<u64>,
    /// The latest of the positions' times.
    #[prost(int64, tag = "6")]
    latest_ms: i64,
    /// By how much each is earlier.
    #[prost(uint64, repeated, tag = "7")]
    earlier_ms: Vec<u64>,
}

impl TokenScope {
    /// The scope of a query as its caller wrote it. `incarnation` is the random id of the journals; they have `partitions`.
    pub fn new(
        namespace_id: Uuid,
        query: &str,
        order: Option<SortOrder>,
        incarnation: [u8; 16],
        partitions: usize,
    ) -> Self {
        Self { query: Uuid::new_v5(&namespace_id, query.as_bytes()), order, incarnation, partitions }
    }
}

impl ListToken {
    /// Its bytes.
    pub fn encode(&self, scope: &TokenScope) -> Vec<u8> {
        let latest_ms = self.positions.iter().map(|position| position.ms).max().unwrap_or_default();
        EncodedToken {
            format: FORMAT,
            query: scope.query.as_bytes().to_vec(),
            incarnation: scope.incarnation.to_vec(),
            after: self.after.bytes().to_vec(),
            offsets: self.positions.iter().map(|position| position.offset).collect(),
            latest_ms,
            earlier_ms: self.positions.iter().map(|position| latest_ms.abs_diff(position.ms)).collect(),
        }
        .encode_to_vec()
    }

    /// A token from its bytes.
    ///
    /// # Errors
    /// It cannot be read, or belongs to something else.
    pub fn read(token: &[u8], scope: &TokenScope) -> Result<Self, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Unreadable);
        }
        let encoded = EncodedToken::decode(token).map_err(|_error| TokenError::Unreadable)?;
        if encoded.format != FORMAT {
            return Err(TokenError::Unreadable);
        }
        if encoded.query != scope.query.as_bytes() {
            return Err(TokenError::OtherQuery);
        }
        if encoded.incarnation != scope.incarnation || encoded.offsets.len() != scope.partitions {
            return Err(TokenError::OtherLog);
        }
        let after = OrderKey::read(&encoded.after).ok_or(TokenError::Unreadable)?;
        if !after.is_of(scope.order) || encoded.earlier_ms.len() != encoded.offsets.len() {
            return Err(TokenError::Unreadable);
        }
        let position = |(offset, earlier_ms): (u64, u64)| ListPosition {
            offset,
            ms: encoded.latest_ms.saturating_sub_unsigned(earlier_ms),
        };
        let positions = encoded.offsets.into_iter().zip(encoded.earlier_ms).map(position).collect();
        Ok(Self { after, positions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::SystemAttribute;

    fn scope() -> TokenScope {
        TokenScope::new(Uuid::from_u128(1), "a = 'b'", None, [7; 16], 3)
    }

    fn token() -> ListToken {
        let position = |offset, ms| ListPosition { offset, ms };
        let positions = vec![position(5, 1_000), position(0, -3), position(u64::MAX, i64::MAX)];
        ListToken { after: OrderKey::closed(9, 5, Uuid::from_u128(3)), positions }
    }

    #[test]
    fn a_token_is_read_as_it_was_written() {
        assert_eq!(ListToken::read(&token().encode(&scope()), &scope()), Ok(token()));
    }

    #[test]
    fn a_token_of_64_partitions_is_short() {
        let position =
            |number: u64| ListPosition { offset: 1 << 40 | number, ms: 1_700_000_000_000 + number as i64 };
        let positions = (0..64).map(position).collect();
        let scope = TokenScope { partitions: 64, ..scope() };
        assert!(ListToken { positions, ..token() }.encode(&scope).len() < 700);
    }

    #[test]
    fn a_token_of_something_else_is_refused() {
        let encoded = token().encode(&scope());
        let (namespace, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let order = Some(SortOrder { by: SystemAttribute::StartTime, is_descending: true });
        let read = |scope: TokenScope| ListToken::read(&encoded, &scope).map(|_| ());
        let of = |namespace, query, incarnation, partitions| {
            read(TokenScope::new(namespace, query, None, incarnation, partitions))
        };
        assert_eq!(of(namespace, "a = 'b'", [7; 16], 3), Ok(()));
        assert_eq!(of(other, "a = 'b'", [7; 16], 3), Err(TokenError::OtherQuery));
        assert_eq!(of(namespace, "a = 'c'", [7; 16], 3), Err(TokenError::OtherQuery));
        assert_eq!(of(namespace, "a = 'b'", [8; 16], 3), Err(TokenError::OtherLog));
        assert_eq!(of(namespace, "a = 'b'", [7; 16], 4), Err(TokenError::OtherLog));
        assert_eq!(read(TokenScope { order, ..scope() }), Err(TokenError::Unreadable));
    }

    #[test]
    fn damaged_bytes_are_refused_or_say_something_else() {
        let whole = token().encode(&scope());
        for end in 0..whole.len() {
            assert_ne!(ListToken::read(&whole[..end], &scope()), Ok(token()), "{end}");
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = whole.clone();
                bad[end] = byte;
                let _any_answer_but_a_panic = ListToken::read(&bad, &scope());
            }
        }
        assert_eq!(ListToken::read(&vec![0; TOKEN_BYTES_MAX + 1], &scope()), Err(TokenError::Unreadable));
    }
}
