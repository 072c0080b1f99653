//! The promises as checks, after every input: the fold, owners and wake-ups, books that agree, verdicts that stay.

use octoflow_engine::{
    Capacity,
    schedule::TaskRef,
    taskset::{Run, status},
};
use octoflow_model::{
    AttemptId, NodeIx, RunId,
    taskset::{ReplicaPhase, RolePhase, SetPhase},
};

use super::Stage;

impl Stage {
    pub(super) fn check(&mut self) {
        let runs: Vec<RunId> = self.facts.keys().copied().filter(|run| self.engine.run(*run).is_some()).collect();
        let (mut placed, mut queued) = (0, 0);
        for run in &runs {
            self.frozen(*run);
            let run = self.run(*run);
            placed += self.pods_agree(run);
            queued += self.owned(run);
            counted(run);
        }
        self.books(placed, queued);
        self.folds(&runs);
    }

    /// A verdict that was reached stays, and so does everything about what is over.
    fn frozen(&mut self, id: RunId) {
        let state = self.run(id).state.clone();
        let roles = state.roles.iter().enumerate().map(|(at, role)| (Some(at), &role.verdict));
        for (at, verdict) in roles.chain([(None, &state.verdict)]) {
            let Some(verdict) = verdict else { continue };
            let before = *self.frozen.entry((id, state.attempt, at)).or_insert(verdict.succeeded);
            assert_eq!(before, verdict.succeeded, "the verdict of role {at:?} changed in attempt {}", state.attempt);
        }
        let before = self.frozen.keys().filter(|(run, attempt, _)| *run == id && *attempt == state.attempt);
        for (_, _, at) in before {
            let now = at.map_or(&state.verdict, |at| &state.roles[at].verdict);
            assert!(now.is_some(), "the verdict of role {at:?} was forgotten");
        }
        if state.over() {
            let word = status::status(self.run(id));
            assert_eq!(*self.last.entry(id).or_insert_with(|| word.clone()), word, "the last word on run {id} changed");
        }
    }

    /// The runtime has exactly what the engine believes it has; how many that are.
    fn pods_agree(&self, run: &Run) -> usize {
        let mut placed = 0;
        for (at, replica) in run.state.replicas.iter().enumerate().filter(|(_, replica)| replica.phase.placed()) {
            placed += 1;
            let attempt = run.attempt_of(at as u32).expect("a placed replica was tried");
            let pod = self.pods.get(&attempt).unwrap_or_else(|| panic!("replica {at} is {}, nowhere", replica.phase));
            assert_eq!(run.pod_of(at as u32).as_ref(), Some(&pod.name));
            let ending = replica.phase == ReplicaPhase::AttemptDeletionRequested;
            assert_eq!(pod.told.is_some(), ending, "{} is {} and was told {:?}", pod.name, replica.phase, pod.told);
        }
        let of_run = |attempt: &&AttemptId| attempt.run == run.id;
        assert_eq!(self.pods.keys().filter(of_run).count(), placed, "the runtime has pods nobody knows of");
        placed
    }

