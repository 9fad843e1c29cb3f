//! Uploads in parts: one large object that arrives piece by piece, so that what has arrived need not be sent again.
//!
//! Promise: a part counts once a majority of the nodes has its bytes and its name is committed, so whichever node is asked
//! next knows of it. The object is seen whole, with the digest of all its bytes, or not at all. An upload that nobody
//! ends goes after a week. Both doors keep their parts in the same way (`keep.rs`).
//!
//! Leaves out: the words of S3 (`s3/multipart.rs`).

mod assemble;
mod begin;
mod end;
mod finish;
mod keep;
mod part;
mod show;

pub(super) use assemble::{Unmeasured, assemble};
pub(super) use begin::begin;
pub(super) use end::end;
pub(super) use finish::finish;
pub(super) use keep::{
    PART_TYPE, PARTS_MAX, UPLOADS_BUCKET, forget, number_of, open, part_name, place, sweep,
};
pub(super) use part::put_part;
pub(super) use show::{list, show};

use super::answer::Stop;
use super::problems;
use super::request::Context;

/// Digits of an id: enough that two uploads never meet.
const ID_DIGITS: usize = 32;

/// The id of the path's upload.
fn upload_of(context: &Context) -> Result<&str, Stop> {
    let id = context.names[0].as_str();
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match id.len() == ID_DIGITS && id.bytes().all(is_digit) {
        true => Ok(id),
        false => {
            let rule = format!("must have {ID_DIGITS} hex digits in lower case");
            Err(problems::bad_parameter("upload", rule).into())
        }
    }
}
