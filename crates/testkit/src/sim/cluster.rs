//! Worlds with several nodes and a tree of queues: what is there at the beginning, what people and machines do to it, and
//! runs of several tenants that ask for resources, devices and nodes.

mod audit;
mod judge;
mod state;

use std::collections::BTreeMap;

use octoflow_engine::{
    kinds::{
        Kind,
        scheduling::{PRIORITY_CLASS, QUEUE},
    },
    schedule::spec::{NodeSpec, ResourceCapacity},
};
use octoflow_model::{
    RunId, Time,
    submission::{GroupDetails, Stored, Submission, SubmitContext},
};
use serde_json::{Value, json};

use super::{
    calendar::{DAWN, ticks},
    draw::Draw,
    failure::Broken,
    manifest::{self, Taste},
    taskset,
    world::{UserAction, UserRequest, admitted, command, skew},
};

pub(super) use state::ClusterState;
pub use state::Seen;

pub(super) const GPU: &str = "nvidia.com/gpu";
const ZONES: [&str; 2] = ["east", "west"];
pub(super) const LEAVES: [&str; 4] = ["a", "b", "c", "d"];
const INNER: &str = "team";
/// By name: value, and whether it ends lower ones.
const CLASSES: [(&str, i64, bool); 3] = [("low", 10, false), ("high", 1000, true), ("calm", 500, false)];
/// `minMember` of the PodGroup of these worlds.
const LEAST: u32 = 2;
pub(super) const TENANTS: [Option<&str>; 4] = [None, Some("ann"), Some("bob"), Some("cid")];

/// Everything about nodes and queues that is settled before the story begins.
#[derive(Debug)]
pub(super) struct Cluster {
    pub nodes: Vec<NodeSpec>,
    /// Classes and queues, parents before their children.
    pub objects: Vec<(&'static Kind, Value)>,
    /// The last of them makes room for everything that is left then.
    pub acts: Vec<(Time, ClusterAct)>,
}

#[derive(Clone, Debug)]
pub(super) enum ClusterAct {
    /// A node joins, or has other amounts from now on.
    Join(Box<NodeSpec>),
    /// A node is gone, with everything on it.
    Vanish(String),
    Mark {
        node: String,
        cordoned: bool,
        tainted: bool,
    },
    /// A node is cordoned, and what runs there has to leave.
    Drain(String),
    PutQueue(Value),
    /// A queue takes nothing new any more, or again.
    Close {
        queue: String,
        closed: bool,
    },
    DeleteQueue(String),
    /// Large nodes join, and queues have no limits any more.
    Repair,
}

impl Cluster {
    pub(super) fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed, "cluster");
        let count = *draw.pick(&[1, 1, 2, 2, 2, 3, 3, 5, 20]);
        let nodes: Vec<NodeSpec> = (0..count).map(|at| node(&mut draw, &format!("n{at}"))).collect();
        let mut objects: Vec<(&'static Kind, Value)> =
            CLASSES.iter().map(|(name, value, preempts)| (&PRIORITY_CLASS, class(name, *value, *preempts))).collect();
        objects.push((&QUEUE, queue(&mut draw, INNER, None)));
        for leaf in LEAVES {
            let parent = draw.chance(50).then_some(INNER);
            objects.push((&QUEUE, queue(&mut draw, leaf, parent)));
        }
        let mut acts = Vec::new();
        for _ in 0..draw.below(14) {
            let at = DAWN.saturating_add(ticks(draw.below(2500)));
            acts.push((at, act(&mut draw, count)));
        }
        let repair_at = DAWN.saturating_add(ticks(3000 + draw.below(3000)));
        acts.push((repair_at, ClusterAct::Repair));
        Self { nodes, objects, acts }
    }
}

fn act(draw: &mut Draw, count: u64) -> ClusterAct {
    let name = format!("n{}", draw.below(count + 1));
    match draw.below(12) {
        0..=2 => ClusterAct::Join(Box::new(node(draw, &name))),
        3 => ClusterAct::Vanish(name),
        4 | 5 => ClusterAct::Mark { node: name, cordoned: draw.chance(40), tainted: draw.chance(40) },
        6 => ClusterAct::Drain(name),
        7 | 8 => {
            let leaf = *draw.pick(&LEAVES);
            let parent = draw.chance(50).then_some(INNER);
            ClusterAct::PutQueue(queue(draw, leaf, parent))
        }
        9 => ClusterAct::PutQueue(queue(draw, INNER, None)),
        10 => ClusterAct::Close { queue: (*draw.pick(&LEAVES)).to_owned(), closed: draw.chance(60) },
        _ => ClusterAct::DeleteQueue((*draw.pick(&LEAVES)).to_owned()),
    }
}

