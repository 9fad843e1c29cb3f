//! Pieces from a node's disk. That a node tells which they are, and that counts come out right, is a process test.

use super::*;
use ikada_api::v1::Number;

const WHOLE: u64 = 10;

/// A data folder with some pieces, and what a node says of them.
fn kept(folder: &Path, pieces: &[&[u8]]) -> ObjectPieces {
    let keep = |bytes: &&[u8]| {
        let digest = blake3::hash(bytes).to_hex().to_string();
        let folder = folder.join(PIECES).join(&digest[..2]);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(&digest), bytes).unwrap();
        digest
    };
    let all = pieces.concat();
    ObjectPieces {
        version: Number(1),
        size: all.len() as u64,
        digest: blake3::hash(&all).to_hex().to_string(),
        piece_bytes: WHOLE,
        pieces: pieces.iter().map(keep).collect(),
    }
}

fn bytes_of(folder: &Path, pieces: &ObjectPieces, place: u64) -> NearBytes {
    let client = Client::new(["http://127.0.0.1:1"]).unwrap();
    let objects = Objects::new(client, Some(folder));
    let near = objects.near.clone().expect("it has one");
    let name = ("bucket".to_owned(), "key".to_owned());
    NearBytes { objects, near, name, pieces: pieces.clone(), place }
}

/// An object of these pieces in a node's data folder, from its beginning.
pub(crate) fn near_on_disk(folder: &Path, pieces: &[&[u8]]) -> NearBytes {
    bytes_of(folder, &kept(folder, pieces), 0)
}

/// All that comes until the end, or until a piece is missing.
async fn read(mut bytes: NearBytes) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    loop {
        match bytes.next().await {
            Ok(Some(some)) => all.extend_from_slice(&some),
            Ok(None) => return (all, true),
            Err(Missing) => return (all, false),
        }
    }
}

#[tokio::test]
async fn b4_35_pieces_are_read_in_order_from_any_place() {
    let folder = tempfile::tempdir().unwrap();
    let pieces = kept(folder.path(), &[b"0123456789", b"abcdefghij", b"xyz"]);
    let all = b"0123456789abcdefghijxyz";
    for place in 0..=all.len() {
        let (read, whole) = read(bytes_of(folder.path(), &pieces, place as u64)).await;
        assert!(whole && read == all[place..], "{place}");
    }
}

// A1: what has another digest is never handed over.
#[tokio::test]
async fn b4_35_what_is_missing_damaged_or_no_piece_is_left_to_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let pieces = kept(folder.path(), &[b"0123456789", b"abcdefghij"]);
    let file = |digest: &str| folder.path().join(PIECES).join(&digest[..2]).join(digest);
    let second = file(&pieces.pieces[1]);
    for damaged in [&b"abcdefghiJ"[..], b"abcdefghi", b"abcdefghijk", b""] {
        std::fs::write(&second, damaged).unwrap();
        let (read, whole) = read(bytes_of(folder.path(), &pieces, 0)).await;
        assert!(!whole && read == b"0123456789", "{damaged:?}");
    }
    std::fs::remove_file(&second).unwrap();
    assert!(!read(bytes_of(folder.path(), &pieces, 12)).await.1, "it is gone");
    // A link is not followed, whatever it leads to.
    std::fs::write(folder.path().join("aside"), "abcdefghij").unwrap();
    std::os::unix::fs::symlink(folder.path().join("aside"), &second).unwrap();
    assert!(!read(bytes_of(folder.path(), &pieces, 10)).await.1);
    let mut odd = pieces.clone();
    odd.pieces[0] = "../../../../etc/hostname".to_owned();
    assert!(!read(bytes_of(folder.path(), &odd, 0)).await.1);
    assert!(!read(bytes_of(&folder.path().join("none"), &pieces, 0)).await.1);
}

#[test]
fn b4_35_only_pieces_of_what_is_wanted_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let pieces = kept(folder.path(), &[b"0123456789", b"abc"]);
    let wanted = |if_match: Option<&str>, from| GetOptions {
        if_match: if_match.map(str::to_owned),
        from,
        ..GetOptions::default()
    };
    let digest = pieces.digest.clone();
    assert!(suits(&pieces, &wanted(None, 0)) && suits(&pieces, &wanted(Some(&digest), 13)));
    assert!(!suits(&pieces, &wanted(Some("another"), 0)) && !suits(&pieces, &wanted(None, 14)));
    for (size, piece_bytes) in [(13, 0), (13, 20), (30, 10), (13, PIECE_BYTES_MAX + 1)] {
        assert!(!suits(&ObjectPieces { size, piece_bytes, ..pieces.clone() }, &wanted(None, 0)));
    }
}

// In any place and of any length, and what cannot be had is told to be left.
#[test]
fn b4_35_pieces_are_handed_over_as_far_as_they_are_wanted_and_there() {
    let folder = tempfile::tempdir().unwrap();
    let pieces = kept(folder.path(), &[b"0123456789", b"abcdefghij", b"xyz"]);
    let all = b"0123456789abcdefghijxyz";
    let handed = |place: usize, most: u64| {
        let (mut near, mut seen) = (bytes_of(folder.path(), &pieces, place as u64), Vec::new());
        let left = near.hand_over(most, |bytes| {
            seen.extend_from_slice(bytes);
            true
        });
        assert_eq!(near.place, (place + seen.len()) as u64);
        (seen, left)
    };
    for place in 0..=all.len() {
        for most in 0..=all.len() + 3 {
            let end = (place + most).min(all.len());
            assert_eq!(handed(place, most as u64), (all[place..end].to_vec(), 0), "{place} {most}");
        }
    }
    let mut once = bytes_of(folder.path(), &pieces, 4);
    assert_eq!(once.hand_over(u64::MAX, |_| false), 13, "whoever has enough gets no more");
    let second = &pieces.pieces[1];
    std::fs::write(folder.path().join(PIECES).join(&second[..2]).join(second), "abcdefghiJ")
        .unwrap();
    assert_eq!(
        handed(2, u64::MAX),
        (b"23456789".to_vec(), 13),
        "A1: damaged bytes are not handed over"
    );
    assert_eq!(handed(2, 9), (b"23456789".to_vec(), 1));
    assert_eq!(handed(21, u64::MAX), (b"yz".to_vec(), 0));
}
