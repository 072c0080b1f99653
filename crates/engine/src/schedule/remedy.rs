//! The smallest change that lets a waiting task go: what is lacking is turned into changes, small ones first, and each is
//! tried out in a copy until one is enough. Only changes that somebody could make are proposed. It only reads.

mod candidates;
mod ends;
mod least;

use std::fmt;

use octoflow_model::task::Labels;

use super::{Scheduler, TaskRef, spec::Quantities, units::UnitIx};
use crate::pod::quantity::render;
use least::Trial;

/// A change that somebody could make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    CreateQueue {
        queue: String,
    },
    /// So many more members of its gang.
    AddMembers {
        missing: usize,
    },
    RaiseCapability {
        queue: String,
        to: Quantities,
    },
    LowerGuarantee {
        queue: String,
        to: Quantities,
    },
    /// Tasks of a queue and those below it end, which hold so much.
    FreeQuota {
        queue: String,
        amounts: Quantities,
        ends: Vec<TaskRef>,
    },
    Uncordon {
        node: String,
    },
    RemoveTaint {
        node: String,
        key: String,
    },
    LabelNode {
        node: String,
        labels: Labels,
    },
    /// The node is declared to have more.
    RaiseCapacity {
        node: String,
        to: Quantities,
    },
    /// Tasks on a node end, or wherever the members of a gang can be, which hold so much.
    FreeRoom {
        node: Option<String>,
        amounts: Quantities,
        ends: Vec<TaskRef>,
    },
    /// With labels where those of the other nodes were declared.
    AddNode {
        capacity: Quantities,
        labels: Labels,
    },
}

/// A change, and whether it is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub change: Remedy,
    /// False if more is needed, which the next explanation tells. `None`: so much waits that it was not tried out.
    pub suffices: Option<bool>,
}

impl Scheduler {
    /// Proposes the smallest change that lets a task go; `None` if it does not wait, or will start without one.
    pub fn propose(&self, task: TaskRef) -> Option<Proposal> {
        let candidates = self.candidates_for(task);
        let first = candidates.first()?.clone();
        if !self.may_try() {
            return Some(Proposal { change: first, suffices: None });
        }
        let mut helps = None;
        let mut enough: Option<Remedy> = None;
        for base in candidates {
            // Whatever costs less comes first; of one kind there may be a smaller one on another node.
            if enough.as_ref().is_some_and(|known| known.rank() != base.rank()) {
                break;
            }
            match self.enough(task, &base) {
                Trial::Enough(change) => {
                    if enough.as_ref().is_none_or(|known| self.size(&change) < self.size(known)) {
                        enough = Some(change);
                    }
                }
                Trial::Helps if helps.is_none() => helps = Some(base),
                Trial::Helps | Trial::Useless => {}
            }
        }
        Some(match enough {
            Some(change) => Proposal { change, suffices: Some(true) },
            // Whoever lets one before it go brings it nearer.
            None => Proposal { change: helps.unwrap_or(first), suffices: Some(false) },
        })
    }

    /// Returns the unit that a task starts with, or that it follows: members above the least wait for what the first ones
    /// wait for.
    fn unit_of(&self, task: TaskRef) -> Option<UnitIx> {
        let first = || self.gangs.of(task).and_then(|gang| self.gangs.get(gang)?.unit);
        self.waiting.get(&task)?.unit.or_else(first)
    }
}

impl Remedy {
    /// Orders changes: what costs nobody anything comes first.
    fn rank(&self) -> u8 {
        match self {
            Self::CreateQueue { .. } | Self::AddMembers { .. } => 0,
            Self::Uncordon { .. } => 1,
            Self::RaiseCapability { .. } => 2,
            Self::FreeRoom { .. } | Self::FreeQuota { .. } => 3,
            Self::LowerGuarantee { .. } => 4,
            Self::LabelNode { .. } => 5,
            Self::RemoveTaint { .. } => 6,
            Self::RaiseCapacity { .. } => 7,
            Self::AddNode { .. } => 8,
        }
    }

