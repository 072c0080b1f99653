//! Requests against a small local server that answers each connection from a script.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::mpsc::{self, Receiver},
    thread,
};

use octoflow_model::{ids::NodeIx, task::EnvValue};

use super::*;

mod faults;

/// Answers each connection with the next of `answers`; returns the requests it got.
fn server(answers: Vec<String>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (report, asked) = mpsc::channel();
    thread::spawn(move || {
        for answer in answers {
            let Ok((stream, _)) = listener.accept() else { return };
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            let mut length = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            report.send(format!("{head}\n{}", String::from_utf8_lossy(&body))).unwrap();
            let _ = reader.into_inner().write_all(answer.as_bytes());
        }
    });
    (base, asked)
}

fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nX-Place: here\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn get(url: String) -> HttpRequest {
    HttpRequest::new("GET", url, Duration::from_secs(20))
}

fn task(request: HttpRequest) -> Box<Task> {
    Box::new(Task { call: Some(Box::new(Request::Http(request))), ..Task::default() })
}

fn attempt(task: u32) -> AttemptId {
    AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 }
}

fn place(policy: &Policy) -> (HttpRuntime, Receiver<Vec<Report>>) {
    owned_place(policy, &ThreadOwner::default())
}

fn owned_place(policy: &Policy, owner: &ThreadOwner) -> (HttpRuntime, Receiver<Vec<Report>>) {
    let (report, told) = mpsc::channel();
    // Once the test has ended, reports are dropped.
    (HttpRuntime::new(policy, policy, Box::new(move |batch| drop(report.send(batch))), owner).unwrap(), told)
}

#[test]
fn requests_are_answered_also_while_no_thread_can_be_started() {
    let (base, _asked) = server(vec![response("200 OK", "one"), response("200 OK", "two")]);
    let owner = ThreadOwner::default();
    let (mut calls, told) = owned_place(&Policy::local(), &owner);
    owner.refuse_threads(true);
    for task_number in [1, 2] {
        let task = task(get(base.clone()));
        calls.send(vec![Order::Start { attempt: attempt(task_number), task }]);
    }
    for _ in 0..2 {
        assert!(matches!(answer_of(&told), Answer::Http(response) if response.status == 200));
    }
}

#[test]
fn the_owner_hears_of_a_thread_that_panicked() {
    let (tell, told) = mpsc::channel();
    let owner = ThreadOwner::new(move |name, why| tell.send(format!("{name}: {why}")).unwrap());
    let sink = Box::new(|_| panic!("out of luck"));
    let mut calls = HttpRuntime::new(&Policy::local(), &Policy::local(), sink, &owner).unwrap();
    calls.send(vec![Order::Start { attempt: attempt(1), task: task(get("http://127.0.0.1:1/".to_owned())) }]);
    assert_eq!(told.recv().unwrap(), "call: it panicked: out of luck");
}

fn answer_of(told: &Receiver<Vec<Report>>) -> Answer {
    told.iter()
        .flatten()
        .find_map(|report| match report {
            Report::Answered { answer, .. } => Some(*answer),
            _ => None,
        })
        .expect("it is answered")
}

fn ask(request: HttpRequest) -> Answer {
    let (mut calls, told) = place(&Policy::local());
    calls.send(vec![Order::Start { attempt: attempt(1), task: task(request) }]);
    answer_of(&told)
}

#[test]
fn a_request_goes_out_as_it_is_and_every_status_is_an_answer() {
    let (base, asked) = server(vec![response("404 Not Found", "nothing here")]);
    let request = HttpRequest {
        method: "POST".to_owned(),
        headers: vec![
            ("X-Plain".to_owned(), EnvValue::Plain("p".to_owned())),
            ("Authorization".to_owned(), EnvValue::Secret("s3cret".to_owned())),
        ],
        body: b"payload".to_vec(),
        ..get(format!("{base}/a?b=c"))
    };
    assert!(!format!("{request:?}").contains("s3cret"), "a secret is not for logs");
    let Answer::Http(response) = ask(request) else { panic!("there is a response") };
    assert_eq!((response.status, response.body.as_str()), (404, "nothing here"));
    assert!(response.headers.contains(&("x-place".to_owned(), "here".to_owned())));
    let asked = asked.recv().unwrap().to_ascii_lowercase();
    assert!(asked.starts_with("post /a?b=c http/1.1\r\n") && asked.ends_with("\npayload"), "{asked}");
    assert!(asked.contains("x-plain: p\r\n") && asked.contains("authorization: s3cret\r\n"), "{asked}");
}

