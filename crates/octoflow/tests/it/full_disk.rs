//! A data directory whose file system is full, lost or damaged, as the user sees it. The file system is a small one of
//! its own, which needs the right to mount.
#![expect(clippy::print_stderr, reason = "a skipped test is told loudly")]

use std::{
    fs::{self, File},
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    stage::{Stage, eventually, one_step, suspended},
    wire::{
        http::{self, Answer, call},
        processes::left_behind,
        server::Server,
    },
};

const RUNS: &str = "/api/v1/workflows/default";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Time limit for recovery once there is room.
const SOON: Duration = Duration::from_secs(30);

/// A small file system, gone with the test.
struct Small(PathBuf);

impl Small {
    /// `None` if this machine does not let us mount; in CI that is a failure.
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=48m,mode=700", "octoflow-test"]).arg(at).output();
        match mounted {
            Ok(said) if said.status.success() => return Some(Self(at.to_owned())),
            why => {
                let told = "SKIPPED: no file system can be mounted here, so nobody checks what a full disk does";
                assert!(std::env::var_os("CI").is_none(), "{told}: {why:?}");
                eprintln!("{told}: {why:?}");
            }
        }
        None
    }

    /// Takes all space there is.
    fn fill(&self) {
        let mut file = File::create(self.0.join("filled")).unwrap();
        let mut block = vec![b'x'; 1 << 20];
        while !block.is_empty() {
            if file.write_all(&block).is_err() {
                block.truncate(block.len() / 2);
            }
        }
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filled")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // The spawner of a server that has just ended may still use it.
        for _ in 0..50 {
            if Command::new("umount").arg(&self.0).output().is_ok_and(|said| said.status.success()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

fn submitted(name: &str, seconds: u32) -> Value {
    let command = format!("echo began-$((1)); sleep {seconds}; echo done-$((2))");
    json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name},
        "spec": {"entrypoint": "main", "templates": [
            {"name": "main", "steps": [[{"name": "a", "template": "leaf"}], [{"name": "b", "template": "leaf"}]]},
            {"name": "leaf", "container": {"image": "busybox", "command": ["sh", "-c"], "args": [command]}},
        ]},
    }})
}

#[test]
fn a_full_disk_is_507_and_everything_acknowledged_ends_well_once_there_is_room() {
    let stage = Stage::new();
    let Some(small) = Small::mount(&stage.data_dir()) else { return };
    let mut server = Server::start(&stage.data_dir(), &[]);
    let ask = |method: &str, path: &str, body: Option<&Value>| call(server.address, method, path, body).unwrap();
    let mut acknowledged: Vec<String> = Vec::new();
    for at in 0..4 {
        let name = format!("before-{at}");
        let made = ask("POST", RUNS, Some(&submitted(&name, 2)));
        assert_eq!(made.status, 200, "{}", made.body);
        acknowledged.push(name);
    }
    small.fill();
    // Refused before anything is written, because the last of the space is needed for what runs.
    let refused = ask("POST", RUNS, Some(&submitted("refused", 0)));
    assert_eq!(refused.status, 507, "{}", refused.body);
    assert_eq!(refused.body["code"], 8, "{}", refused.body);
    assert!(refused.body["message"].as_str().unwrap().contains("Free some space"), "{}", refused.body);
    // What else is written takes what is left of the journal's own space, until a write fails.
    let (kept, failed) = exhaust(|map| ask("POST", MAPS, Some(map)));
    assert_eq!(failed.status, 507, "{}", failed.body);
    assert_eq!(failed.body["reason"], "InsufficientStorage", "{}", failed.body);
    assert_eq!(probe(server.address, "/livez"), 200, "it is alive");
    assert_eq!(probe(server.address, "/readyz"), 503, "it is not ready");
    assert_eq!(ask("GET", RUNS, None).body["items"].as_array().map(Vec::len), Some(4), "what is there can be read");
    // Meanwhile steps end, and that cannot be recorded.
    std::thread::sleep(Duration::from_secs(3));

    small.free();
    let since = Instant::now();
    eventually("it is ready again", || probe(server.address, "/readyz") == 200);
    assert!(since.elapsed() < SOON, "it took {:?}", since.elapsed());
    let made = ask("POST", RUNS, Some(&submitted("after", 0)));
    assert_eq!(made.status, 200, "{}", made.body);
    acknowledged.push("after".to_owned());
    for name in &acknowledged {
        let phase = || ask("GET", &format!("{RUNS}/{name}"), None).body["status"]["phase"].clone();
        eventually("the run is over", || phase() == "Succeeded" || phase() == "Failed" || phase() == "Error");
        assert_eq!(phase(), "Succeeded", "{name}");
    }
    for at in 0..kept {
        assert_eq!(ask("GET", &format!("{MAPS}/map-{at}"), None).status, 200, "map-{at} was acknowledged");
    }
    assert_eq!(ask("GET", &format!("{RUNS}/refused"), None).status, 404);
    server.stop();
    drop(small);
}

