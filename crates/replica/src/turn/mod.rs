//! What a turn does: take frames in, let time pass, propose what was gathered, carry out what consensus wants, apply.

mod apply;
mod frame;
mod poll;
mod propose;
mod roles;
mod tick;
