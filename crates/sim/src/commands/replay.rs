//! `replay`: one seed again, line by line, with filters and the state of all nodes on request.

use std::io::{BufRead, Write};

use anyhow::{Context, Result};
use ikada_state::ShardId;

use super::campaign;
use crate::args::Replay;
use crate::check::{Verdict, violation};
use crate::plan::Plan;
use crate::world::World;
use crate::world::machine::Machine;

/// Ends a run that somebody stepped through and left.
const LEFT: &str = "left";
/// Lines shown before a violation.
const LAST_LINES: usize = 60;

/// Does the command.
pub fn perform(args: &Replay) -> Result<bool> {
    if args.plan {
        println!("{:#?}", plan_of(args));
    }
    if args.step {
        return step(args);
    }
    let finished = campaign::run_plan(plan_of(args), true);
    let text = finished.text.unwrap_or_default();
    if let Some(path) = &args.trace {
        std::fs::write(path, &text).with_context(|| format!("trace file {}", path.display()))?;
    }
    let shown: Vec<&str> = text.lines().filter(|line| is_shown(line, args)).collect();
    let skipped = if args.until_violation { shown.len().saturating_sub(LAST_LINES) } else { 0 };
    for line in &shown[skipped..] {
        println!("{line}");
    }
    let outcome = &finished.outcome;
    println!("trace {:016x} ({} lines)", outcome.trace_hash, outcome.trace_lines);
    match &outcome.violation {
        None => println!("no violation"),
        Some(violation) => {
            println!("violation at {:.6} s: {violation}", outcome.simulated_us as f64 / 1e6)
        }
    }
    Ok(outcome.violation.is_none())
}

fn plan_of(args: &Replay) -> Plan {
    campaign::draw_plan(args.seed, args.ops, args.postgres)
}

/// Whether a line passes the filters. Its first words are number, time, node and what.
fn is_shown(line: &str, args: &Replay) -> bool {
    let mut words = line.split_whitespace();
    let number = words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let node = words.nth(1).and_then(|word| word.trim_start_matches('n').parse::<u64>().ok());
    let what = words.next().unwrap_or_default();
    number >= args.from
        && args.to.is_none_or(|to| number <= to)
        && args.node.is_none_or(|wanted| node == Some(wanted) || node == Some(0))
        && args.what.as_ref().is_none_or(|wanted| wanted == what)
}

/// The same run as without `--step`, all phases of it, which waits for a key after each line.
fn step(args: &Replay) -> Result<bool> {
    let mut world = World::new(plan_of(args), true);
    let (shown, mut free) = (args.clone(), 0);
    world.onlooker = Some(Box::new(move |world| show(world, &shown, &mut free)));
    let outcome = world.run();
    print!("{}", world.trace.take_text());
    match outcome.violation {
        None => println!("no violation"),
        Some(end) if end.check == LEFT => return Ok(true),
        Some(violation) => {
            println!("violation: {violation}");
            print_state(&world);
            return Ok(false);
        }
    }
    Ok(true)
}

/// Shows what the newest event wrote, and asks how to go on.
fn show(world: &mut World, args: &Replay, free: &mut u64) -> Verdict {
    let text = world.trace.take_text();
    for line in text.lines().filter(|line| is_shown(line, args)) {
        println!("{line}");
        *free = free.saturating_sub(1);
        while *free == 0 {
            match ask(&mut std::io::stdin().lock()) {
                Ok(Key::Lines(count)) => *free = count,
                Ok(Key::State) => print_state(world),
                Ok(Key::Quit) => return violation(LEFT, "the reader left".to_owned()),
                Err(error) => return violation(LEFT, error.to_string()),
            }
        }
    }
    Ok(())
}

enum Key {
    Lines(u64),
    State,
    Quit,
}

fn ask(input: &mut impl BufRead) -> Result<Key> {
    eprint!("(enter, number, s, q) ");
    std::io::stderr().flush().context("writing the prompt")?;
    let mut line = String::new();
    if input.read_line(&mut line).context("reading a key")? == 0 {
        return Ok(Key::Quit);
    }
    Ok(match line.trim() {
        "q" => Key::Quit,
        "s" => Key::State,
        other => Key::Lines(other.parse().unwrap_or(1)),
    })
}

fn print_state(world: &World) {
    for machine in world.machines.values() {
        println!("node {} generation {} {:?}", machine.node, machine.generation, machine.health);
        for shard in 0..world.shard_count() {
            match world.view(machine.node, shard) {
                None => println!("  shard {shard}: down"),
                Some(view) => println!(
                    "  shard {shard}: {:?} term {} vote {} leader {:?} start {} applied {} commit {} last {}{} tasks {:?}",
                    view.role,
                    view.term,
                    view.vote,
                    view.leader,
                    view.start_index,
                    view.applied,
                    view.commit,
                    view.last_index,
                    if view.repairing { " repairing" } else { "" },
                    task_counts(machine, shard),
                ),
            }
        }
    }
}

/// Tasks scheduled, ready and claimed, and the log time they go by.
fn task_counts(machine: &Machine, shard: ShardId) -> Option<(u64, u64, u64, u64)> {
    let state = machine.process.as_ref()?.replica.shard(shard)?;
    let sizes = state.sizes();
    Some((sizes.scheduled, sizes.ready, sizes.claimed, state.time_ms()))
}
