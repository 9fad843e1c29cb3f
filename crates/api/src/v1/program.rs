//! What a task runs, and what it brings: programs, inputs, outputs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::v1::Number;

/// Which program a task runs, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkProgram {
    /// Its name when the task was submitted.
    pub name: String,
    /// How it is run: `handler`, `command` or `wasm`.
    pub kind: String,
    /// Digest of what was stored under the name then, in hex; absent for a handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What to call inside it; absent for its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// One input of a task: a file that its program reads. Its bytes are those of an object (`bucket` and `key`), of an
/// address (`url`), or given here (`text`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkInput {
    /// Name of the file; a path such as `parts/1.txt`.
    pub name: String,
    /// The object's bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// The object's name in the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The object's version; the newest when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Number>,
    /// Digest that the whole object must have, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// First byte of the object, or of what lies at the address; 0 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// How many bytes of it; all that follow when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// An address that the worker opens, if it is allowed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The `ETag` that an object store must give for the address, quotes included; any will do when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The bytes themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Which part of a job a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkPart {
    /// The job.
    pub job: String,
    /// The stage.
    pub stage: String,
    /// Place in the stage, from 0.
    pub index: u32,
}

/// What a task runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkInfo {
    /// The program.
    pub program: WorkProgram,
    /// Settings for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<WorkInput>,
    /// Which part of a job it is; absent for a task of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<WorkPart>,
    /// Whether the result of the same work may be used instead of running it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reuse: bool,
    /// An address below which the worker brings the outputs, if it is allowed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_url: Option<String>,
}

/// A file that a completed task brings. Its bytes were uploaded before (`POST /v1/uploads`); with the completion, and
/// only then, it can be read as `/v1/objects/tasks/<task>/<name>`, or `/v1/objects/jobs/<job>/<stage>/<index>/<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputItem {
    /// Its name among the task's outputs; a path such as `parts/1.txt`.
    pub name: String,
    /// Bytes in all.
    pub size: u64,
    /// BLAKE3 digest of all bytes, in hex.
    pub digest: String,
    /// Digest of each piece, as the upload told; may be left out when there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<String>,
    /// What the bytes are; `application/octet-stream` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Where the file lies, if the task said where its outputs go; then the uploaded bytes say no more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Bytes that are stored and have no name yet. They are kept for an hour; a completion that names them makes them last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadInfo {
    /// Bytes in all.
    pub size: u64,
    /// BLAKE3 digest of all bytes, in hex.
    pub digest: String,
    /// Digest of each piece.
    pub chunks: Vec<String>,
}

impl UploadInfo {
    /// The uploaded bytes as an output of this name.
    pub fn into_output(self, name: impl Into<String>) -> OutputItem {
        let UploadInfo { size, digest, chunks } = self;
        OutputItem { name: name.into(), size, digest, chunks, content_type: None, address: None }
    }
}

/// A program to be kept under a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProgram {
    /// Its name; pushed again, the name stands for the new program, and tasks submitted before keep the old one.
    pub name: String,
    /// How it is run: `command`, `wasm`, or `handler`: by workers whose own code has a function of this name.
    pub kind: String,
    /// Program and arguments of a command, never a shell line; `{file}` stands for the program's file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The export that begins a module; `_start` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The module, or a file that the command needs; uploaded before (`POST /v1/uploads`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<UploadInfo>,
}

/// What a program consists of, as workers read it. Stored under its own digest, which tasks name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramManifest {
    /// How it is run: `command`, `wasm` or `handler`.
    pub kind: String,
    /// Program and arguments of a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The export that begins a module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The module, or a file that the command needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<ProgramFile>,
}

/// The file of a program, by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFile {
    /// BLAKE3 digest, in hex.
    pub digest: String,
    /// Bytes in all.
    pub size: u64,
}

/// A program under its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramInfo {
    /// Its name.
    pub name: String,
    /// How it is run: `handler` (built in, or a function of its workers), `command` or `wasm`.
    pub kind: String,
    /// Digest of its manifest, in hex; absent for what is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When it was pushed (ms since 1970); absent for what is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed_ms: Option<u64>,
    /// What it consists of; in lists absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ProgramManifest>,
}

/// All programs, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramPage {
    /// The programs.
    pub programs: Vec<ProgramInfo>,
}

/// A program that is no longer there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramRemoved {
    /// Its name.
    pub name: String,
}
