//! `POST /v1/programs`: checks a program and keeps it under its name. What cannot run is refused here, with the reason,
//! not on a worker hours later (B4-39).

use bytes::Bytes;
use hyper::StatusCode;
use ikada_api::convert::{BUILTIN_PROGRAMS, FieldError, parse_name};
use ikada_api::state::limits::{ENTRY_BYTES_MAX, OBJECT_CHUNK_BYTES};
use ikada_api::state::{
    Command, Digest, Digests, Order, ProgramName, PutCondition, PutObject, RequestId, RequestKey,
};
use ikada_api::v1::{NewProgram, ProgramFile, ProgramInfo, ProgramManifest, UploadInfo};

use super::MANIFEST_TYPE;
use super::check_module::check_module;
use super::describe::{named, place};
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::objects::write_one;
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::objects::{Content, Upload};
use crate::watch::wall_ms;

/// Largest module, and largest file of a command (X11).
const FILE_BYTES_MAX: u64 = 10 << 20;
/// Most words of a command.
const WORDS_MAX: usize = 256;
/// Most bytes of a command.
const WORDS_BYTES_MAX: usize = 32 << 10;
/// What begins a module unless the push says otherwise.
const ENTRY_DEFAULT: &str = "_start";

pub(in crate::http) async fn push<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let program: NewProgram = read_document(context, body)?;
    context.subject.is(|| program.name.clone());
    let name = check_shape(&program).map_err(|error| problems::bad_field(&error))?;
    let request = app.request_id(context);
    let mut orders = Vec::new();
    if let Some(file) = &program.file {
        let (content, bytes) = take_file(app, file).await?;
        if program.kind == "wasm" {
            check(bytes, program.entry.as_deref()).await?;
        }
        let place = format!("file/{}", content.digest);
        orders.push((place, "application/octet-stream".to_owned(), content));
    }
    let manifest = ProgramManifest {
        kind: program.kind.clone(),
        argv: program.argv,
        entry: program.entry,
        file: program.file.map(|file| ProgramFile { digest: file.digest, size: file.size }),
    };
    let content = store(app, &manifest).await?;
    let kind = format!("{MANIFEST_TYPE}{}", program.kind);
    orders.push((format!("manifest/{}", content.digest), kind.clone(), content.clone()));
    let (_, _, object) = named(&context.namespace, &name)?;
    orders.push((object.to_string(), kind, content.clone()));
    let mut positions = Vec::new();
    for (item, (place, kind, content)) in orders.into_iter().enumerate() {
        let order = order(context, &request, item as u32, &place, kind, content)?;
        positions = vec![write_one(app, context, order, &request).await?.1];
    }
    let shown = ProgramInfo {
        name: name.to_string(),
        kind: manifest.kind.clone(),
        digest: Some(content.digest.to_string()),
        pushed_ms: Some(wall_ms()),
        manifest: Some(manifest),
    };
    let mut response = show_document(context, StatusCode::CREATED, &shown)?;
    add_positions(&mut response, &positions);
    Ok(response)
}

/// What can be said without the bytes.
fn check_shape(program: &NewProgram) -> Result<ProgramName, FieldError> {
    let name = parse_name("name", &program.name, ProgramName::parse)?;
    if BUILTIN_PROGRAMS.contains(&name.as_str()) {
        return Err(FieldError::bad_value("name", "is built in; choose another"));
    }
    let given = !program.argv.is_empty();
    match (program.kind.as_str(), given, &program.file) {
        ("wasm", false, Some(_)) => {}
        ("wasm", true, _) => return Err(FieldError::bad_value("argv", "a module has none")),
        ("wasm", _, None) => return Err(FieldError::bad_value("file", "a module needs its file")),
        ("command", false, _) => {
            return Err(FieldError::bad_value("argv", "a command needs at least its program"));
        }
        ("command", true, _) if program.entry.is_some() => {
            return Err(FieldError::bad_value("entry", "only a module has one"));
        }
        ("command", true, _) => {}
        ("handler", true, _) => return Err(FieldError::bad_value("argv", "a handler has none")),
        ("handler", _, Some(_)) => {
            return Err(FieldError::bad_value(
                "file",
                "a handler is code of its workers; it has none",
            ));
        }
        ("handler", ..) if program.entry.is_some() => {
            return Err(FieldError::bad_value("entry", "only a module has one"));
        }
        ("handler", false, None) => {}
        _ => return Err(FieldError::bad_value("kind", "must be command, wasm or handler")),
    }
    let bytes: usize = program.argv.iter().map(String::len).sum();
    if program.argv.len() > WORDS_MAX || bytes > WORDS_BYTES_MAX {
        let detail = format!("may have {WORDS_MAX} words and {WORDS_BYTES_MAX} bytes at most");
        return Err(FieldError::too_large("argv", detail));
    }
    if program.argv.iter().any(|word| word.contains('\0'))
        || program.argv.first().is_some_and(String::is_empty)
    {
        return Err(FieldError::bad_value("argv", "must name a program, without zero bytes"));
    }
    let asks = program.argv.iter().any(|word| word.contains("{file}"));
    if asks && program.file.is_none() {
        return Err(FieldError::bad_value("file", "the command names {file}, but there is none"));
    }
    if program.entry.as_ref().is_some_and(|entry| !(1..=ENTRY_BYTES_MAX).contains(&entry.len())) {
        let detail = format!("must have 1 to {ENTRY_BYTES_MAX} bytes");
        return Err(FieldError::bad_value("entry", detail));
    }
    if program.file.as_ref().is_some_and(|file| file.size > FILE_BYTES_MAX) {
        let detail = format!("may have {FILE_BYTES_MAX} bytes at most");
        return Err(FieldError::too_large("file.size", detail));
    }
    Ok(name)
}

