//! Workers: a beat is registration and proof of life in one; only what changes the record is proposed. What the leader of
//! shard 0 wants of a worker travels back with the answer, together with its term.

use ikada_state::{
    Command, Namespace, Order, RegisterWorker, RemoveWorker, SessionId, ShardId, WorkerKey,
    WorkerStanding,
};

use crate::gate::Decision;
use crate::output::Now;
use crate::peer::{Told, WorkerTold};
use crate::replica::Replica;
use crate::seat::Asker;

/// Dead and removed workers are looked through this often.
const SWEEP_MS: u64 = 30_000;

impl Replica {
    pub(crate) fn decide_beat(
        &mut self,
        shard: ShardId,
        asker: Asker,
        (namespace, worker): (&Namespace, &RegisterWorker),
        (busy, leaving): (u32, bool),
        now: Now,
    ) -> Option<Told> {
        let term = self.consensus.term(shard);
        let seat = &mut self.seats[usize::from(shard)];
        let key = (namespace.clone(), worker.id.clone());
        let mut worker = worker.clone();
        match seat.state.worker(&key) {
            Some(known) if known.session == worker.session => {
                if known.standing == WorkerStanding::Removed || leaving {
                    if leaving {
                        self.forget_worker(shard, &key, worker.session);
                    }
                    return Some(Told::Beat { standing: WorkerStanding::Removed, term });
                }
                let (standing, same) = (known.standing, worker.is_recorded(known));
                seat.beats.heard(key, worker.session, busy, now.mono_ms);
                if same {
                    return Some(Told::Beat { standing, term });
                }
            }
            Some(known)
                if known.standing != WorkerStanding::Removed
                    && seat.beats.is_alive(&key, known.session, now.mono_ms) =>
            {
                let (theirs, ours) = (worker.session.0, known.session.0);
                let detail = format!(
                    "worker {} is alive as session {ours:016x}; session {theirs:016x} has the same \
                     name: give it another one, or wait until the first is gone",
                    key.1
                );
                seat.beats.note_impostor(key, worker.session, now.mono_ms);
                return Some(Told::Refused { code: "worker_exists".into(), detail });
            }
            _ if leaving => {
                return Some(Told::Beat { standing: WorkerStanding::Removed, term });
            }
            Some(known) => {
                worker.replaces = Some(known.session);
                seat.beats.heard(key, worker.session, busy, now.mono_ms);
            }
            None => seat.beats.heard(key, worker.session, busy, now.mono_ms),
        }
        let command = Command::RegisterWorker(worker);
        let order = Order { namespace: namespace.clone(), request: None, command };
        self.enqueue_orders(shard, asker, std::slice::from_ref(&order));
        None
    }

    fn forget_worker(&mut self, shard: ShardId, key: &WorkerKey, session: SessionId) {
        let (namespace, id) = key.clone();
        let command =
            Command::RemoveWorker(RemoveWorker { id, session: Some(session), forget: true });
        let order = Order { namespace, request: None, command };
        self.enqueue_orders(shard, Asker::Nobody, std::slice::from_ref(&order));
    }

    pub(crate) fn decide_workers(&self, shard: ShardId, now: Now) -> Decision<'static> {
        let seat = &self.seats[usize::from(shard)];
        let present = seat.state.workers().filter(|w| w.standing != WorkerStanding::Removed);
        let workers = present.map(|record| {
            let key = record.key();
            let silence = seat.beats.silence(&key, record.session, now.mono_ms);
            let (heard_ms_ago, busy) = silence.unwrap_or((u64::MAX, 0));
            WorkerTold {
                record: (**record).clone(),
                alive: seat.beats.is_alive(&key, record.session, now.mono_ms),
                heard_ms_ago,
                busy,
                impostor: seat.beats.impostor(&key, now.mono_ms),
            }
        });
        let term = self.consensus.term(shard);
        Decision::Reply(Told::Workers { term, workers: workers.collect() })
    }

    /// Workers that were silent for long are forgotten, so that names which nobody uses again do not add up.
    pub(crate) fn sweep_workers(&mut self, now: Now) {
        let seat = &mut self.seats[0];
        if !seat.leads() || now.mono_ms.saturating_sub(seat.beats.swept_ms) < SWEEP_MS {
            return;
        }
        seat.beats.swept_ms = now.mono_ms;
        let (state, beats) = (&seat.state, &mut seat.beats);
        beats.retain(|key| state.worker(key).is_some());
        let forget_ms = crate::beats::WORKER_FORGET_MS;
        let is_over = |key: &WorkerKey, session| {
            beats.silence(key, session, now.mono_ms).is_none_or(|(ms, _)| ms >= forget_ms)
        };
        let over: Vec<(WorkerKey, SessionId)> = state
            .workers()
            .map(|record| (record.key(), record.session))
            .filter(|(key, session)| is_over(key, *session))
            .take(self.config.expire_per_tick_max)
            .collect();
        for (key, session) in over {
            self.forget_worker(0, &key, session);
        }
    }
}
