//! Kill -9 of a server whose queues take from each other: a flood borrows everything, gangs of the other queue take their
//! share back again and again. Nothing is lost, doubled or stuck, and the sums of the queues agree after every restart.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    OnDrop, check,
    load::{Dice, RUNS, SETS},
    wire::{
        http::{ask, call},
        processes::left_behind,
        server::Server,
        waiting::{eventually, within},
    },
    witness::terminal,
};

const KILLS: usize = 20;
const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";
/// Workflows of the flood, and steps of each: more than the machine does between the first kill and the last.
const FLOODS: usize = 4;
const STEPS: usize = 60;
/// Members of a gang; together they want all that their queue deserves.
const MEMBERS: usize = 3;

fn start(data_dir: &Path) -> Server {
    Server::start(data_dir, &["--parallelism", "64", "--node-capacity", "cpu=8"])
}

fn queue(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name},
        "spec": {"deserved": {"cpu": cpu}},
    })
}

/// Steps of one core each that leave a line when they begin and one when they are through.
fn flood(name: &str, host: &Path) -> Value {
    let script = "echo {{workflow.name}} {{inputs.parameters.i}} begins >> /out/marks; sleep 0.4; \
                  echo {{workflow.name}} {{inputs.parameters.i}} ends >> /out/marks";
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": name, "labels": {"volcano.sh/queue-name": "small"}},
        "spec": {
            "entrypoint": "main", "volumes": [{"name": "out", "hostPath": {"path": host}}],
            "templates": [
                {"name": "main", "steps": [[{"name": "s", "template": "work", "withSequence": {"count": STEPS.to_string()},
                    "arguments": {"parameters": [{"name": "i", "value": "{{item}}"}]}}]]},
                {"name": "work", "inputs": {"parameters": [{"name": "i"}]},
                    "container": {"image": "bash", "command": ["bash", "-c"], "args": [script],
                        "resources": {"requests": {"cpu": "1"}},
                        "volumeMounts": [{"name": "out", "mountPath": "/out"}]}},
            ],
        },
    })
}

/// Replicas that start together; `until` is what they wait for.
fn gang(name: &str, host: &Path, until: &str) -> Value {
    let mark = format!("{name} $TASKROLE_REPLICA_INDEX");
    let script = format!("echo {mark} begins >> /out/marks; {until}; echo {mark} ends >> /out/marks");
    json!({
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet",
        "metadata": {"name": name, "labels": {"volcano.sh/queue-name": "large"}},
        "spec": {"roles": [{
            "name": "worker", "replicas": MEMBERS, "completionPolicy": {"maxFailed": 1, "minSucceeded": MEMBERS},
            "template": {
                "metadata": {"annotations": {"scheduling.k8s.io/group-name": name}},
                "spec": {"restartPolicy": "Never", "volumes": [{"name": "out", "hostPath": {"path": host}}],
                    "containers": [{"name": "main", "image": "bash", "command": ["bash", "-c", script],
                        "resources": {"requests": {"cpu": "2"}},
                        "volumeMounts": [{"name": "out", "mountPath": "/out"}]}]},
            },
        }]},
    })
}

/// Hands it in until the server has acknowledged it, however often that is killed meanwhile.
fn insist(address: &Mutex<SocketAddr>, path: &str, body: &Value) {
    let accepted = within(Duration::from_secs(30), || {
        let to = *address.lock().unwrap();
        // A request without an answer may have been carried out.
        call(to, "POST", path, Some(body)).is_ok_and(|answer| matches!(answer.status, 200 | 201 | 409))
    });
    assert!(accepted, "{path} was not accepted");
}

fn state(address: SocketAddr, set: &str) -> Option<String> {
    let answer = call(address, "GET", &format!("{SETS}/{set}"), None).ok().filter(|answer| answer.status == 200)?;
    Some(answer.body["status"]["state"].as_str().unwrap_or_default().to_owned())
}

/// Hands in one gang after another until it is over. Returns how many.
fn gangs(address: &Mutex<SocketAddr>, over: &AtomicBool, host: &Path) -> usize {
    let mut made = 0;
    while !over.load(Ordering::Relaxed) {
        let name = format!("gang{made}");
        insist(address, SETS, &gang(&name, host, "sleep 0.3"));
        made += 1;
        let ended = within(Duration::from_secs(60), || {
            state(*address.lock().unwrap(), &name).is_some_and(|state| terminal(&state))
        });
        assert!(ended, "{name} is stuck: it deserves what it wants");
        thread::sleep(Duration::from_millis(100));
    }
    made
}

/// Values of one metric of the queues, all of one moment.
fn metric(text: &str, name: &str) -> BTreeMap<String, f64> {
    let rows = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix("{queue_name=\""));
    rows.filter_map(|row| {
        let (queue, value) = row.split_once("\"} ")?;
        Some((queue.to_owned(), value.parse().ok()?))
    })
    .collect()
}

/// The sums of queues and of the machine agree.
fn check_sums(address: SocketAddr) {
    let text = ask(address, "GET", "/metrics", &[], b"").text();
    for name in ["volcano_queue_allocated_milli_cpu", "volcano_queue_pod_group_running_count"] {
        let values = metric(&text, name);
        let below: f64 = ["small", "large", "default"].iter().map(|queue| values[*queue]).sum();
        assert_eq!(values["root"], below, "{name}: {values:?}");
    }
    let cpu = metric(&text, "volcano_queue_allocated_milli_cpu");
    assert!(cpu["root"] <= 8000.0, "more is used than there is: {cpu:?}");
}

fn status(address: SocketAddr, queue: &str) -> Value {
    call(address, "GET", &format!("{QUEUES}/{queue}"), None).expect("the server answers").body["status"].clone()
}