/// The uploaded bytes, confirmed to be kept and to be what they are said to be.
async fn take_file<D: Door>(app: &App<D>, file: &UploadInfo) -> Result<(Content, Bytes), Stop> {
    let bad =
        |field: &str, detail: &str| problems::bad_field(&FieldError::bad_value(field, detail));
    let rule = "must be BLAKE3 digests as the upload told";
    let read = |text: &String| Digest::parse(text).ok_or_else(|| bad("file.chunks", rule));
    let chunks: Vec<Digest> = file.chunks.iter().map(read).collect::<Result<_, _>>()?;
    if chunks.len() as u64 != file.size.div_ceil(OBJECT_CHUNK_BYTES) {
        return Err(bad("file.chunks", "do not fit the size").into());
    }
    let chunks: Digests = chunks.into();
    let confirmed = app.door.shelf().confirm(&chunks).await;
    confirmed.map_err(|error| problems::not_confirmed(&error))?;
    let mut bytes = Vec::with_capacity(file.size as usize);
    for piece in chunks.iter() {
        let piece = app.door.shelf().fetch(*piece, false).await;
        bytes.extend_from_slice(&piece.map_err(|error| problems::piece_missing(&error))?);
    }
    let digest = Digest(*blake3::hash(&bytes).as_bytes());
    if bytes.len() as u64 != file.size || digest.to_string() != file.digest {
        return Err(bad("file.digest", "is not that of the bytes").into());
    }
    Ok((Content { size: file.size, digest, chunks }, bytes.into()))
}

/// Looks at a module beside the threads that answer: a large one takes a while.
async fn check(bytes: Bytes, entry: Option<&str>) -> Result<(), Stop> {
    let entry = entry.unwrap_or(ENTRY_DEFAULT).to_owned();
    let checked = tokio::task::spawn_blocking(move || check_module(&bytes, &entry)).await;
    checked.map_err(|_| problems::internal())?.map_err(|detail| {
        let (field, code) = ("file".to_owned(), "bad_module");
        problems::bad_field(&FieldError { field, code, detail }).into()
    })
}

async fn store<D: Door>(app: &App<D>, manifest: &ProgramManifest) -> Result<Content, Stop> {
    let text = serde_json::to_vec(manifest).map_err(|_| problems::internal())?;
    let mut upload = Upload::begin(app.door.shelf());
    upload.push(text.into()).await.map_err(|error| problems::not_spread(&error))?;
    upload.finish().await.map_err(|error| problems::not_spread(&error).into())
}

fn order(
    context: &Context,
    request: &RequestId,
    item: u32,
    name: &str,
    content_type: String,
    content: Content,
) -> Result<Order, Stop> {
    let (namespace, bucket, name) = place(&context.namespace, name)?;
    let Content { size, digest, chunks } = content;
    let condition = PutCondition::Any;
    let put =
        PutObject { bucket, name, size, content_type, digest, chunks, condition, upload: None };
    Ok(Order {
        namespace,
        request: Some(RequestKey { id: request.clone(), item }),
        command: Command::PutObject(put),
    })
}
