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
/// How often a node without a cluster asks around.
pub const FOUNDING_ASK_MS: u64 = 200;
/// How often a node that waits to be added asks whether it is.
pub const JOIN_ASK_MS: u64 = 500;
/// Snapshots kept per shard: the newest, and one in case it turns out damaged.
pub const SNAPSHOTS_KEPT: usize = 2;
/// Most shards of one node.
pub const SHARDS_MAX: u16 = 256;
/// Most voters: beyond it every write waits for too many disks.
pub const VOTERS_MAX: u16 = 7;
