//! Reads: served by this node's own state once it is new enough.
//!
//! Linearizable reads of one turn share one read-index round per shard; the leader is asked, this node waits until it
//! has applied that far, and answers itself. So reads spread over all nodes and write nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use ikada_state::{
    BucketName, Digest, JobId, JobPage, Lease, LeaseName, Lsn, Namespace, NamespaceView, QueueView,
    RequestId, RequestKey, ShardId, TaskFilter, routing_key,
};

use crate::call::{Answer, CallId, Consistency, Query, RequestFate, View};
use crate::leg::{Leg, Owner};
use crate::origin::{OpenCall, OpenKind, OpenRead};
use crate::output::Now;
use crate::peer::{Ask, Told};
use crate::planted::{self, Bug};
use crate::replica::Replica;
use crate::seat::Seat;

impl Replica {
    pub(crate) fn open_read(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        query: Query,
        consistency: Consistency,
        now: Now,
    ) {
        let shards = self.shards_of_query(&query);
        let chosen_by = self.routing();
        let mut read = OpenRead { query, consistency, needs: BTreeMap::new(), chosen_by };
        self.need(call, &mut read, &shards);
        let kind = OpenKind::Read(Box::new(read));
        self.calls.insert(call, OpenCall { deadline_ms, kind });
        if !self.try_read(call, now) {
            self.reads_waiting.push(call);
        }
    }

    /// Notes what a read needs of these shards, and asks their leaders if it must.
    fn need(&mut self, call: CallId, read: &mut OpenRead, shards: &[ShardId]) {
        for shard in shards {
            let need = match &read.consistency {
                Consistency::Linearizable if planted::active(Bug::ReadWithoutConfirmation) => {
                    Some(0)
                }
                Consistency::Linearizable => None,
                Consistency::Stale => Some(0),
                Consistency::AtLeast(lsns) => {
                    let of_shard = lsns.iter().filter(|(of, _)| of == shard);
                    Some(of_shard.map(|(_, lsn)| lsn.index).max().unwrap_or(0))
                }
            };
            if need.is_none() {
                self.reads_gathered.entry(*shard).or_default().push(call);
            }
            read.needs.insert(*shard, need);
        }
    }

    /// What reads are routed by.
    fn routing(&self) -> (u16, u64) {
        (self.seats[0].state.shards(), self.map_version())
    }

    /// Slots or shards have changed since the read was routed: it goes on where it belongs now. True if it must wait.
    fn is_read_rerouted(&mut self, call: CallId) -> bool {
        let routing = self.routing();
        let Some(OpenCall { kind: OpenKind::Read(read), .. }) = self.calls.get(&call) else {
            return false;
        };
        let key = key_of(&read.query);
        if let Some((namespace, key)) = key {
            let home = self.seats.get(usize::from(self.shard_of_key(namespace, key)));
            // On its way: the map will tell where it arrives.
            let waits = home.is_none_or(|seat| seat.state.is_key_away(namespace, key));
            if waits && read.chosen_by == routing {
                return true;
            }
        }
        if read.chosen_by == routing {
            return false;
        }
        let mut shards = self.shards_of_query(&read.query);
        let has_key = key.is_some();
        let Some(mut open) = self.calls.remove(&call) else {
            return false;
        };
        let mut waits = false;
        if let OpenKind::Read(read) = &mut open.kind {
            read.chosen_by = routing;
            if has_key {
                read.needs.retain(|shard, _| shards.contains(shard));
            }
            shards.retain(|shard| !read.needs.contains_key(shard));
            waits = !shards.is_empty();
            self.need(call, read, &shards);
        }
        self.calls.insert(call, open);
        waits
    }

    /// One read-index round per shard for all reads gathered since the last turn.
    pub(crate) fn flush_reads(&mut self, now: Now) {
        for (shard, calls) in std::mem::take(&mut self.reads_gathered) {
            let deadline_ms = calls
                .iter()
                .filter_map(|call| self.calls.get(call).map(|open| open.deadline_ms))
                .max();
            if let Some(deadline_ms) = deadline_ms {
                self.open_leg(
                    Leg::new(shard, Owner::Reads(calls), Ask::ReadIndex, deadline_ms),
                    now,
                );
            }
        }
    }

