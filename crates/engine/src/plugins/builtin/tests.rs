//! Every built-in plugin by example: what it answers, and what it refuses.

use serde_json::json;

use super::*;
use crate::{
    dialects::taskset::admit::examine,
    plugins::{
        builtin_type,
        increment::{self, Mode},
    },
};
use octoflow_model::plugin::PluginType;

struct Nothing;

impl crate::admit::Catalog for Nothing {
    fn has_object(&self, _: &'static crate::kinds::Kind, _: &str, _: &str) -> bool {
        true
    }
}

fn ask(name: &str, job: Value, options: Value) -> Result<Value, String> {
    ask_at(name, job, options, &Context::default())
}

fn ask_at(name: &str, job: Value, options: Value, context: &Context) -> Result<Value, String> {
    let header = json!({"jobID": "j1", "userID": "ann", "jobName": "n", "jobKind": job["kind"]});
    answer(name, &json!({"factors": {}, "header": header, "job": job}), &options, context)
}

/// Translates and admits.
fn translated(name: &str, job: Value) -> Value {
    let made = ask(name, job, Value::Null).unwrap();
    let admitted = examine(&made, &Nothing).unwrap_or_else(|problems| panic!("{problems:?}\n{made:#}"));
    assert_eq!(admitted.manifest["metadata"]["name"], "j1");
    made
}

fn replicas(count: u32, container: &str) -> Value {
    json!({
        "replicas": count, "restartPolicy": "OnFailure",
        "template": {"spec": {"containers": [
            {"name": "side", "image": "s", "command": ["sleep", "1"]},
            {"name": container, "image": "train:1", "command": ["python", "train.py"]},
        ]}},
    })
}

fn tf_job() -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
        "metadata": {"name": "mnist", "namespace": "team", "labels": {"a": "b"}},
        "spec": {
            "runPolicy": {
                "cleanPodPolicy": "Running", "backoffLimit": 3, "activeDeadlineSeconds": 600,
                "schedulingPolicy": {"queue": "q", "minAvailable": 4},
            },
            "tfReplicaSpecs": {
                "PS": replicas(1, "tensorflow"), "Worker": replicas(2, "tensorflow"), "Chief": replicas(1, "tensorflow"),
            },
        },
    })
}

fn env<'a>(role: &'a Value, name: &str) -> Option<&'a str> {
    let env = role["template"]["spec"]["containers"][0]["env"].as_array()?;
    env.iter().find(|one| one["name"] == name)?["value"].as_str()
}

#[test]
fn a_tf_job_becomes_a_task_set_whose_chief_decides() {
    let set = translated("tfjob", tf_job());
    let roles = set["spec"]["roles"].as_array().unwrap();
    let names: Vec<&str> = roles.iter().map(|role| role["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chief", "ps", "worker"]);
    assert_eq!(set["metadata"], json!({"name": "j1", "namespace": "team", "labels": {"a": "b"}}));
    assert_eq!((&set["spec"]["queue"], &set["spec"]["activeDeadlineSeconds"]), (&json!("q"), &json!(600)));
    assert_eq!(roles[0]["eventPolicy"][0], json!({"event": "RoleSucceeded", "action": "TaskSetSucceeded"}));
    assert!(roles[1]["eventPolicy"].is_null() && roles[2]["eventPolicy"].is_null());
    assert_eq!(roles[2]["completionPolicy"], json!({"minSucceeded": 2, "maxFailed": 1}));
    assert_eq!(roles[2]["retryPolicy"]["maxRetryCount"], 3);
    assert_eq!(roles[2]["template"]["spec"]["containers"][0]["name"], "tensorflow", "the one that works is first");
    let config = env(&roles[2], "TF_CONFIG").unwrap().replace("$(TASKROLE_REPLICA_INDEX)", "1");
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["task"], json!({"type": "worker", "index": 1}));
    let cluster = json!({"chief": ["chief-0:2222"], "ps": ["ps-0:2223"], "worker": ["worker-0:2224", "worker-1:2225"]});
    assert_eq!(config["cluster"], cluster);
}

