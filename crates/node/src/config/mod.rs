//! Settings of a server: read once, checked together, turned into one resolved value.
//!
//! Promise: flags win over environment, environment over the file; an unknown key, a bad value or a missing part is
//! refused, and all problems are reported together before anything on disk is touched.

mod autoscale;
mod limits;
mod raw;
mod resolve;

pub use autoscale::{ScaleConfig, ScaleDriver};
pub use limits::*;
pub use raw::RawConfig;
pub use resolve::{Config, ConfigProblems, resolve};