#[test]
fn a_server_killed_twenty_times_while_queues_take_from_each_other_keeps_every_promise() {
    let place = tempfile::tempdir().unwrap();
    let (data_dir, host) = (place.path().join("data"), place.path().join("out"));
    fs::create_dir(&host).unwrap();
    let server = start(&data_dir);
    let (address, over) = (Mutex::new(server.address), AtomicBool::new(false));
    insist(&address, QUEUES, &queue("small", "2"));
    insist(&address, QUEUES, &queue("large", "6"));
    for at in 0..FLOODS {
        insist(&address, RUNS, &json!({"workflow": flood(&format!("flood-{at}"), &host)}));
    }
    eventually("the flood borrows everything", || status(server.address, "small")["running"] == 8);
    let (mut server, made) = thread::scope(|scope| {
        let _end = OnDrop(&[&over]);
        let client = scope.spawn(|| gangs(&address, &over, &host));
        let mut server = server;
        let mut dice = Dice(0x13);
        for _ in 0..KILLS {
            thread::sleep(Duration::from_millis(30 + dice.below(600) as u64));
            server.kill();
            server = start(&data_dir);
            *address.lock().unwrap() = server.address;
            check_sums(server.address);
        }
        over.store(true, Ordering::Relaxed);
        (server, client.join().unwrap())
    });

    // With everything held in place, what is told before and after a restart is the same.
    let gate = host.join("gate");
    insist(&address, SETS, &gang("held", &host, "until [ -e /out/gate ]; do sleep 0.05; done"));
    eventually("the gang takes its share back", || status(server.address, "large")["running"] == MEMBERS);
    assert_eq!(status(server.address, "large")["allocated"]["cpu"], "6");
    server.kill();
    server = start(&data_dir);
    assert_eq!(status(server.address, "large")["running"], MEMBERS);
    assert_eq!(status(server.address, "large")["allocated"]["cpu"], "6");
    assert!(status(server.address, "small")["running"].as_u64().unwrap() <= 2, "the rest is all that is left");
    check_sums(server.address);
    fs::write(&gate, "").unwrap();

    let over = within(crate::PATIENCE, || {
        let (runs, sets) = (check::listed(server.address), check::sets(server.address));
        let over = |value: &Value, field: &str| terminal(value["status"][field].as_str().unwrap_or_default());
        runs.values().all(|run| over(run, "phase")) && sets.values().all(|set| over(set, "state"))
    });
    assert!(over, "something is stuck: {}", status(server.address, "root"));
    for queue in ["root", "small", "large"] {
        let told = status(server.address, queue);
        assert_eq!(
            (&told["running"], &told["pending"], &told["allocated"]),
            (&json!(0), &json!(0), &json!({})),
            "{queue}"
        );
    }
    let (runs, sets) = (check::listed(server.address), check::sets(server.address));
    assert_eq!((runs.len(), sets.len()), (FLOODS, made + 1), "lost, or made twice");
    server.stop();
    let broken = broken_promises(&runs, &sets, &host);
    assert!(broken.is_empty(), "{} promises are broken:\n{}", broken.len(), broken.join("\n"));
    assert!(made >= 3, "so few gangs prove nothing: {made}");
    assert_eq!(left_behind(&data_dir), Vec::<String>::new());
}

/// Every task has ended well, and ran once more for each time that it was ended for another.
fn broken_promises(runs: &BTreeMap<String, Value>, sets: &BTreeMap<String, Value>, host: &Path) -> Vec<String> {
    let mut marks: BTreeMap<String, u64> = BTreeMap::new();
    for line in fs::read_to_string(host.join("marks")).unwrap_or_default().lines() {
        *marks.entry(line.to_owned()).or_insert(0) += 1;
    }
    let ran = |mark: &str| marks.get(mark).copied().unwrap_or(0);
    let (mut broken, mut preempted) = (Vec::new(), 0);
    for (name, run) in runs {
        if run["status"]["phase"] != "Succeeded" {
            broken.push(format!("{name} is {}: {}", run["status"]["phase"], run["status"]["message"]));
        }
        let nodes = run["status"]["nodes"].as_object().cloned().unwrap_or_default();
        let steps: Vec<&Value> = nodes.values().filter(|node| node["type"] == "Pod").collect();
        if steps.len() != STEPS {
            broken.push(format!("{name} has {} steps", steps.len()));
        }
        for step in steps {
            let again = step["preempted"]["count"].as_u64().unwrap_or(0);
            preempted += again;
            let parameters = step["inputs"]["parameters"].as_array().cloned().unwrap_or_default();
            let item = parameters.first().and_then(|one| one["value"].as_str()).unwrap_or_default().to_owned();
            let mark = format!("{name} {item}");
            let (begins, ends) = (ran(&format!("{mark} begins")), ran(&format!("{mark} ends")));
            // Somebody may be ended before its first line, or between its last line and its end.
            if begins == 0 || begins > 1 + again || ends == 0 || ends > begins {
                broken.push(format!(
                    "`{mark}` began {begins} times and ended {ends} times, ended for others {again} times"
                ));
            }
        }
    }
    for (name, set) in sets {
        if set["status"]["state"] != "Succeeded" {
            broken.push(format!("{name} is {}", set["status"]["state"]));
        }
        for index in 0..MEMBERS {
            let mark = format!("{name} {index}");
            let (begins, ends) = (ran(&format!("{mark} begins")), ran(&format!("{mark} ends")));
            if (begins, ends) != (1, 1) {
                broken
                    .push(format!("`{mark}` began {begins} times and ended {ends} times, and its queue owes nothing"));
            }
        }
    }
    if preempted == 0 {
        broken.push("nobody was ended for another: nothing was proved".to_owned());
    }
    broken
}