#[test]
fn a_tf_job_without_a_chief_ends_as_its_workers_do_and_one_replica_has_no_cluster() {
    let mut job = tf_job();
    job["spec"]["tfReplicaSpecs"].as_object_mut().unwrap().remove("Chief");
    let set = translated("tfjob", job.clone());
    assert_eq!(set["spec"]["roles"][1]["eventPolicy"][1]["action"], "TaskSetFailed");
    job["spec"]["tfReplicaSpecs"] = json!({"worker": replicas(1, "tensorflow")});
    let set = translated("tfjob", job.clone());
    assert_eq!(env(&set["spec"]["roles"][0], "TF_CONFIG"), None);
    job["spec"]["tfReplicaSpecs"] = json!({"PS": replicas(1, "tensorflow")});
    assert!(ask("tfjob", job, Value::Null).unwrap_err().contains("needs a Chief"));
}

#[test]
fn what_cannot_be_translated_is_refused_by_name() {
    let with = |pointer: &str, name: &str, value: Value| {
        let mut job = tf_job();
        job.pointer_mut(pointer).unwrap()[name] = value;
        ask("tfjob", job, Value::Null).unwrap_err()
    };
    for (pointer, name, value, told) in [
        ("/spec", "enableDynamicWorker", json!(true), "spec.enableDynamicWorker"),
        ("/spec", "elastic", json!({}), "spec.elastic"),
        ("/spec", "successPolicy", json!("First"), "successPolicy `First`"),
        ("/spec/runPolicy", "odd", json!(1), "spec.runPolicy.odd"),
        ("/spec/runPolicy", "cleanPodPolicy", json!("Some"), "cleanPodPolicy `Some`"),
        ("/spec/tfReplicaSpecs", "Helper", json!({}), "spec.tfReplicaSpecs.Helper"),
        ("/spec/tfReplicaSpecs/PS", "scale", json!(1), "spec.tfReplicaSpecs.PS.scale"),
        ("/spec/tfReplicaSpecs/PS", "replicas", json!(-1), "no whole number"),
        ("/spec/tfReplicaSpecs/PS", "replicas", json!(10_001), "10004 replicas"),
        ("/spec/tfReplicaSpecs/PS", "restartPolicy", json!("Sometimes"), "restartPolicy `Sometimes`"),
        ("/spec/tfReplicaSpecs/PS", "template", json!({"spec": {}}), "no containers"),
        ("", "kind", json!("PyTorchJob"), "translates kind TFJob"),
        ("", "apiVersion", json!("other/v1"), "apiVersion `other/v1`"),
    ] {
        let why = with(pointer, name, value);
        assert!(why.contains(told), "{why}");
    }
}

#[test]
fn a_py_torch_job_tells_every_replica_the_master_and_its_rank() {
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "t"},
        "spec": {"nprocPerNode": "2", "pytorchReplicaSpecs": {
            "Worker": replicas(3, "pytorch"), "Master": replicas(1, "pytorch"),
        }},
    });
    let set = translated("pytorchjob", job.clone());
    let roles = &set["spec"]["roles"];
    assert_eq!((&roles[0]["name"], &roles[1]["name"]), (&json!("master"), &json!("worker")));
    for role in roles.as_array().unwrap() {
        assert_eq!(env(role, "MASTER_ADDR"), Some("master-0"));
        assert_eq!((env(role, "MASTER_PORT"), env(role, "WORLD_SIZE")), (Some("23456"), Some("8")));
        assert_eq!((env(role, "RANK"), env(role, "PET_NNODES")), (Some("$(TASKSET_REPLICA_RANK)"), Some("4")));
    }
    assert!(roles[0]["eventPolicy"].is_array() && roles[1]["eventPolicy"].is_null());
    let mut alone = job.clone();
    alone["spec"]["pytorchReplicaSpecs"].as_object_mut().unwrap().remove("Master");
    let set = translated("pytorchjob", alone);
    assert_eq!(env(&set["spec"]["roles"][0], "MASTER_ADDR"), Some("worker-0"));
    let mut elastic = job;
    elastic["spec"]["elasticPolicy"] = json!({});
    assert!(ask("pytorchjob", elastic, Value::Null).unwrap_err().contains("spec.elasticPolicy"));
}