    /// The index that reads must wait for; they are looked at again at the end of the turn.
    pub(crate) fn reads_told(&mut self, shard: ShardId, calls: &[CallId], told: &Told) {
        let Told::Index(index) = told else { return };
        for call in calls {
            if let Some(OpenCall { kind: OpenKind::Read(read), .. }) = self.calls.get_mut(call) {
                read.needs.insert(shard, Some(*index));
            }
        }
    }

    /// Reads that waited for this node to apply what they need.
    pub(crate) fn tend_reads(&mut self, now: Now) {
        let mut waiting = std::mem::take(&mut self.reads_waiting);
        waiting.retain(|call| !self.try_read(*call, now));
        self.reads_waiting = waiting;
    }

    /// Answers a read if it can be answered; true when nothing is left to wait for.
    fn try_read(&mut self, call: CallId, now: Now) -> bool {
        let Some(OpenCall { kind: OpenKind::Read(read), .. }) = self.calls.get(&call) else {
            return true;
        };
        let new_enough = read.needs.iter().all(|(shard, need)| {
            let Some(seat) = self.seats.get(usize::from(*shard)) else {
                return false;
            };
            need.is_some_and(|index| seat.loading.is_none() && seat.state.applied().index >= index)
        });
        if !new_enough || self.is_read_rerouted(call) {
            return false;
        }
        let Some(OpenCall { kind: OpenKind::Read(read), .. }) = self.calls.get(&call) else {
            return true;
        };
        let lsns: Vec<(ShardId, Lsn)> = read
            .needs
            .keys()
            .map(|shard| (*shard, self.seats[usize::from(*shard)].state.applied()))
            .collect();
        let age_ms = match read.consistency {
            Consistency::Stale => {
                lsns.iter().map(|(shard, _)| self.age_ms(*shard, now)).max().unwrap_or(0)
            }
            _ => 0,
        };
        let view = self.look(&read.query);
        self.answer(call, Answer::View { view, lsns, age_ms });
        true
    }

    /// How old this node's view of a shard may be: time since its leader was last heard, 0 on the leader.
    fn age_ms(&self, shard: ShardId, now: Now) -> u64 {
        let seat = &self.seats[usize::from(shard)];
        match seat.leader {
            Some(leader) if leader == self.config.node => 0,
            Some(leader) => self
                .peers
                .get(&leader)
                .and_then(|peer| peer.heard_ms)
                .map_or(u64::MAX, |heard| now.mono_ms.saturating_sub(heard)),
            None => now.mono_ms.saturating_sub(seat.leader_lost_ms),
        }
    }

    /// Which shards a query needs.
    pub(crate) fn shards_of_query(&self, query: &Query) -> Vec<ShardId> {
        match query {
            Query::Task(namespace, id) => vec![self.shard_of_task(namespace, id)],
            Query::Object((namespace, bucket, name)) => {
                vec![self.shard_of_object(namespace, bucket, name.as_str())]
            }
            Query::Objects { namespace, bucket, prefix, .. } => {
                vec![self.shard_of_object(namespace, bucket, prefix)]
            }
            Query::Lease((namespace, name)) => {
                vec![self.shard_of_key(namespace, name.as_str())]
            }
            Query::Job(key) | Query::JobTasks { job: key, .. } => {
                vec![self.shard_of_key(&key.0, key.1.as_str())]
            }
            Query::References { shard, .. } => vec![self.known_shard(*shard)],
            Query::Members
            | Query::Shards
            | Query::Schedule(_)
            | Query::Schedules { .. }
            | Query::EverySchedule
            | Query::Tokens => vec![0],
            Query::Tasks { .. }
            | Query::Queue(..)
            | Query::Queues(_)
            | Query::EveryQueue
            | Query::Backup
            | Query::Buckets { .. }
            | Query::Jobs { .. }
            | Query::Unreferenced(_)
            | Query::Namespaces { .. }
            | Query::Leases { .. }
            | Query::Request(..) => (0..self.seats[0].state.shards()).collect(),
        }
    }

    /// The shard, or shard 0 if there is no such.
    fn known_shard(&self, shard: ShardId) -> ShardId {
        if usize::from(shard) < self.seats.len() { shard } else { 0 }
    }

