//! The promises as checks, after every input: the fold, owners and wake-ups, books that agree, final phases that stay.

use octoflow_engine::{Capacity, schedule::TaskRef, volcano::Run, volcano::status};
use octoflow_model::{
    AttemptId, NodeIx, RunId,
    volcano::{JobPhase, PodPhase},
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
        if let Some((first, _)) = state.history.iter().find(|(phase, _)| phase.is_final()) {
            assert_eq!(*first, state.phase, "a final phase was left: {:?}", state.history);
        }
        if state.over {
            assert!(state.phase.is_final());
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
        let live = state.pods.iter().any(|pod| !pod.phase.ended() && pod.phase != PodPhase::Absent);
        if state.over {
            assert!(!live && state.finished.is_some() && state.delayed.is_empty());
            return 0;
        }
        let delayed = state.delayed.values().all(|delayed| woken(delayed.due));
        assert!(delayed, "an action is overdue: {:?}", state.delayed);
        let terminating = state.count(PodPhase::Terminating);
        match state.phase {
            // A person resumes it.
            JobPhase::Aborted => assert!(!live && state.head.suspended),
            JobPhase::Pending | JobPhase::Running => {
                let waits = state.awaits.is_some() || state.replicas == 0;
                assert!(live || !state.delayed.is_empty() || waits, "nothing will ever happen to it");
            }
            JobPhase::Restarting => assert!(terminating > 0, "nobody begins it again"),
            JobPhase::Aborting
            | JobPhase::Completing
            | JobPhase::Terminating
            | JobPhase::Completed
            | JobPhase::Failed
            | JobPhase::Terminated => {
                assert!(terminating > 0, "it is {} and nothing is being ended", state.phase);
                let loose = [PodPhase::Queued, PodPhase::Starting, PodPhase::Running, PodPhase::BackOff];
                assert!(loose.iter().all(|phase| state.count(*phase) == 0), "it is {} and pods run", state.phase);
            }
        }
        let mut queued = 0;
        for (at, pod) in state.pods.iter().enumerate() {
            match pod.phase {
                PodPhase::Queued => {
                    queued += 1;
                    let task = TaskRef { run: run.id, node: NodeIx(at as u32) };
                    let scheduler = self.engine.scheduler();
                    // Those that are being ended come back, and a part of the gang may need them.
                    let gathers = terminating > 0
                        || scheduler.gathering(task).is_some_and(|(there, least)| there < least as usize);
                    let why = scheduler.why(task);
                    let short = why.as_ref().is_some_and(|why| why.is_blocked());
                    assert!(
                        gathers || short,
                        "pod {at} is queued though there is room for it: {why:?}\n{:?}",
                        self.facts[&run.id]
                    );
                }
                PodPhase::BackOff => assert!(pod.wake.is_some_and(woken), "nobody starts pod {at} again"),
                PodPhase::Starting | PodPhase::Running => {
                    assert!(pod.wake.is_none_or(woken), "nobody watches the deadline of pod {at}");
                }
                PodPhase::Absent | PodPhase::Terminating | PodPhase::Succeeded | PodPhase::Failed => {}
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

/// The counts of a task are those of its pods.
fn counted(run: &Run) {
    for (task, plan) in run.state.tasks.iter().zip(&run.program.tasks) {
        let pods: Vec<_> = plan.slots().map(|pod| &run.state.pods[pod as usize]).collect();
        for phase in PodPhase::ALL {
            let found = pods.iter().filter(|pod| pod.phase == *phase).count();
            assert_eq!(task.count(*phase) as usize, found, "{phase}");
        }
    }
}