#[test]
fn an_mpi_job_starts_its_launcher_behind_the_workers_with_a_host_file() {
    let job = json!({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "t"},
        "spec": {"slotsPerWorker": 2, "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": {"containers": [{"name": "mpi", "image": "m", "command": ["mpirun"]}]}}},
            "Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "mpi", "image": "m"}]}}},
        }},
    });
    let set = translated("mpijob", job.clone());
    let (worker, launcher) = (&set["spec"]["roles"][0], &set["spec"]["roles"][1]);
    assert_eq!(launcher["dependsOn"], json!(["worker"]));
    assert_eq!(launcher["eventPolicy"][0]["action"], "TaskSetSucceeded");
    assert_eq!(env(launcher, "OMPI_MCA_orte_default_hostfile"), Some("/etc/mpi/hostfile"));
    let script = launcher["template"]["spec"]["initContainers"][0]["command"][2].as_str().unwrap();
    assert!(script.contains("-lt 2") && script.contains("slots=2"), "{script}");
    assert_eq!(worker["eventPolicy"], json!([{"event": "RoleFailed", "action": "NoAction"}]));
    assert_eq!(worker["template"]["spec"]["containers"][0]["command"][0], "/usr/sbin/sshd");
    let mut without = job;
    without["spec"]["mpiReplicaSpecs"].as_object_mut().unwrap().remove("Launcher");
    assert!(ask("mpijob", without, Value::Null).unwrap_err().contains("one Launcher"));
}

#[test]
fn a_job_form_becomes_a_task_set() {
    let form = json!({
        "kind": "JobForm", "name": "demo", "retries": 1, "deadlineSeconds": 60, "priority": 3,
        "roles": [
            {"name": "ps", "image": "busybox", "command": "sleep 5", "env": {"A": 1, "B": "x"}},
            {"name": "worker", "image": "busybox", "command": ["true"], "replicas": 2, "decides": true, "minSucceeded": 1,
             "resources": {"cpu": "1", "memory": "1Gi"}},
        ],
    });
    let set = translated("job-form", form.clone());
    let (ps, worker) = (&set["spec"]["roles"][0], &set["spec"]["roles"][1]);
    assert_eq!(ps["template"]["spec"]["containers"][0]["command"], json!(["sh", "-c", "sleep 5"]));
    assert_eq!((env(ps, "A"), env(ps, "B")), (Some("1"), Some("x")));
    assert_eq!(worker["completionPolicy"], json!({"minSucceeded": 1, "maxFailed": 1}));
    assert_eq!(worker["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"], "1");
    assert_eq!((&set["spec"]["retryPolicy"]["maxRetryCount"], &set["spec"]["priority"]), (&json!(1), &json!(3)));
    for (pointer, name, value, told) in [
        ("", "roles", json!([]), "at least one"),
        ("", "image", json!("x"), "the form has no field `image`"),
        ("/roles/0", "name", json!(""), "needs a name"),
        ("/roles/0", "cmd", json!("x"), "role ps has no field `cmd`"),
        ("/roles/0", "replicas", json!("two"), "`replicas` of role ps"),
        ("/roles/0", "command", json!(5), "neither a text nor a list"),
        ("/roles/0", "env", json!({"A": []}), "no text"),
        ("/roles/0", "decides", json!("yes"), "neither true nor false"),
    ] {
        let mut wrong = form.clone();
        wrong.pointer_mut(pointer).unwrap()[name] = value;
        let why = ask("job-form", wrong, Value::Null).unwrap_err();
        assert!(why.contains(told), "{why}");
    }
}

#[test]
fn priorities_come_from_options_and_history() {
    let priority = |options| ask("priority-by-user", json!({"kind": "X"}), options).unwrap()["advice"].clone();
    assert_eq!(priority(json!({"ann": 10, "*": 1})), "10");
    assert_eq!(priority(json!({"bob": 10, "*": "1.5"})), "1.5");
    assert_eq!(priority(json!({"bob": 10})), "");
    assert!(check_options("priority-by-user", &json!({"ann": "high"})).is_err());
    let advised = |history: &[bool], options| {
        let context = Context { history: history.to_vec(), ..Context::default() };
        ask_at("priority-by-history", json!({}), options, &context).unwrap()["advice"].clone()
    };
    assert_eq!(advised(&[], Value::Null), "");
    assert_eq!(advised(&[true, true, false], Value::Null), "7");
    assert_eq!(advised(&[true], json!({"best": 100})), "100");
    assert_eq!(advised(&[false], Value::Null), "0");
}