    fn look(&self, query: &Query) -> View {
        match query {
            Query::Task(namespace, id) => {
                let seat = &self.seats[usize::from(self.shard_of_task(namespace, id))];
                View::Task(seat.state.task(namespace, id).map(Box::new))
            }
            Query::Tasks { filter, after, limit } => self.list(filter, *after, *limit),
            Query::Queue(namespace, queue) => View::Queue(
                self.seats
                    .iter()
                    .filter_map(|seat| seat.state.queue(namespace, queue))
                    .reduce(|sum, view| sum.merge(view))
                    .map(Box::new),
            ),
            Query::Queues(namespace) => View::Queues(self.sum_queues(Some(namespace))),
            Query::EveryQueue => View::Queues(self.sum_queues(None)),
            Query::Request(namespace, id, item) => View::Request(self.fate(namespace, id, *item)),
            Query::Schedule(key) => View::Schedule(self.seats[0].state.schedule(key).cloned()),
            Query::Schedules { namespace, after, limit } => {
                let state = &self.seats[0].state;
                View::Schedules(state.schedules_of(namespace, after.as_ref(), *limit))
            }
            Query::EverySchedule => {
                View::Schedules(self.seats[0].state.schedules().cloned().collect())
            }
            Query::Object(key) => {
                let seat =
                    &self.seats[usize::from(self.shard_of_object(&key.0, &key.1, key.2.as_str()))];
                View::Object(seat.state.object(key).cloned())
            }
            Query::Objects { namespace, bucket, prefix, after, limit } => {
                let shard = self.shard_of_object(namespace, bucket, prefix);
                let (seat, after) = (&self.seats[usize::from(shard)], after.as_deref());
                View::Objects(seat.state.objects(namespace, bucket, prefix, after, *limit))
            }
            Query::Job(_) | Query::JobTasks { .. } | Query::Jobs { .. } => self.look_at_jobs(query),
            Query::Buckets { namespace, after, limit } => {
                View::Buckets(self.buckets_of(namespace, after.as_ref(), *limit))
            }
            Query::Unreferenced(digests) => {
                let free =
                    |digest: &&Digest| self.seats.iter().all(|seat| !seat.state.refers_to(digest));
                View::Unreferenced(digests.iter().filter(free).copied().collect())
            }
            Query::References { shard, after, limit } => {
                let seat = &self.seats[usize::from(self.known_shard(*shard))];
                View::References(seat.state.references(after.as_ref(), *limit))
            }
            Query::Lease(key) => {
                let seat = &self.seats[usize::from(self.shard_of_key(&key.0, key.1.as_str()))];
                View::Lease(seat.state.lease(key).cloned())
            }
            Query::Leases { namespace, after, limit } => {
                View::Leases(self.leases_of(namespace, after.as_ref(), *limit))
            }
            Query::Tokens => View::Tokens(self.seats[0].state.tokens().cloned().collect()),
            Query::Namespaces { only_bounded } => self.sum_namespaces(*only_bounded),
            Query::Backup => {
                View::Frozen(self.seats.iter().map(|seat| seat.state.freeze()).collect())
            }
            Query::Shards => {
                let state = &self.seats[0].state;
                let (shards, map_version) = self.routing();
                View::Shards { shards, map_version, growth: state.growth_view() }
            }
            Query::Members => View::Members(self.seats[0].state.members().to_vec()),
        }
    }

    /// Buckets of all shards, in order.
    fn buckets_of(
        &self,
        namespace: &Namespace,
        after: Option<&BucketName>,
        limit: usize,
    ) -> Vec<BucketName> {
        let in_shard = |seat: &Seat| seat.state.buckets(namespace, after, limit);
        let mut buckets: Vec<_> = self.seats.iter().flat_map(in_shard).collect();
        buckets.sort_unstable();
        // One that moves is in two shards for a moment.
        buckets.dedup();
        buckets.truncate(limit);
        buckets
    }

    /// Namespaces of all shards, each seen as one.
    fn sum_namespaces(&self, only_bounded: bool) -> View {
        let mut sums: BTreeMap<Namespace, NamespaceView> = BTreeMap::new();
        for seat in &self.seats {
            for view in seat.state.namespaces(only_bounded) {
                let name = view.namespace.clone();
                let sum = match sums.remove(&name) {
                    Some(sum) => sum.merge(&view),
                    None => view,
                };
                sums.insert(name, sum);
            }
        }
        View::Namespaces(sums.into_values().collect())
    }

    /// Leases of all shards in order of their names.
    fn leases_of(
        &self,
        namespace: &Namespace,
        after: Option<&LeaseName>,
        limit: usize,
    ) -> Vec<Arc<Lease>> {
        let in_shard = |seat: &Seat| seat.state.leases_of(namespace, after, limit);
        let mut leases: Vec<_> = self.seats.iter().flat_map(in_shard).collect();
        leases.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        leases.truncate(limit);
        leases
    }

