//! Templates that order a run: of any kind, waited for or not, owned or not.

use serde_json::{Value, json};

use super::{Made, Maker};
use crate::sim::{kubejob, taskset, volcano};

impl Maker<'_> {
    pub(super) fn order(&mut self, slots: usize) -> Made {
        let name = self.fresh("order");
        let (mut object, success, failure) = match self.draw.below(4) {
            0 => (self.child_workflow(), "status.phase == Succeeded", "status.phase in (Failed, Error)"),
            1 => (
                volcano::manifest(self.draw, "j", slots),
                "status.state.phase == Completed",
                "status.state.phase in (Failed, Terminated)",
            ),
            2 => (taskset::manifest(self.draw, "t", slots), "status.phase == Succeeded", "status.phase == Failed"),
            _ => (kubejob::manifest(self.draw, "k"), "status.succeeded > 0", "status.failed > 0"),
        };
        object["metadata"] = json!({"generateName": "c"});
        let mut resource = json!({
            "action": "create", "setOwnerReference": self.draw.chance(70), "manifest": object.to_string(),
        });
        // Without conditions the step is over once the run is there.
        if self.draw.chance(80) {
            resource["successCondition"] = json!(success);
            if self.draw.chance(70) {
                resource["failureCondition"] = json!(failure);
            }
        }
        let mut template = json!({
            "name": name, "inputs": {"parameters": [{"name": "in", "value": "1"}]}, "resource": resource,
        });
        let mut cost = 1;
        if self.draw.chance(40) {
            cost += 1 + self.retry(&mut template);
        }
        if self.taste.timed && self.draw.chance(12) {
            template["activeDeadlineSeconds"] = json!(self.draw.between(1, 10));
        }
        self.templates.push(template);
        Made { name, cost, gives: Vec::new(), result: false }
    }

    /// A few tasks one after another, and now and then a pause.
    fn child_workflow(&mut self) -> Value {
        let failing = *self.draw.pick(&[0, 10, 40]);
        let mut steps = vec![json!([{"name": "first", "template": "work"}])];
        if self.draw.chance(30) {
            steps.push(json!([{"name": "pause", "template": "pause"}]));
        }
        steps.push(json!([{"name": "one", "template": "work"}, {"name": "two", "template": "work"}]));
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "spec": {"entrypoint": "main", "templates": [
                {"name": "main", "steps": steps},
                {"name": "pause", "suspend": {"duration": self.draw.between(1, 5).to_string()}},
                {"name": "work", "container": {"image": "sim", "command": ["work"], "args": [format!("fail={failing}")]}},
            ]},
        })
    }
}