#[test]
fn the_quota_holds_back_what_is_too_much_and_asks_again() {
    let decided = |running, options| {
        let context = Context { running, ..Context::default() };
        ask_at("quota", json!({}), options, &context).unwrap()
    };
    let options = json!({"maxRunningPerUser": 2, "recheckSeconds": 7});
    assert_eq!(decided(1, options.clone())["decision"], "pass");
    let held = decided(2, options);
    assert_eq!((&held["decision"], &held["recheckAfter"]), (&json!("suspend"), &json!(7)));
    assert!(held["reason"].as_str().unwrap().contains("user ann has 2 jobs running"));
    assert_eq!(decided(2, json!({"maxRunningPerUser": 2, "users": {"ann": 3}}))["decision"], "pass");
    for wrong in [json!({}), json!({"maxRunningPerUser": -1}), json!({"maxRunningPerUser": 1, "x": 1}), json!([])] {
        assert!(check_options("quota", &wrong).is_err(), "{wrong}");
    }
}

#[test]
fn working_hours_open_and_close_in_their_time_zone() {
    let decided = |now: &str, options: Value| {
        let context = Context { now: Time::parse(now).unwrap(), ..Context::default() };
        ask_at("working-hours", json!({}), options, &context).unwrap()
    };
    let berlin = || json!({"from": "08:00", "to": "18:00", "timezone": "Europe/Berlin"});
    // A Wednesday, in winter.
    assert_eq!(decided("2026-11-18T07:00:00Z", berlin())["decision"], "pass");
    let early = decided("2026-11-18T06:59:00Z", berlin());
    assert_eq!((&early["decision"], &early["recheckAfter"]), (&json!("suspend"), &json!(60)));
    assert!(early["reason"].as_str().unwrap().contains("Wed 2026-11-18 08:00"), "{early}");
    // Friday evening until Monday.
    assert_eq!(decided("2026-11-20T17:00:00Z", berlin())["recheckAfter"], (2 * 24 + 14) * 3600);
    let night = || json!({"days": ["friday"], "from": "22:00", "to": "06:00"});
    assert_eq!(decided("2026-11-21T05:59:59Z", night())["decision"], "pass");
    assert_eq!(decided("2026-11-21T06:00:00Z", night())["recheckAfter"], 6 * 24 * 3600 + 16 * 3600);
    let always = json!({"days": ["sun", "mon", "tue", "wed", "thu", "fri", "sat"], "from": "00:00", "to": "24:00"});
    assert_eq!(decided("2026-11-21T05:59:59Z", always)["decision"], "pass");
    for wrong in [
        json!({"days": []}),
        json!({"days": ["Someday"]}),
        json!({"from": "8"}),
        json!({"to": "25:00"}),
        json!({"timezone": "Mars/Base"}),
        json!({"hours": 1}),
    ] {
        assert!(check_options("working-hours", &wrong).is_err(), "{wrong}");
    }
}

fn plain_set() -> Value {
    ask(
        "job-form",
        json!({"kind": "F", "roles": [
            {"name": "ps", "image": "i"}, {"name": "worker", "image": "i", "replicas": 2, "env": {"PEERS": "mine"}},
        ]}),
        Value::Null,
    )
    .unwrap()
}

