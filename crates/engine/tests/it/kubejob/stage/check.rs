//! The promises as checks, after every input: the fold, owners and wake-ups, books that agree, final phases that stay.

use octoflow_engine::{Capacity, kubejob::Run, kubejob::status, schedule::TaskRef};
use octoflow_model::{
    AttemptId, NodeIx, RunId,
    kubejob::{JobPhase, PodPhase},
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

    /// A final phase stays, and so does everything about what is over.
    fn frozen(&mut self, id: RunId) {
        let state = self.run(id).state.clone();
        if state.over {
            assert!(matches!(state.phase(), JobPhase::Complete | JobPhase::Failed));
            let word = status::status(self.run(id));
            assert_eq!(*self.last.entry(id).or_insert_with(|| word.clone()), word, "the last word on run {id} changed");
        }
    }

    /// The runtime has exactly what the engine believes it has; how many keep room.
    fn pods_agree(&self, run: &Run) -> usize {
        let (mut placed, mut held) = (0, 0);
        for (at, pod) in run.state.pods.iter().enumerate() {
            held += usize::from(pod.phase == PodPhase::BackOff);
            if !pod.phase.placed() {
                continue;
            }
            placed += 1;
            let attempt = run.attempt_of(at as u32).expect("a placed pod was tried");
            let there = self.pods.get(&attempt).unwrap_or_else(|| panic!("pod {at} is {}, nowhere", pod.phase));
            assert_eq!(run.pod_name(at as u32), there.name);
            let ending = pod.phase == PodPhase::Terminating;
            assert_eq!(there.told.is_some(), ending, "{} is {} and was told {:?}", there.name, pod.phase, there.told);
        }
        let of_run = |attempt: &&AttemptId| attempt.run == run.id;
        assert_eq!(self.pods.keys().filter(of_run).count(), placed, "the runtime has pods nobody knows of");
        placed + held
    }

    /// Checks that everything open has an owner or a timer; returns how many pods are queued.
    fn owned(&self, run: &Run) -> usize {
        let (state, wake_at) = (&run.state, self.engine.wake_at());
        let woken = |at| at > self.now && wake_at.is_some_and(|wake| wake <= at);
        if state.over {
            assert!(state.open.is_empty() && state.finished.is_some() && state.judgement.is_some());
            return 0;
        }
        let open = !state.open.is_empty();
        match state.phase() {
            JobPhase::Suspended => assert_eq!(state.active(), 0, "a suspended job has no pods"),
            JobPhase::SuccessCriteriaMet | JobPhase::FailureTarget => {
                assert!(open && state.active() == 0, "it is decided, and only waits for pods that are being ended");
            }
            JobPhase::Running => {
                let paused = state.settings.parallelism == 0;
                assert!(open || paused || wake_at.is_some_and(|at| at > self.now), "nothing will ever happen to it");
            }
            phase @ (JobPhase::Pending | JobPhase::Complete | JobPhase::Failed) => panic!("it is open and {phase}"),
        }
        let mut queued = 0;
        for (at, pod) in state.pods.iter().enumerate() {
            match pod.phase {
                PodPhase::Queued => {
                    queued += 1;
                    let task = TaskRef { run: run.id, node: NodeIx(at as u32) };
                    let why = self.engine.scheduler().why(task);
                    let short = why.as_ref().is_some_and(|why| why.is_blocked());
                    assert!(short, "pod {at} is queued though there is room for it: {why:?}");
                }
                PodPhase::BackOff => assert!(pod.wake.is_some_and(woken), "nobody starts pod {at} again"),
                PodPhase::Starting | PodPhase::Running => {
                    assert!(pod.wake.is_none_or(woken), "nobody watches the deadline of pod {at}");
                }
                PodPhase::Terminating | PodPhase::Succeeded | PodPhase::Failed | PodPhase::Gone => {}
            }
        }
        queued
    }

    fn books(&self, placed: usize, queued: usize) {
        let scheduler = self.engine.scheduler();
        assert_eq!(scheduler.running(), placed, "room is taken by {} and given to {placed}", scheduler.running());
        assert!(queued <= scheduler.waiting(), "{queued} pods wait for a scheduler that knows fewer");
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
                    assert!(live.state.over, "run {id} is open and cannot be read back");
                    let folded = octoflow_engine::engine::fold(*id, self.facts[id].iter().cloned()).expect("a journal");
                    assert_eq!(folded.of::<Run>().expect("a Job").state, live.state);
                }
            }
        }
        assert!(outcome.decided.is_empty(), "going on decides {:?}", outcome.decided);
        let known: Vec<AttemptId> = believed.iter().map(|(attempt, _)| *attempt).collect();
        let mut there: Vec<AttemptId> = self.pods.keys().copied().collect();
        there.retain(|attempt| runs.contains(&attempt.run));
        assert_eq!(known, there, "a second engine believes in other pods");
        for at in [self.engine.wake_at(), engine.wake_at()].into_iter().flatten() {
            assert!(at > self.now, "a wake-up is overdue");
        }
    }
}

/// The counts are those of the pods, and no index has two pods unless one of them is being ended.
fn counted(run: &Run) {
    let pods = &run.state.pods;
    for phase in PodPhase::ALL {
        let found = pods.iter().filter(|pod| pod.phase == *phase).count();
        assert_eq!(run.state.count(*phase) as usize, found, "{phase}");
    }
    let open: Vec<u32> = (0..pods.len() as u32).filter(|pod| run.state.open.contains(pod)).collect();
    let wanted = |pod: &octoflow_engine::kubejob::run::Pod| pod.phase.active() || pod.phase == PodPhase::Terminating;
    assert_eq!(open.len(), pods.iter().filter(|pod| wanted(pod)).count());
    let keeps = |phase: PodPhase| phase.active() || phase == PodPhase::Terminating && run.program.waits_for_ends();
    let mut taken: Vec<u32> = pods.iter().filter(|pod| keeps(pod.phase)).filter_map(|pod| pod.index).collect();
    taken.sort_unstable();
    assert!(taken.windows(2).all(|two| two[0] != two[1]), "two pods have one index: {taken:?}");
    let restarts: u32 = pods.iter().filter(|pod| pod.phase.active()).map(|pod| pod.restarts).sum();
    assert_eq!(run.state.restarts, restarts);
}
