//! Inputs are put below their folder and taken from below what the operator allows, links or not (X8, X13).

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

async fn copy_to(allowed: &[String], url: &str, folder: &Path) -> Result<String, TaskError> {
    let path = folder.join("copy");
    let left = AtomicU64::new(1 << 20);
    let mut file = Bounded::new(File::create(&path).unwrap(), &left, 1 << 20);
    copy_url(allowed, url, Wanted::default(), &mut file).await?;
    Ok(fs::read_to_string(path).unwrap())
}

#[tokio::test]
async fn x_13_an_allowed_address_ends_at_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    for part in ["in", "inside"] {
        fs::create_dir(folder.path().join(part)).unwrap();
        fs::write(folder.path().join(part).join("a"), part).unwrap();
    }
    for (allowed, asked, opens) in [
        ("/in", "/in/a", true),
        ("/in/", "/in/a", true),
        ("/in/a", "/in/a", true),
        ("/", "/inside/a", true),
        // Another folder whose name begins alike.
        ("/in", "/inside/a", false),
        ("/in/", "/in/../inside/a", false),
        ("/in", "/a", false),
    ] {
        let rules = [format!("file://{root}{allowed}")];
        let copied = copy_to(&rules, &format!("file://{root}{asked}"), folder.path()).await;
        assert_eq!(copied.is_ok(), opens, "{allowed} {asked}");
    }
    let foreign = copy_to(&["http://".to_owned()], "http://127.0.0.1:1/", folder.path()).await;
    assert!(foreign.unwrap_err().message().contains("az:// only"));
}

#[tokio::test]
async fn x_8_a_link_below_an_allowed_address_does_not_lead_out_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("in/deep")).unwrap();
    fs::create_dir(at("secret")).unwrap();
    fs::write(at("secret/key"), "canary").unwrap();
    fs::write(at("in/good"), "good").unwrap();
    symlink("../good", at("in/deep/stays")).unwrap();
    symlink("../secret/key", at("in/file")).unwrap();
    symlink("../secret", at("in/folder")).unwrap();
    symlink(at("secret/key"), at("in/absolute")).unwrap();
    symlink("/proc/self/root/etc/hostname", at("in/magic")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("in/pipe"), rustix::fs::Mode::from(0o600)).unwrap();
    let url = |name: &str| format!("file://{}/{name}", folder.path().display());
    let copied = async |name: &str| copy_to(&[url("in")], &url(name), folder.path()).await;
    assert_eq!(copied("in/good").await.unwrap(), "good");
    assert_eq!(copied("in/deep/stays").await.unwrap(), "good");
    for name in ["in/file", "in/folder/key", "in/absolute", "in/magic", "in/pipe", "in/deep"] {
        assert!(copied(name).await.is_err(), "{name}");
    }
    // What the operator named is the operator's business, a link too.
    assert_eq!(copy_to(&[url("in/file")], &url("in/file"), folder.path()).await.unwrap(), "canary");
}

#[test]
fn x_8_an_input_lies_below_its_folder() {
    let work = tempfile::tempdir().unwrap();
    let folder = Folder::make(work.path(), None).unwrap();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), folder.inputs().join("link")).unwrap();
    symlink(outside.path().join("made"), folder.inputs().join("last")).unwrap();
    drop(place(&folder, "a/b/c").unwrap());
    assert!(folder.inputs().join("a/b/c").is_file());
    let bad =
        ["", "/", "..", "../x", "a/../../x", "/x", "a/b/c/d", "link/x", "last", "a\0b", "a/b"];
    for name in bad {
        assert!(place(&folder, name).is_err(), "{name:?}");
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn x_8_a_program_that_swaps_its_folders_publishes_nothing_foreign() {
    let work = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("out")).unwrap();
    for name in ["out/key", "result.json"] {
        fs::write(outside.path().join(name), "\"canary\"").unwrap();
    }
    let folder = Folder::make(work.path(), None).unwrap();
    fs::write(folder.outputs().join("mine"), "mine").unwrap();
    // The whole folder is put aside, and a link stands in its place.
    let aside = work.path().join("aside");
    fs::rename(folder.task(), &aside).unwrap();
    symlink(outside.path(), folder.task()).unwrap();
    let found = super::super::outputs::find(&folder).unwrap();
    assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["mine"]);
    assert!(super::super::outputs::result(&folder).unwrap() == ().into());
    // Found as a file, and a link when it is opened again for its upload.
    fs::remove_file(aside.join("out/mine")).unwrap();
    symlink(outside.path().join("out/key"), aside.join("out/mine")).unwrap();
    assert!(ikada_api::client::OpenSource::open(&found[0]).is_err());
}

#[tokio::test]
async fn x_11_all_inputs_together_keep_within_the_bound_of_an_attempts_folder() {
    let (work, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(data.path().join("large"), vec![b'x'; 600]).unwrap();
    let url = format!("file://{}/large", data.path().display());
    let client = ikada_api::Client::new(["http://127.0.0.1:1"]).unwrap();
    let objects = Objects::new(client, None);
    let text =
        WorkInput { name: "text".to_owned(), text: Some("y".repeat(400)), ..WorkInput::default() };
    let file =
        WorkInput { name: "file".to_owned(), url: Some(url.clone()), ..WorkInput::default() };
    let wanted = [text, file];
    for (bytes_max, good) in [(1_000, true), (999, false), (0, false)] {
        let folder = Folder::make(work.path(), None).unwrap();
        let brought =
            inputs(&objects, std::slice::from_ref(&url), &wanted, &folder, bytes_max).await;
        assert_eq!(brought.is_ok(), good, "{bytes_max}: {brought:?}");
        if let Err(error) = brought {
            assert!(
                error.message().contains(&format!("more than the {bytes_max} bytes")),
                "{error:?}"
            );
        }
    }
}

#[tokio::test]
async fn inputs_that_come_side_by_side_share_one_bound() {
    let work = tempfile::tempdir().unwrap();
    let client = ikada_api::Client::new(["http://127.0.0.1:1"]).unwrap();
    let objects = Objects::new(client, None);
    let input = |number: usize| WorkInput {
        name: format!("in-{number}"),
        text: Some("x".repeat(100)),
        ..WorkInput::default()
    };
    let all: Vec<WorkInput> = (0..3 * ABREAST).map(input).collect();
    let most = 100 * all.len() as u64;
    let folder = Folder::make(work.path(), None).unwrap();
    inputs(&objects, &[], &all, &folder, most).await.unwrap();
    for input in &all {
        assert_eq!(fs::read(folder.inputs().join(&input.name)).unwrap().len(), 100);
    }
    let folder = Folder::make(work.path(), None).unwrap();
    let error = inputs(&objects, &[], &all, &folder, most - 1).await.unwrap_err();
    assert!(error.message().contains(&format!("more than the {} bytes", most - 1)), "{error:?}");
}
