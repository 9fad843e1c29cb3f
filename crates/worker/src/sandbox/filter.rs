//! System calls that no task needs, and that holes in kernels are made of: refused.
//!
//! A deny list, since programs of all kinds must run. It is the second wall behind users, namespaces and Landlock.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

/// Refused with "not permitted".
const DENIED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Refused as if the kernel did not know it: its flags lie in memory, where a filter cannot look, and the C libraries then
/// use the older call.
const UNKNOWN: &[i64] = &[libc::SYS_clone3];

/// Kinds of new worlds that `clone` could make.
const CLONE_WORLDS: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Kinds of sockets that a program has with the network.
const NETWORK: &[i32] = &[libc::AF_INET, libc::AF_INET6];
/// Kinds of pairs of sockets that can also be connected to a door elsewhere: the kernel takes the second for the first.
const LOOSE_PAIRS: &[i32] = &[libc::SOCK_DGRAM, libc::SOCK_RAW];
/// The part of a socket's kind that is not a flag.
const KIND: u64 = 0xf;

/// On one kind of processor calls have second numbers, for programs with short pointers. No list knows them.
const SECOND_NUMBERS: u32 = 0x4000_0000;

/// Applies the filter to this thread and all that it starts. Sockets of the network need `network`.
///
/// The machine's own doors (`AF_UNIX`) are shut in any case: a service that lets everyone in, such as a message bus or a
/// database, trusts whoever is on this machine, and where its door lies nobody knows. Pairs that are connected from
/// birth stay, as programs speak to their own children by them.
pub(super) fn apply(network: bool) -> Result<(), String> {
    let mut programs = vec![build(unknown_rules(), libc::ENOSYS)?];
    programs.push(build(denied_rules(network)?, libc::EPERM)?);
    if cfg!(target_arch = "x86_64") {
        programs.push(second_numbers());
    }
    for program in programs {
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Refuses every call by a second number.
fn second_numbers() -> BpfProgram {
    let step = |code: u32, k: u32, jf: u8| sock_filter { code: code as u16, jt: 0, jf, k };
    vec![
        // The number of the call is the first word of what the kernel shows.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, SECOND_NUMBERS, 1),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn unknown_rules() -> Rules {
    UNKNOWN.iter().map(|call| (*call, Vec::new())).collect()
}

fn denied_rules(network: bool) -> Result<Rules, String> {
    let mut rules: Rules = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let mut worlds = Vec::new();
    for bit in 0..32 {
        let flag = 1u64 << bit;
        if CLONE_WORLDS as u32 as u64 & flag != 0 {
            worlds.push(rule(vec![argument(0, SeccompCmpOp::MaskedEq(flag), flag)?])?);
        }
    }
    rules.insert(libc::SYS_clone, worlds);
    let others: Result<Vec<_>, String> =
        NETWORK.iter().map(|family| argument(0, SeccompCmpOp::Ne, *family as u64)).collect();
    // None of them at all, or all but those of the network.
    let sockets = if network { vec![rule(others?)?] } else { Vec::new() };
    rules.insert(libc::SYS_socket, sockets);
    let loose = |kind: &i32| rule(vec![argument(1, SeccompCmpOp::MaskedEq(KIND), *kind as u64)?]);
    let loose: Result<Vec<_>, String> = LOOSE_PAIRS.iter().map(loose).collect();
    rules.insert(libc::SYS_socketpair, loose?);
    // Typing into the terminal of whoever started the worker.
    rules.insert(
        libc::SYS_ioctl,
        vec![rule(vec![argument(1, SeccompCmpOp::MaskedEq(0xffff_ffff), libc::TIOCSTI)?])?],
    );
    Ok(rules)
}

fn argument(index: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, String> {
    // Families are ints: the upper half of the register is noise.
    let length = match operator {
        SeccompCmpOp::Ne => SeccompCmpArgLen::Dword,
        _ => SeccompCmpArgLen::Qword,
    };
    SeccompCondition::new(index, length, operator, value).map_err(|error| error.to_string())
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

fn build(rules: Rules, errno: i32) -> Result<BpfProgram, String> {
    let machine = std::env::consts::ARCH.try_into().map_err(|_| "unknown processor".to_owned())?;
    let refuse = SeccompAction::Errno(errno as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine);
    let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
    program.map_err(|error| error.to_string())
}
