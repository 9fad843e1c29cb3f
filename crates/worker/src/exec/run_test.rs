//! The operator's word is the last one: no field of a task changes what the worker's settings say (X10).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Names that would matter if they became variables of the environment or settings of the sandbox.
const TELLING: &[&str] = &[
    "PATH",
    "HOME",
    "LD_PRELOAD",
    "TMPDIR",
    "LANG",
    "IKADA_TASK_ID",
    "IKADA_FENCE",
    "IKADA_OUT",
    "ikada_settings",
    "S",
    "isolation",
    "network",
    "memory-bytes",
    "limits.wall_ms",
    "a=b",
    "",
];

fn words() -> impl Strategy<Value = String> {
    prop_oneof![prop::sample::select(TELLING).prop_map(str::to_owned), "\\PC{0,12}"]
}

/// Programs, and words that could be taken for rules about them.
const PROGRAMS: &[&str] =
    &["/bin/sh", "sh", "/usr/bin/env", "*", "{file}", "/etc", "/", "../bin/sh", "/bin/sh "];

fn programs() -> impl Strategy<Value = String> {
    prop_oneof![prop::sample::select(PROGRAMS).prop_map(str::to_owned), words()]
}

fn codes() -> impl Strategy<Value = Code> {
    let own = PathBuf::from("/nowhere/programs/abc");
    let file = prop::option::of(Just(own.clone()));
    prop_oneof![
        (prop::collection::vec(programs(), 0..4), file)
            .prop_map(|(argv, file)| Code::Command { argv, file }),
        words().prop_map(move |entry| Code::Module { file: own.clone(), entry }),
    ]
}

prop_compose! {
    fn attempts()(
        (id, queue) in (words(), words()),
        payload in prop::collection::vec(any::<u8>(), 0..20),
        (fence, attempt) in any::<(u64, u16)>(),
        timeout in prop::option::of(any::<u64>().prop_map(Duration::from_millis)),
        settings in prop::collection::vec((words(), words()), 0..6),
        code in codes(),
    ) -> Attempt {
        let traceparent = None;
        Attempt { id, queue, payload, fence, attempt, timeout, settings, traceparent, code }
    }
}

prop_compose! {
    fn configs()(
        commands in prop::collection::vec(programs(), 0..3),
        network in any::<bool>(),
        isolation in prop::sample::select(&[Isolation::Full, Isolation::Best, Isolation::None][..]),
        (memory_bytes, processes, wall_ms) in (1_u64..1 << 40, 1_u64..1_000, 1_u64..10_000_000),
    ) -> ExecConfig {
        ExecConfig {
            work_dir: PathBuf::from("/nowhere"),
            commands,
            readable: vec![PathBuf::from("/srv/data")],
            network,
            isolation,
            limits: Limits { memory_bytes, processes, wall_ms, ..Limits::default() },
            groups: GroupRule::Off,
            helper: PathBuf::from("/helper"),
        }
    }
}

/// What the order may let a program read beyond the operator's list: the program itself.
fn own_files(code: &Code) -> Vec<PathBuf> {
    match code {
        Code::Module { file, .. } => vec![file.clone(), PathBuf::from("/proc/self/exe")],
        Code::Command { argv, file } => {
            let program = argv.first().filter(|program| program.starts_with('/'));
            file.iter().cloned().chain(program.map(PathBuf::from)).collect()
        }
    }
}

fn is_allowed(config: &ExecConfig, code: &Code) -> bool {
    let Code::Command { argv, file } = code else { return true };
    let Some(program) = argv.first() else { return false };
    let own = file.as_ref().is_some_and(|file| file.as_os_str() == program.as_str());
    let asked = if own { "{file}" } else { program };
    config.commands.iter().any(|rule| rule == "*" || rule == asked)
}

#[test]
fn x_12_full_isolation_of_commands_needs_users_of_their_own() {
    let stand = Walls { namespaces: true, landlock: true, seccomp: true, ..Walls::default() };
    let config = |commands: &[&str]| ExecConfig {
        work_dir: PathBuf::from("/nowhere"),
        commands: commands.iter().map(|&name| name.to_owned()).collect(),
        readable: Vec::new(),
        network: false,
        isolation: Isolation::Full,
        limits: Limits::default(),
        groups: GroupRule::Off,
        helper: PathBuf::from("/nowhere/helper"),
    };
    for (commands, root, full) in
        [(&["sh"][..], true, true), (&[], false, true), (&["sh"], false, false)]
    {
        let mut walls = stand.clone();
        note_users(&mut walls, &config(commands), root);
        assert_eq!(
            (walls.is_full(), walls.missing.is_empty()),
            (full, full),
            "{commands:?} {root}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn x_10_no_field_of_a_task_changes_what_the_operator_set(
        config in configs(),
        attempt in attempts(),
    ) {
        let sandbox = Sandbox {
            config: config.clone(),
            users: Users::none(),
            walls: Walls::default(),
            groups: Err(String::new()),
            folders: Folders::new(Home::nowhere(), false),
            stewards: None,
        };
        let folder = Folder::at(PathBuf::from("/nowhere/attempts/one"));
        let ordered = sandbox.order(&folder, &attempt);
        prop_assert_eq!(ordered.is_ok(), is_allowed(&config, &attempt.code));
        prop_assert!(wall_ms(&attempt, &config.limits) <= config.limits.wall_ms);
        let Ok(spec) = ordered else { return Ok(()) };
        let is_module = matches!(attempt.code, Code::Module { .. });
        prop_assert_eq!(spec.isolation, config.isolation);
        prop_assert_eq!(spec.network, config.network && !is_module);
        let engine = if is_module { ENGINE_BYTES } else { 0 };
        let memory_bytes = config.limits.memory_bytes + engine;
        prop_assert_eq!(spec.limits, Limits { memory_bytes, ..config.limits });
        prop_assert_eq!(&spec.folder, &folder.task());
        let own = own_files(&attempt.code);
        let known = |path: &PathBuf| config.readable.contains(path) || own.contains(path);
        prop_assert!(spec.readable.iter().all(known), "{:?}", spec.readable);
        // Later words win where names meet: no setting may bear the name of a variable of ours.
        let seen: BTreeMap<_, _> = spec.environment.iter().cloned().collect();
        prop_assert_eq!(&seen["PATH"], PATH);
        prop_assert_eq!(&seen["IKADA_FENCE"], &attempt.fence.to_string());
        prop_assert_eq!(&seen["IKADA_OUT"], &folder.outputs().to_string_lossy().into_owned());
        let ours = environment(&folder, &Attempt { settings: Vec::new(), ..attempt });
        for name in seen.keys().filter(|name| !ours.iter().any(|(own, _)| own == *name)) {
            prop_assert!(name.starts_with("IKADA_SETTING_"), "{name} was set by the task");
            prop_assert!(!name.contains(['=', '\0']), "{name} is no name");
        }
        prop_assert!(ours.iter().all(|(name, value)| seen.get(name) == Some(value)));
    }
}
