//! Snapshots: committed or not there, damaged ones set aside, crashes at every step.

mod world;

use ikada_store::{Disk, Manifest, SimDisk, SnapshotError, Snapshots};
use world::identity;

fn chunks(index: u64) -> Vec<Vec<u8>> {
    (0..4).map(|chunk| vec![(index + chunk) as u8; 300 + chunk as usize]).collect()
}

fn save(snapshots: &Snapshots<SimDisk>, shard: u16, index: u64) -> Result<Manifest, SnapshotError> {
    let mut writer = snapshots.begin(shard, index, 7)?;
    for chunk in chunks(index) {
        writer.chunk(&chunk)?;
    }
    writer.finish(b"conf", index * 3)
}

fn check(snapshots: &Snapshots<SimDisk>, shard: u16) -> Option<u64> {
    let manifest = snapshots.load(shard).unwrap()?;
    assert_eq!((manifest.conf.as_slice(), manifest.state_hash), (&b"conf"[..], manifest.index * 3));
    for (number, chunk) in chunks(manifest.index).iter().enumerate() {
        assert_eq!(&snapshots.read_chunk(&manifest, number).unwrap(), chunk);
    }
    Some(manifest.index)
}

#[test]
fn the_newest_is_loaded_and_old_ones_go() {
    let disk = SimDisk::new();
    let snapshots = Snapshots::open(disk.clone(), &identity()).unwrap();
    assert!(snapshots.load(0).unwrap().is_none());
    for index in [5, 90, 1000] {
        save(&snapshots, 0, index).unwrap();
    }
    save(&snapshots, 1, 33).unwrap();
    assert_eq!(check(&snapshots, 0), Some(1000));
    assert_eq!(snapshots.shards().unwrap(), [0, 1]);
    snapshots.remove_older(0, 2).unwrap();
    assert_eq!(disk.list("snap").unwrap().len(), 6);
    snapshots.begin(0, 2000, 7).unwrap().abort().unwrap();
    assert_eq!((check(&snapshots, 0), check(&snapshots, 1)), (Some(1000), Some(33)));
}

#[test]
fn an_older_snapshot_can_be_installed_over_one_that_never_was() {
    let disk = SimDisk::new();
    let snapshots = Snapshots::open(disk.clone(), &identity()).unwrap();
    for index in [90, 103, 101] {
        save(&snapshots, 0, index).unwrap();
    }
    let manifest = snapshots.load_at(0, 101, 7).unwrap().unwrap();
    assert_eq!(manifest.index, 101);
    assert!(snapshots.load_at(0, 101, 8).unwrap().is_none());
    snapshots.remove_newer(0, 101, 7).unwrap();
    assert_eq!(check(&snapshots, 0), Some(101));
    assert_eq!(disk.list("snap").unwrap().len(), 4);
}

#[test]
fn a_crash_at_every_step_leaves_the_old_or_the_new() {
    // F-27
    for steps in 0..40 {
        for seed in 0..20 {
            let disk = SimDisk::new();
            let snapshots = Snapshots::open(disk.clone(), &identity()).unwrap();
            save(&snapshots, 0, 10).unwrap();
            disk.stop_after(steps);
            let saved = save(&snapshots, 0, 20).is_ok();
            let removed = saved && snapshots.remove_older(0, 1).is_ok();
            disk.crash(&mut fastrand::Rng::with_seed(seed));
            let snapshots = Snapshots::open(disk.clone(), &identity()).unwrap();
            let found = check(&snapshots, 0);
            assert!(
                found == Some(20) || (!saved && found == Some(10)),
                "{steps} {saved} {found:?}"
            );
            assert!(!removed || found == Some(20));
            assert!(snapshots.quarantined().is_empty(), "a crash is not damage");
            assert!(disk.list("snap").unwrap().iter().all(|name| !name.ends_with(".tmp")));
        }
    }
}

#[test]
fn a_damaged_one_is_set_aside_and_the_older_one_used() {
    // F-15
    let disk = SimDisk::new();
    let snapshots = Snapshots::open(disk.clone(), &identity()).unwrap();
    save(&snapshots, 0, 10).unwrap();
    save(&snapshots, 0, 20).unwrap();
    for (name, length) in disk.files().into_iter().filter(|file| file.0.contains("0020-")) {
        for offset in (0..length).step_by(7) {
            let fork = disk.fork();
            fork.flip_bit(&name, offset, (offset % 8) as u8).unwrap();
            let snapshots = Snapshots::open(fork.clone(), &identity()).unwrap();
            assert_eq!(check(&snapshots, 0), Some(10), "{name} byte {offset}");
            assert_eq!(snapshots.quarantined().len(), 2, "kept for the operator");
            assert_eq!(fork.list("quarantine").unwrap().len(), 2);
        }
    }
}

#[test]
fn a_received_snapshot_is_checked_chunk_by_chunk() {
    let source = Snapshots::open(SimDisk::new(), &identity()).unwrap();
    let manifest = save(&source, 3, 44).unwrap();
    let manifest = Manifest::decode(&manifest.encode()).unwrap();
    let target = Snapshots::open(SimDisk::new(), &identity()).unwrap();
    let mut writer = target.receive(&manifest).unwrap();
    let parts = chunks(44);
    writer.chunk(&parts[0]).unwrap();
    let wrong = writer.chunk(&parts[2]).unwrap_err();
    assert!(matches!(wrong, SnapshotError::Chunk { chunk: 1, .. }), "{wrong}");
    assert_eq!(writer.chunk_count(), 1);
    for part in &parts[1..] {
        writer.chunk(part).unwrap();
    }
    assert!(writer.chunk(b"more").is_err());
    assert_eq!(writer.finish_received().unwrap(), manifest);
    assert_eq!(check(&target, 3), Some(44));
    let short = target.receive(&manifest).unwrap().finish_received();
    assert!(matches!(short, Err(SnapshotError::Unexpected { .. })));
    let stranger = Manifest { cluster: 1, ..manifest };
    assert!(matches!(target.receive(&stranger), Err(SnapshotError::Foreign { .. })));
}

#[test]
fn a_full_disk_fails_one_snapshot_only() {
    // F-12
    let disk = SimDisk::new();
    let snapshots = Snapshots::open(disk.clone(), &identity()).unwrap();
    save(&snapshots, 0, 10).unwrap();
    disk.set_capacity(Some(2_200));
    assert!(save(&snapshots, 0, 20).unwrap_err().is_disk_full());
    assert_eq!(check(&snapshots, 0), Some(10));
    disk.set_capacity(None);
    save(&snapshots, 0, 20).unwrap();
    assert_eq!(check(&snapshots, 0), Some(20));
}

proptest::proptest! {
    #[test]
    fn any_bytes_as_a_manifest_never_panic(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)
    ) {
        proptest::prop_assert!(Manifest::decode(&bytes).is_err());
    }
}

// F-16
#[test]
fn a_folder_of_another_cluster_is_refused_untouched() {
    let disk = SimDisk::new();
    save(&Snapshots::open(disk.clone(), &identity()).unwrap(), 0, 10).unwrap();
    drop(disk.create("snap/attempt.tmp").unwrap());
    let names = disk.list("snap").unwrap();
    let stranger = ikada_store::Identity { cluster: 1, ..identity() };
    let refused = Snapshots::open(disk.clone(), &stranger);
    assert!(matches!(refused, Err(SnapshotError::Foreign { .. })));
    assert_eq!(disk.list("snap").unwrap(), names);
}
