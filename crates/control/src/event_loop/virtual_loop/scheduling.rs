//! Nodes, queues and priority classes of a virtual loop. What production stores before it tells the loop is stored here at
//! once; the loop learns of it by the same message.

use octoflow_engine::{
    kinds::{Kind, core::NODE},
    schedule::spec::NodeSpec,
};
use octoflow_model::task::placement::Taint;
use octoflow_store::{Batch, Change};
use serde_json::Value;
use tokio::sync::oneshot;

use super::{VirtualLoop, lock};
use crate::{Error, event_loop::Message, node::NodeOverlay, objects::scheduling::SchedulingChange};

impl VirtualLoop {
    /// A node joins, or has other amounts from now on. What was marked on it before still holds.
    pub fn join_node(&mut self, spec: NodeSpec) {
        self.tell(SchedulingChange::Joined(Box::new(spec)));
    }

    /// A node is gone. Reports about its tasks are up to whoever knows.
    pub fn remove_node(&mut self, name: &str) {
        self.tell(SchedulingChange::Left { node: name.to_owned() });
    }

    /// Cordons or uncordons a node, and sets its taints. Returns the node as it is then.
    pub fn mark_node(&mut self, node: &NodeSpec, cordoned: bool, taints: Vec<Taint>) -> Result<NodeSpec, Error> {
        let overlay = NodeOverlay { unschedulable: cordoned, taints, ..NodeOverlay::default() };
        let body = serde_json::to_vec(&overlay).expect("an overlay has only texts and numbers");
        self.store(NODE.key, &node.name, body)?;
        let marked = overlay.apply(node);
        self.tell(SchedulingChange::Node(Box::new(marked.clone())));
        Ok(marked)
    }

    /// Ends what runs on a node.
    pub fn drain_node(&mut self, name: &str) {
        self.tell(SchedulingChange::Drain { node: name.to_owned() });
    }

    /// Creates or changes a queue or a priority class that was admitted.
    pub fn put_scheduling(&mut self, kind: &Kind, object: &Value) -> Result<(), Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        self.store(kind.key, name, object.to_string().into_bytes())?;
        SchedulingChange::of_object(kind, object).into_iter().for_each(|change| self.tell(change));
        Ok(())
    }

    pub fn delete_scheduling(&mut self, kind: &Kind, name: &str) -> Result<(), Error> {
        let delete =
            Change::DeleteObject { kind: kind.key.to_owned(), namespace: String::new(), name: name.to_owned() };
        lock(&self.disk.0).write(&Batch::from(delete))?;
        SchedulingChange::of_deletion(kind.key, name).into_iter().for_each(|change| self.tell(change));
        Ok(())
    }

    fn store(&mut self, kind: &str, name: &str, body: Vec<u8>) -> Result<(), Error> {
        let put = Change::PutObject {
            kind: kind.to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
            uid: String::new(),
            body,
        };
        lock(&self.disk.0).write(&Batch::from(put))?;
        Ok(())
    }

    fn tell(&mut self, change: SchedulingChange) {
        // Nobody waits for the answer.
        let (reply, _) = oneshot::channel();
        self.put(Message::Scheduling { change: Box::new(change), reply });
    }
}
