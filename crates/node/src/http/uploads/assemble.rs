//! The bytes of many parts as those of one object, and some bytes of an object as those of a part.

use ikada_api::state::limits::OBJECT_CHUNK_BYTES;
use ikada_api::state::{Digest, ObjectVersion};

use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::objects::{Content, Upload};

const PIECE_BYTES: usize = OBJECT_CHUNK_BYTES as usize;

/// Marks an answer whose time says nothing about other calls of its lane.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Unmeasured;

/// Puts parts together. Every byte is read once for the digest of the whole; where the parts end with whole pieces, the
/// pieces are those that are stored, and none of them travels again. Whoever wants to sees the bytes.
pub(in crate::http) async fn assemble<D: Door>(
    app: &App<D>,
    parts: &[ObjectVersion],
    mut see: impl FnMut(&[u8]) + Send,
) -> Result<Content, Stop> {
    let size: u64 = parts.iter().map(|part| part.size).sum();
    if size > Upload::BYTES_MAX {
        return Err(problems::object_too_large(Upload::BYTES_MAX).into());
    }
    let shelf = app.door.shelf();
    let mut whole = Upload::begin(shelf);
    let pieces: Vec<Digest> = parts.iter().flat_map(|part| part.chunks.iter().copied()).collect();
    let fit = fit_together(parts);
    // Parts may have come while other nodes were away: what too few have now is spread again.
    let is_kept = fit && shelf.confirm(&pieces).await.is_ok();
    for digest in pieces {
        let piece = shelf.fetch(digest, false).await;
        let piece = piece.map_err(|error| problems::piece_missing(&error))?;
        see(&piece);
        match is_kept {
            true => whole.adopt(digest, &piece),
            false => whole.push(piece).await.map_err(|error| problems::not_spread(&error))?,
        }
    }
    whole.finish().await.map_err(|error| problems::not_spread(&error).into())
}

/// Some bytes of an object as those of another. Every one is read for the digest; where they begin and end with whole pieces,
/// the pieces are those that are stored.
pub(in crate::http) async fn cut<D: Door>(
    app: &App<D>,
    object: &ObjectVersion,
    from: u64,
    to: u64,
) -> Result<Content, Stop> {
    let shelf = app.door.shelf();
    let first = from / OBJECT_CHUNK_BYTES;
    let wanted = first as usize..to.div_ceil(OBJECT_CHUNK_BYTES) as usize;
    let pieces = object.chunks.get(wanted).ok_or_else(problems::internal)?;
    // Somebody may remove the object meanwhile.
    shelf.pin(pieces);
    let is_whole = |end: u64| end.is_multiple_of(OBJECT_CHUNK_BYTES) || end == object.size;
    let fit = from.is_multiple_of(OBJECT_CHUNK_BYTES) && is_whole(to);
    let mut part = Upload::begin(shelf);
    let is_kept = fit && shelf.confirm(pieces).await.is_ok();
    for (digest, begin) in pieces.iter().zip((first * OBJECT_CHUNK_BYTES..).step_by(PIECE_BYTES)) {
        let piece = shelf.fetch(*digest, false).await;
        let piece = piece.map_err(|error| problems::piece_missing(&error))?;
        let inside =
            from.saturating_sub(begin) as usize..(to - begin).min(piece.len() as u64) as usize;
        match is_kept {
            true => part.adopt(*digest, &piece),
            false => {
                let pushed = part.push(piece.slice(inside)).await;
                pushed.map_err(|error| problems::not_spread(&error))?;
            }
        }
    }
    part.finish().await.map_err(|error| problems::not_spread(&error).into())
}

/// Whether the pieces of the parts are those of the whole: all but the last are full.
fn fit_together(parts: &[ObjectVersion]) -> bool {
    let filled = parts.split_last().map_or(&[][..], |(_, before)| before);
    filled.iter().all(|part| part.size.is_multiple_of(OBJECT_CHUNK_BYTES))
}
