//! Choice of the server, and the messages when it cannot be reached.

use std::process::Command;

use crate::place::{Place, Said, shows};

fn run(mut command: Command) -> Said {
    command.output().unwrap().into()
}

#[test]
fn the_server_comes_from_the_flag_the_environment_or_the_settings() {
    let place = Place::start();
    let url = format!("http://{}", place.server.address);

    // The flag takes precedence over the environment.
    let said = place.ends(5, &["list", "--server", "http://127.0.0.1:1"]);
    shows(&said.err, &["no server answers at http://127.0.0.1:1"]);
    place.good(&["list"]);

    // Without either there is the data directory, or for what needs a server the usual address.
    let said = run(place.bare(&["list"]));
    assert_eq!((said.code, said.out.as_str()), (0, "No workflows found\n"));
    assert_eq!(run(place.bare(&["config", "path"])).out, format!("{}\n", place.path("config.json").display()));
    assert_eq!(run(place.bare(&["config", "set", "server", &url])).code, 0);
    assert_eq!(run(place.bare(&["config", "set", "token", "admin"])).code, 0);
    let said = run(place.bare(&["config", "view"]));
    shows(&said.out, &["SETTING", "server", &url, "token", "***"]);
    assert!(!said.out.contains("admin"), "{said}");
    let said = run(place.bare(&["config", "set", "sever", "x"]));
    assert_eq!(said.code, 2, "{said}");
    shows(&said.err, &["did you mean `server`?"]);
    shows(&run(place.bare(&["version"])).out, &["octoflow ", "server ", &url]);
    shows(&run(place.bare(&["template", "list"])).out, &["No workflow templates found"]);

    // A caller that is denied is told so.
    let said = place.ends(4, &["list", "--token", "wrong"]);
    shows(&said.err, &["token", "--token or OCTOFLOW_TOKEN"]);
    shows(&place.ends(2, &["list", "--server", "ftp://x"]).err, &["no address of a server"]);
    shows(&place.ends(2, &["list", "--ca-file", "nothing.pem"]).err, &["--ca-file"]);
}

#[test]
fn what_needs_a_server_says_how_to_get_one() {
    let place = Place::start();
    let file = place.file("w.yaml", &crate::place::one_step("w", "true"));
    for words in
        [&["submit", &file][..], &["retry", "x"], &["resubmit", "x"], &["template", "list"], &["archive", "list"]]
    {
        let mut command = place.bare(words);
        // No server listens at the default address; if one does, it is not ours.
        command.env("OCTOFLOW_SERVER", "http://127.0.0.1:1");
        let said = run(command);
        assert_eq!(said.code, 5, "{words:?}\n{said}");
        shows(&said.err, &["no server answers"]);
    }
}

#[test]
fn the_server_that_holds_the_data_directory_is_found_and_tokens_open_doors() {
    let mut place = Place::start();
    let data = place.path("data");
    let here = |words: &[&str]| {
        let mut command = place.bare(words);
        command.env("OCTOFLOW_DATA_DIR", &data);
        run(command)
    };
    let url = format!("http://{}", place.server.address);
    shows(&here(&["version"]).out, &["server ", &url]);
    let file = place.file("w.yaml", &crate::place::one_step("w", "true"));
    assert_eq!(here(&["submit", &file, "--wait"]).code, 0);
    assert_eq!(here(&["list", "-o", "name"]).out, "w\n");

    assert_eq!(place.good(&["token", "list"]), "No tokens found\n");
    let token = place.good(&["token", "create", "reader", "--privilege", "read_job", "--note", "looks only"]);
    let token = token.trim();
    shows(&place.good(&["token", "list"]), &["ID", "NAME", "PRIVILEGES", "reader", "read_job", "looks only"]);
    assert_eq!(place.good(&["list", "-o", "name", "--token", token]), "w\n");
    shows(&place.ends(4, &["delete", "w", "--token", token]).err, &["may not do that"]);
    place.ends(4, &["token", "list", "--token", token]);
    shows(&place.ends(2, &["token", "create", "x", "--privilege", "everything"]).err, &["no privilege"]);
    assert_eq!(place.good(&["token", "delete", "reader"]), "token 'reader' deleted\n");
    place.ends(3, &["token", "delete", "reader"]);
    place.ends(4, &["list", "--token", token]);
    place.good(&["token", "set-admin", "another-password"]);
    place.ends(4, &["list"]);
    place.good(&["list", "--token", "another-password"]);

    // Once it is gone the directory is read directly.
    place.server.stop();
    let mut command = place.bare(&["get", "w", "-o", "jsonpath={.status.phase}"]);
    command.env("OCTOFLOW_DATA_DIR", place.path("data"));
    assert_eq!(run(command).out, "Succeeded");
}

#[test]
fn a_certificate_is_checked_unless_somebody_says_otherwise() {
    let place = Place::start_with(&["--tls"]);
    let url = format!("https://{}", place.server.address);
    let asked = |more: &[&str]| run(place.bare(&[&["list", "--server", &url], more].concat()));

    let said = asked(&[]);
    assert_eq!(said.code, 5, "{said}");
    shows(&said.err, &["cannot be trusted", "--ca-file"]);
    assert_eq!(asked(&["--insecure-skip-verify"]).out, "No workflows found\n");

    // With the data directory comes the generated certificate.
    let mut command = place.bare(&["list"]);
    command.env("OCTOFLOW_DATA_DIR", place.path("data"));
    let said = run(command);
    assert_eq!((said.code, said.out.as_str()), (0, "No workflows found\n"), "{said}");
    let note = std::fs::read_to_string(place.path("data").join("server.json")).unwrap();
    let note: serde_json::Value = serde_json::from_str(&note).unwrap();
    let said = asked(&["--ca-file", note["caFile"].as_str().unwrap()]);
    assert_eq!(said.out, "No workflows found\n", "{said}");

    // Plain HTTP to a TLS server gets no sensible answer.
    let said = run(place.bare(&["list", "--server", &format!("http://{}", place.server.address)]));
    assert_eq!(said.code, 5, "{said}");
}
