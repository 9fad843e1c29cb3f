//! Inputs at addresses: which ones a pattern means, and how they are cut.
//!
//! Promise: this command lists and looks, with the keys of its own environment; nodes open no address, and workers read
//! their part alone. An address without pattern and cut is passed on unseen: only the workers need to reach it.

use std::path::Path;

use ikada_api::s3::{BadPlace, Download, Store, StorePlace};
use ikada_api::state::limits::JOB_INPUTS_MAX;
use ikada_api::v1::WorkInput;
use ikada_worker::exec::{is_store, local_path};

use super::cut::{Afar, Cut, parts, parts_of_object};
use super::pattern::{files, matches_path};
use crate::commands::backup::open_store;
use crate::failure::Failure;

/// Most names of a bucket that are looked at for one pattern.
const LISTED_MAX: usize = 1_000_000;
/// What patterns are told by.
const WILD: [char; 2] = ['*', '?'];

/// The inputs that an address means, or a pattern of addresses.
pub(super) async fn inputs_at(url: &str, cut: Cut) -> Result<Vec<WorkInput>, Failure> {
    let mut inputs = Vec::new();
    if is_store(url) {
        let names_one = !is_pattern(url);
        if names_one && cut == Cut::Whole {
            return Ok(vec![whole(url)]);
        }
        let (store, places) = match names_one {
            true => {
                let place = read_place(url, StorePlace::parse(url))?;
                (open_store(&place)?, vec![place])
            }
            false => list(url).await?,
        };
        for place in places {
            inputs.extend(cut_object(&store, place, cut).await?);
            check_count(url, inputs.len())?;
        }
        return Ok(inputs);
    }
    let Some(path) = local_path(url) else {
        return match cut {
            // Refused by whoever opens it, in clear words.
            Cut::Whole if !url.ends_with('/') => Ok(vec![whole(url)]),
            _ => Err(Failure::usage(format!(
                "--input {url}: addresses begin with file:///, s3://, gs:// or az://"
            ))),
        };
    };
    if !is_pattern(url) && cut == Cut::Whole {
        return Ok(vec![whole(url)]);
    }
    let pattern = if path.ends_with('/') { format!("{path}**/*") } else { path.to_owned() };
    for path in files(&pattern)? {
        inputs.extend(cut_file(&path, cut)?);
        check_count(url, inputs.len())?;
    }
    Ok(inputs)
}

fn is_pattern(url: &str) -> bool {
    url.contains(WILD) || url.ends_with('/')
}

/// Refuses more inputs than a job takes.
pub(super) fn check_count(url: &str, count: usize) -> Result<(), Failure> {
    match count > JOB_INPUTS_MAX {
        true => Err(Failure::usage(format!(
            "--input {url}: these are more than {JOB_INPUTS_MAX} inputs; give fewer, or larger parts"
        ))),
        false => Ok(()),
    }
}

fn read_place(
    url: &str,
    read: Option<Result<StorePlace, BadPlace>>,
) -> Result<StorePlace, Failure> {
    match read {
        Some(Ok(place)) => Ok(place),
        Some(Err(error)) => Err(Failure::usage(format!("--input {error}"))),
        None => Err(Failure::usage(format!("--input {url}: names no object"))),
    }
}

/// Objects whose names are as the pattern says; of a folder, all that lie below it.
async fn list(url: &str) -> Result<(Store, Vec<StorePlace>), Failure> {
    let fixed = url.split(WILD).next().unwrap_or_default();
    let beginning = read_place(url, StorePlace::parse_beginning(fixed))?;
    let store = open_store(&beginning)?;
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let (bucket, pattern) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket != beginning.bucket {
        return Err(Failure::usage(format!("--input {url}: a pattern may not be in the bucket")));
    }
    let pattern = match pattern.is_empty() || pattern.ends_with('/') {
        true => format!("{pattern}**/*"),
        false => pattern.to_owned(),
    };
    let (mut places, mut looked) = (Vec::new(), 0);
    let mut after: Option<String> = None;
    loop {
        let page = store.list(&beginning, after.as_deref()).await?;
        looked += page.keys.len();
        for key in page.keys.into_iter().filter(|key| matches_path(&pattern, key)) {
            places.extend(listed(url, &beginning, key)?);
        }
        check_count(url, places.len())?;
        after = page.next;
        if after.is_none() || looked > LISTED_MAX {
            break;
        }
    }
    match (places.is_empty(), after) {
        (_, Some(_)) => Err(Failure::usage(format!(
            "--input {url}: more than {LISTED_MAX} names begin so; name a folder further down"
        ))),
        (true, None) => Err(Failure::usage(format!("--input {url}: no object is named so"))),
        (false, None) => Ok((store, places)),
    }
}

/// The place of a name that a store lists; none if it stands for a folder. One that workers could not open is not left out
/// in silence.
fn listed(url: &str, beginning: &StorePlace, key: String) -> Result<Option<StorePlace>, Failure> {
    if key.ends_with('/') {
        return Ok(None);
    }
    let named = StorePlace { key, ..beginning.clone() }.to_string();
    match StorePlace::parse(&named) {
        Some(Ok(place)) => Ok(Some(place)),
        Some(Err(error)) => Err(Failure::usage(format!(
            "--input {url}: the store lists a name that cannot be an input's address: {error}; rename it, \
             or give a pattern that leaves it out"
        ))),
        None => Err(Failure::usage(format!("--input {url}: {named:?} names no object"))),
    }
}

