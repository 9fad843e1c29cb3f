//! Programs behind the walls of the worker's sandbox, in real processes.

mod bench;
mod commands;
mod hostile_commands;
mod hostile_modules;
mod modules;
mod plain_commands;
mod report;
