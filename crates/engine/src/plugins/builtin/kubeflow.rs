//! What the training jobs of Kubeflow have in common: groups of replicas and a policy for the whole, which become the
//! roles of a TaskSet. Fields that would change something and cannot be kept are refused by name.

use octoflow_model::taskset::{API_VERSION, KIND};
use serde_json::{Map, Value, json};

use super::{Question, templates};

/// How often a replica is tried again if the job does not say.
const DEFAULT_BACKOFF: u64 = 6;
const RETRY_DELAY: u64 = 5;
/// Limit of all replicas together, that of a TaskSet's single role.
const MAX_REPLICAS: u64 = 10_000;
/// Fields of a run policy that mean something here, and those that mean what happens anyway.
const RUN_POLICY: [&str; 7] = [
    "cleanPodPolicy",
    "ttlSecondsAfterFinished",
    "activeDeadlineSeconds",
    "backoffLimit",
    "schedulingPolicy",
    "suspend",
    "managedBy",
];

/// Fields of a scheduling policy. A gang starts with all of its members, so that what says how many is met.
const SCHEDULING_POLICY: [&str; 5] =
    ["queue", "priorityClass", "minAvailable", "minResources", "scheduleTimeoutSeconds"];

/// The kind of training job that a translator knows.
pub(super) struct JobShape {
    pub kind: &'static str,
    /// The field with the groups of replicas.
    pub replicas: &'static str,
    /// The groups, in the order of the roles they become.
    pub groups: &'static [&'static str],
    /// Other fields of `spec` that the translator reads.
    pub fields: &'static [&'static str],
    /// The container that does the work, which decides how a replica ends.
    pub container: &'static str,
    /// The container's port with this name is the one that peers connect to.
    pub port: &'static str,
    pub default_port: u64,
}

/// A training job, read.
pub(super) struct TrainingJob<'a> {
    pub spec: &'a Value,
    pub roles: Vec<ReplicaGroup>,
    policy: &'a Value,
    job: &'a Value,
}

/// A group of replicas on its way to a role.
pub(super) struct ReplicaGroup {
    /// The group's name.
    pub group: &'static str,
    pub count: u64,
    pub template: Value,
    pub port: u64,
    restart: Restart,
}

enum Restart {
    Never,
    OnFailure,
    /// Codes from 128 on are worth another try.
    ByExitCode,
}

/// What the end of a role means for the whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// The whole ends as it does.
    Decides,
    /// If it fails, the whole has failed.
    Counts,
    /// The whole goes on.
    Serves,
}

impl ReplicaGroup {
    pub(super) fn name(&self) -> String {
        self.group.to_ascii_lowercase()
    }

    /// Returns the container that does the work.
    pub(super) fn main(&mut self) -> Result<&mut Value, String> {
        self.template["spec"]["containers"].get_mut(0).ok_or_else(|| format!("{} has no container", self.group))
    }
}

/// Reads a training job.
pub(super) fn read<'a>(question: &Question<'a>, shape: &JobShape) -> Result<TrainingJob<'a>, String> {
    let job = question.job;
    if job["kind"] != shape.kind {
        let kind = job["kind"].as_str().unwrap_or_default();
        return Err(format!("it translates kind {}, not `{kind}`", shape.kind));
    }
    let version = job["apiVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && !version.starts_with("kubeflow.org/") {
        return Err(format!("apiVersion `{version}` is not that of a {}, which is kubeflow.org/v1", shape.kind));
    }
    let spec = &job["spec"];
    let fields = spec.as_object().ok_or_else(|| format!("the {} has no spec", shape.kind))?;
    let known = |field: &&String| {
        ["runPolicy", shape.replicas].contains(&field.as_str())
            || shape.fields.contains(&field.as_str())
            || RUN_POLICY.contains(&field.as_str())
    };
    if let Some(field) = fields.keys().find(|field| !known(field)) {
        return Err(format!("spec.{field} cannot be translated"));
    }
    // Older versions have the policy's fields in the spec itself.
    let policy = if spec["runPolicy"].is_object() { &spec["runPolicy"] } else { spec };
    check_policy(policy, &spec["runPolicy"])?;
    let groups = spec[shape.replicas].as_object().filter(|groups| !groups.is_empty());
    let groups = groups.ok_or_else(|| format!("spec.{} names no replicas", shape.replicas))?;
    let known = |name: &&String| shape.groups.iter().any(|group| group.eq_ignore_ascii_case(name));
    if let Some(name) = groups.keys().find(|name| !known(name)) {
        let known = shape.groups.join(", ");
        return Err(format!("spec.{}.{name} is not known; there are {known}", shape.replicas));
    }
    let main = spec["mainContainer"].as_str().unwrap_or(shape.container);
    let mut roles = Vec::new();
    for group in shape.groups {
        let found = groups.iter().find(|(name, _)| group.eq_ignore_ascii_case(name));
        roles.extend(found.map(|(_, value)| role(group, value, policy, shape, main)).transpose()?);
    }
    roles.retain(|role| role.count > 0);
    let all = roles.iter().map(|role| role.count).fold(0, u64::saturating_add);
    if roles.is_empty() || all > MAX_REPLICAS {
        return Err(format!("the job has {all} replicas; it may have 1 to {MAX_REPLICAS}"));
    }
    Ok(TrainingJob { spec, roles, policy, job })
}

