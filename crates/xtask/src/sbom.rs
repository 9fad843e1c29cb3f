//! `cargo xtask sbom`: what goes into the binary, as a CycloneDX document for scanners (X16).
//!
//! Promises: made of the lock file and of what cargo knows of it, without the network; the same tree gives the same bytes,
//! so that two builds can be compared. Every package that the binary links is listed with version, licence and, if it came
//! from elsewhere, the checksum that the build holds it to. Leaves out: tools that only build or test; C code and system
//! libraries; whether anything in it has an advisory, which `cargo deny` answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

/// The package of the binary.
const BINARY: &str = "ikada-cli";
/// The version of the format.
const SPEC_VERSION: &str = "1.5";
/// What the binary is built for.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Settings.
#[derive(Debug, clap::Args)]
pub struct SbomArgs {
    /// Where it is written.
    #[arg(long, default_value = "target/ikada.cdx.json", value_name = "FILE")]
    output: PathBuf,
}

/// Writes the document.
pub fn run(root: &Path, args: &SbomArgs) -> anyhow::Result<bool> {
    let document = document(root)?;
    let count = document["components"].as_array().map_or(0, Vec::len);
    let path = root.join(&args.output);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let text = format!("{document:#}\n");
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    println!("{}: {count} components", args.output.display());
    Ok(true)
}

fn document(root: &Path) -> anyhow::Result<Value> {
    let metadata = cargo(
        root,
        &[
            "metadata",
            "--locked",
            "--offline",
            "--format-version",
            "1",
            "--filter-platform",
            PLATFORM,
        ],
    )?;
    let metadata = serde_json::from_slice(&metadata).context("the answer of cargo metadata")?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
    bill(&metadata, &checksums(&lock)?)
}

fn cargo(root: &Path, args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("cargo").args(args).current_dir(root).output().context("cargo")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo {}: {said}", args.join(" "));
    Ok(output.stdout)
}

/// Name and version of every locked package that came from elsewhere, with its checksum.
fn checksums(lock: &str) -> anyhow::Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = lock.parse().context("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let of = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let pairs = packages.into_iter().flatten().filter_map(|package| {
        let name = (of(package, "name")?, of(package, "version")?);
        Some((name, of(package, "checksum")?))
    });
    Ok(pairs.collect())
}

/// The ids of all packages that are linked into the binary, with what each links.
fn linked(metadata: &Value) -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("no graph of packages")?;
    let by_id: BTreeMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let binary = packages(metadata).find(|package| package["name"] == BINARY);
    let binary = binary.and_then(|package| package["id"].as_str());
    let mut open = vec![binary.with_context(|| format!("no package {BINARY}"))?];
    let mut found = BTreeMap::new();
    while let Some(id) = open.pop() {
        if found.contains_key(id) {
            continue;
        }
        let node = by_id.get(id).with_context(|| format!("{id} is not in the graph"))?;
        let deps = node["deps"].as_array().into_iter().flatten();
        // Without a kind it is linked; others only build or test.
        let links = deps.filter(|dep| {
            dep["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
        });
        let links: Vec<&str> = links.filter_map(|dep| dep["pkg"].as_str()).collect();
        found.insert(id.to_owned(), links.iter().map(|id| (*id).to_owned()).collect());
        open.extend(links);
    }
    Ok(found)
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// The document.
fn bill(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> anyhow::Result<Value> {
    let linked = linked(metadata)?;
    let mut references = BTreeMap::new();
    let mut components = BTreeMap::new();
    for package in packages(metadata) {
        let Some(id) = package["id"].as_str().filter(|id| linked.contains_key(*id)) else {
            continue;
        };
        let component = component(package, checksums)?;
        let reference = component["bom-ref"].as_str().unwrap_or_default().to_owned();
        references.insert(id.to_owned(), reference.clone());
        components.insert(reference, component);
    }
    let mut dependencies = BTreeMap::new();
    for (id, links) in &linked {
        let named: BTreeSet<&String> = links.iter().filter_map(|id| references.get(id)).collect();
        let reference = references.get(id).with_context(|| format!("{id} has no package"))?;
        dependencies.insert(reference, json!({ "ref": reference, "dependsOn": named }));
    }
    let main = components.values().find(|component| component["name"] == BINARY).cloned();
    let main = main.map(|mut main| {
        main["type"] = json!("application");
        main
    });
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": { "component": main },
        "components": components.values().filter(|it| it["name"] != BINARY).collect::<Vec<_>>(),
        "dependencies": dependencies.values().collect::<Vec<_>>(),
    }))
}

