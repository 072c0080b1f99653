//! Watches of runs from their submission on: every durable fact must be delivered once and in order, through failed writes
//! as well. A crash ends them, as it closes the connections of real clients.

use std::{
    collections::BTreeMap,
    sync::mpsc::{self, Receiver, Sender, TryRecvError},
};

use octoflow_model::{Fact, RunId};

use super::{
    disk::Disk,
    failure::{Broken, Guarantee, broken},
};

#[derive(Default)]
pub(super) struct FactWatches(BTreeMap<RunId, FactWatch>);

struct FactWatch {
    facts: Receiver<Vec<Fact>>,
    /// How many were delivered.
    delivered: usize,
    /// The submission was acknowledged; until then the run may never exist.
    accepted: bool,
    closed: bool,
}

impl FactWatches {
    /// Begins to watch a run that is submitted now. An earlier submission of the same run came to nothing.
    pub(super) fn begin(&mut self, run: RunId) -> Sender<Vec<Fact>> {
        let (sender, facts) = mpsc::channel();
        self.0.insert(run, FactWatch { facts, delivered: 0, accepted: false, closed: false });
        sender
    }

    pub(super) fn accepted(&mut self, run: RunId) {
        if let Some(watch) = self.0.get_mut(&run) {
            watch.accepted = true;
        }
    }

    /// Whoever was refused listens no more.
    pub(super) fn refused(&mut self, run: RunId) {
        self.0.remove(&run);
    }

    /// Compares what was delivered with what is durable. To be called while no durable commit waits to be settled.
    pub(super) fn check(&mut self, disk: &Disk) -> Result<(), Broken> {
        for (run, watch) in self.0.iter_mut().filter(|(_, watch)| watch.accepted) {
            let kept = disk.facts_from(*run, watch.delivered);
            let mut delivered = 0;
            loop {
                match watch.facts.try_recv() {
                    Ok(facts) if kept.get(delivered..delivered + facts.len()) == Some(&facts[..]) => {
                        delivered += facts.len();
                    }
                    Ok(facts) => {
                        let place = watch.delivered + delivered;
                        let what = format!("the watch of run {run} gets {facts:?} in the place of fact {place}");
                        return broken(Guarantee::Watched, what);
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        watch.closed = true;
                        break;
                    }
                }
            }
            if let Some(missing) = kept.get(delivered) {
                return broken(Guarantee::Watched, format!("the watch of run {run} never gets {missing:?}"));
            }
            watch.delivered += delivered;
        }
        Ok(())
    }

    /// Every run is over: every watch must be closed.
    pub(super) fn check_closed(&self) -> Result<(), Broken> {
        match self.0.iter().find(|(_, watch)| watch.accepted && !watch.closed) {
            Some((run, _)) => broken(Guarantee::Watched, format!("run {run} is over and its watch is still open")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use octoflow_model::{
        RunFact, Time,
        submission::{Stored, Submission, SubmitContext},
    };

    use super::*;

    /// A disk with the run and two facts of it, and those facts.
    fn disk() -> (Disk, Vec<Fact>) {
        let manifest = serde_json::json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "spec": {"entrypoint": "a", "templates": [{"name": "a", "suspend": {}}]},
        });
        let submission = Submission {
            name: "w".to_owned(),
            namespace: "default".to_owned(),
            uid: "uid-1".to_owned(),
            at: Time(1),
            manifest,
            stored: Stored::default(),
            previous: None,
            parent: None,
            ordered_by: None,
            context: SubmitContext::default(),
        };
        let submitted = Fact::Run(RunFact::Submitted(Box::new(submission)));
        let facts = vec![submitted, Fact::Run(RunFact::Suspended { at: Time(1) })];
        let mut disk = Disk::default();
        disk.append(&[(RunId(1), facts.clone())]).unwrap();
        (disk, facts)
    }

    #[test]
    fn facts_that_are_missing_or_come_twice_are_noticed() {
        let (disk, facts) = disk();
        let outcome = |deliveries: &[&[Fact]]| {
            let mut watches = FactWatches::default();
            let sender = watches.begin(RunId(1));
            deliveries.iter().for_each(|facts| sender.send(facts.to_vec()).unwrap());
            watches.accepted(RunId(1));
            watches.check(&disk).map_err(|(guarantee, _)| guarantee)
        };
        assert_eq!(outcome(&[&facts]), Ok(()));
        assert_eq!(outcome(&[&facts[..1], &facts[1..]]), Ok(()));
        assert_eq!(outcome(&[&facts[..1]]), Err(Guarantee::Watched));
        assert_eq!(outcome(&[&facts[1..]]), Err(Guarantee::Watched));
        assert_eq!(outcome(&[&facts, &facts[1..]]), Err(Guarantee::Watched));
    }

    #[test]
    fn a_watch_that_outlives_its_run_is_noticed() {
        let (disk, facts) = disk();
        let mut watches = FactWatches::default();
        let sender = watches.begin(RunId(1));
        sender.send(facts).unwrap();
        watches.accepted(RunId(1));
        watches.check(&disk).unwrap();
        assert!(watches.check_closed().is_err());
        drop(sender);
        watches.check(&disk).unwrap();
        watches.check_closed().unwrap();
    }
}
