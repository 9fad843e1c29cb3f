//! No name and no link leads out of a folder (X8): known tricks, names drawn at random, and a folder that becomes a link
//! while it is looked up. What lies outside are canaries: none is ever read, changed, made or removed.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::*;

/// How many names are drawn; `IKADA_FUZZED_NAMES` draws more.
const FUZZED_NAMES: u64 = 20_000;
/// How long folders are swapped; `IKADA_SWAP_SECONDS` swaps longer.
const SWAP_SECONDS: u64 = 1;
/// What the canaries hold.
const CANARY: &str = "canary";
/// What files below hold.
const OWN: &str = "own";

/// A number from the environment.
fn asked(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// A folder `root` with links of all kinds that lead out of it, and canaries beside it.
struct Place {
    folder: TempDir,
    root: Beneath,
}

impl Place {
    fn new() -> Place {
        // In memory where there is such a place: a million names are many files.
        let fast = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = fast.unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("root/d/e")).unwrap();
        fs::create_dir_all(at("outside/e")).unwrap();
        for name in ["root/file", "root/d/file", "root/d/e/file"] {
            fs::write(at(name), OWN).unwrap();
        }
        for name in ["file", "outside/file", "outside/e/file"] {
            fs::write(at(name), CANARY).unwrap();
        }
        symlink("../outside", at("root/link")).unwrap();
        symlink("../outside/file", at("root/last")).unwrap();
        symlink("../outside/fresh", at("root/dangling")).unwrap();
        symlink(at("outside"), at("root/absolute")).unwrap();
        symlink("/proc/self/cwd", at("root/magic")).unwrap();
        symlink("../..", at("root/d/up")).unwrap();
        let root = Beneath::at(&at("root")).unwrap();
        Place { folder, root }
    }

    /// Tries everything with a name.
    fn attack(&self, name: &str) {
        let mut text = String::new();
        let opened = [self.root.open(name), self.root.open_through_links(name)];
        for mut file in opened.into_iter().flatten() {
            text.clear();
            file.read_to_string(&mut text).unwrap();
            assert!(!text.contains(CANARY), "{name:?} read what lies outside");
        }
        let within = [self.root.folder(name), self.root.within(Path::new(name))];
        for file in within.into_iter().flatten().flat_map(|folder| folder.open("file")) {
            text.clear();
            (&file).read_to_string(&mut text).unwrap();
            assert!(!text.contains(CANARY), "{name:?} is a folder that lies outside");
        }
        // First where there is nothing yet: what is there already is an error to it.
        let new = self.root.create_new(name);
        let made = [new, self.root.create(name), self.root.append(name)];
        for mut file in made.into_iter().flatten() {
            file.write_all(OWN.as_bytes()).unwrap();
        }
        let _ = self.root.make_folder(name, |_| Ok(()));
        let _ = self.root.rename(name, "renamed");
        let _ = self.root.rename("renamed", name);
        let _ = self.root.remove(name);
    }

    /// The canaries are as they were, and alone.
    #[track_caller]
    fn assert_untouched(&self, name: &str) {
        let at = |name: &str| self.folder.path().join(name);
        for canary in ["file", "outside/file", "outside/e/file"] {
            let text = fs::read_to_string(at(canary)).unwrap_or_default();
            assert_eq!(text, CANARY, "{name:?} changed {canary}");
        }
        for (folder, count) in [("", 3), ("outside", 2), ("outside/e", 1)] {
            let found = fs::read_dir(at(folder)).unwrap().count();
            assert_eq!(found, count, "{name:?} left something in {folder:?}");
        }
    }
}

/// Names that led out of folders elsewhere.
const TRICKS: &[&str] = &[
    "",
    ".",
    "..",
    "/",
    "//",
    "../file",
    "../outside/file",
    "./../file",
    "a/../../file",
    "d/../../file",
    "d/e/../../../file",
    "d/../file",
    "/etc/hostname",
    "//etc/hostname",
    "/proc/self/environ",
    "link",
    "link/file",
    "link/e/file",
    "link/fresh",
    "last",
    "last/",
    "dangling",
    "absolute/file",
    "magic/file",
    "d/up/file",
    "d/up/outside/file",
    "d//file",
    "d/./file",
    "file/",
    "d/",
    "d/file/",
    "..\\file",
    "d\\..\\..\\file",
    "\\\\host\\share",
    "C:\\file",
    "..\0",
    "../file\0",
    "file\0/../../file",
    "\0",
    "%2e%2e/file",
    "%2e%2e%2ffile",
    "..%2ffile",
    "%252e%252e/file",
    "..%c0%affile",
    "\u{2024}\u{2024}/file",
    "\u{ff0e}\u{ff0e}/file",
    "\u{2025}/file",
    "..\u{2215}file",
    "..\u{ff0f}file",
    "\u{202e}elif/..",
    "..\u{200b}/file",
    "....//file",
    "..;/file",
    "~/file",
    "~root/file",
    "$HOME/file",
    "`id`",
    "-rf",
    "file:///etc/hostname",
    " ../file",
    ".. /file",
    "\t../file",
    "\r\n../file",
];

