//! Programs, inputs and outputs: public words to the state's and back.

use std::collections::BTreeMap;

use ikada_state::limits::{
    ENTRY_BYTES_MAX, OBJECT_CHUNK_BYTES, OUTPUT_URL_BYTES_MAX, OUTPUTS_MAX, SETTING_NAME_BYTES_MAX,
    WORK_INPUTS_MAX, WORK_SETTINGS_MAX,
};
use ikada_state::{
    BucketName, Digest, Input, InputSource, Namespace, ObjectName, Output, ProgramKind,
    ProgramName, ProgramRef, SharedWork, Work,
};

use super::field::{FieldError, parse_name};
use crate::s3::StorePlace;
use crate::v1::{NewTask, Number, OutputItem, WorkInfo, WorkInput, WorkPart, WorkProgram};

/// Programs that every worker of this build has; their names cannot be taken by others.
pub const BUILTIN_PROGRAMS: [&str; 3] = ["grep", "merge", "wordcount"];

/// Longest mark of a version.
const ETAG_BYTES_MAX: usize = 256;
/// What an output is when its task does not say.
const TYPE_DEFAULT: &str = "application/octet-stream";

/// Finds programs by name, so that a submission names one exactly.
pub trait FindProgram {
    /// The program of this name, if there is one.
    fn find(&self, namespace: &Namespace, name: &ProgramName) -> Option<ProgramRef>;

    /// Whether a program can be begun by what a submission names instead of its default; the words say why not. Only
    /// modules have anything to choose from.
    fn check_entry(&self, program: &ProgramRef, _entry: &str) -> Result<(), String> {
        match program.kind {
            ProgramKind::Wasm => Ok(()),
            kind => {
                Err(format!("{} is a {}, and only a module has one", program.name, kind.as_str()))
            }
        }
    }
}

/// Only what is built in.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltinPrograms;

impl FindProgram for BuiltinPrograms {
    fn find(&self, _: &Namespace, name: &ProgramName) -> Option<ProgramRef> {
        BUILTIN_PROGRAMS.contains(&name.as_str()).then(|| handler(name))
    }
}

/// Takes every name: for callers that only want to know whether the rest is good.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyProgram;

impl FindProgram for AnyProgram {
    fn find(&self, _: &Namespace, name: &ProgramName) -> Option<ProgramRef> {
        Some(handler(name))
    }

    fn check_entry(&self, _: &ProgramRef, _: &str) -> Result<(), String> {
        Ok(())
    }
}

fn handler(name: &ProgramName) -> ProgramRef {
    ProgramRef { name: name.clone(), kind: ProgramKind::Handler, digest: None, entry: None }
}

/// What a task runs; none if it names no program.
pub(super) fn read_work(
    namespace: &Namespace,
    task: &NewTask,
    programs: &dyn FindProgram,
) -> Result<Option<SharedWork>, FieldError> {
    let Some(program) = &task.program else {
        let stray = [
            ("entry", task.entry.is_some()),
            ("settings", !task.settings.is_empty()),
            ("inputs", !task.inputs.is_empty()),
            ("reuse", task.reuse),
        ];
        return match stray.iter().find(|(_, given)| *given) {
            Some((field, _)) => {
                Err(FieldError::bad_value(*field, "only a program has these; give program"))
            }
            None => Ok(None),
        };
    };
    let program = read_program(namespace, "program", program, task.entry.as_deref(), programs)?;
    let settings = read_settings(&task.settings)?;
    let inputs = read_inputs(&task.inputs)?;
    Ok(Some(SharedWork::from(Work {
        program,
        settings,
        inputs,
        job: None,
        reuse: task.reuse.then_some(true),
        output_url: None,
    })))
}

/// A program by name; one that nobody knows is refused with its name (B4-39).
pub fn read_program(
    namespace: &Namespace,
    field: &str,
    name: &str,
    entry: Option<&str>,
    programs: &dyn FindProgram,
) -> Result<ProgramRef, FieldError> {
    let parsed = parse_name(field, name, ProgramName::parse)?;
    if entry.is_some_and(|entry| !(1..=ENTRY_BYTES_MAX).contains(&entry.len())) {
        let detail = format!("must have 1 to {ENTRY_BYTES_MAX} bytes");
        return Err(FieldError::bad_value("entry", detail));
    }
    let Some(mut program) = programs.find(namespace, &parsed) else {
        return Err(FieldError {
            field: field.to_owned(),
            code: "unknown_program",
            detail: format!("there is no program {name:?}; push it first, or name another"),
        });
    };
    if let Some(entry) = entry {
        programs.check_entry(&program, entry).map_err(|detail| FieldError {
            field: "entry".to_owned(),
            code: "bad_entry",
            detail,
        })?;
        program.entry = Some(entry.to_owned());
    }
    Ok(program)
}

