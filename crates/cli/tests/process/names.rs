//! Downloads from a server that names its objects so that they would lie elsewhere (X8).

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use crate::fresh::ikada;

/// What every object holds.
const BYTES: &str = "planted";
/// Names that a good cluster refuses to keep.
const NAMES: &[&str] = &[
    "../planted",
    "a/../../planted",
    "/tmp/ikada-planted",
    "link/planted",
    "last",
    "a//b",
    "..",
    "a/..",
    ".",
    "",
    "/",
    "/.",
    "./.",
    "a\\..\\..\\planted",
    "a\u{0}b",
    "a/",
];

/// A server that lies: every bucket and every job has one object, of the given name.
struct Liar {
    url: String,
}

impl Liar {
    fn start(name: &str) -> Liar {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let name = name.to_owned();
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A caller that hangs up has what it wanted.
                let _ = answer(stream, &name);
            }
        });
        Liar { url }
    }
}

fn answer(mut stream: TcpStream, name: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let digest = blake3::hash(BYTES.as_bytes()).to_hex();
    let object = |key: &str| {
        json!({"bucket": "b", "key": key, "version": "1", "size": BYTES.len(),
            "digest": digest.as_str(), "content_type": "text/plain", "modified_ms": 1})
    };
    let (kind, body) = match first.split(' ').nth(1).unwrap_or_default() {
        path if path.starts_with("/v1/jobs/") => {
            let outputs = [object(&format!("j/{name}")), object("j/map/0/good")];
            let found = json!({"id": "j", "status": "done", "outputs": outputs});
            ("application/json", found.to_string())
        }
        path if path.contains("prefix=") => {
            ("application/json", json!({"objects": [object(name)]}).to_string())
        }
        _ => ("text/plain", BYTES.to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\netag: \"{digest}\"\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Everything below a folder, links not followed.
fn names_below(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        found.push(entry.path().display().to_string());
        if entry.file_type().expect("a kind").is_dir() {
            names_below(&entry.path(), found);
        }
    }
}

/// Downloads from a liar into `in` of a fresh folder; gives what lies beside it then, and whether the command was content.
fn download(name: &str, arguments: &[&str]) -> (Vec<String>, bool) {
    let folder = tempfile::tempdir().expect("a folder");
    for part in ["in", "outside", "outside/deep"] {
        fs::create_dir(folder.path().join(part)).expect("a folder");
    }
    symlink("../outside", folder.path().join("in/link")).expect("a link");
    symlink("../outside/last", folder.path().join("in/last")).expect("a link");
    let liar = Liar::start(name);
    let mut command = ikada();
    command.args(arguments).arg(folder.path().join("in")).args(["--url", &liar.url]);
    let ran = command.current_dir(folder.path()).output().expect("it runs");
    let mut found = Vec::new();
    names_below(folder.path(), &mut found);
    let inside = folder.path().join("in").display().to_string();
    found.retain(|path| !path.starts_with(&inside) && !path.ends_with("outside"));
    found.retain(|path| !path.ends_with("outside/deep"));
    (found, ran.status.success())
}

#[test]
fn x_8_names_in_an_answer_do_not_lead_out_of_the_target() {
    for name in NAMES {
        let (beside, content) = download(name, &["object", "get", "-r", "b/"]);
        assert_eq!(beside, Vec::<String>::new(), "object get -r of {name:?}");
        assert!(!content || *name == "last", "{name:?} was taken for a name");
        let (beside, _) = download(name, &["job", "result", "j", "--to"]);
        assert_eq!(beside, Vec::<String>::new(), "job result of {name:?}");
    }
    assert!(!Path::new("/tmp/ikada-planted").exists());
    let (beside, content) = download("deep/good", &["object", "get", "-r", "b/"]);
    assert!(beside.is_empty() && content, "a good name is good");
    let (beside, content) = download("map/1/good", &["job", "result", "j", "--to"]);
    assert!(beside.is_empty() && content, "a good name is good");
}
