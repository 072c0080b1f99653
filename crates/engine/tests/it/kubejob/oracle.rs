//! What Kubernetes says about a job, worked out anew after every step from the list of what happened to its pods. It keeps no
//! counters: only the list, and how the job was decided.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_model::Time;

/// A random job.
#[derive(Clone, Debug, Default)]
pub(super) struct Scheme {
    pub(super) completions: Option<u32>,
    pub(super) parallelism: u32,
    pub(super) indexed: bool,
    pub(super) limit: u32,
    pub(super) per_index: Option<u32>,
    pub(super) max_failed: Option<u32>,
    pub(super) deadline: Option<u64>,
    pub(super) restarts: bool,
    /// A pod that is being ended keeps its place.
    pub(super) waits: bool,
    /// Rules about exit codes, in order; an empty code is a disruption.
    pub(super) rules: Vec<(Option<i32>, &'static str)>,
    /// Rules of the success policy: indexes, and how many of them.
    pub(super) success: Vec<(Vec<u32>, u32)>,
}

/// Who had a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The job wants fewer pods.
    Job,
    /// The job is decided: it has succeeded, or failed.
    Over(bool),
    /// A person deleted it.
    User,
    /// The scheduler, or a drained node.
    Scheduler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Made,
    Restarted(i32),
    Told(Who),
    /// It is gone; without a code it was lost, or never ran.
    Ended(Option<i32>),
}

/// What a pod counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Good,
    Counts,
    FailsIndex,
    FailsJob,
    Ignored,
    Nothing,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Oracle {
    pub(super) scheme: Scheme,
    /// Everything that happened, in order: when, to which pod, what.
    pub(super) log: Vec<(Time, usize, What)>,
    /// Indexes of the pods.
    pub(super) pods: Vec<Option<u32>>,
    pub(super) suspended: bool,
    pub(super) stopped: bool,
    pub(super) started: Time,
    /// How it was decided: the reason, and whether it succeeded.
    pub(super) verdict: Option<(&'static str, bool)>,
}

/// What the list says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recount {
    pub(super) active: BTreeSet<usize>,
    pub(super) terminating: BTreeSet<usize>,
    pub(super) succeeded: u32,
    pub(super) failed: u32,
    pub(super) good_indexes: BTreeSet<u32>,
    pub(super) bad_indexes: BTreeSet<u32>,
    pub(super) restarts: u32,
    /// A rule has failed the job.
    pub(super) fatal: bool,
    /// No new pod before this time.
    pub(super) pause: Option<Time>,
    /// An index waits for its own time.
    pub(super) index_pauses: bool,
}

impl Oracle {
    fn has(&self, pod: usize, wanted: impl Fn(What) -> bool) -> Option<(usize, Time, What)> {
        let found = self.log.iter().enumerate().find(|(_, (_, of, what))| *of == pod && wanted(*what));
        found.map(|(at, (time, _, what))| (at, *time, *what))
    }

    fn failure(&self, code: Option<i32>, disrupted: bool) -> Fate {
        let applies = |(wanted, _): &&(Option<i32>, &str)| match wanted {
            Some(wanted) => code == Some(*wanted),
            None => disrupted,
        };
        match self.scheme.rules.iter().find(applies).map(|(_, action)| *action) {
            Some("Ignore") => Fate::Ignored,
            Some("FailJob") => Fate::FailsJob,
            Some("FailIndex") => Fate::FailsIndex,
            Some(_) | None => Fate::Counts,
        }
    }

    /// What a pod counts as, and the place in the list where that was decided.
    fn fate(&self, pod: usize) -> Option<(usize, Time, Fate)> {
        let told = self.has(pod, |what| matches!(what, What::Told(_)));
        let end = self.has(pod, |what| matches!(what, What::Ended(_)));
        let by_end = |disrupted: bool| {
            let (at, time, What::Ended(code)) = end? else { unreachable!("it was looked for") };
            // What was started again last ended like this.
            let last = self.log[..at].iter().rev().find_map(|(_, of, what)| match what {
                What::Restarted(code) if *of == pod && told.is_some() => Some(*code),
                _ => None,
            });
            let lost = code.is_none() && told.is_none();
            match code {
                Some(0) => Some((at, time, Fate::Good)),
                code => Some((at, time, self.failure(code.or(last), disrupted || lost))),
            }
        };
        let Some((at, time, What::Told(who))) = told else { return by_end(false) };
        match who {
            Who::Job => Some((at, time, Fate::Nothing)),
            Who::Over(false) => Some((at, time, self.failure(None, false))),
            Who::Over(true) | Who::User | Who::Scheduler if !self.scheme.waits => {
                Some((at, time, self.failure(None, false)))
            }
            Who::Over(true) | Who::User => by_end(false),
            Who::Scheduler => by_end(true),
        }
    }

