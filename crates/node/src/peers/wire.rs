//! Frames on a socket: length u32, crc32c u32, payload; little endian.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Reads one frame of at most `bytes_max`; `None` at a clean end.
pub async fn read(
    from: &mut (impl AsyncRead + Unpin),
    bytes_max: usize,
) -> io::Result<Option<Bytes>> {
    let mut head = [0; 8];
    match from.read_exact(&mut head).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let [a, b, c, d, e, f, g, h] = head;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let checksum = u32::from_le_bytes([e, f, g, h]);
    if length > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("frame of {length} bytes")));
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).await?;
    if crc32c::crc32c(&payload) != checksum {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "frame checksum"));
    }
    Ok(Some(Bytes::from(payload)))
}

/// The eight bytes before a payload.
pub fn head(payload: &[u8]) -> [u8; 8] {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    head[4..].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    head
}

/// Writes one frame and flushes it.
pub async fn write(to: &mut (impl AsyncWrite + Unpin), payload: &[u8]) -> io::Result<()> {
    to.write_all(&head(payload)).await?;
    to.write_all(payload).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_damaged_or_oversized_frame_is_refused() {
        let mut bytes = Vec::new();
        write(&mut bytes, b"hello").await.expect("write");
        let frame = read(&mut bytes.as_slice(), 100).await.expect("read");
        assert_eq!(frame.as_deref(), Some(&b"hello"[..]));
        assert!(read(&mut bytes.as_slice(), 4).await.is_err(), "too long");
        for position in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[position] ^= 0x10;
            let read = read(&mut damaged.as_slice(), 1 << 20).await;
            assert!(!matches!(read, Ok(Some(_))), "byte {position}");
        }
        assert!(matches!(read(&mut &[][..], 10).await, Ok(None)));
    }
}
