//! The rows `logs` and `watchers`: a step that writes very much, and very many who watch.

use std::{
    fs::File,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    measure::{Outcome, Tools},
    row::{Goal, Line, median, seconds},
    rows::Size,
    serve::Server,
    shape,
    swarm::{RUNS, until_nothing_is_open},
    wire::Client,
};

/// Lines of 64 bytes, so many bytes of them.
fn script(bytes: u64) -> String {
    format!("yes 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd | head -c {bytes}")
}

pub(super) fn logs(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let bytes = u64::from(size.of(1 << 30, 1 << 26));
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    let (mut ratios, mut ours, mut yards, mut growths) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.turns(3, 1) {
        let dir = tools.fresh()?;
        let yard = mebibytes / seconds(pipe_to_file(bytes, &dir.path().join("log"))?);
        drop(dir);
        let dir = tools.fresh()?;
        let server = Server::start(tools, dir.path(), &[])?;
        let mut client = Client::connect(server.address)?;
        // The spawner is up and everything is warm before it is measured.
        client.ask("POST", RUNS, &json!({"workflow": shape::hello()}).to_string())?;
        until_nothing_is_open(server.address)?;
        let before = server.family_kib(dir.path())?;
        let began = Instant::now();
        client.ask("POST", RUNS, &json!({"workflow": shape::shell(&script(bytes))}).to_string())?;
        let mut most = before;
        loop {
            most = most.max(server.family_kib(dir.path())?);
            std::thread::sleep(Duration::from_millis(20));
            let open = "listOptions.labelSelector=workflows.argoproj.io/completed%3Dfalse&fields=items.metadata.name";
            let listed: Value = serde_json::from_slice(&client.ask("GET", &format!("{RUNS}?{open}"), "")?)?;
            if listed["items"].as_array().is_none_or(Vec::is_empty) {
                break;
            }
        }
        let own = mebibytes / seconds(began.elapsed());
        server.stop()?;
        ratios.push(own / yard);
        ours.push(own);
        yards.push(yard);
        growths.push((most - before) as f64 * 1024.0 / 1e6);
    }
    let rate = |values| format!("{:.0} MiB/s", median(values));
    let line = |what, ours, yardstick, value, unit, goal| Line {
        row: format!("logs, {mebibytes:.0} MiB of output"),
        what,
        ours,
        yardstick,
        value,
        unit,
        goal: Some(goal),
    };
    Ok(vec![
        line("rate / pipe to file", rate(ours), rate(yards), median(ratios), "", Goal::AtLeast(0.5)),
        line(
            "growth of the memory of server and spawner",
            String::new(),
            String::new(),
            median(growths),
            "MB",
            Goal::AtMost(16.0),
        ),
    ])
}

/// The same output, read from a pipe by a process that only writes it to a file.
fn pipe_to_file(bytes: u64, to: &std::path::Path) -> Outcome<Duration> {
    let began = Instant::now();
    let mut child = Command::new("sh").arg("-c").arg(script(bytes)).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().ok_or("the output is piped")?;
    let mut file = File::create(to)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match pipe.read(&mut buffer)? {
            0 => break,
            count => file.write_all(&buffer[..count])?,
        }
    }
    child.wait()?;
    Ok(began.elapsed())
}

pub(super) fn watchers(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let count = size.of(10_000, 500);
    let many = count.to_string();
    let dir = tools.fresh()?;
    let room = ["--max-connections", "12000", "--max-connections-per-address", "12000"];
    let limits = [&["--max-watches", &many, "--max-watches-per-token", &many], &room[..]].concat();
    let server = Server::start(tools, dir.path(), &limits)?;
    let mut client = Client::connect(server.address)?;
    client.ask("POST", RUNS, &json!({"workflow": shape::hello()}).to_string())?;
    until_nothing_is_open(server.address)?;
    let alone = submit_time(&mut client)?;
    let (before, _) = server.memory_kib()?;
    let revision = {
        let listed: Value = serde_json::from_slice(&client.ask("GET", RUNS, "")?)?;
        listed["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned()
    };
    let path = format!("/api/v1/workflow-events/default?listOptions.resourceVersion={revision}");
    let mut open: Vec<TcpStream> = Vec::new();
    for _ in 0..count {
        open.push(Client::follow(server.address, &path)?.into_stream());
    }
    let (after, _) = server.memory_kib()?;
    let each = (after.saturating_sub(before)) as f64 * 1024.0 / 1000.0 / f64::from(count);
    let began = Instant::now();
    let beside = submit_time(&mut client)?;
    let mut told = 0;
    for stream in &mut open {
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut first = [0; 1];
        told += usize::from(stream.read(&mut first).is_ok_and(|count| count > 0));
    }
    let all_told = began.elapsed();
    drop(open);
    server.stop()?;
    let line = |what, ours, yardstick, value, unit, goal| Line {
        row: format!("watchers, {count}"),
        what,
        ours,
        yardstick,
        value,
        unit,
        goal,
    };
    let millis = |span: Duration| format!("{:.1} ms", 1e3 * seconds(span));
    Ok(vec![
        line("memory a watcher", String::new(), String::new(), each, "kB", None),
        line(
            "a submission beside them / alone",
            millis(beside),
            millis(alone),
            seconds(beside) / seconds(alone),
            "",
            None,
        ),
        line(
            "watchers that heard of it",
            told.to_string(),
            count.to_string(),
            told as f64 / f64::from(count),
            "",
            Some(Goal::AtLeast(1.0)),
        ),
        line("until the last of them heard", String::new(), String::new(), seconds(all_told), "s", None),
    ])
}

/// The median of a few.
fn submit_time(client: &mut Client) -> Outcome<Duration> {
    let body = json!({"workflow": shape::hello()}).to_string();
    let mut spans = Vec::new();
    for _ in 0..9 {
        let began = Instant::now();
        client.ask("POST", RUNS, &body)?;
        spans.push(seconds(began.elapsed()));
    }
    Ok(Duration::from_secs_f64(median(spans)))
}
