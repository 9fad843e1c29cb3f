//! NATS' protocol: messages to names, as lines and bodies.

use std::io;

use bytes::{Buf, Bytes, BytesMut};

/// Gathers a message whose answer comes to a name.
pub(super) fn push_publish(out: &mut Vec<u8>, subject: &str, answer_to: &str, body: &[u8]) {
    use std::io::Write;
    // Writing into memory does not fail.
    let _ = write!(out, "PUB {subject} {answer_to} {}\r\n", body.len());
    out.extend_from_slice(body);
    out.extend_from_slice(b"\r\n");
}

/// A message to this connection.
pub(super) struct Message {
    pub(super) to: String,
    pub(super) reply: Option<String>,
    pub(super) body: Bytes,
}

/// Takes the next whole message of those read so far; what is to be said in return is gathered.
pub(super) fn next_message(read: &mut BytesMut, out: &mut Vec<u8>) -> io::Result<Option<Message>> {
    loop {
        let Some(end) = read.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let line = String::from_utf8_lossy(&read[..end]).into_owned();
        let words: Vec<&str> = line.split(' ').collect();
        match words.first().copied() {
            Some("MSG") => return take(read, &words, 1, end + 2),
            Some("HMSG") => return take(read, &words, 2, end + 2),
            Some("PING") => out.extend_from_slice(b"PONG\r\n"),
            Some("-ERR") => return Err(io::Error::other(line)),
            _ => {}
        }
        read.advance(end + 2);
    }
}

/// Takes the message whose line begins what was read; none if it is not whole yet. The line ends with so many sizes.
fn take(
    read: &mut BytesMut,
    words: &[&str],
    sizes: usize,
    line: usize,
) -> io::Result<Option<Message>> {
    let size = |back: usize| {
        let word = words.len().checked_sub(back).and_then(|place| words.get(place));
        let size = word.and_then(|word| word.parse::<usize>().ok());
        size.ok_or_else(|| io::Error::other(format!("nats: {words:?}")))
    };
    let length = size(1)?;
    let head = if sizes == 2 { size(2)? } else { 0 };
    if read.len() < line + length + 2 {
        return Ok(None);
    }
    let to = words.get(1).copied().unwrap_or_default().to_owned();
    let reply = (words.len() == 4 + sizes).then(|| words[3].to_owned());
    read.advance(line);
    let mut body = read.split_to(length).freeze();
    read.advance(2);
    Ok(Some(Message { to, reply, body: body.split_off(head.min(length)) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_or_not_at_all() {
        let text = b"INFO {}\r\nPING\r\nMSG a.b 1 r.s 3\r\nx\r\n\r\nHMSG c 1 12 14\r\nNATS/1.0\r\n\r\nok\r\n";
        let (mut read, mut out) = (BytesMut::from(&text[..]), Vec::new());
        let first = next_message(&mut read, &mut out).unwrap().unwrap();
        assert_eq!((first.to.as_str(), first.reply.as_deref()), ("a.b", Some("r.s")));
        assert_eq!((&first.body[..], &out[..]), (&b"x\r\n"[..], &b"PONG\r\n"[..]));
        let second = next_message(&mut read, &mut out).unwrap().unwrap();
        assert_eq!((second.to.as_str(), second.reply, &second.body[..]), ("c", None, &b"ok"[..]));
        assert!(next_message(&mut read, &mut out).unwrap().is_none());
        for length in 0..text.len() - 1 {
            let mut read = BytesMut::from(&text[..length]);
            let mut count = 0;
            while next_message(&mut read, &mut out).unwrap().is_some() {
                count += 1;
            }
            assert!(count < 2, "{length}");
        }
        assert!(next_message(&mut BytesMut::from("-ERR 'no'\r\n"), &mut out).is_err());
    }
}
