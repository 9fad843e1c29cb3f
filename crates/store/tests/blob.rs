//! Blobs: durable once stored, checked when read, set aside when damaged, kept while pinned (A1, A3, F-37).

use ikada_store::blob::{Candidates, Removable, digest};
use ikada_store::{BLOB_BYTES_MAX, BlobError, Blobs, Disk, RealDisk, SimDisk};

const GRACE_MS: u64 = 1_000;

fn open(disk: &SimDisk) -> Blobs<SimDisk> {
    Blobs::open(disk.clone(), GRACE_MS, 0).unwrap()
}

fn hex(id: &[u8; 32]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file_of(id: &[u8; 32]) -> String {
    format!("blob/{:02x}/{}", id[0], hex(id))
}

/// All steps of a removal, with two looks that find one blob free.
fn remove_round(candidates: Vec<Candidates>, free: &[u8; 32]) -> Removable {
    let all = candidates.into_iter().next().unwrap();
    all.looked(&[*free]).committed().looked(&[*free])
}

fn suite<D: Disk>(disk: D) {
    let blobs = Blobs::open(disk.clone(), GRACE_MS, 0).unwrap();
    let pieces: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n; usize::from(n) * 50]).collect();
    for piece in &pieces {
        assert!(blobs.put(&digest(piece), piece, 10).unwrap());
        assert!(!blobs.put(&digest(piece), piece, 10).unwrap(), "equal bytes are one blob");
    }
    let blobs = Blobs::open(disk, GRACE_MS, 5_000).unwrap();
    for piece in &pieces {
        assert_eq!(blobs.get(&digest(piece)).unwrap().as_ref(), Some(piece));
    }
    let listed: Vec<_> = (0..=255).flat_map(|first| blobs.list(first).unwrap()).collect();
    assert_eq!(listed.len(), pieces.len());
    assert!(listed.is_sorted());
    let gone = digest(&pieces[3]);
    let unpinned = |now_ms| blobs.candidates(gone[0], 100, now_ms).unwrap();
    assert!(unpinned(5_999).is_empty(), "all are pinned after an open");
    let early = remove_round(unpinned(6_000), &gone);
    assert!(blobs.confirm(&gone, 6_000).unwrap());
    assert_eq!(blobs.remove_all(&early, 6_999).unwrap(), 0, "whoever was told so may rely on it");
    let removable = remove_round(unpinned(7_000), &gone);
    assert_eq!(blobs.remove_all(&removable, 7_000).unwrap(), 1);
    assert_eq!(blobs.remove_all(&removable, 7_000).unwrap(), 0);
    assert_eq!(blobs.get(&gone).unwrap(), None);
    assert!(!blobs.confirm(&gone, 7_000).unwrap());
}

#[test]
fn blobs_on_the_simulated_disk() {
    suite(SimDisk::new());
}

#[test]
fn blobs_on_a_real_disk() {
    let folder = tempfile::tempdir().unwrap();
    suite(RealDisk::open(folder.path()).unwrap());
}

#[test]
fn wrong_and_oversized_bytes_are_refused_and_leave_nothing() {
    let disk = SimDisk::new();
    let blobs = open(&disk);
    let wrong = blobs.put(&[7; 32], b"other", 0).unwrap_err();
    assert!(matches!(wrong, BlobError::WrongDigest { .. }), "{wrong}");
    let long = vec![0; BLOB_BYTES_MAX + 1];
    let wrong = blobs.put(&digest(&long), &long, 0).unwrap_err();
    assert!(matches!(wrong, BlobError::TooLarge { .. }), "{wrong}");
    assert!(disk.files().is_empty());
}

// A1, F-15, F-37: every flipped bit is found before the bytes are used.
#[test]
fn a_flipped_bit_is_found_and_the_file_set_aside() {
    let bytes: Vec<u8> = (0..100u8).collect();
    let id = digest(&bytes);
    for position in 0..100 {
        let disk = SimDisk::new();
        let blobs = open(&disk);
        blobs.put(&id, &bytes, 0).unwrap();
        disk.flip_bit(&file_of(&id), position, (position % 8) as u8).unwrap();
        assert_eq!(blobs.get(&id).unwrap(), None, "byte {position}");
        assert_eq!(blobs.damaged(), 1);
        assert!(disk.exists(&format!("quarantine/blob-{}", hex(&id))).unwrap());
        assert!(blobs.put(&id, &bytes, 0).unwrap(), "a good copy takes its place");
        assert_eq!(blobs.get(&id).unwrap().as_ref(), Some(&bytes));
    }
}

// F-15, F-37: a bad sector is damage like any other; a fault that passes costs nothing.
#[test]
fn f_37_a_file_that_cannot_be_read_is_set_aside_and_replaced() {
    let bytes = vec![3; 500];
    let id = digest(&bytes);
    let disk = SimDisk::new();
    let blobs = open(&disk);
    blobs.put(&id, &bytes, 0).unwrap();
    disk.fail_reads(&file_of(&id), 1).unwrap();
    assert_eq!(blobs.get(&id).unwrap().as_ref(), Some(&bytes));
    assert_eq!(blobs.damaged(), 0);
    disk.fail_reads(&file_of(&id), u32::MAX).unwrap();
    assert!(!blobs.confirm(&id, 0).unwrap(), "nobody may rely on it");
    assert_eq!(blobs.damaged(), 1);
    assert!(!blobs.exists(&id).unwrap(), "repair sees that it is missing");
    assert!(disk.exists(&format!("quarantine/blob-{}", hex(&id))).unwrap());
    assert!(blobs.put(&id, &bytes, 0).unwrap());
    assert_eq!(blobs.get(&id).unwrap().as_ref(), Some(&bytes));
}

// F-37: a crash at any step leaves the blob whole or absent, and whole if it was reported as stored.
#[test]
fn a_crash_at_any_step_never_leaves_half_a_blob() {
    let bytes = vec![5; 3_000];
    let id = digest(&bytes);
    let mut stored_once = false;
    for steps in 0..40 {
        for seed in 0..20 {
            let disk = SimDisk::new();
            let blobs = open(&disk);
            disk.stop_after(steps);
            let stored = blobs.put(&id, &bytes, 0).is_ok();
            disk.crash(&mut fastrand::Rng::with_seed(seed));
            let blobs = open(&disk);
            let found = blobs.get(&id).unwrap();
            assert_eq!(blobs.damaged(), 0, "steps {steps} seed {seed}");
            assert!(found.is_none() || found.as_ref() == Some(&bytes));
            assert!(!stored || found.is_some(), "steps {steps} seed {seed}");
            let left = disk.files().iter().any(|(name, _)| name.ends_with(".tmp"));
            assert!(!left, "attempts are swept away");
            stored_once |= stored;
        }
    }
    assert!(stored_once);
}

// F-12: a full disk refuses, keeps what it has, and takes more when there is room.
#[test]
fn a_full_disk_says_so_and_recovers() {
    let disk = SimDisk::new();
    let blobs = open(&disk);
    let (first, second) = (vec![1; 1_000], vec![2; 1_000]);
    blobs.put(&digest(&first), &first, 0).unwrap();
    disk.set_capacity(Some(1_500));
    assert!(blobs.put(&digest(&second), &second, 0).unwrap_err().is_disk_full());
    assert_eq!(blobs.get(&digest(&first)).unwrap().as_ref(), Some(&first));
    assert_eq!(blobs.get(&digest(&second)).unwrap(), None);
    disk.set_capacity(None);
    assert!(blobs.put(&digest(&second), &second, 0).unwrap());
}
