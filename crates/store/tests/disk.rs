//! One suite for every `Disk`: the real one and the simulated one must not be told apart by it.

use ikada_store::{Disk, DiskFile, RealDisk, SimDisk};
use std::io::ErrorKind;

fn suite(disk: &impl Disk) {
    names(disk);
    content(disk);
    space(disk);
    replacing(disk);
}

fn names(disk: &impl Disk) {
    assert_eq!(disk.list("absent").unwrap(), Vec::<String>::new());
    disk.make_dir("folder").unwrap();
    disk.make_dir("folder").unwrap();
    for name in ["folder/b", "folder/a", "folder/c"] {
        disk.create(name).unwrap();
        assert!(disk.exists(name).unwrap());
    }
    assert_eq!(disk.list("folder").unwrap(), ["a", "b", "c"]);
    disk.rename("folder/a", "folder/c").unwrap();
    assert_eq!(disk.list("folder").unwrap(), ["b", "c"]);
    disk.remove("folder/b").unwrap();
    disk.sync_dir("folder").unwrap();
    disk.sync_dir("").unwrap();
    assert!(!disk.exists("folder/b").unwrap());
    assert_eq!(disk.open("folder/b").err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(disk.remove("folder/b").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(disk.rename("folder/b", "x").unwrap_err().kind(), ErrorKind::NotFound);
    for bad in ["", "/etc/passwd", "../up", "a/../b", "a//b", "./a"] {
        assert_eq!(disk.create(bad).err().unwrap().kind(), ErrorKind::InvalidInput, "{bad:?}");
    }
}

fn content(disk: &impl Disk) {
    let mut file = disk.create("folder/data").unwrap();
    file.write_at(3, b"hello").unwrap();
    assert_eq!(file.len().unwrap(), 8);
    file.write_at(0, b"abc").unwrap();
    file.sync().unwrap();
    let other = disk.open("folder/data").unwrap();
    let mut bytes = [0; 10];
    assert_eq!(other.read_at(1, &mut bytes).unwrap(), 7);
    assert_eq!(&bytes[..7], b"bchello");
    assert_eq!(other.read_at(100, &mut bytes).unwrap(), 0);
    assert_eq!(disk.read("folder/data").unwrap(), b"abchello");
    let file = disk.create("folder/data").unwrap();
    assert_eq!(file.len().unwrap(), 0, "create empties");
}

fn space(disk: &impl Disk) {
    let mut file = disk.create("folder/space").unwrap();
    file.preallocate(5000).unwrap();
    file.write_at(10, b"x").unwrap();
    file.preallocate(100).unwrap();
    assert_eq!(file.len().unwrap(), 5000);
    assert!(disk.read("folder/space").unwrap().iter().filter(|b| **b != 0).eq([&b'x']));
    file.set_len(11).unwrap();
    file.set_len(20).unwrap();
    file.sync().unwrap();
    assert_eq!(disk.read("folder/space").unwrap()[10..], *b"x\0\0\0\0\0\0\0\0\0");
}

fn replacing(disk: &impl Disk) {
    for text in ["first", "second, longer", "3"] {
        disk.replace("folder/whole", text.as_bytes()).unwrap();
        assert_eq!(disk.read("folder/whole").unwrap(), text.as_bytes());
    }
    assert!(!disk.exists("folder/whole.tmp").unwrap());
}

#[test]
fn the_real_disk_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    suite(&RealDisk::open(folder.path().join("root")).unwrap());
}

#[test]
fn the_simulated_disk_keeps_the_contract() {
    suite(&SimDisk::new());
}

#[test]
fn a_crash_keeps_what_was_synced_and_may_lose_the_rest() {
    let (mut kept, mut lost, mut torn) = (0, 0, 0);
    for seed in 0..300 {
        let disk = SimDisk::new();
        let mut file = disk.create("a").unwrap();
        file.write_at(0, &[1; 2048]).unwrap();
        file.sync().unwrap();
        disk.sync_dir("").unwrap();
        file.write_at(0, &[2; 2048]).unwrap();
        disk.crash(&mut fastrand::Rng::with_seed(seed));
        assert!(file.write_at(0, &[3]).is_err(), "handles die with the crash");
        let bytes = disk.read("a").unwrap();
        assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        match bytes.iter().filter(|byte| **byte == 2).count() {
            0 => lost += 1,
            2048 => kept += 1,
            _ => torn += 1,
        }
    }
    assert!(kept > 50 && lost > 50 && torn > 50, "{kept} {lost} {torn}");
}

#[test]
fn names_are_lost_without_a_folder_sync() {
    let (mut created, mut renamed, mut removed) = (0, 0, 0);
    for seed in 0..200 {
        let disk = SimDisk::new();
        disk.create("old").unwrap();
        disk.create("gone").unwrap();
        disk.sync_dir("").unwrap();
        disk.create("new").unwrap().sync().unwrap();
        disk.rename("old", "moved").unwrap();
        disk.remove("gone").unwrap();
        disk.crash(&mut fastrand::Rng::with_seed(seed));
        created += usize::from(disk.exists("new").unwrap());
        renamed += usize::from(disk.exists("moved").unwrap());
        removed += usize::from(!disk.exists("gone").unwrap());
        assert!(disk.exists("moved").unwrap() != disk.exists("old").unwrap());
    }
    for count in [created, renamed, removed] {
        assert!((50..150).contains(&count), "{created} {renamed} {removed}");
    }
}

#[test]
fn planned_faults_strike_once() {
    let disk = SimDisk::new();
    let mut file = disk.create("a").unwrap();
    disk.fail_next_sync();
    assert!(file.sync().is_err());
    file.sync().unwrap();
    disk.misdirect_next_write(100);
    file.write_at(0, b"stray").unwrap();
    file.write_at(0, b"home").unwrap();
    assert_eq!(&disk.read("a").unwrap()[100..], b"stray");
    disk.set_capacity(Some(110));
    assert_eq!(file.write_at(106, b"too long").unwrap_err().kind(), ErrorKind::StorageFull);
    disk.stop_after(1);
    file.write_at(0, b"last").unwrap();
    assert!(file.write_at(0, b"never").is_err());
    assert_eq!(disk.files(), [("a".to_owned(), 105)]);
}

#[test]
fn a_folder_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let claim = RealDisk::open(folder.path()).unwrap().lock().unwrap();
    let second = RealDisk::open(folder.path()).unwrap();
    assert_eq!(second.lock().unwrap_err().kind(), ErrorKind::ResourceBusy);
    drop(claim);
    second.lock().unwrap();
}

/// Two uploads whose pieces share a folder must not trip over each other.
#[test]
fn a_folder_made_by_many_at_once_is_there_for_all() {
    let home = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(home.path()).unwrap();
    for round in 0..50 {
        let folder = format!("a/{round}");
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| disk.make_dir(&folder))).collect();
            for maker in makers {
                maker.join().unwrap().unwrap();
            }
        });
    }
}
