//! Templates that call nothing: tasks with their inputs and outputs, pauses, and handlers.

use serde_json::{Value, json};

use super::{Made, Maker};

impl Maker<'_> {
    pub(super) fn leaf(&mut self) -> Made {
        let name = self.fresh("task");
        let mut cost = 1;
        let mut gives = Vec::new();
        let mut parameters = Vec::new();
        if self.draw.chance(70) {
            gives.push("out");
            let mut from = json!({"path": "/tmp/out"});
            if self.draw.chance(40) {
                from["default"] = json!("5");
            }
            let mut parameter = json!({"name": "out", "valueFrom": from});
            // The last one to end gives a global value, so which one it is depends on time.
            if self.taste.timed && self.draw.chance(8) {
                parameter["globalName"] = json!(format!("{name}-out"));
            }
            parameters.push(parameter);
        }
        if self.draw.chance(30) {
            gives.push("list");
            parameters.push(json!({"name": "list", "valueFrom": {"path": "/tmp/list", "default": "[7]"}}));
        }
        let mut template = json!({
            "name": name,
            "inputs": {"parameters": [{"name": "in", "value": "1"}]},
            "outputs": {"parameters": parameters},
        });
        // Every third publishes metrics; chosen without a draw, so that worlds stay what they were.
        if self.templates.len().is_multiple_of(3) {
            template["metrics"] = metrics();
        }
        self.body(&mut template);
        if self.draw.chance(25) {
            cost += 1 + self.retry(&mut template);
        }
        if self.taste.timed {
            self.time_limits(&mut template);
        }
        self.templates.push(template);
        Made { name, cost, gives, result: true }
    }

    /// What runs, and how it will behave.
    fn body(&mut self, template: &mut Value) {
        let failing = if self.draw.chance(60) { self.taste.failing } else { 0 };
        let mut manners = vec![format!("fail={failing}"), "in={{inputs.parameters.in}}".to_owned()];
        if self.draw.chance(15) {
            manners.push("stubborn".to_owned());
        }
        if self.draw.chance(20) {
            manners.push("who={{workflow.parameters.who}} {{node.name}}".to_owned());
        }
        if self.draw.chance(80) {
            template["container"] = json!({"image": "sim", "command": ["work"], "args": manners});
            if self.draw.chance(20) {
                template["container"]["resources"] = json!({"requests": {"cpu": "500m", "memory": "64Mi"}});
            }
            self.company(template);
        } else {
            template["script"] = json!({"image": "sim", "command": ["work"], "args": manners, "source": "echo {{inputs.parameters.in}}"});
        }
    }

    /// Now and then a container has others before it, beside it, or with it in a set.
    fn company(&mut self, template: &mut Value) {
        let other = |name: &str| json!({"name": name, "image": "sim", "command": ["work"]});
        if self.draw.chance(10) {
            template["initContainers"] = json!([other("before")]);
        }
        if self.draw.chance(10) {
            template["sidecars"] = json!([other("beside")]);
        }
        if self.draw.chance(12) {
            let mut main = template["container"].take();
            main["name"] = json!("main");
            main["dependencies"] = json!(["first"]);
            let last = json!({"name": "last", "image": "sim", "command": ["work"], "dependencies": ["first", "main"]});
            template["containerSet"] = json!({"containers": [last, main, other("first")]});
            if let Some(fields) = template.as_object_mut() {
                fields.remove("container");
            }
        }
    }

    fn time_limits(&mut self, template: &mut Value) {
        if self.draw.chance(12) {
            template["timeout"] = json!(format!("{}s", self.draw.between(1, 10)));
        }
        if self.draw.chance(12) {
            template["activeDeadlineSeconds"] = json!(self.draw.between(1, 10));
            // Only something that is ended from outside may never end by itself.
            let bodies = ["/container/args", "/script/args", "/containerSet/containers/1/args"];
            let body = bodies.into_iter().find(|body| template.pointer(body).is_some());
            let manners = body.and_then(|body| template.pointer_mut(body)).and_then(Value::as_array_mut);
            if let (true, Some(manners)) = (self.draw.chance(50), manners) {
                manners.push(json!("endless"));
            }
        }
        if self.draw.chance(30) {
            template["terminationGracePeriodSeconds"] = json!(self.draw.between(0, 5));
        }
    }

    /// A suspension: for a while, or until somebody resumes it, perhaps with a value.
    pub(super) fn pause(&mut self) -> Made {
        let name = self.fresh("pause");
        let mut template =
            json!({"name": name, "inputs": {"parameters": [{"name": "in", "value": "1"}]}, "suspend": {}});
        let passes = self.draw.chance(70);
        if passes {
            template["suspend"]["duration"] = json!(self.draw.between(1, 20).to_string());
        }
        let mut gives = Vec::new();
        if self.draw.chance(40) {
            let mut from = json!({"supplied": {}});
            // Without a default it matters whether a person or the time ends the pause.
            if self.draw.chance(60) || passes && !self.taste.timed {
                from["default"] = json!("4");
            }
            template["outputs"] = json!({"parameters": [{"name": "out", "valueFrom": from}]});
            gives.push("out");
        }
        self.templates.push(template);
        Made { name, cost: 1, gives, result: false }
    }

    /// The name of a template that can follow an end.
    pub(super) fn handler(&mut self) -> String {
        if self.draw.chance(70) {
            return self.leaf().name;
        }
        let leaf = self.leaf().name;
        let name = self.fresh("handler");
        self.templates.push(json!({
            "name": name,
            "steps": [[{"name": "first", "template": leaf}], [{"name": "second", "template": leaf, "when": "{{workflow.parameters.level}} > 2"}]],
        }));
        name
    }
}

/// One of each kind, some of which cannot always be read.
fn metrics() -> Value {
    json!({"prometheus": [
        {"name": "ends", "help": "How tasks end", "labels": [{"key": "status", "value": "{{status}}"}], "counter": {"value": "1"}},
        {"name": "inputs", "help": "What they got", "gauge": {"value": "{{inputs.parameters.in}}", "operation": "Add"}},
        {"name": "seconds", "help": "How long they took", "histogram": {"value": "{{duration}}", "buckets": [1, 10]}},
        {"name": "now", "help": "How long they have taken", "gauge": {"realtime": true, "value": "{{duration}}"}},
    ]})
}
