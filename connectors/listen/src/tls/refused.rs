//! The end of a connection whose client is refused.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes that are still read of a refused client.
const READ_BYTES_MAX: usize = 64 << 10;

/// Reads what a refused client still sends, until it closes the connection. If it were closed at once, with data unread, the client
/// would never learn why.
///
/// # Errors
/// The connection is broken.
pub async fn read_to_end(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut bytes = [0; 4_096];
    let mut left = READ_BYTES_MAX;
    while left > 0 {
        match stream.read(&mut bytes).await? {
            0 => return Ok(()),
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}
