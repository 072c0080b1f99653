//! The API against what it says of itself: schemathesis calls every operation of `/openapi.json` with made-up values, as
//! nobody, with each privilege, and with all of them. No answer may be a failure of the server, and none may differ from the
//! document. `cargo xtask setup` installs schemathesis where this test looks.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    samples::{path, samples},
    stage::Stage,
    wire::{http, server::Server},
};

/// Values are made up from this number, so that what was found once is found again.
const SEED: u32 = 20_261_116;

/// All callers together take about a minute and a half on two cores. Whoever hangs is ended here.
const MAX_TIME: Duration = Duration::from_secs(540);

const PRIVILEGES: [&str; 6] = ["read_job", "write_job", "read_feature", "write_feature", "read_token", "write_token"];

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance";

/// What changes tokens and passwords comes last: it finds those of the callers, and takes them away.
const TOKEN_CHANGES: &str = "^(put|delete)ApiOctoflowV1(Tokens|Admin)";

/// Names that exist are used often, so that more than refusals is seen. Answers without an end are asked to have one:
/// nothing is left out but the wish to follow.
const SETTINGS: &str = r#"
continue-on-failure = true
workers = 1
[dictionaries.namespaces]
values = ["default"]
[dictionaries.names]
values = ["seeded"]
[parameters]
"query.watch" = false
"query.follow" = false
"query.logOptions.follow" = false
"query.listOptions.timeoutSeconds" = 1
"path.namespace" = { dictionary = "namespaces", probability = 0.7 }
"path.name" = { dictionary = "names", probability = 0.7 }
"#;

/// One run of schemathesis.
struct Part {
    caller: &'static str,
    token: Option<String>,
    /// Which values, how many, and of which operations.
    how: &'static [&'static str],
}

