//! Each wrong, missing or oversized parameter: the code and status that the seed names, and nothing stored.

use serde_json::{Value, json};

use crate::stage::{DONE, Stage, eventually, submission, task_set};

#[test]
fn a_submission_with_a_wrong_parameter_answers_its_code_and_makes_no_job() {
    let stage = &mut Stage::new();
    let good = || submission(&task_set("true"), json!({}));
    let with = |field: &str, value: Value| {
        let mut body = good();
        body[field] = value;
        body
    };
    let long = "x".repeat(5000);
    let cases = [
        (Value::Null, "LACK_OF_PARAM"),
        (json!([]), "LACK_OF_PARAM"),
        (json!({}), "LACK_OF_PARAM"),
        (with("userID", Value::Null), "LACK_OF_PARAM"),
        (with("userID", json!("")), "LACK_OF_PARAM"),
        (with("jobName", Value::Null), "LACK_OF_PARAM"),
        (with("jobKind", Value::Null), "LACK_OF_PARAM"),
        (with("job", Value::Null), "LACK_OF_PARAM"),
        (with("userID", json!(7)), "WRONG_PARAM"),
        (with("userID", json!(long)), "WRONG_PARAM"),
        (with("jobName", json!(long)), "WRONG_PARAM"),
        (with("jobKind", json!(long)), "WRONG_PARAM"),
        (with("cluster", json!(long)), "WRONG_PARAM"),
        (with("cluster", json!(1)), "WRONG_PARAM"),
        (with("header", json!("x")), "WRONG_PARAM"),
        (with("job", json!("x")), "WRONG_PARAM"),
        (with("job", json!({})), "WRONG_PARAM"),
        (with("job", json!({"kind": ""})), "WRONG_PARAM"),
        (with("job", json!({"kind": "A", "jobID": 7})), "WRONG_PARAM"),
        (with("job", json!({"kind": "A", "jobID": "Not A Name"})), "WRONG_PARAM"),
        (with("job", json!({"kind": "A", "jobID": "x".repeat(64)})), "WRONG_PARAM"),
        (with("jobNameSpace", json!("No_Namespace")), "WRONG_PARAM"),
        (with("jobNameSpace", json!([])), "WRONG_PARAM"),
        (with("jobNamespace", json!("team")), "WRONG_PARAM"),
    ];
    for (body, code) in &cases {
        let told = stage.ask("POST", "/job", body);
        let short: String = body.to_string().chars().take(200).collect();
        assert_eq!((told.code.as_str(), told.status), (*code, 200), "{short}: {}", told.msg);
    }
    assert_eq!(stage.get("/job/count").payload, json!({"count": 0}));
    stage.restart();
    assert_eq!(stage.get("/job/count").payload, json!({"count": 0}));
}

#[test]
fn lists_with_a_wrong_parameter_answer_its_code() {
    let stage = Stage::new();
    let lacking = ["/job/list", "/job/list?pageNumber=1", "/job/list?pageSize=10"];
    let wrong = [
        "/job/list?pageNumber=1&pageSize=7",
        "/job/list?pageNumber=0&pageSize=10",
        "/job/list?pageNumber=x&pageSize=10",
        "/job/list?pageNumber=1&pageSize=10&order=random",
        "/job/list?pageNumber=1&pageSize=10&state=flying",
        "/job/list?pageNumber=1&pageSize=10&startAt=yesterday",
        "/job/count?endAt=1.5",
        "/job/count?state=running,flying",
    ];
    for (paths, code) in [(&lacking[..], "LACK_OF_PARAM"), (&wrong[..], "WRONG_PARAM")] {
        for path in paths {
            let told = stage.get(path);
            assert_eq!((told.code.as_str(), told.status), (code, 200), "{path}: {}", told.msg);
        }
    }
    assert_eq!(stage.get("/job/list?pageNumber=99999999999&pageSize=50&startAt=-99999999999999").code, DONE);
}

#[test]
fn what_is_not_there_has_the_status_of_its_own_for_jobs() {
    let stage = Stage::new();
    for path in ["/job/config/x", "/job/taskset/x", "/job/detail/x", "/job/trace/x"] {
        let told = stage.get(path);
        assert_eq!((told.code.as_str(), told.status), ("OPERATION_TARGET_NOT_FOUND", 404), "{path}");
    }
    let stop = stage.ask("PUT", "/job/stop/x", &json!({"jobID": "x", "reason": "r"}));
    assert_eq!((stop.code.as_str(), stop.status), ("OPERATION_TARGET_NOT_FOUND", 200));
    assert_eq!(stage.ask("PUT", "/job/stop", &json!({})).code, "LACK_OF_PARAM");
    assert_eq!(stage.ask("PUT", "/job/resume/x", &json!({"jobID": 7})).code, "WRONG_PARAM");
    assert_eq!(stage.ask("PUT", "/job/stop/x", &json!({"reason": "r".repeat(5000)})).code, "WRONG_PARAM");
}

#[test]
fn pl_43_of_two_jobs_with_one_id_in_two_namespaces_one_passes() {
    let stage = Stage::new();
    for round in 0..30 {
        let mut set = task_set("true");
        set["metadata"]["name"] = json!(format!("same{round}"));
        let submit = |namespace: &str| {
            let mut body = submission(&set, json!({}));
            body["jobNameSpace"] = json!(namespace);
            stage.ask("POST", "/job", &body).code
        };
        let mut codes = std::thread::scope(|scope| {
            let other = scope.spawn(|| submit("two"));
            [submit("one"), other.join().unwrap()]
        });
        codes.sort();
        assert_eq!(codes, [DONE, "UNSUPPORTED_OPERATION"], "round {round}");
    }
}

