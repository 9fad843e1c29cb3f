//! Every bound of the server process, with its reason.

/// Largest frame read from a peer: an entry (1 MiB and one order of up to 1 MiB) or a claim's answer (8 MiB), with room.
pub const FRAME_BYTES_MAX: usize = 64 << 20;
/// Frames waiting for one peer; beyond it frames are dropped, which consensus repairs by asking again.
pub const PEER_QUEUE_FRAMES_MAX: usize = 4_096;
/// Bytes waiting for one peer.
pub const PEER_QUEUE_BYTES_MAX: usize = 128 << 20;
/// Bytes of received frames that wait for the driver, over all peers: readers pause beyond it.
pub const INBOUND_BYTES_MAX: usize = 256 << 20;
/// Inputs stepped in one turn before the outputs go out, so that a flood cannot starve heartbeats.
pub const INPUTS_PER_TURN_MAX: usize = 8_192;
/// A handshake must be done in this time.
pub const HANDSHAKE_MS: u64 = 5_000;
/// First wait before dialling a peer again; doubles with full jitter (CH-12). Short: a dying process resets a connection
/// or two before it refuses, and only the refusal says that it is gone.
pub const REDIAL_MS_MIN: u64 = 10;
/// Longest wait before dialling a peer again. Short, since a returning peer should be found at once.
pub const REDIAL_MS_MAX: u64 = 1_000;
/// Most connections from peers at once: members, their reconnects, and founding questions.
pub const PEER_CONNECTIONS_MAX: usize = 256;
/// Longest wait of a node without a cluster before it asks around again; waits double up to it with full jitter (CH-12).
pub const FOUNDING_ASK_MS: u64 = 500;
/// Longest wait of a node that waits to be added before it asks again whether it is.
pub const JOIN_ASK_MS: u64 = 1_000;
/// Addresses of one DNS name that are asked: a name may stand for all nodes.
pub const SEED_ADDRESSES_MAX: usize = 16;
/// Snapshots kept per shard: the newest, and one in case it turns out damaged.
pub const SNAPSHOTS_KEPT: usize = 2;
/// Further names of one node: with its own addresses they must fit into one certificate.
pub const HOSTS_MAX: usize = 6;
/// Most shards of one node.
pub const SHARDS_MAX: u16 = ikada_replica::state::limits::SHARDS_MAX;
/// Pieces of one upload that are on their way to disks at one time: with pieces of 1 MiB, what an upload holds in memory.
pub const UPLOAD_PIECES_MAX: usize = 4;
/// Disk jobs on pieces of objects at one time: enough to keep a disk busy, few enough to let the log's syncs through.
pub const BLOB_DISK_JOBS_MAX: usize = 8;
/// Connections to one peer for pieces of objects; further questions wait.
pub const BLOB_LINKS_MAX: usize = 8;
/// A question about one piece must be answered in this time: 1 MiB over a slow line and a slow disk.
pub const BLOB_CALL_MS: u64 = 15_000;
/// So long after a question that it did not answer a peer is the last to be asked for a piece: else each piece would wait
/// for it anew.
pub const PEER_SILENT_MS: u64 = 30_000;
/// Pieces asked for in one question whether a node has them: it reads all of them, and must be done in that time also
/// when its disk is slow and busy.
pub const CONFIRM_PIECES_MAX: usize = 64;
/// Bytes of pieces kept in memory.
pub const BLOB_CACHE_BYTES: u64 = 64 << 20;
/// An object of more pieces passes memory by: it would drive out many small ones to keep a part of a large one.
pub const CACHED_PIECES_MAX: usize = 8;
/// Room on the disk that objects leave for the log and snapshots (F-12).
pub const DISK_RESERVE_BYTES: u64 = 64 << 20;
/// How often a node looks for pieces that it lacks. Cheap while nothing changed.
pub const REPAIR_EVERY_MS: u64 = 5_000;
/// How often it looks at all of them, whether or not anything changed: a file may vanish without a word.
pub const REPAIR_ALL_EVERY_MS: u64 = 10 * 60 * 1000;
/// How often every piece is read and checked.
pub const SCRUB_EVERY_MS: u64 = 6 * 60 * 60 * 1000;
/// How often pieces without references are removed; they have stayed for the grace time before.
pub const COLLECT_EVERY_MS: u64 = 10 * 60 * 1000;
/// Most voters: beyond it every write waits for too many disks.
pub const VOTERS_MAX: u16 = 7;