#[test]
fn every_answer_is_one_the_document_describes() {
    let Some(program) = program() else { return };
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let ask = |method: &str, path: &str, body: Value| {
        let answer = http::call(server.address, method, path, (!body.is_null()).then_some(&body)).unwrap();
        assert!(answer.status < 300, "{method} {path}: {}", answer.body);
        answer.body
    };
    let document = stage.file("openapi.json", without_security(ask("GET", "/openapi.json", Value::Null)).to_string());
    let settings = stage.file("schemathesis.toml", SETTINGS);
    seed(&ask);
    let token = |privilege: &str| {
        let wanted = json!({"forwho": format!("caller-{privilege}"), "privileges": [privilege]});
        ask("POST", "/api/octoflow/v1/tokens", wanted)["token"].as_str().unwrap().to_owned()
    };
    const FEW: &[&str] = &["--phases", "fuzzing", "-n", "1", "--exclude-operation-id-regex", TOKEN_CHANGES];
    const MORE: &[&str] = &["--phases", "fuzzing", "-n", "3", "--exclude-operation-id-regex", TOKEN_CHANGES];
    // Every boundary of every parameter, for some of each sort of route.
    const EDGES: &[&str] = &[
        "--phases",
        "coverage",
        "--include-path-regex",
        "^/api/octoflow/v1/(runs|tokens|audit)|/(configmaps|pods)",
        "--exclude-operation-id-regex",
        TOKEN_CHANGES,
    ];
    const TOKENS: &[&str] = &["--phases", "fuzzing", "-n", "10", "--include-operation-id-regex", TOKEN_CHANGES];
    let mut parts = vec![Part { caller: "nobody", token: None, how: FEW }];
    parts.extend(PRIVILEGES.map(|privilege| Part { caller: privilege, token: Some(token(privilege)), how: FEW }));
    parts.extend([MORE, EDGES].map(|how| Part { caller: "admin", token: Some(token("admin")), how }));
    // Somebody with every privilege, but of another namespace.
    let wanted = json!({"forwho": "caller-elsewhere", "privileges": PRIVILEGES, "namespaces": ["elsewhere"]});
    let elsewhere = ask("POST", "/api/octoflow/v1/tokens", wanted)["token"].as_str().unwrap().to_owned();
    parts.push(Part { caller: "elsewhere", token: Some(elsewhere), how: FEW });
    let last = Part { caller: "admin", token: Some(token("admin")), how: TOKENS };
    let until = Instant::now() + MAX_TIME;
    let (queue, failed) = (Mutex::new(parts), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(part) = { queue.lock().unwrap().pop() } {
                    if let Err(told) = part.run(&program, &settings, &document, &server, stage.path(""), until) {
                        failed.lock().unwrap().push(told);
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.extend(last.run(&program, &settings, &document, &server, stage.path(""), until).err());
    assert!(failed.is_empty(), "with seed {SEED}:\n{}", failed.join("\n"));
    assert_eq!(http::ask(server.address, "GET", "/readyz", &[], b"").status, 200);
    server.stop();
}

impl Part {
    fn run(
        &self,
        program: &Path,
        settings: &str,
        document: &str,
        server: &Server,
        folder: PathBuf,
        until: Instant,
    ) -> Result<(), String> {
        let name = format!("{} {}", self.caller, self.how.join(" "));
        let output = folder.join(format!("{}-{}-{}.txt", self.caller, self.how[1], self.how[3].len()));
        let file = fs::File::create(&output).unwrap();
        let mut command = Command::new(program);
        command
            .args(["--config-file", settings, "run", document, "--url", &format!("http://{}", server.address)])
            .args(["--seed", &SEED.to_string(), "--mode", "all", "--no-shrink", "--generation-database", "none"])
            .args(["--suppress-health-check", "all", "--request-timeout", "30", "--checks", CHECKS])
            .args(self.how)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        if let Some(token) = &self.token {
            command.args(["-H", &format!("Authorization: Bearer {token}")]);
        }
        let mut child = command.spawn().unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() > until {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            thread::sleep(Duration::from_millis(50));
        };
        let told = fs::read_to_string(&output).unwrap_or_default();
        // A run that tested nothing, or was not let in, must not look as if it had found nothing.
        let shut_out = !self.how.contains(&"--include-operation-id-regex")
            && (told.contains("Rate limited") || self.caller == "admin" && forbidden(&told) > MAX_FORBIDDEN);
        let tested = told.contains(" passed") && !told.contains("Tested: 0") && !shut_out;
        match status {
            Some(status) if status.success() && tested => Ok(()),
            Some(status) => Err(format!("as {name}: {status}\n{told}")),
            None => Err(format!("as {name}: not done within {} seconds\n{told}", MAX_TIME.as_secs())),
        }
    }
}

/// Operations that are forbidden to everybody for the names that exist, such as deleting the default namespace.
const MAX_FORBIDDEN: usize = 2;

/// Returns how many operations were only ever forbidden.
fn forbidden(told: &str) -> usize {
    let found = told.split_once("Authentication failed: ").and_then(|(_, rest)| rest.split(' ').next());
    found.map_or(0, |count| count.parse().unwrap_or(usize::MAX))
}

/// The document without what it says of tokens, or some would be made up and be too many wrong ones from one address.
fn without_security(mut document: Value) -> Value {
    for item in document["paths"].as_object_mut().unwrap().values_mut() {
        for operation in item.as_object_mut().unwrap().values_mut() {
            operation["security"] = json!([]);
        }
    }
    document
}

/// Objects of the name the settings know, one of every kind that can be created.
fn seed(ask: &impl Fn(&str, &str, Value) -> Value) {
    let metadata = json!({"name": "seeded", "namespace": "default"});
    for (kind, object) in samples(&metadata, "hello") {
        ask("POST", &path(kind, "default"), object);
    }
}

/// Outside of CI its absence is told and the test passes.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should see what they did not do")]
fn program() -> Option<PathBuf> {
    let var = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = var("OCTOFLOW_CI_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|dir| dir.join("octoflow-ci")))
        .or_else(|| var("HOME").map(|dir| dir.join(".cache/octoflow-ci")));
    let folder = cache.map(|dir| dir.join("tools/schemathesis")).filter(|folder| folder.join("ready").is_file());
    let program = folder.map(|folder| folder.join("bin/schemathesis"));
    if program.is_none() {
        let told = "SKIPPED: schemathesis is not installed, so nobody checks the API against its document; run `cargo xtask setup`";
        assert_ne!(env::var("CI").as_deref(), Ok("true"), "{told}");
        eprintln!("{told}");
    }
    program
}
