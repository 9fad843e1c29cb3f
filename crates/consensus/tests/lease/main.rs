//! The lease protocol against a simulated database: one holder at a time, epochs that fence, nothing written lost (LS, P1 to P4).

mod database;
mod scenarios;
mod set_back;
mod storm;
mod turns;
mod world;
