//! Which members of which gangs have started: as many as a gang needs, or none.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use octoflow_engine::schedule::{Gang, TaskRef};
use octoflow_model::RunId;

/// A gang by namespace, name and the run that it is of alone.
pub type Key = (Arc<str>, Arc<str>, Option<RunId>);

pub fn key(gang: &Gang) -> Key {
    (gang.namespace.clone(), gang.name.clone(), gang.own)
}

/// Members that have started and were not preempted since, by gang.
#[derive(Clone, Debug, Default)]
pub struct StartedGangs {
    members: BTreeMap<Key, BTreeMap<TaskRef, Gang>>,
    /// Gangs one of whose members has started since the last check.
    touched: BTreeSet<Key>,
}

impl StartedGangs {
    pub fn start(&mut self, task: TaskRef, gang: &Gang) {
        self.restore(task, gang);
        self.touched.insert(key(gang));
    }

    pub fn restore(&mut self, task: TaskRef, gang: &Gang) {
        self.members.entry(key(gang)).or_default().insert(task, gang.clone());
    }

    pub fn quit(&mut self, task: TaskRef) {
        self.members.values_mut().for_each(|members| drop(members.remove(&task)));
    }

    /// Iterates over all members that have started.
    pub fn all(&self) -> impl Iterator<Item = (TaskRef, &Gang)> {
        self.members.values().flatten().map(|(task, gang)| (*task, gang))
    }

    /// Reports whether as many members of a gang have started as it needs.
    pub fn is_formed(&self, gang: &Gang) -> bool {
        self.members.get(&key(gang)).is_some_and(|members| lacks(members).is_none())
    }

    /// Returns the members of a gang that have started.
    pub fn started(&self, gang: &Gang) -> BTreeSet<TaskRef> {
        self.members.get(&key(gang)).into_iter().flatten().map(|(task, _)| *task).collect()
    }

    /// Returns the gang of which a member has started since the last call, though too few of it have.
    pub fn half_started(&mut self) -> Option<String> {
        std::mem::take(&mut self.touched).into_iter().find_map(|key| {
            // All of it may have been ended at once for others.
            let members = self.members.get(&key).filter(|members| !members.is_empty())?;
            Some(format!("gang {} started with {} members: {}", key.1, members.len(), lacks(members)?))
        })
    }
}

fn lacks(members: &BTreeMap<TaskRef, Gang>) -> Option<String> {
    let gang = members.values().next_back();
    let Some(gang) = gang else { return Some("nobody has".to_owned()) };
    if members.len() < gang.least as usize {
        return Some(format!("{} have to start at once", gang.least));
    }
    gang.least_of.iter().find_map(|(part, least)| {
        let count = members.values().filter(|member| *member.part == **part).count();
        (count < *least as usize).then(|| format!("{count} of part {part}, and {least} have to"))
    })
}
