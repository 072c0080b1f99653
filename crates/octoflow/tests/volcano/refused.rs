//! What is refused: each mistake with its path, all of them at once, and nothing is stored.

use serde_json::{Value, json};

use crate::{
    job::{job, task},
    place::Place,
    stage::{Stage, eventually, shows},
};

fn work() -> Value {
    task("a", 3, "true", json!({}))
}

#[test]
fn vj_02_each_mistake_is_refused_with_its_path() {
    let stage = Stage::new();
    let volumes = json!([{"mountPath": "/d", "volumeClaimName": "c"}, {"mountPath": "/d", "volumeClaimName": "e"}]);
    let both = json!([{"event": "PodFailed", "exitCode": 1}]);
    let any = json!([{"event": "*"}, {"event": "PodFailed"}]);
    for (tasks, more, path) in [
        (json!([work(), work()]), json!({}), "spec.tasks[1].name"),
        (json!([work()]), json!({"minAvailable": 9}), "spec.minAvailable"),
        (json!([work()]), json!({"plugins": {"magic": []}}), "spec.plugins.magic"),
        (json!([work()]), json!({"plugins": {"mpi": []}}), "spec.plugins.mpi"),
        (json!([work()]), json!({ "volumes": volumes }), "spec.volumes[1].mountPath"),
        (json!([work()]), json!({ "policies": both }), "spec.policies[0]"),
        (json!([work()]), json!({"policies": [{"exitCode": 0}]}), "spec.policies[0].exitCode"),
        (json!([work()]), json!({ "policies": any }), "spec.policies[0]"),
        (json!([task("a", 1, "true", json!({"dependsOn": {"name": ["a"]}}))]), json!({}), "spec.tasks[0].dependsOn"),
    ] {
        let said = stage.octoflow(&["run", &stage.job("wrong", tasks, more)]);
        assert_ne!(said.code, 0, "{said}");
        shows(&said.err, &["error[OF", path]);
    }
    let several = json!({"minAvailable": 9, "plugins": {"magic": []}, "policies": [{"exitCode": 0}]});
    let said = stage.octoflow(&["run", &stage.job("wrong", json!([work()]), several)]);
    for path in ["(spec.minAvailable)", "(spec.plugins.magic)", "(spec.policies[0].exitCode)"] {
        shows(&said.err, &[path]);
    }
    shows(&stage.octoflow(&["get", "wrong"]).err, &["wrong"]);
}

#[test]
fn vj_24_a_queue_that_takes_no_work_is_refused() {
    let place = Place::start();
    place.good(&["queue", "create", "upper"]);
    place.good(&["queue", "create", "lower", "--parent", "upper"]);
    place.good(&["queue", "create", "shut"]);
    place.good(&["queue", "close", "shut"]);
    let file = |queue: &str| {
        let job = job("j", json!([work()]), json!({ "queue": queue }));
        place.file(&format!("{queue}.yaml"), &job.to_string())
    };
    for (queue, why) in [("none", "there is no queue `none`"), ("upper", "upper"), ("shut", "closed"), ("root", "root")]
    {
        let said = place.octoflow(&["submit", &file(queue)]);
        assert_ne!(said.code, 0, "{queue}: {said}");
        shows(&said.err, &["spec.queue"]);
        shows(&said.err, &[why]);
    }
    place.good(&["submit", &file("lower")]);
    eventually("it is over", || place.good(&["get", "j", "-o", "jsonpath={.status.state.phase}"]) == "Completed");
}