#[test]
fn headers_of_the_user_are_not_sent_on_to_another_host() {
    let (other, leaked) = server(vec![response("200 OK", "elsewhere")]);
    let redirect =
        |to: &str| format!("HTTP/1.1 303 See\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let (base, asked) = server(vec![redirect("/again"), redirect(&format!("{other}/there"))]);
    let headers = [("X-Token", "t0k"), ("Authorization", "s3cret"), ("Content-Type", "text/x-own")];
    let headers = headers.map(|(name, value)| (name.to_owned(), EnvValue::Secret(value.to_owned()))).to_vec();
    let request =
        HttpRequest { method: "POST".to_owned(), headers, body: b"payload".to_vec(), ..get(format!("{base}/here")) };
    let Answer::Http(response) = ask(request) else { panic!("there is a response") };
    assert_eq!((response.status, response.body.as_str()), (200, "elsewhere"));
    for start in ["post /here ", "get /again "] {
        let seen = asked.recv().unwrap().to_ascii_lowercase();
        assert!(seen.starts_with(start) && seen.contains("x-token: t0k") && seen.contains("s3cret"), "{seen}");
    }
    let leaked = leaked.recv().unwrap().to_ascii_lowercase();
    assert!(leaked.starts_with("get /there "), "{leaked}");
    for secret in ["t0k", "s3cret", "x-token", "authorization", "text/x-own", "payload"] {
        assert!(!leaked.contains(secret), "{leaked}");
    }
}

#[test]
fn addresses_of_cloud_metadata_are_refused_also_behind_a_redirect() {
    let refused = |answer| match answer {
        Answer::Refused(why) => why,
        other => panic!("it is refused, not {other:?}"),
    };
    let direct = refused(ask(get("http://169.254.169.254/latest/meta-data".to_owned())));
    assert!(direct.contains("169.254.169.254") && direct.contains("not allowed"), "{direct}");
    let trap =
        "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (base, _asked) = server(vec![trap.to_owned()]);
    let behind = refused(ask(get(base)));
    assert!(behind.contains("not allowed"), "{behind}");
}

#[test]
fn strict_rules_refuse_the_machine_itself() {
    let (mut calls, told) = place(&Policy::strict());
    calls.send(vec![Order::Start { attempt: attempt(1), task: task(get("http://127.0.0.1:9/".to_owned())) }]);
    assert!(matches!(answer_of(&told), Answer::Refused(why) if why.contains("not allowed")));
}

#[test]
fn a_body_beyond_the_limit_is_refused_and_says_so() {
    let large = "x".repeat(MAX_BODY as usize + 1);
    let (base, _asked) = server(vec![response("200 OK", &large)]);
    assert!(matches!(ask(get(base)), Answer::Refused(why) if why.contains("4194304")));
}

#[test]
fn a_stopped_request_ends_at_once_and_its_late_answer_is_ignored() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (mut calls, told) = place(&Policy::local());
    calls.send(vec![Order::Start { attempt: attempt(1), task: task(get(url)) }]);
    // The request is in progress, and the server stays silent.
    let (stream, _) = listener.accept().unwrap();
    let stop = || vec![Order::Stop { attempt: attempt(1) }, Order::Kill { attempt: attempt(1) }];
    calls.send(stop());
    assert_eq!(answer_of(&told), Answer::Stopped);
    let mut late = stream;
    late.write_all(response("200 OK", "late").as_bytes()).unwrap();
    calls.send(stop());
    Box::new(calls).close();
    // The pool is gone when its last thread is: the sink was not called again.
    assert_eq!(told.iter().flatten().count(), 0);
}

#[test]
fn after_a_restart_what_may_be_repeated_is_and_the_rest_is_lost() {
    let (base, _asked) = server(vec![response("200 OK", "again")]);
    let (mut calls, told) = place(&Policy::local());
    let post = HttpRequest { method: "POST".to_owned(), ..get(base.clone()) };
    calls.adopt(vec![(attempt(1), task(get(base))), (attempt(2), task(post))], &[]);
    let (mut repeated, mut lost) = (false, false);
    for report in told.iter().flatten() {
        match report {
            Report::Answered { attempt: id, answer, .. } => {
                assert_eq!(id, attempt(1));
                repeated = matches!(*answer, Answer::Http(_));
            }
            Report::Lost { attempt: id, why, .. } => {
                assert_eq!(id, attempt(2));
                lost = why.contains("POST");
            }
            Report::Started { .. } => {}
            other => panic!("nothing ran, so nothing says {other:?}"),
        }
        if repeated && lost {
            return;
        }
    }
}