    /// Returns the amounts that may be larger or smaller, unless they follow from the tasks that end.
    fn amounts_mut(&mut self) -> Option<&mut Quantities> {
        match self {
            Self::RaiseCapability { to, .. } | Self::LowerGuarantee { to, .. } | Self::RaiseCapacity { to, .. } => {
                Some(to)
            }
            Self::AddNode { capacity, .. } => Some(capacity),
            Self::CreateQueue { .. }
            | Self::AddMembers { .. }
            | Self::FreeQuota { .. }
            | Self::Uncordon { .. }
            | Self::RemoveTaint { .. }
            | Self::LabelNode { .. }
            | Self::FreeRoom { .. } => None,
        }
    }

    /// Returns what the tasks hold that end.
    fn freed(&self) -> Option<&Quantities> {
        match self {
            Self::FreeQuota { amounts, .. } | Self::FreeRoom { amounts, .. } => Some(amounts),
            Self::CreateQueue { .. }
            | Self::AddMembers { .. }
            | Self::RaiseCapability { .. }
            | Self::LowerGuarantee { .. }
            | Self::Uncordon { .. }
            | Self::RemoveTaint { .. }
            | Self::LabelNode { .. }
            | Self::RaiseCapacity { .. }
            | Self::AddNode { .. } => None,
        }
    }

    /// Returns the tasks that end.
    pub fn ends(&self) -> &[TaskRef] {
        match self {
            Self::FreeQuota { ends, .. } | Self::FreeRoom { ends, .. } => ends,
            Self::CreateQueue { .. }
            | Self::AddMembers { .. }
            | Self::RaiseCapability { .. }
            | Self::LowerGuarantee { .. }
            | Self::Uncordon { .. }
            | Self::RemoveTaint { .. }
            | Self::LabelNode { .. }
            | Self::RaiseCapacity { .. }
            | Self::AddNode { .. } => &[],
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateQueue { queue } => write!(f, "create queue '{queue}'"),
            Self::AddMembers { missing } => write!(f, "submit {missing} more of its gang"),
            Self::RaiseCapability { queue, to } => {
                write!(f, "raise the capability of queue '{queue}' to {}", listed(to))
            }
            Self::LowerGuarantee { queue, to } => write!(f, "lower the guarantee of queue '{queue}' to {}", listed(to)),
            Self::FreeQuota { queue, amounts, .. } => write!(f, "free {} in queue '{queue}'", listed(amounts)),
            Self::Uncordon { node } => write!(f, "uncordon node {node}"),
            Self::RemoveTaint { node, key } => write!(f, "remove the taint {key} from node {node}"),
            Self::LabelNode { node, labels } => {
                write!(f, "label node {node} with {}", pairs(labels))
            }
            Self::RaiseCapacity { node, to } => write!(f, "give node {node} {}", listed(to)),
            Self::FreeRoom { node: Some(node), amounts, .. } => write!(f, "free {} on node {node}", listed(amounts)),
            Self::FreeRoom { node: None, amounts, .. } => write!(f, "free {}", listed(amounts)),
            Self::AddNode { capacity, labels } => {
                write!(f, "add a node with {}", listed(capacity))?;
                if labels.is_empty() { Ok(()) } else { write!(f, ", labelled {}", pairs(labels)) }
            }
        }
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.suffices {
            Some(true) => write!(f, "{}", self.change),
            None => write!(f, "{}, which was not tried because so many tasks wait and run", self.change),
            Some(false) => write!(f, "{}, which alone is not enough", self.change),
        }
    }
}

fn pairs(labels: &Labels) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

/// Writes amounts as people do.
pub(super) fn listed(amounts: &Quantities) -> String {
    let listed = amounts.iter().map(|(name, much)| match name.as_str() {
        "pods" if *much == 1 => "1 place for a task".to_owned(),
        "pods" => format!("{much} places for tasks"),
        _ => format!("{} {name}", render(name, *much)),
    });
    listed.collect::<Vec<_>>().join(", ")
}