/// `policy` is the run policy wherever it stands; `own` the object that has nothing else.
fn check_policy(policy: &Value, own: &Value) -> Result<(), String> {
    let unknown = |value: &Value, known: &[&str]| {
        let mut names = value.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        names.find(|name| !known.contains(&name.as_str()))
    };
    if let Some(name) = unknown(own, &RUN_POLICY) {
        return Err(format!("spec.runPolicy.{name} cannot be translated"));
    }
    if let Some(name) = unknown(&policy["schedulingPolicy"], &SCHEDULING_POLICY) {
        return Err(format!("schedulingPolicy.{name} cannot be translated"));
    }
    match policy["cleanPodPolicy"].as_str() {
        None | Some("" | "None" | "Running" | "All") => Ok(()),
        Some(other) => Err(format!("cleanPodPolicy `{other}` is not known")),
    }
}

fn role(
    group: &'static str,
    value: &Value,
    policy: &Value,
    shape: &JobShape,
    main: &str,
) -> Result<ReplicaGroup, String> {
    let place = format!("spec.{}.{group}", shape.replicas);
    let fields = value.as_object().ok_or_else(|| format!("{place} is no object"))?;
    if let Some(name) = fields.keys().find(|name| !["replicas", "template", "restartPolicy"].contains(&name.as_str())) {
        return Err(format!("{place}.{name} cannot be translated"));
    }
    let count = match value.get("replicas").filter(|count| !count.is_null()) {
        None => 1,
        Some(count) => count.as_u64().ok_or_else(|| format!("{place}.replicas is no whole number"))?,
    };
    let mut template = value["template"].clone();
    let spec = template["spec"].as_object_mut().ok_or_else(|| format!("{place}.template has no spec"))?;
    let of_pod = spec.remove("restartPolicy");
    let word = value["restartPolicy"].as_str().or(of_pod.as_ref().and_then(Value::as_str)).unwrap_or("Never");
    let restart = match word {
        "Never" => Restart::Never,
        "OnFailure" | "Always" => Restart::OnFailure,
        "ExitCode" => Restart::ByExitCode,
        other => return Err(format!("{place}.restartPolicy `{other}` is not known")),
    };
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut).filter(|found| !found.is_empty());
    let containers = containers.ok_or_else(|| format!("{place}.template has no containers"))?;
    // The first container's end is the replica's.
    if let Some(at) = containers.iter().position(|container| container["name"] == main) {
        containers[..=at].rotate_right(1);
    }
    let ports = containers[0]["ports"].as_array().into_iter().flatten();
    let port = ports.filter(|port| port["name"] == shape.port).find_map(|port| port["containerPort"].as_u64());
    let scheduling = &policy["schedulingPolicy"];
    if let Some(class) = scheduling["priorityClass"].as_str() {
        spec.entry("priorityClassName").or_insert_with(|| json!(class));
    }
    Ok(ReplicaGroup { group, count, template, port: port.unwrap_or(shape.default_port), restart })
}

impl TrainingJob<'_> {
    pub(super) fn all(&self) -> u64 {
        self.roles.iter().map(|role| role.count).sum()
    }

    pub(super) fn has(&self, group: &str) -> bool {
        self.roles.iter().any(|role| role.group == group)
    }

    /// Adds environment variables to the working container of every role.
    pub(super) fn add_env(&mut self, variables: impl Fn(&ReplicaGroup) -> Vec<(String, String)>) -> Result<(), String> {
        for role in &mut self.roles {
            let variables = variables(role);
            templates::add_env(role.main()?, variables)?;
        }
        Ok(())
    }

    /// Returns the TaskSet; `weight` says what each role is for it.
    pub(super) fn task_set(self, question: &Question<'_>, weight: impl Fn(&ReplicaGroup) -> Weight) -> Value {
        let backoff = self.policy["backoffLimit"].as_u64().unwrap_or(DEFAULT_BACKOFF);
        let roles = self.roles.iter().map(|role| {
            let mut made = json!({
                "name": role.name(),
                "replicas": role.count,
                "completionPolicy": {"minSucceeded": role.count, "maxFailed": 1},
                "template": role.template,
            });
            let retry = json!({"retry": true, "delay": RETRY_DELAY, "maxRetryCount": backoff});
            match role.restart {
                Restart::Never => {}
                Restart::OnFailure => made["retryPolicy"] = retry,
                Restart::ByExitCode => {
                    made["retryPolicy"] = retry;
                    made["retryPolicy"]["retryableExitCodes"] = json!(["128-255"]);
                }
            }
            match weight(role) {
                Weight::Decides => {
                    made["eventPolicy"] = json!([
                        {"event": "RoleSucceeded", "action": "TaskSetSucceeded"},
                        {"event": "RoleFailed", "action": "TaskSetFailed"},
                    ]);
                }
                Weight::Counts => {}
                Weight::Serves => made["eventPolicy"] = json!([{"event": "RoleFailed", "action": "NoAction"}]),
            }
            made
        });
        let mut spec = Map::new();
        spec.insert("roles".to_owned(), roles.collect());
        let policy = [
            ("activeDeadlineSeconds", &self.policy["activeDeadlineSeconds"]),
            ("ttlSecondsAfterFinished", &self.policy["ttlSecondsAfterFinished"]),
            ("suspend", &self.policy["suspend"]),
            ("queue", &self.policy["schedulingPolicy"]["queue"]),
        ];
        spec.extend(policy.into_iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.to_owned(), v.clone())));
        task_set(question, &self.job["metadata"], spec)
    }
}

/// Returns a TaskSet with this specification. It has the id of the job as its name.
pub(super) fn task_set(question: &Question<'_>, metadata: &Value, spec: Map<String, Value>) -> Value {
    let mut kept = Map::new();
    for field in ["namespace", "labels", "annotations"] {
        if !metadata[field].is_null() {
            kept.insert(field.to_owned(), metadata[field].clone());
        }
    }
    let name = Some(question.header("jobID")).filter(|id| !id.is_empty());
    if let Some(name) = name.or(metadata["name"].as_str()) {
        kept.insert("name".to_owned(), json!(name));
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": kept, "spec": spec})
}