#[test]
fn x_8_known_tricks_lead_nowhere() {
    let place = Place::new();
    let long =
        ["x".repeat(NAME_BYTES_MAX + 1), "x".repeat(300), "../".repeat(300), "d/".repeat(300)];
    for name in TRICKS.iter().copied().chain(long.iter().map(String::as_str)) {
        place.attack(name);
        place.assert_untouched(name);
    }
    // The handle is good for what it is for.
    let place = Place::new();
    let mut text = String::new();
    place.root.open("d/e/file").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, OWN);
    assert_eq!(place.root.open("link/file").unwrap_err().kind(), io::ErrorKind::NotADirectory);
    let why = place.root.open_through_links("link/file").unwrap_err().to_string();
    assert!(why.contains("leads out"), "{why}");
}

/// What drawn names are made of.
const PARTS: &[&str] = &[
    "d", "e", "file", "link", "last", "dangling", "absolute", "magic", "up", "fresh", "outside",
    "..", "..", ".", "", "/", "\\", "\0", "%2e", "%2f", "\u{ff0e}", "\u{2215}", "...", " ", "~",
    "x",
];

#[test]
fn x_8_fuzzed_names_lead_nowhere() {
    let mut random = fastrand::Rng::with_seed(asked("IKADA_FUZZ_SEED", 8));
    let mut place = Place::new();
    for number in 1..=asked("IKADA_FUZZED_NAMES", FUZZED_NAMES) {
        let mut name = String::new();
        for part in 0..random.usize(1..=6) {
            if part > 0 && random.u8(..8) > 0 {
                name.push('/');
            }
            match random.u8(..8) {
                0 => name.extend((0..random.usize(1..4)).map(|_| random.char(..))),
                _ => name.push_str(PARTS[random.usize(..PARTS.len())]),
            }
        }
        place.attack(&name);
        place.assert_untouched(&name);
        // Names that are good fill the folder and remove what the tricks need.
        if number % 500 == 0 {
            place = Place::new();
        }
    }
}

/// Ends the other thread, also when the test fails.
struct EndWith<'a>(&'a AtomicBool);

impl Drop for EndWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn x_8_a_folder_that_becomes_a_link_leads_nowhere() {
    let place = Place::new();
    let (one, other) = (place.folder.path().join("root/d"), place.folder.path().join("root/link"));
    let stop = AtomicBool::new(false);
    let stop = &stop;
    let until = Instant::now() + Duration::from_secs(asked("IKADA_SWAP_SECONDS", SWAP_SECONDS));
    let (mut read, mut refused, mut new) = (0_u64, 0_u64, 0_u64);
    std::thread::scope(|scope| {
        // In one step: there is always something of this name.
        let swapper = scope.spawn(move || {
            let mut swaps = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        });
        let ended = EndWith(stop);
        while Instant::now() < until {
            for name in ["d/file", "d/e/file"] {
                for opened in [place.root.open(name), place.root.open_through_links(name)] {
                    let mut text = String::new();
                    match opened.and_then(|mut file| file.read_to_string(&mut text)) {
                        Ok(_) if text == CANARY => panic!("{name} read what lies outside"),
                        Ok(_) => read += 1,
                        Err(_) => refused += 1,
                    }
                }
            }
            for made in ["d/fresh", "d/file"] {
                if let Ok(mut file) = place.root.create_new(made) {
                    new += 1;
                    let _ = file.write_all(OWN.as_bytes());
                }
                let _ = place.root.create(made).map(|mut file| file.write_all(OWN.as_bytes()));
                let _ = place.root.append(made).map(|mut file| file.write_all(b"."));
            }
            let _ = place.root.make_folder("d/made", |_| Ok(()));
            let _ = place.root.rename("d/fresh", "d/renamed");
            let _ = place.root.remove("d/renamed");
            place.assert_untouched("a swapped folder");
        }
        drop(ended);
        let swaps = swapper.join().unwrap();
        println!("{swaps} swaps, {read} opened, {refused} refused, {new} made");
    });
    let was_race = read > 0 && refused > 0 && new > 0;
    assert!(was_race, "the race was none: {read} opened, {refused} refused, {new} made");
}
