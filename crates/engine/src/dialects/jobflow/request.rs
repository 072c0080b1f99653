//! What a flow asks of runtimes: to make the job of an entry, to test a condition, to delete its jobs.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{
    NodeIx, Task,
    jobflow::{API_VERSION, KIND, TEMPLATE_KIND, mark},
    request::{MakeRequest, ProbeRequest, ProbedPath, Request},
};
use serde_json::json;

use super::{program::NodeRole, run::Run, template::label};

/// Time between two rounds of tests, and the timeout of each test.
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

impl Run {
    /// Builds the task of a node's current attempt; on error returns the reason.
    pub(super) fn task(&self, node: NodeIx) -> Result<Task, String> {
        let (name, request) = match self.program.role(node) {
            Some(NodeRole::Entry(entry)) => (self.job_name(entry), Request::Make(self.make(entry))),
            Some(NodeRole::Test(entry, condition)) => {
                let request = self.probe_request(entry, condition);
                (format!("probe-{}-{condition}", self.program.name(entry)), Request::Probe(request))
            }
            Some(NodeRole::Removal) => {
                let entries = self.state.flow.entries.iter();
                let jobs = entries.flat_map(|entry| {
                    let former = entry.former.iter().map(|job| job.uid.clone());
                    former.chain(entry.job.as_ref().map(|job| job.uid.clone()))
                });
                ("jobs".to_owned(), Request::Remove(jobs.collect()))
            }
            None => return Err(format!("the flow has no node {node}")),
        };
        Ok(Task { name, call: Some(Box::new(request)), ..Task::default() })
    }

    fn make(&self, entry: usize) -> MakeRequest {
        let (head, spec) = (&self.state.head, &self.program.flow.spec.flows[entry]);
        let (by_template, by_flow) =
            (format!("{}.{}", head.namespace, spec.name), format!("{}.{}", head.namespace, head.name));
        let marks = [(mark::BY_TEMPLATE, by_template), (mark::BY_FLOW, by_flow)];
        let marks: BTreeMap<String, String> = marks.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        MakeRequest {
            template_kind: TEMPLATE_KIND.to_owned(),
            template: spec.name.clone(),
            namespace: head.namespace.to_string(),
            name: self.job_name(entry),
            seed: format!("{}/{}", spec.name, self.state.flow.entries[entry].number()),
            labels: marks.iter().map(|(key, value)| (key.clone(), label(value))).collect(),
            annotations: marks,
            owner: json!({
                "apiVersion": API_VERSION, "kind": KIND, "name": *head.name, "uid": *head.uid,
                "controller": true, "blockOwnerDeletion": true,
            }),
            patch: spec.patch.as_ref().and_then(|patch| patch.content().cloned()),
            child: self.child(NodeIx(entry as u32)),
        }
    }

    fn probe_request(&self, entry: usize, condition: u32) -> ProbeRequest {
        let test = self.state.flow.entries[entry].tests.get(&condition);
        let get = self.program.probe(entry).and_then(|probe| probe.http_get_list.get(condition as usize));
        let http = get.map(|get| ProbedPath {
            path: if get.path.is_empty() { "/".to_owned() } else { get.path.clone() },
            header: get.http_header.as_ref().map(|header| (header.name.clone(), header.value.clone())),
        });
        let addresses = test.map(|test| test.addresses.clone()).unwrap_or_default();
        ProbeRequest { addresses, http, every: PROBE_EVERY, timeout: PROBE_TIMEOUT }
    }
}