    /// Checks that everything open has an owner or a timer; returns how many replicas are queued.
    fn owned(&self, run: &Run) -> usize {
        let (state, wake_at) = (&run.state, self.engine.wake_at());
        let woken = |at| at > self.now && wake_at.is_some_and(|wake| wake <= at);
        let held = state.head.suspended && !state.closing();
        match state.phase {
            SetPhase::Completed => {
                assert!(
                    state.replicas.iter().all(|one| matches!(one.phase, ReplicaPhase::Completed))
                        || state.unit.is_none()
                );
                assert!(state.finished.is_some());
                return 0;
            }
            SetPhase::AttemptRetryPending => assert!(held || state.wake.is_some_and(woken), "nobody begins it again"),
            SetPhase::AttemptPending => assert!(held, "nobody begins it"),
            SetPhase::AttemptCompleted => panic!("an attempt that is completed goes on at once"),
            SetPhase::AttemptPreparing | SetPhase::AttemptRunning => {
                assert!(
                    !state.roles.iter().all(|role| role.phase == RolePhase::Completed),
                    "all is over but the whole"
                );
                assert!(state.verdict.is_none() && !state.closing());
            }
            SetPhase::AttemptDeletionRequested => assert!(!state.roles.iter().all(|r| r.phase == RolePhase::Completed)),
        }
        if !state.at_work() {
            return 0;
        }
        let mut queued = 0;
        for (at, replica) in state.replicas.iter().enumerate() {
            let role = run.program.role_of(at as u32);
            let judged = state.roles[role].verdict.is_some();
            match replica.phase {
                ReplicaPhase::AttemptPending => {
                    let waits = run.program.roles[role].after.iter();
                    let waits = waits.filter(|(up, _)| state.roles[*up].phase != RolePhase::Completed).count();
                    assert!(held || waits > 0, "replica {at} waits for nothing");
                }
                ReplicaPhase::AttemptPreparing => {
                    queued += 1;
                    assert!(!held, "replica {at} is queued in what is suspended");
                    let task = TaskRef { run: run.id, node: NodeIx(at as u32) };
                    let scheduler = self.engine.scheduler();
                    let gathers = scheduler.gathering(task).is_some_and(|(there, least)| there < least as usize);
                    let why = scheduler.why(task);
                    let short = why.as_ref().is_some_and(|why| why.is_blocked());
                    assert!(gathers || short, "replica {at} is queued though there is room for it: {why:?}");
                }
                ReplicaPhase::AttemptRetryPending => {
                    assert!(held || replica.wake.is_some_and(woken), "nobody tries replica {at} again");
                }
                ReplicaPhase::AttemptAssigned | ReplicaPhase::AttemptRunning => {
                    assert!(replica.wake.is_none_or(woken), "nobody watches the deadline of replica {at}");
                }
                ReplicaPhase::AttemptDeletionRequested | ReplicaPhase::Completed => {}
            }
            let loose = !matches!(replica.phase, ReplicaPhase::AttemptDeletionRequested | ReplicaPhase::Completed);
            assert!(!(judged && loose), "replica {at} is {} though its role is decided", replica.phase);
        }
        queued
    }

    fn books(&self, placed: usize, queued: usize) {
        let scheduler = self.engine.scheduler();
        assert_eq!(scheduler.running(), placed, "room is taken by {} and given to {placed}", scheduler.running());
        assert!(queued <= scheduler.waiting(), "{queued} replicas wait for a scheduler that knows fewer");
    }

    /// Checks that the facts fold to the same state, and that a restored run decides nothing new.
    fn folds(&self, runs: &[RunId]) {
        // Without room nothing that waits can go, however the queue is ordered.
        let (engine, believed, outcome) = self.restored(Capacity { slots: 0, cpu_milli: 0, memory_bytes: 0 });
        for id in runs {
            let live = self.run(*id);
            match engine.run(*id).and_then(|run| run.of::<Run>()) {
                Some(folded) => assert_eq!(folded.state, live.state, "the fold of the facts is not the live state"),
                None => {
                    assert!(live.state.over(), "run {id} is open and cannot be read back");
                    let folded = octoflow_engine::engine::fold(*id, self.facts[id].iter().cloned()).expect("a journal");
                    assert_eq!(folded.of::<Run>().expect("a TaskSet").state, live.state);
                }
            }
        }
        assert!(outcome.decided.is_empty(), "going on decides {:?}", outcome.decided);
        let known: Vec<AttemptId> = believed.iter().map(|(attempt, _)| *attempt).collect();
        let mut there: Vec<AttemptId> = self.pods.keys().copied().collect();
        there.retain(|attempt| runs.contains(&attempt.run));
        assert_eq!(known, there, "a second engine believes in other pods");
        for at in [self.engine.wake_at(), engine.wake_at()].into_iter().flatten() {
            assert!(at > self.now || self.run(runs[0]).state.head.suspended, "a wake-up is overdue");
        }
    }
}

/// The counts of a role are those of its replicas.
fn counted(run: &Run) {
    for (role, plan) in run.state.roles.iter().zip(&run.program.roles) {
        let replicas = &run.state.replicas[plan.first as usize..(plan.first + plan.count) as usize];
        let with = |test: &dyn Fn(&octoflow_engine::taskset::run::Replica) -> bool| {
            replicas.iter().filter(|replica| test(replica)).count() as u32
        };
        assert_eq!(role.succeeded, with(&|one| one.outcome == Some(true)));
        assert_eq!(role.failed, with(&|one| one.outcome == Some(false)));
        assert_eq!(role.up, with(&|one| one.up));
        for phase in [ReplicaPhase::AttemptPending, ReplicaPhase::AttemptRetryPending, ReplicaPhase::Completed] {
            assert_eq!(role.count(phase), with(&|one| one.phase == phase), "{phase}");
        }
        for replica in replicas {
            assert!(replica.outcome.is_none() || replica.phase == ReplicaPhase::Completed, "{replica:?}");
        }
    }
}
