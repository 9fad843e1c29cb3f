//! System calls that no task needs, and that holes in kernels are made of: refused.
//!
//! A deny list, since programs of all kinds must run. It is the second wall behind users, namespaces and Landlock.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
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

/// Kinds of sockets that stay, and those of the network.
const LOCAL: &[i32] = &[libc::AF_UNIX];
const NETWORK: &[i32] = &[libc::AF_INET, libc::AF_INET6];

/// Applies the filter to this thread and all that it starts. Sockets beyond this machine's own need `network`.
pub(super) fn apply(network: bool) -> Result<(), String> {
    let unknown = build(unknown_rules(), libc::ENOSYS)?;
    let denied = build(denied_rules(network)?, libc::EPERM)?;
    for program in [unknown, denied] {
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
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
    let families = LOCAL.iter().chain(NETWORK.iter().filter(|_| network));
    let others: Result<Vec<_>, String> =
        families.map(|family| argument(0, SeccompCmpOp::Ne, *family as u64)).collect();
    rules.insert(libc::SYS_socket, vec![rule(others?)?]);
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