#[test]
fn a_step_that_filled_the_disk_leaves_a_log_that_says_what_it_lacks() {
    let stage = Stage::new();
    let Some(small) = Small::mount(&stage.data_dir()) else { return };
    let mut server = Server::start(&stage.data_dir(), &[]);
    let ask = |method: &str, path: &str, body: Option<&Value>| call(server.address, method, path, body).unwrap();
    let mut greedy = submitted("greedy", 0);
    greedy["workflow"]["spec"]["entrypoint"] = json!("leaf");
    greedy["workflow"]["spec"]["templates"][1]["container"]["args"] =
        json!(["dd if=/dev/zero of=big bs=1M count=200; echo lost; true"]);
    let made = ask("POST", RUNS, Some(&greedy));
    assert_eq!(made.status, 200, "{}", made.body);
    let status = || ask("GET", &format!("{RUNS}/greedy"), None).body["status"].clone();
    eventually("the run is over", || status()["finishedAt"].is_string());
    let log = || http::ask(server.address, "GET", "/api/v1/namespaces/default/pods/greedy/log", &[], b"").text();
    eventually("the log says what is missing", || log().contains("bytes of output are missing here"));
    assert!(status().to_string().contains("log truncated"), "{}", status());
    let made = ask("POST", RUNS, Some(&submitted("after", 0)));
    assert_eq!(made.status, 200, "{}", made.body);
    server.stop();
    drop(small);
}

/// These answer with plain text.
fn probe(address: SocketAddr, path: &str) -> u16 {
    http::ask(address, "GET", path, &[], b"").status
}

/// Takes the space of the journal itself too, until a write fails. Answers how many objects were kept before.
fn exhaust(ask: impl Fn(&Value) -> Answer) -> (usize, Answer) {
    for at in 0..100 {
        let metadata = json!({"name": format!("map-{at}")});
        let data = json!({"k": "x".repeat(200_000)});
        let made = ask(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}));
        if made.status != 201 {
            return (at, made);
        }
    }
    panic!("the disk is not full");
}

#[test]
fn what_cannot_be_repaired_ends_the_server_loudly_and_tasks_go_on() {
    let stage = Stage::new();
    let Some(small) = Small::mount(&stage.data_dir()) else { return };
    let mut server = Server::start(&stage.data_dir(), &[]);
    let address = server.address;
    assert_eq!(call(address, "POST", RUNS, Some(&submitted("w", 4))).unwrap().status, 200);
    let phase = |address| call(address, "GET", &format!("{RUNS}/w"), None).unwrap().body["status"]["phase"].clone();
    eventually("it runs", || phase(address) == "Running");
    small.fill();
    exhaust(|map| call(address, "POST", MAPS, Some(map)).unwrap());
    // Nothing is written meanwhile, so this is a whole copy.
    let (database, log) = (stage.data_dir().join("octoflow.db"), stage.data_dir().join("octoflow.db-wal"));
    let copies = [(fs::read(&database).unwrap(), &database), (fs::read(&log).unwrap(), &log)];
    fs::remove_file(&database).unwrap();
    small.free();
    let said = server.ended();
    assert!(said.code > 0, "{said}");
    assert!(said.err.contains("OF1110") && said.err.contains("OF1114") && said.err.contains("event-loop"), "{said}");

    let refused = stage.octoflow(&["server", "--listen", "127.0.0.1:0"]);
    assert!(refused.code > 0 && refused.err.contains("OF1110"), "{refused}");
    for (bytes, path) in copies {
        fs::write(path, bytes).unwrap();
    }
    let mut server = Server::start(&stage.data_dir(), &[]);
    eventually("it is restored and ends", || phase(server.address) == "Succeeded");
    server.stop();
    drop(small);
}

