//! The Compose file: what its nodes tell clients is where they are reached, from this machine and within their network.
//!
//! Read as text, since no test has containers. Leaves out whether Docker takes the file.

use std::path::Path;

/// Settings of a service, as `NAME: value` lines of its part of the file.
fn part<'a>(file: &'a str, service: &str) -> &'a str {
    let begin = file.find(&format!("\n  {service}:\n")).expect("a service") + 1;
    let lines = file[begin..].split_inclusive('\n');
    let own = lines.enumerate().take_while(|(at, line)| *at == 0 || line.starts_with("   "));
    &file[begin..begin + own.map(|(_, line)| line.len()).sum::<usize>()]
}

fn value<'a>(part: &'a str, name: &str) -> &'a str {
    let line = part.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in\n{part}"))
}

#[test]
fn links_between_the_nodes_of_the_compose_file_lead_somewhere() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/docker/compose.yml");
    let file = std::fs::read_to_string(path).expect("the file");
    let workers = value(part(&file, "worker"), "IKADA_URL");
    for (place, worker_url) in workers.split(',').enumerate() {
        let node = format!("node{}", place + 1);
        let own = part(&file, &node);
        let told = value(own, "IKADA_ADVERTISE");
        let port = told.strip_prefix("127.0.0.1:").expect("an address of this machine");
        // Dashboards link to it, and the node calls itself by it: outside and inside it is one port.
        assert_eq!(value(own, "ports"), format!("[\"{told}:{port}\"]"));
        assert_eq!(value(own, "IKADA_LISTEN"), format!("0.0.0.0:{port}"));
        assert_eq!(value(own, "IKADA_URL"), format!("http://{told}"));
        // Within the network it goes by its name, which it must know as its own.
        assert_eq!(value(own, "IKADA_HOST"), node);
        assert_eq!(worker_url, format!("http://{node}:{port}"));
    }
    assert_eq!(workers.split(',').count(), 3);
}
