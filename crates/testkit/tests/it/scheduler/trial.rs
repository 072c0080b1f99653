//! The change that is proposed for whoever waits, tried out beside a world.

use octoflow_engine::schedule::Remedy;

use super::world::World;

/// So many waiting tasks of a world are explained at a time.
const EXPLAINED: usize = 3;

impl World {
    /// The change that is proposed for a task is possible, and lets it go if that is what it says.
    pub(super) fn check_proposals(&mut self) {
        for task in self.waiting.keys().take(EXPLAINED) {
            let Some(proposal) = self.scheduler.propose(*task) else { continue };
            let change = &proposal.change;
            for ends in change.ends() {
                let held = self.count.holders.get(ends);
                let holder = held.unwrap_or_else(|| panic!("{change}: {ends:?} is to end and does not run"));
                if let Remedy::FreeRoom { node: Some(node), .. } = change {
                    assert_eq!(holder.assignment.node, *node, "{change}: {ends:?} runs elsewhere");
                }
            }
            if let Remedy::FreeRoom { node: Some(node), amounts, .. } = change {
                for (resource, amount) in amounts {
                    let used = self.count.used_on(node, resource);
                    assert!(*amount <= used, "{change}: {used} {resource} is in use there");
                }
            }
            if proposal.suffices == Some(true) {
                let goes = self.scheduler.with_change(*task, change).start_all().contains(task);
                assert!(goes, "{task:?} does not go after {change}");
                self.seen.proposals += 1;
            }
        }
    }
}
