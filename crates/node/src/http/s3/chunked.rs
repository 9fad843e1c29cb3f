//! `aws-chunked`: a body in chunks with their lengths, perhaps their signatures, and headers after the last. A step
//! function over a buffer; it never reads by itself.

use bytes::{Buf, Bytes, BytesMut};
use ring::digest;

use super::fault::Fault;
use super::sign::ChunkKey;

/// Longest line before a chunk or in the trailer.
const LINE_BYTES_MAX: usize = 4 << 10;
/// Most lines of a trailer.
const TRAILER_LINES_MAX: usize = 16;
/// Largest chunk; clients use 64 KiB to 16 MiB.
const CHUNK_BYTES_MAX: u64 = 1 << 30;

/// What a step gives.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Bytes of the object.
    Data(Bytes),
    /// Nothing before more of the body is there.
    More,
    /// The body is over.
    Done,
}

enum Stage {
    Head,
    Data {
        left: u64,
        signature: Option<String>,
    },
    /// The line end after a chunk.
    End {
        signature: Option<String>,
    },
    Trailer,
    Done,
}

/// Reads one body.
pub(super) struct ChunkReader {
    stage: Stage,
    /// Checks signatures where there are some and the key is known.
    key: Option<ChunkKey>,
    digest: digest::Context,
    /// Headers after the last chunk.
    pub(super) trailer: Vec<(String, String)>,
}

fn broken() -> Fault {
    Fault::argument("the body is no aws-chunked body")
}

impl ChunkReader {
    pub(super) fn new(key: Option<ChunkKey>) -> ChunkReader {
        let digest = digest::Context::new(&digest::SHA256);
        ChunkReader { stage: Stage::Head, key, digest, trailer: Vec::new() }
    }

    /// Takes what it can from the front of the buffer.
    pub(super) fn step(&mut self, buffer: &mut BytesMut) -> Result<Step, Fault> {
        loop {
            match &mut self.stage {
                Stage::Head => {
                    let Some(line) = take_line(buffer)? else { return Ok(Step::More) };
                    self.read_head(&line)?;
                }
                Stage::Data { left: 0, signature } => {
                    self.stage = Stage::End { signature: signature.take() };
                }
                Stage::Data { left, .. } => {
                    if buffer.is_empty() {
                        return Ok(Step::More);
                    }
                    let length = (*left).min(buffer.len() as u64);
                    *left -= length;
                    let data = buffer.split_to(length as usize).freeze();
                    if self.key.is_some() {
                        self.digest.update(&data);
                    }
                    return Ok(Step::Data(data));
                }
                Stage::End { signature } => {
                    if buffer.len() < 2 {
                        return Ok(Step::More);
                    }
                    if &buffer[..2] != b"\r\n" {
                        return Err(broken());
                    }
                    buffer.advance(2);
                    let signature = signature.take();
                    self.check_chunk(signature.as_deref())?;
                    self.stage = Stage::Head;
                }
                Stage::Trailer => {
                    let Some(line) = take_line(buffer)? else { return Ok(Step::More) };
                    if line.is_empty() {
                        self.finish()?;
                    } else {
                        self.read_trailer(&line)?;
                    }
                }
                Stage::Done => return Ok(Step::Done),
            }
        }
    }

    /// The body has ended; an error if that is too early.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        match self.stage {
            Stage::Done => Ok(()),
            // Some leave the last empty line out.
            Stage::Trailer => self.finish(),
            _ => Err(Fault::incomplete()),
        }
    }

    fn read_head(&mut self, line: &str) -> Result<(), Fault> {
        let (length, rest) = line.split_once(';').unwrap_or((line, ""));
        let left = u64::from_str_radix(length, 16).map_err(|_| broken())?;
        if left > CHUNK_BYTES_MAX {
            return Err(broken());
        }
        let signature = rest.strip_prefix("chunk-signature=").map(str::to_owned);
        if left > 0 {
            self.stage = Stage::Data { left, signature };
            return Ok(());
        }
        self.check_chunk(signature.as_deref())?;
        self.stage = Stage::Trailer;
        Ok(())
    }

    fn check_chunk(&mut self, signature: Option<&str>) -> Result<(), Fault> {
        let Some(key) = &mut self.key else { return Ok(()) };
        let digest = std::mem::replace(&mut self.digest, digest::Context::new(&digest::SHA256));
        match signature {
            Some(signature) if key.check_chunk(digest.finish().as_ref(), signature) => Ok(()),
            _ => Err(Fault::signature()),
        }
    }

    fn read_trailer(&mut self, line: &str) -> Result<(), Fault> {
        let (name, value) = line.split_once(':').ok_or_else(broken)?;
        if self.trailer.len() == TRAILER_LINES_MAX {
            return Err(broken());
        }
        self.trailer.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        Ok(())
    }

    /// Where chunks are signed, what comes after them must be, too.
    fn finish(&mut self) -> Result<(), Fault> {
        const SIGNATURE: &str = "x-amz-trailer-signature";
        self.stage = Stage::Done;
        let Some(key) = &mut self.key else { return Ok(()) };
        let signature = self.trailer.iter().find(|(name, _)| name == SIGNATURE);
        let lines = self.trailer.iter().filter(|(name, _)| name != SIGNATURE);
        let text: String = lines.map(|(name, value)| format!("{name}:{value}\n")).collect();
        match signature {
            Some((_, signature)) if key.check_trailer(&text, signature) => Ok(()),
            None if text.is_empty() => Ok(()),
            _ => Err(Fault::signature()),
        }
    }
}

fn take_line(buffer: &mut BytesMut) -> Result<Option<String>, Fault> {
    let seen = &buffer[..buffer.len().min(LINE_BYTES_MAX)];
    let Some(end) = seen.windows(2).position(|pair| pair == b"\r\n") else {
        return if seen.len() == LINE_BYTES_MAX { Err(broken()) } else { Ok(None) };
    };
    let line = buffer.split_to(end);
    buffer.advance(2);
    String::from_utf8(line.to_vec()).map(Some).map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Heard = Result<(Vec<u8>, Vec<(String, String)>), Fault>;

    fn read(body: &[u8], at_once: usize) -> Heard {
        let mut reader = ChunkReader::new(None);
        let (mut buffer, mut data) = (BytesMut::new(), Vec::new());
        for part in body.chunks(at_once) {
            buffer.extend_from_slice(part);
            while let Step::Data(bytes) = reader.step(&mut buffer)? {
                data.extend_from_slice(&bytes);
            }
        }
        reader.end()?;
        Ok((data, reader.trailer))
    }

    #[test]
    fn chunks_are_read_however_they_are_cut() {
        let body = b"4\r\nabcd\r\n3;chunk-signature=x\r\nefg\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n";
        for at_once in [1, 2, 3, 7, body.len()] {
            let (data, trailer) = read(body, at_once).unwrap();
            assert_eq!(data, b"abcdefg");
            assert_eq!(trailer, [("x-amz-checksum-crc32".to_owned(), "AAAAAA==".to_owned())]);
        }
    }

    #[test]
    fn broken_chunks_are_refused() {
        let long = vec![b'a'; 9_000];
        for body in [&b"4\r\nabc"[..], b"x\r\n", b"4\r\nabcdef", b"ffffffffff\r\n", &long] {
            assert!(read(body, 5).is_err(), "{:?}", String::from_utf8_lossy(body));
        }
    }
}