fn node(draw: &mut Draw, name: &str) -> NodeSpec {
    let cpu = *draw.pick(&[500, 1000, 2000, 2000, 3000, 4000]);
    let gpus = *draw.pick(&[0, 0, 1, 2]);
    let zone = *draw.pick(&ZONES);
    declared(name, zone, &[("cpu", cpu), ("pods", draw.between(1, 6)), ("memory", 1 << 30), (GPU, gpus)])
}

fn declared(name: &str, zone: &str, amounts: &[(&str, u64)]) -> NodeSpec {
    let capacity =
        amounts.iter().map(|(name, amount)| ((*name).to_owned(), ResourceCapacity { amount: *amount, declared: true }));
    NodeSpec {
        capacity: capacity.collect(),
        open_ended: false,
        labels: BTreeMap::from([("zone".to_owned(), zone.to_owned())]),
        labels_declared: true,
        ..NodeSpec::measured(name, 0, 0, 0)
    }
}

/// Nodes that hold everything that tasks of these worlds ask for.
fn large_nodes() -> impl Iterator<Item = NodeSpec> {
    let amounts = [("cpu", 64_000), ("pods", 100), ("memory", 1 << 40), (GPU, 16)];
    ZONES.iter().map(move |zone| declared(&format!("large-{zone}"), zone, &amounts))
}

fn class(name: &str, value: i64, preempts: bool) -> Value {
    let policy = if preempts { "PreemptLowerPriority" } else { "Never" };
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
        "preemptionPolicy": policy,
    })
}

fn queue(draw: &mut Draw, name: &str, parent: Option<&str>) -> Value {
    let mut object = plain_queue(name, parent);
    let spec = &mut object["spec"];
    spec["weight"] = json!(draw.between(1, 3));
    let cores = |draw: &mut Draw, least: u64, most: u64| json!({"cpu": draw.between(least, most).to_string()});
    if draw.chance(25) {
        spec["capability"] = cores(draw, 2, 8);
    }
    if draw.chance(50) {
        spec["deserved"] = cores(draw, 1, 4);
    }
    if draw.chance(15) {
        spec["guarantee"] = json!({"resource": {"cpu": draw.between(1, 2).to_string()}});
    }
    if draw.chance(15) {
        spec["reclaimable"] = json!(false);
    }
    if draw.chance(15) {
        spec["dequeueStrategy"] = json!("strict");
    }
    if draw.chance(20) {
        spec["priority"] = json!(draw.below(3));
    }
    if draw.chance(20) {
        object["metadata"]["annotations"] = json!({"octoflow.io/placement": "spread"});
    }
    object
}

fn plain_queue(name: &str, parent: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {},
    });
    if let Some(parent) = parent {
        object["spec"]["parent"] = json!(parent);
    }
    object
}

/// What people submit and command in such a world.
pub(super) fn acts(seed: u64) -> Result<Vec<UserAction>, Broken> {
    let mut draw = Draw::new(seed, "tenants");
    let runs = draw.between(3, 7);
    let limited = draw.chance(30);
    let mut acts = Vec::new();
    for run in 1..=runs {
        let at = DAWN.saturating_add(ticks(draw.below(100) * (run - 1)));
        let queue = if draw.chance(80) { Some(*draw.pick(&LEAVES)) } else { None };
        acts.extend(if draw.chance(50) {
            let taste = Taste {
                timed: true,
                limited,
                failing: *draw.pick(&[0, 0, 5, 25]),
                size: draw.between(6, 25),
                orders: None,
            };
            workflow_acts(&mut draw, seed, run, at, taste, queue)?
        } else {
            task_set_acts(&mut draw, seed, run, at, queue)?
        });
    }
    Ok(acts)
}

/// Somebody submits a workflow that asks for what clusters have, and perhaps tells it something.
pub(super) fn workflow_acts(
    draw: &mut Draw,
    seed: u64,
    run: u64,
    at: Time,
    taste: Taste,
    queue: Option<&str>,
) -> Result<Vec<UserAction>, Broken> {
    let object = dressed_workflow(draw, manifest::workflow(seed, taste, &format!("w{run}")), queue);
    submitted(draw, seed, run, at, (object, Stored::default()))
}

/// The same of a TaskSet.
pub(super) fn task_set_acts(
    draw: &mut Draw,
    seed: u64,
    run: u64,
    at: Time,
    queue: Option<&str>,
) -> Result<Vec<UserAction>, Broken> {
    let mut shape = Draw::new(seed, &format!("t{run}"));
    let object = dressed_task_set(draw, taskset::manifest(&mut shape, &format!("t{run}"), 4), queue);
    submitted(draw, seed, run, at, object)
}

