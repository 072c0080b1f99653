//! Lists of large objects: the server does not hold what nobody has read yet, and pages leave nothing out.

use std::{net::SocketAddr, thread};

use serde_json::{Value, json};

use crate::{
    stage::Stage,
    wire::{
        http::{Coming, ask, begin},
        server::Server,
        waiting::{PATIENCE, within},
    },
};

/// Objects of each list.
const COUNT: usize = 40;
/// Bytes of each object.
const BYTES: usize = 150_000;

/// Argo's lists and the Kubernetes one, with the names that they must have.
const LISTS: [(&str, &str); 5] = [
    ("/api/v1/workflows/default", "open"),
    ("/api/v1/archived-workflows?namespace=default", "over"),
    ("/api/v1/workflow-templates/default", "template"),
    ("/api/v1/cron-workflows/default", "cron"),
    ("/apis/argoproj.io/v1alpha1/namespaces/default/workflows", "open"),
];

fn spec(suspend: &Value) -> Value {
    json!({
        "entrypoint": "a", "templates": [{"name": "a", "suspend": suspend}],
        "arguments": {"parameters": [{"name": "p", "value": "x".repeat(BYTES)}]},
    })
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn post(to: SocketAddr, path: &str, body: &Value) {
    let reply = ask(to, "POST", path, &[], body.to_string().as_bytes());
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
}

fn fill(to: SocketAddr) {
    let (waits, ends) = (spec(&json!({})), spec(&json!({"duration": "0"})));
    let cron = json!({"schedules": ["0 0 1 1 *"], "workflowSpec": waits});
    for at in 0..COUNT {
        let workflow = |name: &str, spec| json!({"workflow": object("Workflow", &format!("{name}-{at}"), spec)});
        post(to, "/api/v1/workflows/default", &workflow("over", &ends));
        post(to, "/api/v1/workflows/default", &workflow("open", &waits));
        let template = object("WorkflowTemplate", &format!("template-{at}"), &waits);
        post(to, "/api/v1/workflow-templates/default", &json!({ "template": template }));
        let cron = object("CronWorkflow", &format!("cron-{at}"), &cron);
        post(to, "/api/v1/cron-workflows/default", &json!({ "cronWorkflow": cron }));
    }
}

fn list(to: SocketAddr, path: &str) -> Value {
    let reply = ask(to, "GET", path, &[], b"");
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

/// The names of a list's items that begin so.
fn names(list: &Value, prefix: &str) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    let names = items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

#[test]
fn lists_of_large_objects_that_nobody_reads_are_not_in_memory() {
    const READERS: usize = 4;
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let to = server.address;
    fill(to);
    let archive = LISTS[1].0;
    assert!(
        within(PATIENCE, || names(&list(to, &format!("{archive}&fields=items.metadata.name")), "over").len() == COUNT)
    );
    // Read once first, so that caches of the server are not counted.
    for (path, prefix) in LISTS {
        let whole = list(to, path);
        let mut found = names(&whole, prefix);
        assert!(whole.to_string().len() > COUNT * BYTES, "{path} is not large");
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), COUNT, "{path}");
    }
    let before = server.memory();
    let unread: Vec<Coming> = LISTS
        .iter()
        .flat_map(|(path, _)| (0..READERS).map(move |_| begin(to, "GET", path, &[], b"").unwrap()))
        .collect();
    let grown = server.memory().saturating_sub(before) >> 20;
    let whole = (unread.len() * COUNT * BYTES) >> 20;
    assert!(grown < whole as u64 / 4, "{} lists of {whole} MiB: it grew by {grown} MiB", unread.len());
    // Whoever reads late gets all of it. One of each list is enough.
    thread::scope(|scope| {
        for late in unread.into_iter().step_by(READERS) {
            scope.spawn(|| {
                let text = late.whole().unwrap().text();
                assert!(text.matches("\"name\":\"p\"").count() >= COUNT && text.ends_with('}'), "{} bytes", text.len());
            });
        }
    });
    server.stop();
}

#[test]
fn pages_of_a_list_leave_nothing_out_and_repeat_nothing() {
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let to = server.address;
    let (waits, count) = (json!({"entrypoint": "a", "templates": [{"name": "a", "suspend": {}}]}), 7);
    for at in 0..count {
        let workflow = object("Workflow", &format!("open-{at}"), &waits);
        post(to, "/api/v1/workflows/default", &json!({ "workflow": workflow }));
        let template = object("WorkflowTemplate", &format!("template-{at}"), &waits);
        post(to, "/api/v1/workflow-templates/default", &json!({ "template": template }));
    }
    let faces = [(LISTS[0], "listOptions."), (LISTS[2], "listOptions."), (LISTS[4], "")];
    for ((path, prefix), option) in faces {
        let whole = names(&list(to, path), prefix);
        assert_eq!(whole.len(), count, "{path}");
        for limit in 1..=count + 1 {
            let (mut paged, mut next) = (Vec::new(), String::new());
            loop {
                let page = list(to, &format!("{path}?{option}limit={limit}{next}"));
                let found = names(&page, prefix);
                assert!(found.len() <= limit, "{path}: {found:?}");
                paged.extend(found);
                match page["metadata"]["continue"].as_str() {
                    Some(more) => next = format!("&{option}continue={more}"),
                    None => break,
                }
            }
            assert_eq!(paged, whole, "{path}, {limit} at a time");
        }
    }
    server.stop();
}
