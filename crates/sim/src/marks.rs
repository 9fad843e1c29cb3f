//! Rare states that a campaign should have passed through, by name, with counts.
//!
//! A green campaign means little if it never entered the states in which bugs live (S-3). Each mark is set where the
//! world or a check sees the state; `run` and `marks` print the counts, and a mark that stays low says that the
//! workload must be changed before its results are believed.

macro_rules! marks {
    ($($name:ident => $words:literal,)*) => {
        /// One named rare state.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Mark {
            $(#[doc = $words] $name,)*
        }

        impl Mark {
            /// Every mark.
            pub const ALL: &'static [Mark] = &[$(Mark::$name,)*];

            /// What the state is, in a few words.
            pub fn words(self) -> &'static str {
                match self { $(Mark::$name => $words,)* }
            }
        }
    };
}

marks! {
    TaskRetried => "a task that had ended was given fresh attempts",
    TaskDropped => "a finished task was dropped",
    GoneNameKnown => "a task that was no longer there was submitted again, and known",
    QueuePurged => "a waiting task was purged with its queue",
    DeadRefusedFull => "a task was refused because its queue had too many dead ones",
    DeadAged => "a dead task was removed when its time was over",
    RequestVoided => "a request was voided",
    VoidedRefused => "a voided request was refused",
    InstantKept => "an instant of a schedule became a task",
    InstantOfCron => "an instant of a cron line became a task",
    InstantClocksSet => "an instant was decided in the hour after its zone's clocks were set",
    SchedulePaused => "a schedule was paused",
    ScheduleResumed => "a schedule was resumed",
    InstantAgain => "an instant was decided again, and nothing happened",
    InstantsMissed => "instants were missed and counted",
    LeaseGranted => "somebody was told to hold a lease",
    LeasePassed => "a lease went to the first in line",
    LeaseExpired => "a holding of a lease, or a wait for one, expired",
    ElectionWon => "an election was won",
    ElectionContested => "two nodes campaigned in one term",
    ElectionDuringInstall => "an election happened while a snapshot was being installed",
    TwoLeadersAtOnce => "an old leader and its successor both believed to lead",
    LeaderLostQuorum => "a leader stepped down for want of a quorum",
    LeaderConnectionLost => "a follower acted on the closed connection of its leader",
    TransferDone => "leadership moved by a transfer",
    LeaderBalanced => "the balancer began to move a leader",
    BalancedAtRest => "the balancer moved a leader of a cluster at rest",
    NodeUpgraded => "a node started again with a newer program",
    LevelRaised => "the cluster's level was raised",
    LevelRefused => "an order was refused that not all nodes understood",
    OlderNodeRefused => "a node of the older version was refused as a member",
    NodeCordoned => "a node was asked to lead no longer",
    LeaderYieldedDisk => "a leader whose disk stood still gave the lead away",
    ConflictTruncation => "a follower dropped a conflicting suffix of its log",
    PriorTermCommit => "an entry of an earlier term was committed through a later one",
    LeaderCrashUncommitted => "a leader died with uncommitted entries",
    EntrySurvivedItsLeader => "an entry whose leader died unacknowledged was committed later",
    CrashLostWrites => "a crash lost un-synced writes",
    CrashAllAtOnce => "all nodes were down at once",
    TornTailCut => "a torn tail of the log was cut",
    DamageFound => "damage in the log was found at start",
    VoteDamaged => "a bit near a fresh vote flipped, and the process died",
    Quarantined => "a damaged file was moved to quarantine",
    RepairDone => "a damaged log was made whole from peers",
    VoteWithheldInRepair => "a node in repair was running while an election went on",
    WipedRefused => "a wiped node was refused",
    SyncFailed => "a sync failed and the process exited",
    DiskFilled => "a disk was full",
    DiskLow => "a node said that its disk has no room left",
    DiskWaitedFor => "a log waited for room",
    SlowDiskLeader => "the disk of a leader was slow",
    SnapshotSaved => "a snapshot was saved",
    SnapshotSent => "a snapshot was sent to a follower",
    SnapshotInstalled => "a snapshot was installed",
    SnapshotInstallCrash => "a node crashed during a snapshot install",
    SnapshotSaveCrash => "a node crashed while it saved a snapshot",
    SnapshotTwice => "a second snapshot of a shard was installed by one process",
    RestoredFromSnapshot => "a node started from a snapshot that was not the first",
    SegmentsPurged => "log segments were purged",
    JointEntered => "a joint configuration was entered",
    JointLeft => "a joint configuration was left",
    JointCrash => "a leader died in a joint configuration",
    LearnerPromoted => "a learner became a voter",
    NodeRemoved => "a voter was removed",
    NodeReplaced => "a node took the place of another",
    ChangeRefused => "a membership change was refused",
    ExpiryRacesCompletion => "an expiry and a completion of one claim were both in flight",
    ZombieRefused => "a completion by a stale claim was refused",
    ZombieInTime => "a stalled worker completed before its claim had expired",
    ClaimExpired => "a claim expired",
    LostClaimReturned => "a claim whose answer was lost was returned by roll call",
    ClaimOutlivedLeader => "a claim was renewed at a later leader than the one that granted it",
    AttemptsExhausted => "a task died of its last attempt",
    DeadlinePassed => "a waiting task died of its deadline",
    DedupHit => "a resent request got its recorded reply",
    DedupAfterFailover => "a resent request got its recorded reply from a later leader",
    DedupAfterSnapshot => "a resent request was answered by a node that had restored a snapshot",
    UnknownCommitted => "an operation of unknown outcome turned out committed",
    UnknownLost => "an operation of unknown outcome turned out lost",
    CancelRacesCompletion => "a cancel and a completion of one task were both in flight",
    CancelWon => "a cancel beat a running claim",
    QueueRefusedFull => "an enqueue was refused because the shard was full",
    NamespaceRefusedFull => "an enqueue was refused because its namespace had its share of the shard",
    QueuePaused => "a queue was paused while it held tasks",
    OutboxDelivered => "a message between shards was delivered",
    OutboxResent => "a message between shards was delivered twice",
    RetentionRemoved => "a finished task was removed by retention",
    ParkedClaimWoken => "a parked claim was woken by new work",
    ReadOnFollower => "a linearizable read came through a follower",
    ReadDuringElection => "a linearizable read waited for an election",
    ReadAtLeast => "a read waited for a position",
    StaleReadBehind => "a stale read was behind",
    CallForwarded => "a call was decided by another node than the one asked",
    PartitionMinorityLeader => "a leader was cut off in a minority",
    ClockJumped => "a wall clock jumped",
    ClockDrifted => "a clock ran at another rate",
    PausedLeader => "a leader was paused",
    GracefulStop => "a node handed leadership over and stopped",
    SlotMoved => "a slot moved to another shard under load",
    LeaseTakenOver => "an expired lease was taken over in the database",
    AppendRefused => "the database refused an append of a deposed holder",
    AppendConflict => "an append came again after it was written",
    StoredSnapshotFetched => "a node behind a purged log took the stored snapshot",
    DatabaseStruck => "the database restarted, stalled, or was out of reach",
    DatabaseClockMoved => "the database's clock was moved",
    SetBackNoticed => "a node stopped before a database that was set back",
    LogForked => "a node that did not know went on with a database that was set back",
    ForkBuried => "all that was missed lay under a snapshot before anybody came back to miss it",
    JobSubmitted => "a job was submitted",
    JobExpandedByTwo => "a second leader went on bringing the tasks of a stage into being",
    JobDone => "a job ended done",
    JobFailed => "a job ended in error",
    JobCancelled => "a job was cancelled",
    JobTaskStopped => "a claimed task ended because its stage was closed, or it was outrun",
    LateResultRefused => "a result came after its stage was closed",
    TwinBegun => "a slow task was begun a second time",
    TwinWon => "the second beginning of a task was done first",
    CheckpointKept => "an attempt kept how far it had come",
    WorkerRemoved => "a removed worker lost a claim",
    WorkerLeft => "a drained worker left",
    ClaimTravelled => "a live claim moved to another shard with its slot",
}