#[test]
fn decorators_only_add_and_do_nothing_twice() {
    for (name, options) in
        [("shared-volume", json!({"claim": "data", "mountPath": "/data"})), ("peer-discovery", json!({}))]
    {
        let once = ask(name, plain_set(), options.clone()).unwrap();
        assert!(!increment::check(&plain_set(), &once, Mode::Decorate).unwrap().is_empty());
        assert_eq!(ask(name, once.clone(), options).unwrap(), once);
        examine(&once, &Nothing).unwrap();
    }
    let shared =
        ask("shared-volume", plain_set(), json!({"claim": "data", "mountPath": "/data", "readOnly": true})).unwrap();
    let spec = &shared["spec"]["roles"][1]["template"]["spec"];
    assert_eq!(spec["volumes"], json!([{"name": "shared", "persistentVolumeClaim": {"claimName": "data"}}]));
    let mount = json!({"name": "shared", "mountPath": "/data", "readOnly": true});
    assert_eq!(spec["containers"][0]["volumeMounts"], json!([mount]));
    let other = ask("shared-volume", shared, json!({"claim": "other", "mountPath": "/data"}));
    assert!(other.unwrap_err().contains("another volume at /data"));
    assert!(check_options("shared-volume", &json!({"claim": "c", "mountPath": "data"})).is_err());
    assert!(check_options("shared-volume", &json!({"mountPath": "/data"})).is_err());
    let peers = ask("peer-discovery", plain_set(), Value::Null).unwrap();
    let (ps, worker) = (&peers["spec"]["roles"][0], &peers["spec"]["roles"][1]);
    assert_eq!(
        (env(ps, "PEERS"), env(ps, "PEERS_WORKER")),
        (Some("ps-0,worker-0,worker-1"), Some("worker-0,worker-1"))
    );
    assert_eq!(env(worker, "PEERS"), Some("mine"));
    assert!(check_options("peer-discovery", &json!({"prefix": "1x"})).is_err());
    assert!(ask("peer-discovery", json!({"kind": "Job"}), Value::Null).is_err());
}

#[test]
fn the_gang_binder_adds_group_scheduler_and_priority_and_nothing_else() {
    let header = json!({"jobID": "j1"});
    let advice = |advice: &str| json!({"topic": "priority", "advice": advice, "reason": ""});
    let factors = json!({"priority": [advice("10"), advice("4"), advice("1"), advice("high")]});
    let mut set = plain_set();
    set["spec"]["roles"].as_array_mut().unwrap().push(json!({
        "name": "report", "replicas": 1, "dependsOn": ["worker"], "completionPolicy": {"minSucceeded": 1, "maxFailed": 1},
        "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}},
    }));
    let input = json!({"factors": factors, "header": header, "job": set});
    let bound = answer("gang", &input, &Value::Null, &Context::default()).unwrap();
    increment::check(&set, &bound, Mode::Bind).unwrap();
    assert!(increment::check(&set, &bound, Mode::Decorate).is_err());
    let group = |role: usize| &bound["spec"]["roles"][role]["template"]["metadata"]["annotations"][gang_annotation()];
    assert_eq!((group(0), group(1)), (&json!("j1"), &json!("j1")));
    assert!(group(2).is_null(), "it starts later");
    assert_eq!(bound["spec"]["roles"][2]["template"]["spec"]["schedulerName"], "volcano");
    assert_eq!(bound["spec"]["priority"], 5);
    let admitted = examine(&bound, &Nothing).unwrap();
    assert!(admitted.manifest["spec"]["priority"] == 5);
    let options = json!({"podGroup": "g", "schedulerName": "kube-batch"});
    let again = answer("gang", &json!({"factors": {}, "header": header, "job": bound}), &options, &Context::default());
    assert_eq!(again.unwrap(), bound, "what is there stays");
}

fn gang_annotation() -> &'static str {
    octoflow_model::taskset::GANG_ANNOTATION
}

#[test]
fn every_built_in_plugin_is_known_and_unknown_ones_are_refused() {
    for (name, plugin_type) in super::super::BUILTINS {
        assert_eq!(builtin_type(name), Some(plugin_type));
        let why = ask(name, json!({"kind": "Nothing"}), json!({"no such option": []})).unwrap_err();
        assert!(!why.contains("there is no built-in"), "{why}");
        let answered = ask(name, Value::Null, Value::Null);
        assert!(answered.is_ok() || plugin_type != PluginType::FactorGenerator, "{name}: {answered:?}");
    }
    assert!(ask("other", Value::Null, Value::Null).unwrap_err().contains("no built-in plugin `other`"));
    assert!(check_options("other", &Value::Null).is_err());
}
