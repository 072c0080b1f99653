//! Plugins that misbehave: each fault has a stated outcome, and calls of other plugins and of tasks go on meanwhile.

use std::{net::TcpStream, thread::sleep};

use octoflow_model::request::Lane;

use super::*;

const BRIEF: Duration = Duration::from_millis(400);

/// A plugin that does with each connection what the script says, after it has read the head of the request.
fn plugin(script: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/plugin", listener.local_addr().unwrap());
    let script = Arc::new(script);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let script = script.clone();
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while reader.read_line(&mut line).unwrap_or(0) > 2 {
                    line.clear();
                }
                script(stream);
            });
        }
    });
    url
}

fn call(url: &str, timeout: Duration) -> HttpRequest {
    HttpRequest {
        follow: false,
        idempotency_key: Some("job/key".to_owned()),
        lane: Some(Lane { name: url.to_owned(), limit: 2 }),
        ..HttpRequest::new("POST", url, timeout)
    }
}

fn outcome(url: &str, timeout: Duration) -> Answer {
    ask(call(url, timeout))
}

fn refusal(url: &str, timeout: Duration) -> String {
    match outcome(url, timeout) {
        Answer::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

fn say(mut stream: TcpStream, text: &str) {
    let _ = stream.write_all(text.as_bytes());
}

/// Sends a byte of this text now and then, for ever.
fn drip(mut stream: TcpStream, start: &str) {
    let _ = stream.write_all(start.as_bytes());
    while stream.write_all(b"x").is_ok() {
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_plugin_that_hangs_or_drips_ends_at_its_timeout() {
    let hang = plugin(|stream| {
        sleep(Duration::from_secs(30));
        drop(stream);
    });
    let head = plugin(|stream| drip(stream, "HTTP/1.1 200 OK\r\nX-Long: "));
    let body = plugin(|stream| drip(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"));
    let endless = plugin(|stream| drip(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"));
    let started = Instant::now();
    for url in [hang, head, body, endless] {
        let why = refusal(&url, BRIEF);
        assert!(why.contains("did not answer within 0.4 s"), "{why}");
    }
    assert!(started.elapsed() < BRIEF * 20, "{:?}", started.elapsed());
}

#[test]
fn a_plugin_that_accepts_no_tls_handshake_ends_at_its_timeout() {
    let url = plugin(|stream| drip(stream, "")).replace("http://", "https://");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://{}/", silent.local_addr().unwrap());
    for url in [url, silent] {
        let why = refusal(&url, BRIEF);
        assert!(why.contains("did not answer within") || why.contains("failed"), "{why}");
    }
}

#[test]
fn statuses_and_redirects_are_answers_and_redirects_are_not_followed() {
    let status = plugin(|stream| say(stream, &response("500 Oops", "stack trace")));
    assert!(matches!(outcome(&status, BRIEF * 10), Answer::Http(response) if response.status == 500));
    let (elsewhere, asked) = server(vec![response("200 OK", "{}")]);
    for code in ["302 Found", "307 Again", "308 Moved"] {
        let to = elsewhere.clone();
        let redirect = plugin(move |stream| {
            say(
                stream,
                &format!("HTTP/1.1 {code}\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            );
        });
        let Answer::Http(found) = outcome(&redirect, BRIEF * 10) else { panic!("the redirect is the answer") };
        assert_eq!(found.status.to_string(), code[..3]);
    }
    assert!(asked.try_recv().is_err(), "nobody followed");
}

#[test]
fn a_reset_and_a_refused_connection_are_told_as_such() {
    // Unread bytes make closing a reset.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reset = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = (&stream).read(&mut [0; 8]);
            drop(stream);
        }
    });
    let why = refusal(&reset, BRIEF * 10);
    assert!(why.contains("the request to") && why.contains("failed"), "{why}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let why = refusal(&format!("http://{closed}/"), BRIEF * 10);
    assert!(why.contains("failed") && why.to_lowercase().contains("refused"), "{why}");
}

#[test]
fn an_answer_of_100_megabytes_is_refused_by_its_size() {
    let url = plugin(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        let chunk = [b' '; 65536];
        while stream.write_all(&chunk).is_ok() {}
    });
    let why = refusal(&url, BRIEF * 50);
    assert!(why.contains("larger than 4194304 bytes"), "{why}");
    let small = HttpRequest { max_body: Some(10), ..call(&url, BRIEF * 50) };
    assert!(matches!(ask(small), Answer::Refused(why) if why.contains("larger than 10 bytes")));
}

#[test]
fn what_is_no_http_is_a_failure() {
    let url = plugin(|stream| say(stream, "hello\r\n\r\n"));
    let why = refusal(&url, BRIEF * 10);
    assert!(why.contains("failed"), "{why}");
}

#[test]
fn the_idempotency_key_is_a_header_and_makes_a_post_repeatable_after_a_crash() {
    let (base, asked) = server(vec![response("200 OK", "again")]);
    let (mut calls, told) = place(&Policy::local());
    calls.adopt(vec![(attempt(1), task(call(&base, BRIEF * 20)))], &[]);
    assert!(matches!(answer_of(&told), Answer::Http(response) if response.body == "again"));
    let asked = asked.recv().unwrap().to_ascii_lowercase();
    assert!(asked.starts_with("post ") && asked.contains("idempotency-key: job/key\r\n"), "{asked}");
}

#[test]
fn a_plugin_that_hangs_keeps_neither_other_plugins_nor_tasks_waiting() {
    let hang = plugin(|stream| {
        sleep(Duration::from_secs(60));
        drop(stream);
    });
    let quick = plugin(|stream| say(stream, &response("200 OK", "quick")));
    let (mut calls, told) = place(&Policy::local());
    let hanging = (0..200).map(|number| (attempt(number), call(&hang, Duration::from_secs(60))));
    let others = (200..210).map(|number| (attempt(number), call(&quick, Duration::from_secs(20))));
    let of_tasks = (210..220).map(|number| (attempt(number), get(quick.clone())));
    let orders = hanging.chain(others).chain(of_tasks);
    calls.send(orders.map(|(attempt, request)| Order::Start { attempt, task: task(request) }).collect());
    for _ in 0..20 {
        assert!(matches!(answer_of(&told), Answer::Http(response) if response.body == "quick"));
    }
    // A stopped call frees its place, and the end is told although the plugin still hangs.
    calls.send((0..200).map(|number| Order::Stop { attempt: attempt(number) }).collect());
    for _ in 0..200 {
        assert_eq!(answer_of(&told), Answer::Stopped);
    }
    calls.send(vec![Order::Start { attempt: attempt(300), task: task(call(&quick, Duration::from_secs(20))) }]);
    assert!(matches!(answer_of(&told), Answer::Http(_)));
}

#[test]
fn calls_of_plugins_have_a_policy_of_their_own() {
    let (base, _asked) = server(vec![response("200 OK", "")]);
    let (report, told) = mpsc::channel();
    let sink = Box::new(move |batch| drop(report.send(batch)));
    let plugins = Policy::strict_with_loopback();
    let mut calls = HttpRuntime::new(&Policy::strict(), &plugins, sink, &ThreadOwner::default()).unwrap();
    calls.send(vec![Order::Start { attempt: attempt(1), task: task(get(base.clone())) }]);
    assert!(matches!(answer_of(&told), Answer::Refused(why) if why.contains("not allowed")));
    calls.send(vec![Order::Start { attempt: attempt(2), task: task(call(&base, BRIEF * 20)) }]);
    assert!(matches!(answer_of(&told), Answer::Http(_)));
    calls.send(vec![Order::Start { attempt: attempt(3), task: task(call("http://169.254.169.254/", BRIEF)) }]);
    assert!(matches!(answer_of(&told), Answer::Refused(why) if why.contains("not allowed")));
}
