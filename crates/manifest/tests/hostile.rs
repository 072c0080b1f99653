//! Texts that want too much are refused by name, before they get it.

use octoflow_manifest::{Limits, Problems, read};

fn refused(text: &[u8]) -> Problems {
    refused_under(text, &Limits::default())
}

fn refused_under(text: &[u8], limits: &Limits) -> Problems {
    read("bad.yaml", text, limits).expect_err("it must be refused")
}

fn assert_limit(problems: &Problems, message: &str) {
    let last = problems.0.last().expect("a problem");
    assert_eq!((last.code, last.message.as_str()), ("OF1005", message), "{problems}");
    assert!(last.help.is_some());
}

#[test]
fn a_text_too_large_is_refused_unread() {
    assert_limit(&refused(&vec![b'a'; (16 << 20) + 1]), "16777217 bytes are more than a manifest may have (16777216)");
}

#[test]
fn a_scalar_too_large_is_refused_in_every_style() {
    let limits = Limits { scalar: 100_000, ..Limits::default() };
    let word = "a".repeat(200_000);
    let words = "a ".repeat(100_000);
    let lines = "  aaaaaaa\n".repeat(20_000);
    for text in [
        word.clone(),
        words.clone(),
        format!("\"{words}\""),
        format!("a: '{word}'"),
        format!("a: |\n{lines}"),
        format!("a: >\n{lines}"),
        format!("a: \"\n{lines}\""),
        format!("{{\"a\": \"{word}\"}}"),
        format!("{{\"a\": \"{word}\", }}"),
        format!("&{word} a"),
        format!("!{word} a"),
    ] {
        assert_limit(&refused_under(text.as_bytes(), &limits), "a value is longer than 100000 bytes");
    }
    assert_limit(&refused("a".repeat(10_000_000).as_bytes()), "a value is longer than 4194304 bytes");
}

#[test]
fn long_comments_are_no_scalars() {
    let text = format!("a: b # {}\n# {}\nc: d", "x".repeat(200_000), "y".repeat(200_000));
    let limits = Limits { scalar: 1000, ..Limits::default() };
    assert_eq!(read("s", text.as_bytes(), &limits).unwrap()[0].value["c"], "d");
}

#[test]
fn ten_thousand_levels_are_refused() {
    let mut indented = String::new();
    for level in 0..2000 {
        indented.push_str(&" ".repeat(level));
        indented.push_str("a:\n");
    }
    for text in [
        "[".repeat(10_000),
        "{\"a\":".repeat(10_000),
        "{a: ".repeat(10_000),
        "- ".repeat(10_000),
        "? ".repeat(10_000),
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}1{}", "[".repeat(150), "]".repeat(150)),
        format!("x: {}1{}", "[".repeat(150), "]".repeat(150)),
        indented,
    ] {
        assert_limit(&refused(text.as_bytes()), "nested deeper than 100 levels");
    }
}

#[test]
fn the_last_allowed_level_is_allowed() {
    for (open, close) in [("[", "]"), ("[ ", " ]")] {
        for (prefix, depth) in [("", 100), ("x: ", 99)] {
            let text = format!("{prefix}{}1{}", open.repeat(depth), close.repeat(depth));
            assert!(read("s", text.as_bytes(), &Limits::default()).is_ok());
            let text = format!("{prefix}{}1{}", open.repeat(depth + 1), close.repeat(depth + 1));
            assert_limit(&refused(text.as_bytes()), "nested deeper than 100 levels");
        }
    }
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let alias = format!("*a{}, ", level - 1).repeat(9);
        bomb.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
    }
    assert_limit(&refused(bomb.as_bytes()), "aliases expand to more than 200000 values");
}

#[test]
fn a_bomb_of_merge_keys_is_refused() {
    let mut bomb = String::from("m0: &m0 {a: 1, b: 2}\n");
    for level in 1..40 {
        bomb.push_str(&format!("m{level}: &m{level}\n  <<: *m{}\n  x{level}: *m{}\n", level - 1, level - 1));
    }
    assert_limit(&refused(bomb.as_bytes()), "aliases expand to more than 200000 values");
}

#[test]
fn aliases_to_one_large_text_are_counted_in_bytes() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100));
    assert_limit(&refused(text.as_bytes()), "aliases repeat more than 16777216 bytes of text");
}

#[test]
fn aliases_cannot_nest_deeper_than_text_may() {
    let mut text = format!("a0: &a0 {}1{}\n", "[".repeat(30), "]".repeat(30));
    for level in 1..5 {
        text.push_str(&format!("a{level}: &a{level} {}*a{}{}\n", "[".repeat(30), level - 1, "]".repeat(30)));
    }
    assert_limit(&refused(text.as_bytes()), "nested deeper than 100 levels");
}

#[test]
fn a_million_documents_are_refused() {
    assert_limit(&refused("---\n".repeat(1_000_000).as_bytes()), "more than 10000 documents in one text");
    assert_limit(&refused("---\na: b\n".repeat(1_000_000).as_bytes()), "more than 10000 documents in one text");
}

#[test]
fn too_many_values_are_refused() {
    let limits = Limits { nodes: 1000, ..Limits::default() };
    for text in
        [format!("[{}1]", "1,".repeat(2000)), "- 1\n".repeat(2000), "? [a]\n: b\n".repeat(2000), "{}: x\n".repeat(2000)]
    {
        let problems = refused_under(text.as_bytes(), &limits);
        assert_eq!(
            problems.0.last().map(|problem| problem.code),
            Some(if text.starts_with(['?', '{']) { "OF1002" } else { "OF1005" }),
            "{problems}"
        );
    }
}

#[test]
fn brackets_cannot_make_the_scanner_hold_the_whole_text() {
    let message = "more than 100000 parts in one bracketed collection or directive";
    assert_limit(&refused(format!("[{}", "a,".repeat(200_000)).as_bytes()), message);
    assert_limit(&refused(format!("{{{}", "a: b, ".repeat(100_000)).as_bytes()), message);
    assert_limit(&refused("%X\n".repeat(200_000).as_bytes()), message);
    assert_limit(&refused(format!("%X {}\n---\n", "a ".repeat(200_000)).as_bytes()), message);
}

#[test]
fn plain_json_may_be_one_large_bracket() {
    let text = format!("[{}1]", "1, ".repeat(500_000));
    let documents = read("s", text.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(documents[0].value.as_array().map(Vec::len), Some(500_001));
}

#[test]
fn the_number_of_problems_is_limited() {
    let text = "a: 1\n".repeat(1000);
    assert_eq!(refused(text.as_bytes()).len(), 100);
}

#[test]
fn limits_of_a_caller_have_a_ceiling() {
    let limits = Limits { depth: usize::MAX, nodes: usize::MAX, bytes: usize::MAX, ..Limits::default() };
    assert_limit(&refused_under("- ".repeat(100_000).as_bytes(), &limits), "nested deeper than 500 levels");
}

#[test]
fn the_deepest_value_a_caller_can_ask_for_fits_a_small_stack() {
    let text = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let limits = Limits { depth: 500, ..Limits::default() };
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let reader = thread.spawn(move || read("s", text.as_bytes(), &limits).map(|documents| documents.len()));
    let count = reader.expect("a thread").join().expect("no overflow");
    assert_eq!(count.expect("it is allowed"), 1);
}
