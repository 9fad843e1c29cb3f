//! Tasks: `scheduled -> ready -> claimed -> done | dead | cancelled`, and back from claimed when an
//! attempt ends and another is left. One file per verb holds its struct, rule, refusals and tests.
//! Every change of state goes through `transition.rs`, which keeps records, indexes, counters, hash
//! and effects together.

mod cancel;
mod checkpoint;
mod claim;
mod complete;
mod deadline;
mod drop;
mod enqueue;
mod expire;
mod explain;
mod fail;
mod near;
mod options;
mod progress;
mod promote;
mod publish;
mod record;
mod retain;
mod retry;
mod slab;
mod then;
mod transition;
mod unclaim;
mod view;
mod work;

pub use cancel::Cancel;
pub use checkpoint::Checkpoint;
pub use claim::Claim;
pub(crate) use complete::Brought;
pub use complete::Complete;
pub use drop::DropTask;
pub(crate) use enqueue::BodyHashes;
pub use enqueue::Enqueue;
pub use expire::{Expire, ExpireCause};
pub use explain::{AHEAD_MAX, Explanation, WaitReason};
pub use fail::Fail;
pub use options::TaskOptions;
pub(crate) use options::{Birth, Extras};
pub use progress::Progress;
pub use publish::Output;
pub(crate) use record::{Attempt, History, Task};
pub use record::{AttemptOutcome, DeadReason, TaskState};
pub use retry::Retry;
pub(crate) use slab::Slab;
pub(crate) use then::rename_then;
pub use then::{decode_then, encode_then};
pub use unclaim::Unclaim;
pub use view::{AttemptView, ClaimView, TaskFilter, TaskList, TaskView};
pub use work::{Input, InputSource, JobPart, ProgramKind, ProgramRef, SharedWork, Work};
