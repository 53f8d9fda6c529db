//! ACLs of a broker, granted and taken away by Kafka's own requests: a console tool would take seconds for each.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, ensure};
use everlog_tests::patience;

/// Requests by their numbers, in a version that every broker here knows.
const CREATE_ACLS: (i16, i16) = (30, 1);
/// Literal and prefixed names, and what an ACL does.
const LITERAL: u8 = 3;
const PREFIXED: u8 = 4;
const ALLOW: u8 = 3;

/// An operation, by Kafka's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read = 3,
    Write = 4,
    Create = 5,
    Delete = 6,
    Describe = 8,
    DescribeConfigs = 10,
}

/// A kind of resource, by Kafka's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Topic = 2,
    Group = 3,
    TransactionalId = 5,
}

/// An operation on a resource, or on all whose names begin so.
#[derive(Clone, Debug)]
pub struct Right {
    pub kind: Kind,
    pub name: String,
    pub is_prefix: bool,
    pub operation: Operation,
}

/// Grants rights to users, all by one request: once the last is in force, all are.
pub fn grant(broker: &str, rights: &[(String, Right)]) -> anyhow::Result<()> {
    let mut body = (rights.len() as i32).to_be_bytes().to_vec();
    for (user, right) in rights {
        body.push(right.kind as u8);
        text(&mut body, &right.name);
        body.push(if right.is_prefix { PREFIXED } else { LITERAL });
        text(&mut body, &format!("User:{user}"));
        text(&mut body, "*");
        body.extend([right.operation as u8, ALLOW]);
    }
    let answer = ask(broker, CREATE_ACLS, &body)?;
    // How long it was throttled, the number of results, and of each a code and a message.
    let mut left = answer.get(8..).context("a short answer")?;
    for (user, right) in rights {
        let code = left.get(..2).context("a short answer")?;
        ensure!(code == [0, 0], "{user}, {right:?}: {code:?}");
        let length = i16::from_be_bytes([left[2], left[3]]).max(0);
        left = &left[4 + usize::try_from(length)?..];
    }
    Ok(())
}

fn text(body: &mut Vec<u8>, text: &str) {
    body.extend((text.len() as i16).to_be_bytes());
    body.extend(text.as_bytes());
}

/// The answer's body.
fn ask(broker: &str, (request, version): (i16, i16), body: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut message = [request.to_be_bytes(), version.to_be_bytes()].concat();
    message.extend(1_i32.to_be_bytes());
    text(&mut message, "test");
    message.extend(body);
    let mut stream = TcpStream::connect(broker)?;
    stream.set_read_timeout(Some(patience::most()))?;
    stream.write_all(&(message.len() as i32).to_be_bytes())?;
    stream.write_all(&message)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::try_from(i32::from_be_bytes(length))?];
    stream.read_exact(&mut answer)?;
    // The number of the request comes first.
    Ok(answer.split_off(4))
}
