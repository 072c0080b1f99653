//! HTTP transfers against a local server: the requests it gets, and how its responses are handled.

use super::*;

#[derive(Clone, Debug, Default)]
struct Asked {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (own, value) = line.split_once(": ")?;
            own.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers the n-th request with the result of `answer`.
fn serve(answer: impl Fn(usize, &Asked) -> Vec<u8> + Send + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let heard = Arc::clone(&asked);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut request = Asked::default();
            reader.read_line(&mut request.line).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                request.headers.push(line.trim_end().to_owned());
            }
            let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
            request.body = vec![0; length];
            reader.read_exact(&mut request.body).unwrap();
            let answer = answer(number, &request);
            heard.lock().unwrap().push(request);
            let _ = stream.write_all(&answer);
        }
    });
    Server { port, asked }
}

fn ok(body: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

fn status(code: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {code} No\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn a_file_is_fetched_with_its_headers_and_digest() {
    let server = serve(|_, _| ok(b"hello"));
    let site = Site::new();
    let location = Location::Http(Box::new(Web {
        url: server.url("/x?y=1"),
        headers: vec![("X-Token".to_owned(), EnvValue::Secret("t0k".to_owned()))],
        user: Some((EnvValue::Secret("me".to_owned()), EnvValue::Secret("pw".to_owned()))),
    }));
    let fetched = site.fetch(&location).unwrap();
    assert_eq!(site.read("in"), "hello");
    assert_eq!(fetched.digest, "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    let asked = &server.asked()[0];
    assert!(asked.line.starts_with("GET /x?y=1 "), "{}", asked.line);
    assert_eq!((asked.header("x-token"), asked.header("authorization")), (Some("t0k"), Some("Basic bWU6cHc=")));
    assert_eq!(site.leftovers(), 0, "what was fetched is not kept");
}

#[test]
fn a_tarball_from_elsewhere_is_unpacked_under_the_same_rules() {
    let mut tarball = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    tarball.append_data(&mut header.clone(), "d/a", &b"1"[..]).unwrap();
    header.as_gnu_mut().unwrap().name[..6].copy_from_slice(b"../bad");
    header.set_cksum();
    let good = tarball.into_inner().unwrap();
    let mut bad = header.as_bytes().to_vec();
    bad.resize(1024 + 1024, 0);
    let (good_answer, bad_answer) = (ok(&good), ok(&bad));
    let server = serve(move |number, _| if number == 0 { good_answer.clone() } else { bad_answer.clone() });
    let site = Site::new();
    site.fetch(&web(server.url("/x.tar"))).unwrap();
    assert_eq!(site.read("in/a"), "1");
    let error = Site::new().fetch(&web(server.url("/x.tar"))).unwrap_err();
    assert!(error.contains("leads out"), "{error}");
}

#[test]
fn passing_trouble_is_tried_again_and_lasting_trouble_is_not() {
    let server = serve(|number, _| if number < 2 { status(503, "busy") } else { ok(b"late") });
    let site = Site::new();
    site.fetch(&web(server.url("/"))).unwrap();
    assert_eq!((site.read("in"), server.asked().len()), ("late".to_owned(), 3));
    let server = serve(|_, _| status(403, "go away"));
    let error = site.fetch(&web(server.url("/"))).unwrap_err();
    assert!(error.contains("answered 403: go away"), "{error}");
    assert_eq!(server.asked().len(), 1);
    let server = serve(|_, _| status(404, ""));
    assert!(matches!(site.artifact_client.fetch(&web(server.url("/")), IS_WANTED), Err(Error::Absent(_))));
}

#[test]
fn half_an_answer_is_not_taken_for_a_whole_one() {
    let server = serve(|number, _| {
        let mut answer = ok(b"complete");
        if number == 0 {
            answer.truncate(answer.len() - 3);
        }
        answer
    });
    let site = Site::new();
    site.fetch(&web(server.url("/"))).unwrap();
    assert_eq!((site.read("in"), server.asked().len()), ("complete".to_owned(), 2));
}

#[test]
fn forbidden_addresses_are_refused_and_not_tried_again() {
    let server = serve(|_, _| ok(b""));
    let error = Site::under(Policy::strict()).fetch(&web(server.url("/"))).unwrap_err();
    assert!(error.contains("not allowed") && error.contains("OCTOFLOW_EGRESS"), "{error}");
    assert!(server.asked().is_empty());
    for url in ["ftp://example.com/x", "file:///etc/passwd", "nonsense"] {
        assert!(Site::new().fetch(&web(url.to_owned())).is_err(), "{url}");
    }
}

fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

#[test]
fn headers_of_the_user_are_not_sent_on_to_another_host() {
    let other = serve(|_, _| ok(b"elsewhere"));
    let away = other.url("/there");
    let server = serve(move |number, _| redirect(if number == 0 { "/again" } else { &away }));
    let secret = |text: &str| EnvValue::Secret(text.to_owned());
    let headers = [("X-Token", "t0k"), ("Cookie", "c00"), ("X-Api-Key", "k3y")];
    let location = Location::Http(Box::new(Web {
        url: server.url("/here"),
        headers: headers.map(|(name, value)| (name.to_owned(), secret(value))).to_vec(),
        user: Some((secret("me"), secret("pw"))),
    }));
    let site = Site::new();
    site.fetch(&location).unwrap();
    assert_eq!(site.read("in"), "elsewhere");
    let asked = server.asked();
    assert_eq!(asked.len(), 2, "the first redirect stays with the host");
    for request in &asked {
        assert_eq!((request.header("x-token"), request.header("authorization")), (Some("t0k"), Some("Basic bWU6cHc=")));
    }
    let leaked = &other.asked()[0];
    assert!(leaked.line.starts_with("GET /there "), "{leaked:?}");
    for name in ["x-token", "cookie", "x-api-key", "authorization"] {
        assert_eq!(leaked.header(name), None, "{leaked:?}");
    }
}

#[test]
fn a_loop_of_redirects_ends() {
    let server = serve(|_, _| redirect("/"));
    assert!(Site::new().fetch(&web(server.url("/"))).is_err());
}

#[test]
fn an_artifact_is_put_with_its_length() {
    let server = serve(|number, _| if number == 0 { status(500, "") } else { status(201, "") });
    let site = Site::new();
    let artifact = site.save("k", b"outgoing");
    site.artifact_client.send(&web(server.url("/up")), &artifact, IS_WANTED).unwrap();
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    for request in asked {
        assert!(request.line.starts_with("PUT /up "));
        assert_eq!((request.header("content-length"), &request.body[..]), (Some("8"), &b"outgoing"[..]));
    }
    let tree = site.save_tree("tree", &[("a", "1")]);
    let error = site.artifact_client.send(&web(server.url("/up")), &tree, IS_WANTED).unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
}

#[test]
fn nobody_waits_for_what_nobody_wants() {
    let server = serve(|_, _| status(503, ""));
    let dead: IsWanted<'_> = &|| false;
    assert!(Site::new().artifact_client.fetch(&web(server.url("/")), dead).is_err());
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_key_without_an_object_is_looked_up_as_a_directory() {
    let server = serve(|_, asked| match asked.line.split(' ').nth(1).unwrap_or_default() {
        "/bucket/tree/a%2Bb.txt" => ok(b"1"),
        "/bucket/tree/sub/c.txt" => ok(b"2"),
        path if path.starts_with("/bucket/?") && path.contains("prefix=tree%2F") => ok(concat!(
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
            "<IsTruncated>false</IsTruncated><Contents><Key>tree/</Key><Size>0</Size></Contents>",
            "<Contents><Key>tree/a+b.txt</Key><Size>1</Size></Contents>",
            "<Contents><Key>tree/sub/c.txt</Key><Size>1</Size></Contents></ListBucketResult>"
        )
        .as_bytes()),
        "/bucket/tree/" => ok(b""),
        _ => status(404, "<Error><Code>NoSuchKey</Code></Error>"),
    });
    let bucket = Bucket {
        endpoint: format!("127.0.0.1:{}", server.port),
        bucket: "bucket".to_owned(),
        key: "tree".to_owned(),
        insecure: true,
        ..Bucket::default()
    };
    let site = Site::new();
    site.fetch(&Location::S3(Box::new(bucket.clone()))).unwrap();
    assert_eq!((site.read("in/a+b.txt"), site.read("in/sub/c.txt")), ("1".to_owned(), "2".to_owned()));
    let climbing = serve(|_, asked| match asked.line.split(' ').nth(1).unwrap_or_default() {
        path if path.starts_with("/bucket/?") => ok(concat!(
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
            "<Contents><Key>tree/../../bad</Key><Size>1</Size></Contents></ListBucketResult>"
        )
        .as_bytes()),
        "/bucket/tree" => status(404, ""),
        _ => ok(b"x"),
    });
    let bucket = Bucket { endpoint: format!("127.0.0.1:{}", climbing.port), ..bucket };
    let error = Site::new().fetch(&Location::S3(Box::new(bucket))).unwrap_err();
    assert!(error.contains(".."), "{error}");
}
