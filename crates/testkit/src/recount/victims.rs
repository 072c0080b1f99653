//! Whether running tasks may be ended for another: who is entitled, from whom something may be taken back, and that nobody is
//! ended in vain.

use std::collections::BTreeSet;

use octoflow_engine::schedule::{PreemptionReason, TaskRef, spec::Demand};

use super::{Holder, Recount, gang::key, resources_of, wants};

impl Recount {
    /// Returns what is wrong with ending these tasks for tasks that start at once in one queue. `beside` are the demands of
    /// others whose victims are ending too.
    pub fn victims_problem(
        &self,
        by: &[&Demand],
        beside: &[&Demand],
        victims: &[(TaskRef, PreemptionReason)],
    ) -> Option<String> {
        // Whoever is being ended is as good as gone.
        let mut left = self.clone();
        left.holders.retain(|_, holder| !holder.ending);
        let mut gangs = BTreeSet::new();
        for (task, reason) in victims {
            let Some(victim) = left.holders.get(task) else {
                return Some(format!("{task:?} does not run, or is being ended already"));
            };
            // A gang may be ended as a whole if its first member may.
            let ends_with_others = victim.demand.gang.as_ref().is_some_and(|gang| !gangs.insert(key(gang)));
            let goes_along = ends_with_others && victim.demand.preemptable != Some(false);
            if !goes_along && let Some(why) = left.victim_problem(self, by, beside, victim, *reason) {
                return Some(format!("{task:?} of queue {} may not be ended: {why}", victim.demand.queue));
            }
            left.holders.remove(task);
        }
        self.guarantee_problem(by, victims, &left)
    }

    fn victim_problem(
        &self,
        before: &Self,
        by: &[&Demand],
        beside: &[&Demand],
        victim: &Holder,
        reason: PreemptionReason,
    ) -> Option<String> {
        let preemptor = by.first()?;
        let (queue, demand) = (&victim.demand.queue, &victim.demand);
        if demand.preemptable == Some(false) {
            return Some("it must not be preempted".to_owned());
        }
        match reason {
            PreemptionReason::LowerClass => {
                let Some(class) = self.declared.class(preemptor).filter(|class| class.preempts) else {
                    return Some("the other's class does not preempt".to_owned());
                };
                if preemptor.queue != *queue {
                    return Some("classes count inside of a queue only".to_owned());
                }
                if self.declared.class(demand).map_or(0, |class| class.value) >= class.value {
                    return Some("its class is not lower".to_owned());
                }
                // What starts in its place is in the same queue, so that has as much afterwards.
                let volunteers = demand.preemptable == Some(true) || before.is_over(queue);
                (!volunteers).then(|| "it did not agree, and its queue is not above its share".to_owned())
            }
            PreemptionReason::Reclaimed => {
                let (ours, theirs) = (self.declared.path(&preemptor.queue), self.declared.path(queue));
                let below = |path: &[String], other: &[String]| -> Vec<String> {
                    path.iter().filter(|queue| !other.contains(queue)).cloned().collect()
                };
                let (above_us, above_them) = (below(&ours, &theirs), below(&theirs, &ours));
                if above_us.is_empty() {
                    return Some("nothing is taken back inside of a queue".to_owned());
                }
                let hard = above_them.iter().find(|name| self.declared.queue(name).is_some_and(|one| !one.reclaimable));
                if let Some(hard) = hard {
                    return Some(format!("nothing is taken back from {hard}"));
                }
                let wanted: BTreeSet<&str> = by.iter().flat_map(|demand| resources_of(demand)).collect();
                // Of what its queue is not judged by, nothing is due to it.
                if !wanted.iter().any(|resource| self.declared.is_judged(&preemptor.queue, resource)) {
                    return Some("nothing of what is wanted is due to that queue".to_owned());
                }
                for resource in &wanted {
                    let more: u64 = by.iter().map(|demand| wants(demand, resource)).sum();
                    for name in above_us.iter().filter(|name| self.declared.is_judged(name, resource)) {
                        let beside = beside.iter().filter(|other| self.declared.path(&other.queue).contains(name));
                        let beside: u64 = beside.map(|other| wants(other, resource)).sum();
                        let used = self.used_by(name, resource);
                        let deserved = self.declared.deserved(name, resource);
                        if used + beside + more > deserved {
                            return Some(format!(
                                "queue {name} uses {used} of {deserved} {resource}, {beside} will follow, and {more} more is wanted"
                            ));
                        }
                    }
                }
                let over = |name: &String| {
                    wanted.iter().any(|resource| {
                        wants(demand, resource) > 0
                            && self.declared.is_judged(name, resource)
                            && self.used_by(name, resource) > self.declared.deserved(name, resource)
                    })
                };
                let modest = above_them.iter().find(|name| !over(name));
                modest.map(|name| format!("queue {name} uses no more than it deserves of what is wanted"))
            }
        }
    }

    /// Reports whether a queue uses more than it deserves of some resource.
    pub fn is_over(&self, queue: &str) -> bool {
        self.declared.resources().iter().any(|resource| {
            self.declared.is_judged(queue, resource)
                && self.used_by(queue, resource) > self.declared.deserved(queue, resource)
        })
    }

    /// Returns the queue that has less than its guarantee afterwards, with what then starts.
    fn guarantee_problem(
        &self,
        by: &[&Demand],
        victims: &[(TaskRef, PreemptionReason)],
        left: &Self,
    ) -> Option<String> {
        let queue = &by.first()?.queue;
        for (task, _) in victims {
            let Some(victim) = self.holders.get(task) else { continue };
            for name in self.declared.path(&victim.demand.queue) {
                let Some(spec) = self.declared.queue(&name) else { continue };
                for (resource, least) in &spec.guarantee {
                    let ours = self.declared.path(queue).contains(&name);
                    let more: u64 = if ours { by.iter().map(|demand| wants(demand, resource)).sum() } else { 0 };
                    let used = left.used_by(&name, resource) + more;
                    if wants(&victim.demand, resource) > 0 && used < *least {
                        return Some(format!(
                            "queue {name} is left with {used} {resource} of the {least} it is guaranteed"
                        ));
                    }
                }
            }
        }
        None
    }

    /// Returns a task that may be ended for one that waits, and whose end alone lets that start.
    pub fn sufficient_victim(&self, by: &Demand) -> Option<(TaskRef, PreemptionReason)> {
        let alone = self.holders.iter().filter(|(_, holder)| !holder.ending && holder.demand.gang.is_none());
        let each = alone.flat_map(|(task, _)| {
            [PreemptionReason::Reclaimed, PreemptionReason::LowerClass].map(|reason| (*task, reason))
        });
        each.into_iter().find(|victim| {
            self.victims_problem(&[by], &[], &[*victim]).is_none() && {
                let mut without = self.clone();
                without.holders.remove(&victim.0);
                without.could_start(by).is_some()
            }
        })
    }

    /// Returns the victim without whose end one task could start as well. A gang ends as a whole or not at all,
    /// so `together` tells who ends with whom.
    pub fn needless_victim(
        &self,
        by: &Demand,
        victims: &[(TaskRef, PreemptionReason)],
        together: impl Fn(TaskRef, TaskRef) -> bool,
    ) -> Option<TaskRef> {
        let mut after = self.clone();
        after.holders.retain(|_, holder| !holder.ending);
        victims.iter().map(|(task, _)| *task).find(|spared| {
            let mut without = after.clone();
            let ended =
                |task: &TaskRef| victims.iter().any(|(victim, _)| victim == task && !together(*victim, *spared));
            without.holders.retain(|task, _| !ended(task));
            without.could_start(by).is_some()
        })
    }
}
