//! Builds a world from a plan: machines with empty disks, wires, clocks, actors, and the first faults.

use fastrand::Rng;
use ikada_consensus::{Config, NodeId};
use ikada_replica::ReplicaConfig;
use ikada_state::{LEVEL, Limits, Member};
use ikada_store::{LogOptions, SimDisk};

use super::clock::Clock;
use super::machine::{Health, Machine};
use super::membership::{Membership, member_of};
use super::network::Network;
use super::schedule::Schedule;
use super::{Event, Phase, Watch, World};
use crate::database::Database;
use crate::draw::chance;
use crate::node::boot::{self, Setup};
use crate::plan::Plan;
use crate::trace::Trace;

/// Every simulated cluster has this id.
const CLUSTER: u64 = 0x1cada;

impl World {
    /// A world about to begin.
    pub fn new(plan: Plan, with_text: bool) -> Self {
        let setup = founding_setup(&plan, 1, false);
        let genesis = (0..plan.shards).map(|shard| boot::genesis(&setup, shard)).collect();
        let watch = Watch::new(genesis, &boot::first_conf(&setup));
        let mut world = World {
            schedule: Schedule::default(),
            network: Network::new(plan.faults.wires.clone(), plan.rng(1)),
            machines: Default::default(),
            rng: plan.rng(2),
            trace: Trace::new(with_text),
            marks: Default::default(),
            watch,
            calls: Default::default(),
            tally: Default::default(),
            actors: Vec::new(),
            phase: Phase::Safety,
            clients: Default::default(),
            probes: Default::default(),
            membership: Membership::default(),
            closed_doors: Default::default(),
            database: None,
            is_set_back: false,
            fork: None,
            onlooker: None,
            plan,
        };
        let shards = world.plan.shards;
        world.database = world.plan.database.as_ref().map(|plan| Database::new(plan, shards));
        for node in 1..=world.plan.nodes {
            let mut rng: Rng = world.plan.rng(100 + node);
            let clock = Clock::new(rng.u64(0..1_000_000), world.plan.knobs.wall_start_ms, 1_000);
            let setup = founding_setup(&world.plan, node, false);
            world.machines.insert(node, Machine::new(node, setup, clock));
            world.schedule.at(rng.u64(0..300_000), Event::Start(node));
        }
        world.unleash();
        world.schedule.after(super::FULL_CHECK_US, Event::FullCheck);
        crate::workload::enlist(&mut world);
        world
    }

    /// How a node of this cluster starts.
    pub(super) fn setup_of(&self, node: NodeId, joins: bool) -> Setup {
        founding_setup(&self.plan, node, joins)
    }
}

fn founding_setup(plan: &Plan, node: NodeId, joins: bool) -> Setup {
    let knobs = &plan.knobs;
    let incarnation = 1_000 + node;
    let members: Vec<Member> = (1..=plan.nodes).map(|node| member_of(node, 1_000 + node)).collect();
    let mut config = ReplicaConfig::new(node, incarnation, CLUSTER, plan.seed ^ node);
    config.consensus = Config {
        tick_ms: knobs.tick_ms,
        heartbeat_ticks: knobs.heartbeat_ticks,
        election_ticks: knobs.election_ticks,
        max_entries_bytes_per_message: knobs.message_bytes_max,
        max_inflight: knobs.inflight_max,
        keep_bytes: knobs.log_kept * 100,
        ..Config::new(node, plan.seed ^ node)
    };
    config.consensus.lease = plan.database.as_ref().map(|database| database.lease);
    config.batch_bytes_max = knobs.batch_bytes_max;
    config.pending_bytes_max = knobs.pending_bytes_max;
    config.snapshot_entries = knobs.snapshot_distance;
    config.hash_every = knobs.hash_distance;
    config.balance_quiet_ms = knobs.balance_quiet_ms;
    let mut rng = plan.rng(node ^ 0x6f6c_6465);
    config.level = LEVEL - u32::from(chance(&mut rng, plan.older_permille));
    // The same on all nodes. Small steps, so that leaders change in the middle of a job's expansion.
    let mut rng = plan.rng(0x6a6f_6273);
    let job_chunk = chance(&mut rng, 600).then(|| rng.u32(1..=3));
    let job_window = job_chunk.map(|chunk| chunk + rng.u32(0..=4));
    let limits = Limits {
        job_chunk,
        job_window,
        pending_tasks_max: knobs.pending_max,
        submit_window_ms: knobs.dedup_window_ms,
        submit_window_max: knobs.dedup_count_max,
        claim_window_ms: knobs.dedup_window_ms,
        ..Limits::default()
    };
    let log = LogOptions { segment_bytes: knobs.segment_bytes, ..LogOptions::default() };
    Setup { config, log, shards: plan.shards, members, limits, joins }
}

impl Machine {
    /// A machine with an empty disk.
    pub fn new(node: NodeId, setup: Setup, clock: Clock) -> Self {
        Self {
            node,
            setup,
            disk: SimDisk::new(),
            clock,
            health: Health::Sound,
            generation: 1,
            process: None,
            mirror: Default::default(),
            paused_until_us: 0,
            slow_until_us: 0,
            sync_extra_us: 0,
            fragile: false,
            aimed: false,
            wiped_us: 0,
            wiped_at: Default::default(),
        }
    }
}