    pub(super) fn recount(&self, now: Time) -> Recount {
        let mut found = Recount::default();
        let mut fates: Vec<(usize, Time, usize, Fate)> = Vec::new();
        for pod in 0..self.pods.len() {
            let told = self.has(pod, |what| matches!(what, What::Told(_))).is_some();
            let ended = self.has(pod, |what| matches!(what, What::Ended(_))).is_some();
            if !told && !ended {
                found.active.insert(pod);
                let again = |(_, of, what): &&(Time, usize, What)| *of == pod && matches!(what, What::Restarted(_));
                found.restarts += self.log.iter().filter(again).count() as u32;
            }
            if told && !ended {
                found.terminating.insert(pod);
            }
            fates.extend(self.fate(pod).map(|(at, time, fate)| (at, time, pod, fate)));
        }
        fates.sort_unstable_by_key(|(at, ..)| *at);
        let mut row: Vec<Time> = Vec::new();
        let mut of_index: BTreeMap<u32, Vec<(Time, bool)>> = BTreeMap::new();
        for (_, time, pod, fate) in fates {
            let index = self.pods[pod];
            match fate {
                Fate::Good => {
                    found.good_indexes.extend(index);
                    found.succeeded += u32::from(index.is_none());
                    row.clear();
                }
                Fate::Nothing => {}
                Fate::Counts | Fate::FailsIndex | Fate::FailsJob | Fate::Ignored => {
                    row.push(time);
                    found.failed += u32::from(fate != Fate::Ignored);
                    found.fatal |= fate == Fate::FailsJob;
                    let (Some(index), Some(most)) = (index, self.scheme.per_index) else { continue };
                    let before = of_index.entry(index).or_default();
                    let counted = before.iter().filter(|(_, counts)| *counts).count() as u32;
                    if fate == Fate::FailsIndex || fate != Fate::Ignored && counted >= most {
                        found.bad_indexes.insert(index);
                    }
                    before.push((time, fate != Fate::Ignored));
                }
            }
        }
        if self.scheme.indexed {
            found.succeeded = found.good_indexes.len() as u32;
        }
        let due = |times: usize, last: Time| last.saturating_add(std::time::Duration::from_secs(delay(times)));
        found.pause = row.last().map(|last| due(row.len(), *last)).filter(|at| *at > now);
        found.index_pauses =
            of_index.values().any(|all| all.last().is_some_and(|(last, _)| due(all.len(), *last) > now));
        found
    }

    /// Decides the job, if it is not decided and the list says how.
    pub(super) fn judge(&mut self, now: Time) {
        let found = self.recount(now);
        let scheme = &self.scheme;
        let past = scheme.deadline.is_some_and(|span| {
            !self.suspended && now >= self.started.saturating_add(std::time::Duration::from_secs(span))
        });
        let all = scheme.completions.filter(|_| scheme.indexed);
        let bad = found.bad_indexes.len() as u32;
        let holds = |(indexes, count): &(Vec<u32>, u32)| {
            indexes.iter().filter(|index| found.good_indexes.contains(index)).count() as u32 >= *count
        };
        let enough = match scheme.completions {
            Some(wanted) => found.succeeded >= wanted,
            None => found.succeeded > 0 && found.active.is_empty(),
        };
        let verdict = if found.fatal {
            ("PodFailurePolicy", false)
        } else if self.stopped {
            ("Stopped", false)
        } else if found.failed > scheme.limit || scheme.restarts && found.restarts >= scheme.limit.max(1) {
            ("BackoffLimitExceeded", false)
        } else if past {
            ("DeadlineExceeded", false)
        } else if all.is_some() && scheme.max_failed.is_some_and(|most| bad > most) {
            ("MaxFailedIndexesExceeded", false)
        } else if bad > 0 && all.is_some_and(|all| bad + found.succeeded >= all) {
            ("FailedIndexes", false)
        } else if scheme.success.iter().any(holds) {
            ("SuccessPolicy", true)
        } else if enough {
            ("CompletionsReached", true)
        } else {
            return;
        };
        self.verdict.get_or_insert(verdict);
    }

    /// The fewest and the most pods that may be active now.
    pub(super) fn bounds(&self, now: Time) -> (u32, u32) {
        let found = self.recount(now);
        if self.verdict.is_some() || self.suspended {
            return (0, 0);
        }
        let scheme = &self.scheme;
        let wanted = match scheme.completions {
            Some(all) => all.saturating_sub(found.succeeded).min(scheme.parallelism),
            None => scheme.parallelism,
        };
        let leaving = if scheme.waits { found.terminating.len() as u32 } else { 0 };
        let mut most = wanted;
        if let Some(all) = scheme.completions.filter(|_| scheme.indexed) {
            let done = found.good_indexes.union(&found.bad_indexes).count() as u32;
            most = most.min(all - done);
        }
        let paused = if scheme.per_index.is_some() { found.index_pauses } else { found.pause.is_some() };
        let queue_done = scheme.completions.is_none() && found.succeeded > 0;
        let least = if paused || queue_done { 0 } else { most.saturating_sub(leaving) };
        (least, most)
    }
}

fn delay(times: usize) -> u64 {
    [0, 10, 20, 40, 80, 160, 320].get(times).copied().unwrap_or(360)
}
