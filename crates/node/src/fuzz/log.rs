//! A log with one file of a fuzzer's making among files that are whole.
//!
//! Checksums keep almost everything that a fuzzer makes out, and with it the code behind them. So a file may ask to be
//! sealed first: the checksums in it are made right, as a defect of ours might, and its content is read.

use std::sync::OnceLock;

use bytes::Bytes;
use ikada_store::{Disk, DiskFile, Identity, Log, LogOptions, Record, SimDisk};

/// First byte of an input: the file in its lower bits, and whether to seal it.
pub(super) const SEALED: u8 = 0x80;
/// Files of [`whole`], by the lower bits of the first byte.
pub(super) const FILES: [&str; 6] = [
    "wal/00000000000000000001.log",
    "wal/00000000000000000002.log",
    "votes.0",
    "votes.1",
    "votes.mark",
    "identity",
];
/// Segments are small, so that there are two.
const OPTIONS: LogOptions = LogOptions { segment_bytes: 2 << 10, rewrite_bytes: 1 << 10 };
/// Heads of segments and of the frames in them.
const HEAD_BYTES: usize = 64;
/// What a frame has at its ninth byte.
const MAGIC: [u8; 2] = 0xD15C_u16.to_le_bytes();

/// Replaces one file of a whole log and opens it. What was recovered can be opened again.
pub fn log(bytes: &[u8]) {
    let Some((form, content)) = bytes.split_first() else { return };
    let place = usize::from(form & !SEALED) % FILES.len();
    let mut content = content.to_vec();
    if form & SEALED != 0 {
        seal(place, &mut content);
    }
    let disk = SimDisk::new();
    for (name, whole) in whole() {
        let bytes = if *name == FILES[place] { &content } else { whole };
        put(&disk, name, bytes);
    }
    let _ = Identity::load(&disk);
    let Ok((log, recovery)) = Log::open(disk.clone(), &identity(), OPTIONS) else { return };
    for shard in recovery.shards.values() {
        assert!(shard.damaged || shard.floor <= shard.last_index(), "{shard:?}");
    }
    drop(log);
    let again = Log::open(disk, &identity(), OPTIONS);
    let again = again.map(|(_, again)| again.shards);
    assert_eq!(again.ok().as_ref(), Some(&recovery.shards), "a recovered log is read again");
}

/// Whose log it is.
fn identity() -> Identity {
    Identity { cluster: 0xC1, node: 3, incarnation: 77, name: "three".to_owned() }
}

/// A log as the product writes it: two shards, votes, a replaced tail, a snapshot's beginning.
pub(super) fn whole() -> &'static [(&'static str, Vec<u8>)] {
    static WHOLE: OnceLock<Vec<(&str, Vec<u8>)>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let disk = SimDisk::new();
        write(&disk).expect("the log is written");
        let read = |name: &'static str| (name, disk.read(name).expect("the file is there"));
        FILES.into_iter().map(read).collect()
    })
}

fn write(disk: &SimDisk) -> Result<(), Box<dyn std::error::Error>> {
    identity().store(disk)?;
    let (mut log, _) = Log::open(disk.clone(), &identity(), OPTIONS)?;
    let hard = |shard, term, vote, commit| Record::Hard { shard, term, vote, commit };
    let entry = |shard, term, index, length: usize| Record::Entry {
        shard,
        term,
        index,
        kind: 1,
        data: Bytes::from(vec![b'a'; length]),
        context: Bytes::from_static(b"conf"),
    };
    let turns = [
        vec![hard(0, 1, 3, 0), entry(0, 1, 1, 20), entry(0, 1, 2, 0), hard(1, 2, 1, 0)],
        vec![entry(1, 2, 1, 300), hard(0, 1, 3, 2), entry(0, 1, 3, 9)],
        vec![hard(0, 4, 2, 2), entry(0, 4, 3, 500), entry(0, 4, 4, 70)],
        vec![Record::Start { shard: 0, index: 2, term: 1 }, entry(1, 2, 2, 700)],
        vec![entry(0, 4, 5, 33), hard(1, 2, 1, 2)],
    ];
    for turn in turns {
        log.append(&turn)?;
        log.sync()?;
    }
    Ok(())
}

fn put(disk: &SimDisk, name: &str, bytes: &[u8]) {
    let put = || -> std::io::Result<()> {
        let mut file = disk.create(name)?;
        file.write_at(0, bytes)?;
        file.sync()?;
        disk.sync_dir(name.rsplit_once('/').map_or("", |(folder, _)| folder))
    };
    put().expect("a simulated disk takes everything");
}

/// Makes the checksums of a file right.
fn seal(place: usize, content: &mut [u8]) {
    match place {
        0 | 1 => seal_segment(place as u64 + 1, content),
        _ => {
            // The last four bytes of all others.
            let Some(body) = content.len().checked_sub(4) else { return };
            let checksum = crc32c::crc32c(&content[..body]);
            content[body..].copy_from_slice(&checksum.to_le_bytes());
        }
    }
}

fn seal_segment(number: u64, content: &mut [u8]) {
    if content.len() < HEAD_BYTES {
        return;
    }
    let checksum = crc32c::crc32c(&content[..HEAD_BYTES - 8]);
    content[HEAD_BYTES - 8..HEAD_BYTES - 4].copy_from_slice(&checksum.to_le_bytes());
    let owner = identity();
    let mut at = HEAD_BYTES;
    while let Some(head) = content.get(at..at + HEAD_BYTES) {
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if head[8..10] != MAGIC || length > content.len() {
            break;
        }
        let end = at + HEAD_BYTES + length.next_multiple_of(8);
        if end > content.len() {
            break;
        }
        let numbers = [owner.node, owner.incarnation, number, at as u64];
        let place = numbers
            .iter()
            .fold(0, |checksum, number| crc32c::crc32c_append(checksum, &number.to_le_bytes()));
        let checksum = crc32c::crc32c_append(place, &content[at + 4..end]);
        content[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealing_gives_the_checksums_that_the_product_gives() {
        for (place, (name, bytes)) in whole().iter().enumerate() {
            let mut sealed = bytes.clone();
            seal(place, &mut sealed);
            assert!(sealed == *bytes, "{name}");
        }
    }
}