async fn cut_object(store: &Store, place: StorePlace, cut: Cut) -> Result<Vec<WorkInput>, Failure> {
    let url = place.to_string();
    if cut == Cut::Whole {
        return Ok(vec![whole(&url)]);
    }
    let object = Download::begin(store.clone(), place).await?;
    let object =
        object.ok_or_else(|| Failure::usage(format!("--input {url}: there is no such object")))?;
    let parts = parts_of_object(&Afar::Stored(&object), cut).await?;
    let size = object.size();
    let part = |(offset, length): (u64, u64)| WorkInput {
        // Replaced since, its lines end elsewhere.
        etag: object.tag().map(str::to_owned),
        ..part_of(&url, size, offset, length)
    };
    Ok(parts.into_iter().map(part).collect())
}

fn cut_file(path: &Path, cut: Cut) -> Result<Vec<WorkInput>, Failure> {
    let Some(text) = path.to_str() else {
        let shown = path.display();
        return Err(Failure::usage(format!("--input {shown}: its name cannot be an address")));
    };
    let url = format!("file://{text}");
    if cut == Cut::Whole {
        return Ok(vec![whole(&url)]);
    }
    let parts = parts(path, cut)?;
    let size = parts.last().map_or(0, |(offset, length)| offset + length);
    let part = |(offset, length): (u64, u64)| part_of(&url, size, offset, length);
    Ok(parts.into_iter().map(part).collect())
}

fn whole(url: &str) -> WorkInput {
    let name = url.rsplit('/').next().unwrap_or_default().to_owned();
    WorkInput { name, url: Some(url.to_owned()), ..WorkInput::default() }
}

fn part_of(url: &str, size: u64, offset: u64, length: u64) -> WorkInput {
    let whole = whole(url);
    if offset == 0 && length == size {
        return whole;
    }
    let name = format!("{offset:012}-{}", whole.name);
    WorkInput { name, offset: Some(offset), length: Some(length), ..whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(inputs: &[WorkInput]) -> Vec<(String, String, Option<u64>, Option<u64>)> {
        let one = |input: &WorkInput| {
            let url = input.url.clone().unwrap_or_default();
            let url = url.rsplit('/').next().unwrap_or_default().to_owned();
            (input.name.clone(), url, input.offset, input.length)
        };
        inputs.iter().map(one).collect()
    }

    #[test]
    fn b4_35_a_listed_name_that_cannot_be_an_address_is_told_and_a_folders_is_no_file() {
        let Some(Ok(beginning)) = StorePlace::parse_beginning("s3://texts/in/") else {
            panic!("it is a beginning");
        };
        let look = |key: &str| listed("s3://texts/in/*", &beginning, key.to_owned());
        let place = look("in/a b?.txt").unwrap().expect("a file");
        assert_eq!(place.to_string(), "s3://texts/in/a b?.txt");
        assert_eq!(look("in/deep/").unwrap(), None);
        for bad in ["in/tab\there".to_owned(), format!("in/{}", "x".repeat(1_030))] {
            let Err(Failure::Usage { message }) = look(&bad) else { panic!("{bad} was taken") };
            assert!(message.contains("cannot be an input's address"), "{message}");
            assert!(message.contains("s3://texts/in/"), "{message}");
        }
    }

    #[tokio::test]
    async fn b4_35_files_at_addresses_are_listed_and_cut_here() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(folder.path().join("b.txt"), "four").unwrap();
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        std::fs::write(folder.path().join("deep/c.txt"), "five").unwrap();
        let url = |name: &str| format!("file://{}/{name}", folder.path().display());
        let all = inputs_at(&url("*.txt"), Cut::Whole).await.unwrap();
        let both = [
            ("a.txt".to_owned(), "a.txt".to_owned(), None, None),
            ("b.txt".to_owned(), "b.txt".to_owned(), None, None),
        ];
        assert_eq!(shown(&all), both);
        assert_eq!(inputs_at(&url(""), Cut::Whole).await.unwrap().len(), 3, "all that lie below");
        let cut = inputs_at(&url("*.txt"), Cut::Lines(2)).await.unwrap();
        let part = |offset: u64, length| {
            let name = format!("{offset:012}-a.txt");
            (name, "a.txt".to_owned(), Some(offset), Some(length))
        };
        assert_eq!(shown(&cut), [part(0, 8), part(8, 6), both[1].clone()]);
        // Unseen: it may be there for the workers.
        assert_eq!(inputs_at(&url("none"), Cut::Whole).await.unwrap().len(), 1);
        assert_eq!(inputs_at("s3://b/k", Cut::Whole).await.unwrap().len(), 1);
        for (bad, cut) in [
            (url("*.csv"), Cut::Whole),
            (url("none"), Cut::Lines(1)),
            ("http://a/b".to_owned(), Cut::Lines(1)),
            ("http://a/".to_owned(), Cut::Whole),
            ("s3://*/k".to_owned(), Cut::Whole),
        ] {
            let refused = inputs_at(&bad, cut).await;
            assert!(matches!(refused, Err(Failure::Usage { .. })), "{bad}");
        }
    }
}
