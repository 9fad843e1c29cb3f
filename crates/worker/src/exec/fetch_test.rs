//! Inputs are put below their folder and taken from below what the operator allows, links or not (X8, X13).

use std::os::unix::fs::symlink;

use super::*;

fn copy_to(allowed: &[String], url: &str, folder: &Path) -> Result<String, TaskError> {
    let path = folder.join("copy");
    let mut file = File::create(&path).unwrap();
    copy_url(allowed, url, &mut file)?;
    Ok(fs::read_to_string(path).unwrap())
}

#[test]
fn x_13_an_allowed_address_ends_at_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    for part in ["in", "inside"] {
        fs::create_dir(folder.path().join(part)).unwrap();
        fs::write(folder.path().join(part).join("a"), part).unwrap();
    }
    let opens = |allowed: &str, asked: &str| {
        let allowed = [format!("file://{root}{allowed}")];
        copy_to(&allowed, &format!("file://{root}{asked}"), folder.path()).is_ok()
    };
    assert!(opens("/in", "/in/a"));
    assert!(opens("/in/", "/in/a"));
    assert!(opens("/in/a", "/in/a"));
    assert!(opens("/", "/inside/a"));
    assert!(!opens("/in", "/inside/a"), "another folder whose name begins alike");
    assert!(!opens("/in/", "/in/../inside/a"));
    assert!(!opens("/in", "/a"));
    let foreign = copy_to(&["http://".to_owned()], "http://127.0.0.1:1/", folder.path());
    assert!(foreign.unwrap_err().message().contains("gs:// only"));
}

#[test]
fn x_8_a_link_below_an_allowed_address_does_not_lead_out_of_it() {
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
    let copied = |name: &str| copy_to(&[url("in")], &url(name), folder.path());
    assert_eq!(copied("in/good").unwrap(), "good");
    assert_eq!(copied("in/deep/stays").unwrap(), "good");
    for name in ["in/file", "in/folder/key", "in/absolute", "in/magic", "in/pipe", "in/deep"] {
        assert!(copied(name).is_err(), "{name}");
    }
    // What the operator named is the operator's business, a link too.
    assert_eq!(copy_to(&[url("in/file")], &url("in/file"), folder.path()).unwrap(), "canary");
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
