//! The command line is read as its help promises.

use clap::FromArgMatches;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command().try_get_matches_from(line.split_whitespace())?)
}

#[test]
fn the_definition_is_sound_and_every_command_shows_examples() {
    let mut cli = command();
    cli.build();
    cli.clone().debug_assert();
    let mut waiting = vec![cli];
    while let Some(command) = waiting.pop() {
        let groups: Vec<clap::Command> =
            command.get_subcommands().filter(|sub| sub.get_name() != "help").cloned().collect();
        let is_group = command.has_subcommands() && command.get_name() != "ikada";
        let help = command.clone().render_long_help().to_string();
        assert!(is_group || help.contains("Examples:"), "{} has no examples", command.get_name());
        waiting.extend(groups);
    }
}

#[test]
fn server_flags_become_settings() {
    let line = "ikada server --data d --expect 3 --peer a:1 --peer b:2 --shards 8 --node-id 7 --priority -1";
    let Command::Server(server) = parse(line).unwrap().command else { panic!() };
    let raw = server.raw();
    assert_eq!((raw.expect, raw.shards, raw.node_id), (Some(3), Some(8), Some(7)));
    assert_eq!(raw.peer, Some(vec!["a:1".to_owned(), "b:2".to_owned()]));
    assert_eq!((raw.priority, raw.insecure_listen_anywhere), (Some(-1), None));
    // What is not said stays open, for the environment and the file to say.
    let Command::Server(server) = parse("ikada server").unwrap().command else { panic!() };
    assert_eq!(server.raw(), ikada_node::config::RawConfig::default());
}

#[test]
fn several_urls_and_an_output_anywhere() {
    let cli = parse("ikada cluster status --url http://a:1,http://b:2 --output json").unwrap();
    assert_eq!(cli.shared.url, ["http://a:1", "http://b:2"]);
    assert_eq!(cli.shared.output, OutputKind::Json);
    assert!(parse("ikada --output quiet task list --state dead").is_ok());
    assert!(cli.shared.client().is_ok());
}

#[test]
fn wrong_usage_is_refused() {
    for line in [
        "ikada",
        "ikada worker --slots 0",
        "ikada worker-pool",
        "ikada task",
        "ikada task list --state open",
        "ikada task enqueue --payload 1 --payload-file f",
        "ikada task enqueue --delay-ms 1 --run-at-ms 2",
        "ikada demo --tasks 0",
        "ikada queue set q --backoff-base-ms 1",
        "ikada cluster transfer --shard x",
        "ikada cluster status --output yaml",
        "ikada cluster status --timeout 0",
        "ikada server --shard 4",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn a_bad_url_is_wrong_usage() {
    let cli = parse("ikada cluster status --url https://a:1").unwrap();
    assert!(matches!(cli.shared.client(), Err(Failure::Usage { .. })));
}

#[test]
fn setting_nothing_is_noticed() {
    let Command::Queue(QueueCommand::Set(set)) =
        parse("ikada queue set q --expected-version 3").unwrap().command
    else {
        panic!()
    };
    assert!(set.settings().is_none());
}

// A machine may run commands and a node: what is set for the one must not stop the other.
#[test]
fn what_is_set_for_commands_stops_no_server() {
    let mut cli = command();
    cli.build();
    let queue = cli.find_subcommand("queue").and_then(|queue| queue.find_subcommand("list"));
    let names = queue.unwrap().get_arguments().filter_map(|arg| arg.get_env());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.push("IKADA_TOKEN".to_owned());
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let raw = ikada_node::config::RawConfig::from_env([(name.clone(), "x".to_owned())]);
        assert_eq!(raw, Ok(ikada_node::config::RawConfig::default()), "{name}");
    }
}
