//! One network namespace per node on a bridge; cuts are silent drops per direction. All of it goes when dropped.

use std::path::Path;
use std::process::{Command, Stdio};

/// Namespaces of one cluster.
pub struct Network {
    name: String,
    nodes: u64,
}

impl Network {
    /// A network for so many nodes; none where it cannot be made.
    pub fn make(nodes: u64) -> Option<Network> {
        let network = Network { name: format!("ikc{:x}", std::process::id() % 0xf_ffff), nodes };
        network.build().then_some(network)
    }

    fn build(&self) -> bool {
        let bridge = self.name.as_str();
        let mut well = ip(&["link", "add", bridge, "type", "bridge"])
            && ip(&["addr", "add", "10.78.0.254/24", "dev", bridge])
            && ip(&["link", "set", bridge, "up"]);
        for id in 1..=self.nodes {
            let (space, outer) = (self.space(id), format!("{bridge}o{id}"));
            let address = format!("{}/24", self.address(id));
            let add =
                ["link", "add", &outer, "type", "veth", "peer", "name", "eth0", "netns", &space];
            well = well
                && ip(&["netns", "add", &space])
                && ip(&add)
                && ip(&["link", "set", &outer, "master", bridge, "up"])
                && ip(&["-n", &space, "addr", "add", &address, "dev", "eth0"])
                && ip(&["-n", &space, "link", "set", "eth0", "up"])
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
        format!("10.78.0.{id}")
    }

    /// A program inside a node's namespace.
    pub fn command(&self, id: u64, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(id)]).arg(program);
        command
    }

    /// Nothing of `from` reaches `to` any more.
    pub fn cut_one_way(&self, from: u64, to: u64) {
        self.nft(to, &format!("add rule inet cut in ip saddr {} drop", self.address(from)));
    }

    /// Cuts a node from the others.
    pub fn isolate(&self, id: u64) {
        for other in (1..=self.nodes).filter(|other| *other != id) {
            self.cut_one_way(id, other);
            self.cut_one_way(other, id);
        }
    }

    /// All links are whole again.
    pub fn heal(&self) {
        for id in 1..=self.nodes {
            self.nft(id, "flush chain inet cut in");
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
