//! Programs: one file per verb. A program is a manifest in the bucket `programs`, under its name and under its digest.
//!
//! Tasks name the digest, so that what was submitted is what runs, whatever is pushed under the name later. Names change in
//! one commit, after the file and the manifest are stored.

mod check_module;
mod delete;
mod describe;
mod find;
mod list;
mod push;
mod show;

pub(super) use delete::delete;
pub(super) use find::with_programs;
pub(super) use list::list;
pub(super) use push::push;
pub(super) use show::show;

/// Objects that programs are found by.
const NAMES: &str = "name/";
/// Content type of a manifest; its kind follows.
const MANIFEST_TYPE: &str = "application/vnd.ikada.program+json; kind=";