fn component(
    package: &Value,
    checksums: &BTreeMap<(String, String), String>,
) -> anyhow::Result<Value> {
    let text = |key: &str| package[key].as_str().map(str::to_owned);
    let (name, version) = text("name").zip(text("version")).context("a package without a name")?;
    let licence = text("license").with_context(|| format!("{name} {version} has no licence"))?;
    let reference = format!("pkg:cargo/{name}@{version}");
    let mut component = json!({
        "type": "library",
        "bom-ref": reference,
        "purl": reference,
        "name": name,
        "version": version,
        // Old manifests write a choice with a stroke.
        "licenses": [{ "expression": licence.replace('/', " OR ") }],
    });
    if !package["source"].is_null() {
        let checksum = checksums.get(&(name.clone(), version.clone()));
        let checksum = checksum.with_context(|| format!("{name} {version} has no checksum"))?;
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    Ok(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What cargo itself says is linked, `name version` each.
    fn told_by_cargo(root: &Path) -> BTreeSet<(String, String)> {
        let edges = ["-e", "normal", "--prefix", "none", "--target", PLATFORM];
        let mut args = vec!["tree", "--locked", "--offline", "-p", BINARY];
        args.extend(edges);
        let told = String::from_utf8(cargo(root, &args).unwrap()).unwrap();
        let words = told.lines().filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
        });
        words.collect()
    }

    #[test]
    fn x_16_every_locked_package_of_the_binary_is_listed() {
        let root = crate::workspace_root().unwrap();
        let document = document(&root).unwrap();
        assert_eq!(document, super::document(&root).unwrap(), "the same tree, the same document");
        let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap();
        let checksums = checksums(&lock).unwrap();
        let listed: BTreeMap<(String, String), &Value> = document["components"]
            .as_array()
            .unwrap()
            .iter()
            .chain([&document["metadata"]["component"]])
            .map(|it| {
                let text = |key: &str| it[key].as_str().unwrap().to_owned();
                ((text("name"), text("version")), it)
            })
            .collect();
        let told = told_by_cargo(&root);
        assert!(told.len() > 100, "{told:?}");
        for package in &told {
            let found = listed.get(package).unwrap_or_else(|| panic!("{package:?} is missing"));
            assert!(!found["licenses"][0]["expression"].as_str().unwrap().is_empty());
            let ours = package.0.starts_with("ikada");
            let checksum = found["hashes"][0]["content"].as_str();
            assert_eq!(checksum, checksums.get(package).map(String::as_str), "{package:?}");
            assert_eq!(checksum.is_none(), ours, "{package:?}");
        }
    }

    #[test]
    fn x_16_a_package_without_licence_or_checksum_is_an_error() {
        let metadata = |licence: Value| {
            json!({
                "packages": [
                    {"id": "a", "name": BINARY, "version": "1.0.0", "license": "MIT", "source": null},
                    {"id": "b", "name": "b", "version": "2.0.0", "license": licence, "source": "x"},
                    {"id": "c", "name": "c", "version": "3.0.0", "license": null, "source": "x"},
                ],
                "resolve": {"nodes": [
                    {"id": "a", "deps": [
                        {"pkg": "b", "dep_kinds": [{"kind": null}]},
                        {"pkg": "c", "dep_kinds": [{"kind": "dev"}]},
                    ]},
                    {"id": "b", "deps": []},
                ]},
            })
        };
        let known = BTreeMap::from([(("b".to_owned(), "2.0.0".to_owned()), "ff".to_owned())]);
        let good = bill(&metadata(json!("MIT/Apache-2.0")), &known).unwrap();
        let names: Vec<&str> = good["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["b"], "what only tests is not in the binary");
        assert_eq!(good["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert!(bill(&metadata(Value::Null), &known).is_err());
        assert!(bill(&metadata(json!("MIT")), &BTreeMap::new()).is_err());
    }
}
