//! Explanations of the scheduler as objects for programs. Amounts are written as manifests write them.

use serde_json::{Map, Value, json};

use super::{Proposal, Remedy, WaitReason, spec::Quantities, why::Level};
use crate::pod::quantity::render;

impl WaitReason {
    /// Returns the reason as an object.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "queue": self.path.iter().map(Level::to_json).collect::<Vec<_>>(),
            "queueExists": self.queue_exists,
            "position": self.position + 1,
            "waiting": self.waiting,
            "nodes": self.nodes.iter().map(|(misfit, count)| json!({"count": count, "reason": misfit.to_string()})).collect::<Vec<_>>(),
        });
        if let Some((present, least)) = self.gang {
            value["gang"] = json!({"present": present, "least": least});
        }
        if let Some((queue, resource)) = &self.quota {
            value["quota"] = json!({"queue": queue, "resource": resource});
        }
        if let Some(expected) = self.expected {
            value["expected"] = json!(expected.to_string());
        }
        if self.preempting {
            value["preempting"] = json!(true);
        }
        if self.behind {
            value["behind"] = json!(true);
        }
        if let Some(proposal) = &self.remedy {
            value["change"] = proposal.to_json();
        }
        value
    }
}

impl Level {
    fn to_json(&self) -> Value {
        json!({
            "name": self.queue, "used": quantities(&self.used), "deserved": quantities(&self.deserved),
            "capability": quantities(&self.capability),
        })
    }
}

impl Proposal {
    /// Returns the change as an object: what it is, of what, and how much.
    pub fn to_json(&self) -> Value {
        let mut value = match &self.change {
            Remedy::CreateQueue { queue } => json!({"type": "CreateQueue", "queue": queue}),
            Remedy::AddMembers { missing } => json!({"type": "AddMembers", "count": missing}),
            Remedy::RaiseCapability { queue, to } => {
                json!({"type": "RaiseCapability", "queue": queue, "amounts": quantities(to)})
            }
            Remedy::LowerGuarantee { queue, to } => {
                json!({"type": "LowerGuarantee", "queue": queue, "amounts": quantities(to)})
            }
            Remedy::FreeQuota { queue, amounts, .. } => {
                json!({"type": "FreeQuota", "queue": queue, "amounts": quantities(amounts)})
            }
            Remedy::Uncordon { node } => json!({"type": "Uncordon", "node": node}),
            Remedy::RemoveTaint { node, key } => json!({"type": "RemoveTaint", "node": node, "key": key}),
            Remedy::LabelNode { node, labels } => json!({"type": "LabelNode", "node": node, "labels": labels}),
            Remedy::RaiseCapacity { node, to } => {
                json!({"type": "RaiseCapacity", "node": node, "amounts": quantities(to)})
            }
            Remedy::FreeRoom { node, amounts, .. } => {
                json!({"type": "FreeRoom", "node": node, "amounts": quantities(amounts)})
            }
            Remedy::AddNode { capacity, labels } => {
                json!({"type": "AddNode", "amounts": quantities(capacity), "labels": labels})
            }
        };
        value["message"] = json!(self.to_string());
        value["suffices"] = json!(self.suffices);
        value
    }
}

fn quantities(amounts: &Quantities) -> Value {
    let shown = amounts.iter().map(|(name, much)| (name.clone(), Value::String(render(name, *much))));
    Value::Object(shown.collect::<Map<_, _>>())
}
