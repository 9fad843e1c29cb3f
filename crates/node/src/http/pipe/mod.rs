//! The pipe: many calls at once over one upgraded connection (see `ikada_api::pipe`).
//!
//! Promise: a call means the same as its route, passes the same bounds and gets the same answer; a caller that goes away
//! takes its open calls with it (a claim under way is given back). A frame that cannot be read ends the pipe.
//!
//! Leaves out: order between calls; whoever needs one waits for the answer.

mod call;
mod open;
mod outlet;
mod serve;
mod writes;

pub(super) use open::{accept, is_wanted};