#[test]
fn a_data_directory_deleted_under_a_server_ends_it_loudly_and_nothing_is_acknowledged() {
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    fs::remove_dir_all(stage.data_dir()).unwrap();
    let workflow = json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]},
    }});
    // The server may be gone before it can answer.
    let answered = call(server.address, "POST", RUNS, Some(&workflow));
    assert!(answered.map_or(true, |answer| answer.status >= 500));
    let said = server.ended();
    assert!(said.code > 0 && said.err.contains("OF1110") && said.err.contains("OF1114"), "{said}");
    assert!(left_behind(&stage.data_dir()).is_empty(), "its spawner goes too");
}

#[test]
fn a_lost_or_damaged_database_is_refused_and_the_doctor_tells() {
    let stage = Stage::new();
    stage.good(&["run", &stage.file("w.yaml", one_step("w", "echo hello"))]);
    let path = stage.data_dir().join("octoflow.db");
    let whole = fs::read(&path).unwrap();
    let doctor = || stage.octoflow(&["doctor"]);
    assert!(doctor().out.contains("whole, 1 runs"), "{}", doctor());
    type Harm = fn(&Path);
    let harms: [(Harm, &str); 3] = [
        (|path| fs::remove_file(path).unwrap(), "OF1110"),
        (|path| fs::write(path, b"").unwrap(), "OF1110"),
        (|path| fs::write(path, [b'x'; 8192]).unwrap(), "OF1111"),
    ];
    for (harm, code) in harms {
        harm(&path);
        let run = stage.octoflow(&["run", &stage.file("v.yaml", one_step("v", "echo hello"))]);
        let server = stage.octoflow(&["server", "--listen", "127.0.0.1:0"]);
        for said in [run, server, stage.octoflow(&["list"])] {
            assert!(said.code != 0 && said.err.contains(code) && said.err.contains("backup"), "{said}");
        }
        let told = doctor();
        assert!(told.code != 0 && told.out.contains(code), "{told}");
        fs::write(&path, &whole).unwrap();
    }
    assert!(stage.good(&["list"]).out.contains('w'), "what was put back is there");
}

#[test]
fn one_unreadable_run_keeps_nobody_from_starting_and_is_shown_as_such() {
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    for name in ["good", "bad"] {
        assert_eq!(call(server.address, "POST", RUNS, Some(&suspended(name))).unwrap().status, 200);
    }
    server.stop();
    let sql =
        "UPDATE facts SET lines = x'00ff00ff' WHERE first = 0 AND run = (SELECT run FROM runs WHERE name = 'bad')";
    let path = stage.data_dir().join("octoflow.db");
    let harmed = Command::new("python3")
        .args(["-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"])
        .args([path.to_str().unwrap(), sql])
        .status();
    assert!(harmed.unwrap().success());
    let listed = stage.good(&["list"]).out;
    let line = |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{listed}"));
    assert!(line("bad").contains("cannot be read") && line("bad").contains("OF1115"), "{listed}");
    assert!(!line("good").contains("cannot be read"), "{listed}");

    let mut server = Server::start(&stage.data_dir(), &[]);
    let ask = |method: &str, path: &str, body: Option<&Value>| call(server.address, method, path, body).unwrap();
    assert_eq!(probe(server.address, "/readyz"), 200);
    let listed = ask("GET", RUNS, None);
    assert_eq!(listed.body["items"].as_array().map(Vec::len), Some(2), "{}", listed.body);
    let shown = ask("GET", &format!("{RUNS}/bad"), None).body;
    assert_eq!(shown["status"]["conditions"][0]["type"], "Unreadable", "{shown}");
    assert!(shown["status"]["message"].as_str().unwrap().contains("OF1115"), "{shown}");
    let told = stage.octoflow(&["doctor"]);
    assert!(told.out.contains("`bad`") && told.out.contains("cannot be read"), "{told}");
    let resumed = ask("PUT", &format!("{RUNS}/good/resume"), Some(&json!({})));
    assert_eq!(resumed.status, 200, "{}", resumed.body);
    eventually("the other one goes on", || {
        ask("GET", &format!("{RUNS}/good"), None).body["status"]["phase"] == "Succeeded"
    });
    let deleted = ask("DELETE", &format!("{RUNS}/bad"), None);
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    eventually("it is gone", || ask("GET", &format!("{RUNS}/bad"), None).status == 404);
    let said = server.stop();
    assert!(said.err.contains("`bad`") && said.err.contains("cannot be read"), "{said}");
}
