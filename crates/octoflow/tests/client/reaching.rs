//! Which server is asked, and what is said when it cannot be.

use std::process::Command;

use crate::place::{Place, Said, shows};

fn run(mut command: Command) -> Said {
    command.output().unwrap().into()
}

#[test]
fn the_server_comes_from_the_flag_the_environment_or_the_settings() {
    let place = Place::start();
    let url = format!("http://{}", place.address);

    // The flag is above the environment.
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

    // Who is not let in is told so.
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
        // Nobody listens where a server would be by default, or if somebody does it is not ours to ask.
        command.env("OCTOFLOW_SERVER", "http://127.0.0.1:1");
        let said = run(command);
        assert_eq!(said.code, 5, "{words:?}\n{said}");
        shows(&said.err, &["no server answers"]);
    }
}
