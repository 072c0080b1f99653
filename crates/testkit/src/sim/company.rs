//! Worlds in which runs of every kind compete for the nodes and queues of a cluster: workflows, TaskSets, Jobs of both
//! groups, and flows with the jobs that they order.

use octoflow_engine::Command;
use octoflow_model::{RunId, submission::Stored};
use serde_json::{Value, json};

use super::{
    calendar::{DAWN, ticks},
    cluster::{self, LEAVES, TENANTS},
    draw::Draw,
    failure::Broken,
    flow::{self, FlowAct, FlowPlan},
    kubejob,
    manifest::Taste,
    volcano,
    world::{UserAction, UserRequest},
};

/// The most pods that a gang of these worlds needs: what the nodes hold after their repair is far more.
const LARGEST_GANG: usize = 4;

/// What people submit and command in such a world.
pub(super) fn acts(seed: u64) -> Result<Vec<UserAction>, Broken> {
    let mut draw = Draw::new(seed, "company");
    let limited = draw.chance(30);
    let mut acts = Vec::new();
    for run in 1..=draw.between(3, 6) {
        let at = DAWN.saturating_add(ticks(draw.below(100) * (run - 1)));
        let queue = draw.chance(80).then(|| *draw.pick(&LEAVES));
        let tenant = draw.pick(&TENANTS).map(str::to_owned);
        let of_run = match draw.below(10) {
            0 | 1 => {
                let failing = *draw.pick(&[0, 0, 5, 25]);
                let taste = Taste { timed: true, limited, failing, size: draw.between(6, 20), orders: None };
                cluster::workflow_acts(&mut draw, seed, run, at, taste, queue)?
            }
            2 | 3 => cluster::task_set_acts(&mut draw, seed, run, at, queue)?,
            4..=6 => volcano::acts(seed, RunId(run), at, LARGEST_GANG)?,
            7 => kubejob::acts(seed, RunId(run), at)?,
            _ => flow::acts(seed, RunId(run), at)?,
        };
        for mut act in of_run {
            dress(&mut act, seed, run, queue, tenant.as_deref());
            acts.push(act);
        }
    }
    Ok(acts)
}

/// Templates of flows whose jobs ask for nodes and queues.
pub(super) fn flows(seed: u64) -> FlowPlan {
    let mut plan = FlowPlan::new(seed, LARGEST_GANG);
    let mut draw = Draw::new(seed, "dressed templates");
    plan.templates.values_mut().for_each(|template| dress_template(&mut draw, template));
    for (_, act) in &mut plan.acts {
        match act {
            FlowAct::PutTemplate(_, template) => dress_template(&mut draw, template),
            FlowAct::PutAll(all) => all.values_mut().for_each(|template| dress_template(&mut draw, template)),
            FlowAct::DeleteTemplate(_) | FlowAct::DeleteChild { .. } | FlowAct::TellJob { .. } => {}
        }
    }
    plan
}

fn dress_template(draw: &mut Draw, template: &mut Value) {
    template["spec"]["queue"] = json!(draw.pick(&LEAVES));
    dress_spec(draw, &mut template["spec"]);
}

/// Lets a Job ask for what clusters have. Whatever is asked of it later asks for the same.
fn dress(act: &mut UserAction, seed: u64, run: u64, queue: Option<&str>, tenant: Option<&str>) {
    let mut draw = Draw::new(seed, &format!("dress {run}"));
    match &mut act.request {
        UserRequest::Submit(submission) => {
            submission.context.submitted_by = tenant.map(str::to_owned);
            if let Some(queue) = queue {
                submission.manifest["metadata"]["labels"]["volcano.sh/queue-name"] = json!(queue);
            }
            if submission.manifest["kind"] == "Job" {
                debug_assert_eq!(submission.stored, Stored::default());
                dress_spec(&mut draw, &mut submission.manifest["spec"]);
            }
        }
        UserRequest::Command(Command::Amend { spec }) => dress_spec(&mut draw, spec),
        UserRequest::Command(_) => {}
    }
}

/// Dresses the pods of a Job of either group.
fn dress_spec(draw: &mut Draw, spec: &mut Value) {
    if spec["template"].is_object() {
        return dress_pod(draw, &mut spec["template"]);
    }
    for task in spec["tasks"].as_array_mut().into_iter().flatten() {
        dress_pod(draw, &mut task["template"]);
    }
}

fn dress_pod(draw: &mut Draw, template: &mut Value) {
    template["spec"]["containers"][0]["resources"] = cluster::resources(draw);
    let (fields, preemptable) = cluster::pod_fields(draw);
    for (field, value) in fields {
        template["spec"][field] = value;
    }
    if let Some(preemptable) = preemptable {
        template["metadata"]["annotations"]["volcano.sh/preemptable"] = json!(preemptable.to_string());
    }
}
