//! What the supervisor gives up before it starts the program: resources, rights, files.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::spec::Limits;

/// Folders of the system that programs need to begin at all. Reading and running only.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc"];
/// Settings of the machine that programs of any kind read: how to load, who is who, which time and language, how names are
/// found, whom to trust. Secrets of services lie beside them, this worker's token perhaps, so nothing else of it is there.
const SETTINGS: &[&str] = &[
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "alternatives",
    "passwd",
    "group",
    "nsswitch.conf",
    "hosts",
    "host.conf",
    "hostname",
    "resolv.conf",
    "gai.conf",
    "services",
    "protocols",
    "networks",
    "ssl/certs",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "pki/ca-trust/extracted",
    "ca-certificates",
    "crypto-policies",
    "localtime",
    "timezone",
    "locale.alias",
    "locale.conf",
    "default/locale",
    "os-release",
    "debian_version",
    "lsb-release",
    "mime.types",
    "magic",
    "magic.mime",
    "terminfo",
    "inputrc",
    "fonts",
    "mtab",
];
/// The same of languages, whose folders bear their versions.
const LANGUAGES: &[&str] = &["python", "java-", "perl", "R", "ruby", "php", "node"];
const ETC: &str = "/etc";
/// Devices without a memory of their own.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Bounds of each process, inherited by all that it starts.
pub(super) fn resources(limits: &Limits) -> Result<(), String> {
    let bounds = [
        // What a process writes to, not what it maps: runtimes reserve far more than they use.
        (Resource::Data, limits.memory_bytes),
        (Resource::Nproc, limits.processes),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Stack, limits.memory_bytes.min(8 << 20)),
    ];
    for (resource, most) in bounds {
        let bound = Rlimit { current: Some(most), maximum: Some(most) };
        // A bound that is already lower cannot be raised, and is good.
        let before = rustix::process::getrlimit(resource);
        if before.maximum.is_some_and(|maximum| maximum < most) {
            continue;
        }
        setrlimit(resource, bound).map_err(|error| format!("limit {resource:?}: {error}"))?;
    }
    Ok(())
}

/// Gives up all rights, for good: no program that is started later gains any.
pub(super) fn rights() -> Result<(), String> {
    let failed = |error: rustix::io::Errno| format!("rights: {error}");
    rustix::thread::clear_ambient_capability_set().map_err(failed)?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).map_err(failed)?;
    rustix::thread::set_no_new_privs(true).map_err(failed)
}

/// Leaves the process nothing of the file system but the system's programs, `readable`, and `writable`. An error says what
/// this kernel lacks; what it has holds all the same.
pub(super) fn files(readable: &[PathBuf], writable: &[&Path]) -> Result<(), String> {
    rule_files(readable, writable)
        .map_err(|error| error.to_string())
        .and_then(|status| judge(&status))
}

fn judge(status: &RulesetStatus) -> Result<(), String> {
    match status {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced => {
            Err("this kernel has only a part of Landlock (Linux 6.12 has all that is asked for)"
                .to_owned())
        }
        RulesetStatus::NotEnforced => Err("this kernel has no Landlock".to_owned()),
    }
}

fn rule_files(
    readable: &[PathBuf],
    writable: &[&Path],
) -> Result<RulesetStatus, landlock::RulesetError> {
    let abi = ABI::V6;
    let all = AccessFs::from_all(abi);
    let run = AccessFs::from_read(abi);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(abi))?
        .create()?;
    for place in system().iter().chain(readable) {
        rules = allow(rules, place, run)?;
    }
    for device in DEVICES {
        rules = allow(rules, Path::new(device), AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    for folder in writable {
        rules = allow(rules, folder, all)?;
    }
    Ok(rules.restrict_self()?.ruleset)
}

/// What every program may read and run. Some of it does not exist on every machine.
pub(crate) fn system() -> Vec<PathBuf> {
    let of_languages = std::fs::read_dir(ETC).into_iter().flatten().flatten().filter(|entry| {
        let name = entry.file_name();
        LANGUAGES.iter().any(|begin| name.as_encoded_bytes().starts_with(begin.as_bytes()))
    });
    let folders = SYSTEM.iter().map(PathBuf::from);
    let settings = SETTINGS.iter().map(|name| Path::new(ETC).join(name));
    folders.chain(settings).chain(of_languages.map(|entry| entry.path())).collect()
}

/// Allows what lies beneath a path; what does not exist needs no permission.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(place) = PathFd::new(path) else {
        return Ok(rules);
    };
    let access = match path.is_dir() {
        true => access,
        false => access & AccessFs::from_file(ABI::V6),
    };
    rules.add_rule(PathBeneath::new(place, access))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_12_a_part_of_landlock_is_not_all_of_it() {
        assert_eq!(judge(&RulesetStatus::FullyEnforced), Ok(()));
        for less in [RulesetStatus::PartiallyEnforced, RulesetStatus::NotEnforced] {
            assert!(judge(&less).unwrap_err().contains("Landlock"), "{less:?}");
        }
    }
}