    fn look_at_jobs(&self, query: &Query) -> View {
        match query {
            Query::Job(key) => {
                let seat = &self.seats[usize::from(self.shard_of_key(&key.0, key.1.as_str()))];
                View::Job(seat.state.job(&key.0, &key.1).cloned())
            }
            Query::JobTasks { job, stage, from, limit } => {
                let seat = &self.seats[usize::from(self.shard_of_key(&job.0, job.1.as_str()))];
                View::JobTasks(seat.state.job_tasks(job, *stage, *from, *limit))
            }
            Query::Jobs { namespace, after, limit } => {
                View::Jobs(self.page_jobs(namespace, after.as_ref(), *limit))
            }
            _ => View::Job(None),
        }
    }

    /// Jobs of all shards, in order of their ids.
    fn page_jobs(&self, namespace: &Namespace, after: Option<&JobId>, limit: usize) -> JobPage {
        let pages = self.seats.iter().map(|seat| seat.state.jobs(namespace, after, limit));
        let (mut jobs, mut more) = (Vec::new(), false);
        for page in pages {
            more |= page.next.is_some();
            jobs.extend(page.jobs);
        }
        jobs.sort_unstable_by(|left, right| left.id().cmp(right.id()));
        more |= jobs.len() > limit;
        jobs.truncate(limit);
        let last = jobs.last().map(|job| job.id().clone());
        JobPage { jobs, next: last.filter(|_| more) }
    }

    /// Queues summed over all shards, in order of namespace and name.
    fn sum_queues(&self, namespace: Option<&Namespace>) -> Vec<QueueView> {
        let mut queues = BTreeMap::new();
        for view in self.seats.iter().flat_map(|seat| seat.state.queues(namespace)) {
            let name = (view.namespace.clone(), view.name.clone());
            let sum = match queues.remove(&name) {
                None => view,
                Some(sum) => QueueView::merge(sum, view),
            };
            queues.insert(name, sum);
        }
        queues.into_values().collect()
    }

    /// What became of a request: committed anywhere counts; ruled out only if every shard refuses it.
    fn fate(&self, namespace: &Namespace, id: &RequestId, item: u32) -> RequestFate {
        let key = RequestKey { id: id.clone(), item };
        let mut states = self.seats.iter().map(|seat| &seat.state);
        if let Some(recorded) = states.clone().find_map(|state| state.request(namespace, &key)) {
            return RequestFate::Committed(recorded);
        }
        let since = states.try_fold(0, |latest: u64, state| {
            state.voided_ms(namespace, id).map(|since_ms| latest.max(since_ms))
        });
        since.map_or(RequestFate::NotYet, |since_ms| RequestFate::Voided { since_ms })
    }

    /// One page of tasks: shard after shard, each from its own place on.
    fn list(&self, filter: &TaskFilter, after: Option<(ShardId, u32)>, limit: usize) -> View {
        let (first, mut place) = after.map_or((0, None), |(shard, slot)| (shard, Some(slot)));
        let mut tasks = Vec::new();
        for seat in self.seats.iter().skip(usize::from(first)) {
            let mut list = seat.state.tasks(filter, place.take(), limit - tasks.len());
            tasks.append(&mut list.tasks);
            if let Some(slot) = list.next {
                return View::Tasks { tasks, next: Some((seat.shard, slot)) };
            }
            if tasks.len() >= limit {
                let next =
                    (usize::from(seat.shard) + 1 < self.seats.len()).then_some((seat.shard + 1, 0));
                return View::Tasks { tasks, next };
            }
        }
        View::Tasks { tasks, next: None }
    }
}

/// What decides the one shard of a query; none if it looks at all of them, or at shard 0.
fn key_of(query: &Query) -> Option<(&Namespace, &str)> {
    match query {
        Query::Task(namespace, id) => Some((namespace, id.routing_key())),
        Query::Object((namespace, bucket, name)) => {
            Some((namespace, routing_key(bucket, name.as_str())))
        }
        Query::Objects { namespace, bucket, prefix, .. } => {
            Some((namespace, routing_key(bucket, prefix)))
        }
        Query::Lease((namespace, name)) => Some((namespace, name.as_str())),
        Query::Job(key) | Query::JobTasks { job: key, .. } => Some((&key.0, key.1.as_str())),
        _ => None,
    }
}
