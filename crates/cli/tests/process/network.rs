//! A network of its own for every cluster: one namespace per node, joined by a bridge, with cuts per direction.
//!
//! Promise: cuts are silent drops, as a broken switch makes them: no refusal, no reset. Everything is removed when the
//! value is dropped. Needs root, `ip` and `nft`; where that is missing the tests say so and pass over themselves.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cluster::is_passed_over;
use crate::fresh::ikada;

/// Namespaces and a bridge for one cluster.
pub struct Network {
    /// Begins every name, so that two test processes do not meet.
    name: String,
    /// Third number of the addresses.
    subnet: u8,
    nodes: u64,
}

/// Distinguishes the networks of one test process.
static COUNT: AtomicU32 = AtomicU32::new(0);

impl Network {
    /// A network for so many nodes; none, with a word on standard error, where it cannot be made.
    pub fn make(nodes: u64) -> Option<Network> {
        if is_passed_over("a network of its own does not reach the database") {
            return None;
        }
        for tool in ["ip", "nft"] {
            if !run(Command::new("sh").args(["-c", &format!("command -v {tool}")])) {
                eprintln!("passed over: `{tool}` is not installed, so there are no namespaces");
                return None;
            }
        }
        let number = std::process::id() * 8 + COUNT.fetch_add(1, Ordering::Relaxed);
        let network = Network {
            name: format!("ik{:x}", number % 0xf_ffff),
            subnet: (1 + number % 250) as u8,
            nodes,
        };
        if !network.build() {
            eprintln!("passed over: namespaces cannot be made here (is this root?)");
            return None;
        }
        Some(network)
    }

    fn build(&self) -> bool {
        let bridge = &self.name;
        let own = format!("10.77.{}.254/24", self.subnet);
        let mut well = ip(&["link", "add", bridge, "type", "bridge"])
            && ip(&["addr", "add", &own, "dev", bridge])
            && ip(&["link", "set", bridge, "up"]);
        for id in 1..=self.nodes {
            let (space, outer, inner) = (self.space(id), format!("{bridge}o{id}"), "eth0");
            let address = format!("{}/24", self.address(id));
            well = well
                && ip(&["netns", "add", &space])
                && ip(&[
                    "link", "add", &outer, "type", "veth", "peer", "name", inner, "netns", &space,
                ])
                && ip(&["link", "set", &outer, "master", bridge, "up"])
                && ip(&["-n", &space, "addr", "add", &address, "dev", inner])
                && ip(&["-n", &space, "link", "set", inner, "up"])
                && ip(&["-n", &space, "link", "set", "lo", "up"])
                && self.nft(id, "add table inet cut")
                && self.nft(id, "add chain inet cut in { type filter hook input priority 0; }");
        }
        well
    }

    fn space(&self, id: u64) -> String {
        format!("{}n{id}", self.name)
    }

    /// Where a node is reached.
    pub fn address(&self, id: u64) -> String {
        format!("10.77.{}.{id}", self.subnet)
    }

    /// The binary under test, inside a node's namespace.
    pub fn program(&self, id: u64) -> Command {
        let inner = ikada();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(id)]).arg(inner.get_program());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// From now on nothing of `from` reaches `to`; the other direction is left alone.
    pub fn cut_one_way(&self, from: u64, to: u64) {
        let rule = format!("add rule inet cut in ip saddr {} drop", self.address(from));
        assert!(self.nft(to, &rule), "a rule is added");
    }

    /// Cuts the link between two nodes.
    pub fn cut(&self, one: u64, other: u64) {
        self.cut_one_way(one, other);
        self.cut_one_way(other, one);
    }

    /// Cuts a node from all other nodes; clients still reach it.
    pub fn isolate(&self, id: u64) {
        for other in (1..=self.nodes).filter(|other| *other != id) {
            self.cut(id, other);
        }
    }

    /// Leaves only these links between nodes.
    pub fn only(&self, links: &[(u64, u64)]) {
        for id in 1..=self.nodes {
            let linked =
                |other: &u64| links.contains(&(id, *other)) || links.contains(&(*other, id));
            let from: Vec<u64> = (1..=self.nodes).filter(linked).collect();
            self.hears_only(id, &from);
        }
    }

    /// From now on a node hears only these nodes.
    pub fn hears_only(&self, id: u64, from: &[u64]) {
        assert!(self.nft(id, "flush chain inet cut in"), "rules are removed");
        for other in (1..=self.nodes).filter(|other| *other != id && !from.contains(other)) {
            self.cut_one_way(other, id);
        }
    }

    /// From now on so many of a hundred packets of a port get lost, both ways and for all nodes. False, with a word on
    /// standard error, where packets cannot be lost by chance.
    pub fn lose(&self, percent: u32, port: u16) -> bool {
        self.heal();
        let chance = format!("numgen random mod 100 < {percent} counter drop");
        let rule =
            |id, side| self.nft(id, &format!("add rule inet cut in tcp {side} {port} {chance}"));
        let can = (1..=self.nodes).all(|id| rule(id, "dport") && rule(id, "sport"));
        if !can {
            self.heal();
            eprintln!("passed over: this kernel drops no packets by chance (nft numgen)");
        }
        can
    }

    /// How many packets were lost by chance since that began.
    pub fn lost(&self) -> u64 {
        let count = |id| {
            let space = self.space(id);
            let order =
                ["netns", "exec", space.as_str(), "nft", "list", "chain", "inet", "cut", "in"];
            let told = Command::new("ip").args(order).output().expect("nft");
            let told = String::from_utf8_lossy(&told.stdout).into_owned();
            let counts = told.split("packets ").skip(1);
            let counts = counts.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
            counts.sum::<u64>()
        };
        (1..=self.nodes).map(count).sum()
    }

    /// All links are whole again.
    pub fn heal(&self) {
        for id in 1..=self.nodes {
            assert!(self.nft(id, "flush chain inet cut in"), "rules are removed");
        }
    }

    fn nft(&self, id: u64, order: &str) -> bool {
        run(Command::new("ip").args(["netns", "exec", &self.space(id), "nft", order]))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for id in 1..=self.nodes {
            ip(&["netns", "del", &self.space(id)]);
        }
        ip(&["link", "del", &self.name]);
    }
}

fn ip(args: &[&str]) -> bool {
    run(Command::new("ip").args(args))
}

fn run(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
