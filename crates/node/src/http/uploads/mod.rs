//! Uploads in parts: one large object that arrives piece by piece, so that what has arrived need not be sent again.
//!
//! Promise: a part counts once a majority of the nodes has its bytes and its name is committed, so whichever node is asked
//! next knows of it. What can never become an object, for its size or the quota, is refused before any part comes. The
//! object is seen whole, with the digest of all its bytes, or not at all, and takes the place of its parts in the quota. An
//! upload that nobody ends goes after a week (`sweep.rs`). Both doors keep their parts in the same way (`keep.rs`).
//!
//! Leaves out: the words of S3 (`s3/multipart.rs`).

mod again;
mod assemble;
mod begin;
mod end;
mod finish;
mod keep;
mod part;
mod show;
mod sweep;

pub(super) use again::{version_of, written};
pub(super) use assemble::{Unmeasured, assemble, cut};
pub(super) use begin::begin;
pub(super) use end::end;
pub(super) use finish::finish;
pub(super) use keep::{
    PART_TYPE, PARTS_MAX, UPLOADS_BUCKET, bytes_of, forget, number_of, open, part_name, place,
    try_forget,
};
pub(super) use part::put_part;
pub(super) use show::{list, show};
#[cfg(test)]
pub(super) use sweep::sweep;
pub(super) use sweep::watch_uploads;

use super::answer::Stop;
use super::problems;
use super::request::Context;

/// Digits of an id that a caller makes up: enough that two uploads never meet.
const ID_DIGITS: usize = 32;
/// Digits of an id that the door of S3 gave out.
const S3_ID_DIGITS: usize = 16;

/// The id of the path's upload, whichever door it was begun at.
fn upload_of(context: &Context) -> Result<&str, Stop> {
    let id = context.names[0].as_str();
    match id.len() == S3_ID_DIGITS && is_hex(id) {
        true => Ok(id),
        false => new_upload_of(context),
    }
}

/// The id of the path's upload, which may be a new one.
fn new_upload_of(context: &Context) -> Result<&str, Stop> {
    let id = context.names[0].as_str();
    match id.len() == ID_DIGITS && is_hex(id) {
        true => Ok(id),
        false => {
            let rule = format!("must have {ID_DIGITS} hex digits in lower case");
            Err(problems::bad_parameter("upload", rule).into())
        }
    }
}

fn is_hex(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