impl Mark {
    /// Whether runs with logs in a database, or those without, can reach it.
    pub fn belongs(self, in_postgres: bool) -> bool {
        use Mark::*;
        let of_database = [
            LeaseTakenOver,
            AppendRefused,
            AppendConflict,
            StoredSnapshotFetched,
            DatabaseStruck,
            DatabaseClockMoved,
            SetBackNoticed,
            LogForked,
            ForkBuried,
        ];
        // What comes of votes, of logs on disks, and of changes at run time that this mode refuses.
        let of_raft = [
            ElectionContested,
            ElectionDuringInstall,
            LeaderLostQuorum,
            LeaderConnectionLost,
            LeaderBalanced,
            BalancedAtRest,
            OlderNodeRefused,
            NodeCordoned,
            LeaderYieldedDisk,
            ConflictTruncation,
            PriorTermCommit,
            EntrySurvivedItsLeader,
            DamageFound,
            VoteDamaged,
            Quarantined,
            RepairDone,
            VoteWithheldInRepair,
            WipedRefused,
            SnapshotSent,
            SnapshotInstallCrash,
            SegmentsPurged,
            JointEntered,
            JointLeft,
            JointCrash,
            LearnerPromoted,
            NodeRemoved,
            NodeReplaced,
            ChangeRefused,
            SlotMoved,
            ClaimTravelled,
        ];
        if in_postgres { !of_raft.contains(&self) } else { !of_database.contains(&self) }
    }
}

/// Counts per mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    counts: Vec<u64>,
}

impl Default for Marks {
    fn default() -> Self {
        Self { counts: vec![0; Mark::ALL.len()] }
    }
}

impl Marks {
    /// Counts one more.
    pub fn hit(&mut self, mark: Mark) {
        self.counts[mark as usize] += 1;
    }

    /// Counts one more if the state was seen.
    pub fn hit_if(&mut self, seen: bool, mark: Mark) {
        if seen {
            self.hit(mark);
        }
    }

    /// How often a mark was hit.
    pub fn count(&self, mark: Mark) -> u64 {
        self.counts[mark as usize]
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Marks) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// Every mark with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Mark, u64)> + '_ {
        Mark::ALL.iter().map(|mark| (*mark, self.count(*mark)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_at_least_forty_marks() {
        assert!(Mark::ALL.len() >= 40, "S-3");
    }

    #[test]
    fn counts_add_up() {
        let (mut one, mut other) = (Marks::default(), Marks::default());
        one.hit(Mark::DedupHit);
        other.hit(Mark::DedupHit);
        one.add(&other);
        assert_eq!(one.count(Mark::DedupHit), 2);
        assert_eq!(one.iter().map(|(_, count)| count).sum::<u64>(), 2);
    }
}