#[test]
fn a_job_that_a_workflow_makes_is_its_submitter_s() {
    let stage = Stage::new();
    let wanted = json!({"forwho": "bob", "privileges": ["write_job", "read_job"]});
    let token = stage.ask("POST", "/tokens", &wanted).payload["token"].as_str().unwrap().to_owned();
    let made = |name: &str, token: &str| {
        let job = json!({
            "apiVersion": "octoflow.io/v1alpha1", "kind": "SubmittedJob", "metadata": {"name": name},
            "spec": {"userID": "u1", "jobName": "n", "jobKind": "TaskSet", "submittedBy": "root", "job": task_set("true")},
        });
        let template = json!({"name": "t", "resource": {"action": "create", "manifest": job.to_string()}});
        let workflow = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": format!("makes-{name}")},
            "spec": {"entrypoint": "t", "templates": [template]},
        });
        stage.post("/apis/argoproj.io/v1alpha1/namespaces/default/workflows", token, &workflow);
        eventually("the job is there", || stage.get(&format!("/job/detail/{name}")).status == 200);
        assert_eq!(stage.until(name, "succeeded")["job"]["state"], "succeeded");
        stage.trace(name)["header"]["submittedBy"].clone()
    };
    assert_eq!(made("ofbob", &token), "bob");
    assert_eq!(made("ofadmin", "admin"), "admin");
}

#[test]
fn pl_03_tokens_of_one_namespace_see_its_jobs_and_no_others() {
    let stage = Stage::new();
    let mut body = submission(&task_set("true"), json!({}));
    let inside = stage.submit(&task_set("true"));
    body["jobNameSpace"] = json!("team");
    let outside = stage.ask("POST", "/job", &body).payload["jobID"].as_str().unwrap().to_owned();
    let wanted = json!({"forwho": "ann", "privileges": ["read_job"], "namespaces": ["team"]});
    let token = stage.ask("POST", "/tokens", &wanted).payload["token"].as_str().unwrap().to_owned();
    let header = [("token", token.as_str()), ("authorization", "")];
    let as_ann = |method: &str, path: &str, body: &Value| stage.ask_with(method, path, &header, body);
    assert_eq!(as_ann("GET", "/job/list?pageNumber=1&pageSize=10", &Value::Null).payload[0]["jobID"], outside.as_str());
    assert_eq!(as_ann("GET", "/job/count", &Value::Null).payload["count"], 1);
    assert_eq!(as_ann("GET", &format!("/job/detail/{inside}"), &Value::Null).status, 404);
    assert_eq!(as_ann("GET", &format!("/job/detail/{outside}"), &Value::Null).status, 200);
    let post = as_ann("POST", "/job", &body);
    assert_eq!((post.status, post.code.as_str()), (403, "PERMISSION_DENIED"));
    let writer = json!({"forwho": "bob", "privileges": ["write_job"], "namespaces": ["team"]});
    let token = stage.ask("POST", "/tokens", &writer).payload["token"].as_str().unwrap().to_owned();
    let header = [("token", token.as_str()), ("authorization", "")];
    let made = stage.ask_with("POST", "/job", &header, &body);
    assert_eq!(made.code, DONE, "{}", made.msg);
    let id = made.payload["jobID"].as_str().unwrap();
    assert_eq!(stage.trace(id)["header"]["submittedBy"], "bob", "nobody can say who he is");
    body["jobNameSpace"] = json!("default");
    assert_eq!(stage.ask_with("POST", "/job", &header, &body).status, 403);
}

#[test]
fn query_parameters_that_nobody_knows_are_refused_by_name() {
    let stage = Stage::new();
    let address = stage.plugins.says("gate", json!({"decision": "suspend", "reason": "full"}));
    stage.plugin("AccessGate", "g", &address);
    let id = stage.submit(&task_set("true"));
    stage.until(&id, "suspended");
    let resume = format!("/job/resume/{id}");
    let cases = [
        ("PUT", format!("{resume}?Recheck=true"), "Recheck"),
        ("PUT", format!("{resume}?recheck=bogus"), "recheck"),
        ("PUT", format!("{resume}/?recheck=true&x=1"), "`x`"),
        ("PUT", format!("/job/stop/{id}?force=true"), "force"),
        ("GET", "/job/count?userid=nobody".to_owned(), "userid"),
        ("GET", "/job/list?pageNumber=1&pageSize=10&users=u1".to_owned(), "users"),
        ("GET", format!("/job/trace/{id}?verbose"), "verbose"),
        ("GET", "/plugins/list/AccessGate?limit=1".to_owned(), "limit"),
    ];
    for (method, path, name) in &cases {
        let told = stage.ask(method, path, &Value::Null);
        assert_eq!((told.code.as_str(), told.status), ("WRONG_PARAM", 200), "{path}: {}", told.msg);
        assert!(told.msg.contains(name), "{path}: {}", told.msg);
    }
    assert_eq!(stage.job(&id)["job"]["state"], "suspended", "no gate was passed");
    assert_eq!(stage.plugins.asked("gate").len(), 1);
    assert_eq!(stage.ask("PUT", &format!("{resume}?recheck=true"), &Value::Null).code, DONE);
    eventually("it is asked again", || stage.plugins.asked("gate").len() == 2);
}