/// Settings, sorted.
pub fn read_settings(
    settings: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, FieldError> {
    if settings.len() > WORK_SETTINGS_MAX {
        let detail = format!("may be {WORK_SETTINGS_MAX} at most");
        return Err(FieldError::too_large("settings", detail));
    }
    for (name, value) in settings {
        let named = (1..=SETTING_NAME_BYTES_MAX).contains(&name.len());
        if !named || name.contains(['=', '\0']) || value.contains('\0') {
            let shown: String = name.chars().take(64).collect();
            let detail = format!(
                "a name has 1 to {SETTING_NAME_BYTES_MAX} bytes without =, and neither name nor value a zero byte"
            );
            return Err(FieldError::bad_value(format!("settings.{shown}"), detail));
        }
    }
    Ok(settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Inputs, each from one place.
pub fn read_inputs(inputs: &[WorkInput]) -> Result<Vec<Input>, FieldError> {
    if inputs.len() > WORK_INPUTS_MAX {
        let detail = format!("may be {WORK_INPUTS_MAX} at most");
        return Err(FieldError::too_large("inputs", detail));
    }
    let read = |(place, input)| {
        read_input(input).map_err(|error: FieldError| error.inside(&format!("inputs[{place}]")))
    };
    inputs.iter().enumerate().map(read).collect()
}

fn read_input(input: &WorkInput) -> Result<Input, FieldError> {
    let name = parse_name("name", &input.name, ObjectName::parse)?;
    if input.etag.is_some() && input.url.is_none() {
        return Err(FieldError::bad_value("etag", "only an address has one; give url"));
    }
    let source = match (&input.bucket, &input.key, &input.url, &input.text) {
        (Some(bucket), Some(key), None, None) => InputSource::Object {
            bucket: parse_name("bucket", bucket, BucketName::parse)?,
            key: parse_name("key", key, ObjectName::parse)?,
            version: input.version.map(|version| version.0),
            digest: input.digest.as_deref().map(|text| read_digest("digest", text)).transpose()?,
            offset: input.offset.unwrap_or(0),
            length: input.length,
        },
        (None, None, Some(url), None) => InputSource::Url {
            url: read_url(url)?,
            offset: input.offset.filter(|offset| *offset > 0),
            length: input.length,
            etag: read_etag(input.etag.as_deref())?,
        },
        (None, None, None, Some(text)) => InputSource::Text(text.clone()),
        _ => {
            let detail = "give bucket and key, or url, or text";
            return Err(FieldError::bad_value("name", detail));
        }
    };
    Ok(Input { name, source })
}

/// An address that some worker may open. Which ones is its operator's business; stores that none speaks to are refused here,
/// not when the task runs.
fn read_url(url: &str) -> Result<String, FieldError> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("azure" | "abfs" | "abfss" | "wasb" | "wasbs" | "adl") => {
            let detail = "workers open file:///path, s3://bucket/key, gs://bucket/key and \
                          az://container/blob; of Azure's stores they know the last name alone";
            Err(FieldError { field: "url".to_owned(), code: "bad_url", detail: detail.to_owned() })
        }
        _ => Ok(url.to_owned()),
    }
}

/// An address below which some worker may bring outputs.
pub(super) fn read_output_url(url: &str) -> Result<String, FieldError> {
    let is_known = match url.strip_prefix("file://") {
        Some(path) => path.starts_with('/'),
        None => matches!(StorePlace::parse_beginning(url), Some(Ok(_))),
    };
    let climbs = url.split('/').any(|part| part == "..") || url.contains(char::is_control);
    if !is_known || climbs || url.len() > OUTPUT_URL_BYTES_MAX {
        let detail = format!(
            "must be s3://bucket/folder/, gs://bucket/folder/, az://container/folder/ or \
             file:///folder/, without .., of at most {OUTPUT_URL_BYTES_MAX} bytes"
        );
        return Err(FieldError { field: "output_url".to_owned(), code: "bad_url", detail });
    }
    Ok(url.to_owned())
}

/// A store's mark of a version, as it stands in a header.
fn read_etag(etag: Option<&str>) -> Result<Option<String>, FieldError> {
    let Some(etag) = etag else {
        return Ok(None);
    };
    let is_plain = etag.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
    if !(1..=ETAG_BYTES_MAX).contains(&etag.len()) || !is_plain {
        let detail = format!("must be 1 to {ETAG_BYTES_MAX} visible letters, as the store gave it");
        return Err(FieldError::bad_value("etag", detail));
    }
    Ok(Some(etag.to_owned()))
}

fn read_digest(field: &str, text: &str) -> Result<Digest, FieldError> {
    let detail = "must be a BLAKE3 digest: 64 hex digits in lower case";
    Digest::parse(text).ok_or_else(|| FieldError::bad_value(field, detail))
}

/// Outputs of a completion.
pub(super) fn read_outputs(outputs: &[OutputItem]) -> Result<Vec<Output>, FieldError> {
    if outputs.len() > OUTPUTS_MAX {
        return Err(FieldError::too_large("outputs", format!("may be {OUTPUTS_MAX} at most")));
    }
    let mut read: Vec<Output> = Vec::with_capacity(outputs.len());
    for (place, output) in outputs.iter().enumerate() {
        let one =
            read_output(output).map_err(|error| error.inside(&format!("outputs[{place}]")))?;
        if read.iter().any(|before| before.name == one.name) {
            let field = format!("outputs[{place}].name");
            return Err(FieldError::bad_value(field, "two outputs have this name"));
        }
        read.push(one);
    }
    Ok(read)
}

pub(super) fn read_output(output: &OutputItem) -> Result<Output, FieldError> {
    let name = parse_name("name", &output.name, ObjectName::parse)?;
    let digest = read_digest("digest", &output.digest)?;
    let pieces = output.size.div_ceil(OBJECT_CHUNK_BYTES);
    let chunks = match output.chunks.is_empty() {
        // The digest of a single piece is that of the whole.
        true if pieces == 1 => vec![digest],
        _ => {
            let each = output.chunks.iter().map(|text| read_digest("chunks", text));
            each.collect::<Result<Vec<Digest>, FieldError>>()?
        }
    };
    if chunks.len() as u64 != pieces {
        let detail = format!("{} bytes have {pieces} pieces", output.size);
        return Err(FieldError::bad_value("chunks", detail));
    }
    let content_type = output.content_type.as_deref().unwrap_or(TYPE_DEFAULT).to_owned();
    let (size, chunks, address) = (output.size, chunks.into(), output.address.clone());
    Ok(Output { name, size, content_type, digest, chunks, address })
}

/// What a task runs, for readers.
pub fn show_work(work: &Work) -> WorkInfo {
    WorkInfo {
        program: WorkProgram {
            name: work.program.name.to_string(),
            kind: work.program.kind.as_str().to_owned(),
            digest: work.program.digest.map(|digest| digest.to_string()),
            entry: work.program.entry.clone(),
        },
        settings: work.settings.iter().cloned().collect(),
        inputs: work.inputs.iter().map(show_input).collect(),
        job: work.job.as_ref().map(|part| WorkPart {
            job: part.job.to_string(),
            stage: part.stage.to_string(),
            index: part.index,
        }),
        reuse: work.reuses(),
        output_url: work.output_url.clone(),
    }
}

fn show_input(input: &Input) -> WorkInput {
    let mut shown = WorkInput { name: input.name.to_string(), ..WorkInput::default() };
    match &input.source {
        InputSource::Object { bucket, key, version, digest, offset, length } => {
            shown.bucket = Some(bucket.to_string());
            shown.key = Some(key.to_string());
            shown.version = version.map(Number);
            shown.digest = digest.map(|digest| digest.to_string());
            shown.offset = Some(*offset).filter(|offset| *offset > 0);
            shown.length = *length;
        }
        InputSource::Url { url, offset, length, etag } => {
            shown.url = Some(url.clone());
            (shown.offset, shown.length, shown.etag) = (*offset, *length, etag.clone());
        }
        InputSource::Text(text) => shown.text = Some(text.clone()),
    }
    shown
}