fn submitted(
    draw: &mut Draw,
    seed: u64,
    run: u64,
    at: Time,
    (manifest, stored): (Value, Stored),
) -> Result<Vec<UserAction>, Broken> {
    let submission = Submission {
        name: manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        namespace: "default".to_owned(),
        uid: format!("uid-{run}"),
        at: at.shifted(skew(seed, run)),
        manifest: admitted(&manifest)?,
        stored,
        previous: None,
        parent: None,
        ordered_by: None,
        context: SubmitContext {
            skew: skew(seed, run),
            submitted_by: draw.pick(&TENANTS).map(str::to_owned),
            ..SubmitContext::default()
        },
    };
    let mut acts = vec![UserAction { at, run: RunId(run), request: UserRequest::Submit(Box::new(submission)) }];
    if draw.chance(40) {
        let at = at.saturating_add(ticks(draw.below(2000)));
        acts.push(UserAction { at, run: RunId(run), request: UserRequest::Command(command(draw, true)) });
    }
    Ok(acts)
}

/// The queue that a submission names on the whole.
pub(super) fn queue_of(submission: &Submission) -> Option<&str> {
    let metadata = &submission.manifest["metadata"];
    metadata["labels"]["volcano.sh/queue-name"]
        .as_str()
        .or_else(|| metadata["annotations"]["volcano.sh/queue-name"].as_str())
}

fn dressed_workflow(draw: &mut Draw, mut object: Value, queue: Option<&str>) -> Value {
    if let Some(queue) = queue {
        object["metadata"]["labels"] = json!({"volcano.sh/queue-name": queue});
    }
    let mut templates = object["spec"]["templates"].take();
    for template in templates.as_array_mut().into_iter().flatten() {
        let bodies = ["/container", "/script", "/containerSet/containers/1"];
        let Some(body) = bodies.into_iter().find(|body| template.pointer(body).is_some()) else { continue };
        if let Some(container) = template.pointer_mut(body) {
            container["resources"] = resources(draw);
        }
        let (pod, preemptable) = pod_fields(draw);
        for (field, value) in pod {
            template[field] = value;
        }
        if let Some(preemptable) = preemptable {
            template["metadata"]["annotations"]["volcano.sh/preemptable"] = json!(preemptable.to_string());
        }
    }
    object["spec"]["templates"] = templates;
    object
}

fn dressed_task_set(draw: &mut Draw, mut object: Value, queue: Option<&str>) -> (Value, Stored) {
    if let Some(queue) = queue {
        object["metadata"]["labels"] = json!({"volcano.sh/queue-name": queue});
    }
    let mut stored = Stored::default();
    let mut roles = object["spec"]["roles"].take();
    let mut members = 0;
    for role in roles.as_array_mut().into_iter().flatten() {
        let template = &mut role["template"];
        template["spec"]["containers"][0]["resources"] = resources(draw);
        let (pod, preemptable) = pod_fields(draw);
        for (field, value) in pod {
            template["spec"][field] = value;
        }
        let ganged = template["metadata"]["annotations"]["scheduling.k8s.io/group-name"].is_string();
        if let Some(preemptable) = preemptable {
            template["metadata"]["annotations"]["volcano.sh/preemptable"] = json!(preemptable.to_string());
        }
        members += if ganged { role["replicas"].as_u64().unwrap_or(0) } else { 0 };
    }
    object["spec"]["roles"] = roles;
    // A PodGroup may want fewer than all. Members of several TaskSets belong to it.
    if members >= u64::from(LEAST) && draw.chance(60) {
        stored.groups.insert("g".to_owned(), LEAST);
        if draw.chance(30) {
            let details = GroupDetails { queue: queue.map(str::to_owned), ..GroupDetails::default() };
            stored.group_details.insert("g".to_owned(), details);
        }
    }
    (object, stored)
}

pub(super) fn resources(draw: &mut Draw) -> Value {
    let mut asked = json!({"cpu": *draw.pick(&["100m", "500m", "500m", "1", "1500m", "2", "3"])});
    if draw.chance(15) {
        asked[GPU] = json!(draw.between(1, 2).to_string());
    }
    json!({"requests": asked, "limits": asked})
}

/// Fields of a pod that say where it may run and who may end it.
pub(super) fn pod_fields(draw: &mut Draw) -> (Vec<(&'static str, Value)>, Option<bool>) {
    let mut fields = Vec::new();
    if draw.chance(15) {
        fields.push(("nodeSelector", json!({"zone": *draw.pick(&ZONES)})));
    }
    if draw.chance(20) {
        fields.push(("tolerations", json!([{"key": "spot", "operator": "Exists"}])));
    }
    if draw.chance(50) {
        fields.push(("priorityClassName", json!(draw.pick(&CLASSES).0)));
    }
    let preemptable = draw.chance(50).then(|| draw.chance(70));
    (fields, preemptable)
}
