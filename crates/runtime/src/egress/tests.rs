//! The guard against misuse by a manifest: every notation of a forbidden address, names that change their address, and
//! redirects.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
};

use ureq::http::Request;

use super::*;

fn allowed(policy: &Policy, address: &str) -> bool {
    policy.check("host", address.parse().unwrap()).is_ok()
}

const ALWAYS_REFUSED: &[&str] = &[
    "169.254.169.254",
    "169.254.1.1",
    "fe80::1",
    "fd00:ec2::254",
    "::ffff:169.254.169.254",
    "64:ff9b::169.254.169.254",
    "2002:a9fe:a9fe::1",
    "::169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "255.255.255.255",
    "ff02::1",
];

const OWN: &[&str] = &[
    "127.0.0.1",
    "127.8.8.8",
    "::1",
    "::ffff:127.0.0.1",
    "10.0.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "fc00::1",
    "fd12::1",
    "198.18.0.1",
    "2002:0a00:0001::",
];

#[test]
fn link_local_and_metadata_addresses_are_refused_in_every_notation_and_stance() {
    for address in ALWAYS_REFUSED {
        assert!(!allowed(&Policy::local(), address), "{address}");
        assert!(!allowed(&Policy::strict(), address), "{address}");
    }
}

#[test]
fn the_own_machine_reaches_its_networks_and_a_server_does_not() {
    for address in OWN {
        assert!(allowed(&Policy::local(), address), "{address}");
        assert!(!allowed(&Policy::strict(), address), "{address}");
    }
    for address in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
        assert!(allowed(&Policy::local(), address) && allowed(&Policy::strict(), address), "{address}");
    }
}

#[test]
fn what_is_allowed_is_allowed_by_network_or_by_name_but_metadata_never() {
    let policy: Policy = "strict, 10.1.0.0/16, minio.internal, *.corp.example, 169.254.0.0/16".parse().unwrap();
    let check = |host: &str, address: &str| policy.check(host, address.parse().unwrap()).is_ok();
    assert!(check("x", "10.1.2.3") && check("x", "::ffff:10.1.2.3"));
    assert!(!check("x", "10.2.0.1"));
    assert!(check("Minio.Internal.", "192.168.0.9") && !check("evil.minio.internal", "192.168.0.9"));
    assert!(check("a.corp.example", "10.9.9.9") && !check("corp.example", "10.9.9.9"));
    assert!(!check("notcorp.example", "10.9.9.9"));
    assert!(check("x", "169.254.7.7") && !check("x", "169.254.169.254"));
    // A name allows private networks only; otherwise its owner could point it anywhere.
    assert!(!check("minio.internal", "169.254.169.254") && !check("minio.internal", "fe80::1"));
}

#[test]
fn a_policy_is_read_back_as_it_is_written() {
    for text in ["local", "strict", "strict, 10.0.0.0/8, fd00::/8, minio.internal, *.corp.example"] {
        let policy: Policy = text.parse().unwrap();
        assert_eq!(policy.to_string(), text);
    }
    for text in ["", "open", "strict, 10.0.0.0/33", "strict, 10.0.0", "strict, a/b", "local, *."] {
        assert!(text.parse::<Policy>().is_err(), "{text}");
    }
}

/// Answers every request with this text, until the test ends.
fn server(answer: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn redirecting(to: &str) -> u16 {
    server(format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
}

fn hello() -> u16 {
    server("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".to_owned())
}

#[test]
fn a_client_checks_the_address_a_name_resolves_to() {
    let port = hello();
    let url = format!("http://localhost:{port}/");
    let mut answer = agent(&Policy::local()).get(&url).call().unwrap();
    assert_eq!(answer.body_mut().read_to_string().unwrap(), "hello");
    for url in [url, format!("http://127.0.0.1:{port}/"), format!("http://[::ffff:127.0.0.1]:{port}/")] {
        let error = agent(&Policy::strict()).get(&url).call().unwrap_err();
        let refused = refusal(&error).unwrap_or_else(|| panic!("{url}: {error}"));
        assert!(refused.to_string().contains("this machine itself"), "{refused}");
    }
    let policy: Policy = "strict, 127.0.0.0/8, ::1".parse().unwrap();
    assert_eq!(agent(&policy).get(format!("http://localhost:{port}/")).call().unwrap().status(), 200);
}

#[test]
fn a_redirect_is_checked_like_the_first_request() {
    let port = redirecting("http://169.254.169.254/latest/meta-data/");
    let get = |port: u16| Request::get(format!("http://127.0.0.1:{port}/")).body(()).unwrap();
    let error = redirect::send(&agent(&Policy::local()), get(port)).unwrap_err();
    assert!(refusal(&error).unwrap().to_string().contains("metadata"), "{error}");
    let port = redirecting(&format!("http://localhost:{}/", hello()));
    let mut answer = redirect::send(&agent(&Policy::local()), get(port)).unwrap();
    assert_eq!(answer.body_mut().read_to_string().unwrap(), "hello");
}

#[test]
fn decimal_octal_and_short_spellings_of_an_address_are_checked_as_what_they_mean() {
    for host in ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"] {
        let url = format!("http://{host}:9/");
        let error = agent(&Policy::local()).get(&url).call().unwrap_err();
        // Either the resolver refuses the notation, or it parses it and the guard refuses the address.
        let harmless = matches!(error, ureq::Error::Io(_) | ureq::Error::HostNotFound | ureq::Error::BadUri(_));
        assert!(refusal(&error).is_some() || harmless, "{host}: {error}");
    }
}

#[test]
fn a_lookup_for_other_programs_is_checked_too() {
    assert!(Policy::local().resolve("localhost", 22).is_ok());
    assert!(matches!(Policy::strict().resolve("localhost", 22), Err(Error::Refused(_))));
    assert!(matches!(Policy::local().resolve("[fe80::1]", 22), Err(Error::Refused(_))));
}
