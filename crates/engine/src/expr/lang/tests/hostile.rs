//! Texts made to hurt: each must be answered, with an error, soon, and on a small stack.

use proptest::prelude::*;

use super::*;

/// Runs on a thread with the stack of a plain one, so that an overflow shows here and not in production.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(work)
        .expect("a thread can be started")
        .join()
        .expect("the work does not panic");
}

fn refused(text: &str) -> String {
    let shown: String = text.chars().take(80).collect();
    match run(text) {
        Ok(value) => panic!("{shown} gives a {}", value.kind()),
        Err(error) => error.message,
    }
}

#[test]
fn deep_texts_are_refused_by_the_parser() {
    on_a_small_stack(|| {
        let many = 100_000;
        for text in [
            format!("{}1{}", "(".repeat(many), ")".repeat(many)),
            "(".repeat(many),
            "[".repeat(many),
            "{a:".repeat(many),
            format!("{}true", "!".repeat(many)),
            format!("{}true", "not ".repeat(many)),
            format!("{}1", "-".repeat(many)),
            format!("{}1", "2**".repeat(many)),
            format!("{}1", "true ? ".repeat(many)),
            "a[".repeat(many),
            "len(".repeat(many),
            "map([1],{".repeat(many),
            format!("{}1", "let x = 1; ".repeat(many)),
            format!("{}1", "if true {".repeat(many)),
            "sprig.trim(".repeat(many / 2),
        ] {
            let message = refused(&text);
            assert!(message.contains("nests deeper than") || message.contains("is longer than"), "{message}");
        }
    });
}

#[test]
fn the_deepest_texts_admitted_are_evaluated() {
    on_a_small_stack(|| {
        let depth = crate::expr::NESTING - 2;
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("-", "1", ""),
            ("{a:", "1", "}"),
            ("abs(", "1", ")"),
            ("[1][", "0", "] - 1 | abs()"),
            ("1 + (", "1", ")"),
        ] {
            let mut nested = depth;
            // Some forms nest twice per repetition.
            while let Err(error) = run(&format!("{}{middle}{}", open.repeat(nested), close.repeat(nested))) {
                assert!(error.message.contains("nests deeper"), "{open}: {error}");
                nested -= 1;
            }
            assert!(nested >= depth / 2 - 1, "{open} nests only {nested} deep");
        }
    });
}

#[test]
fn closures_may_nest_as_deep_as_the_parser_admits() {
    on_a_small_stack(|| {
        let depth = crate::expr::NESTING / 2 - 2;
        let text = format!("{}#{}", "map([1],".repeat(depth), ")".repeat(depth));
        let value = run(&text).unwrap();
        assert_eq!(value.to_json(), format!("{}1{}", "[".repeat(depth), "]".repeat(depth)));
    });
}

#[test]
fn long_flat_texts_cost_no_depth() {
    on_a_small_stack(|| {
        let many = 20_000;
        assert_eq!(run(&format!("{}1", "1+".repeat(many))).unwrap(), Value::Int(20_001));
        assert_eq!(run(&format!("true{}", " && true".repeat(many))).unwrap(), Value::Bool(true));
        assert_eq!(run(&format!("1{}", "|abs()".repeat(many))).unwrap(), Value::Int(1));
        assert_eq!(run(&format!("{}1", "false ? 0 : ".repeat(many))).unwrap(), Value::Int(1));
        assert_eq!(run(&format!("{}{{1}}", "if false {0} else ".repeat(many))).unwrap(), Value::Int(1));
        assert_eq!(run(&format!("nothing{}", "?.a".repeat(many))).unwrap(), Value::Nil);
        assert_eq!(run(&format!("1{}", ";1".repeat(many))).unwrap(), Value::Int(1));
        assert_eq!(run(&format!("[{}]", "1,".repeat(many))).unwrap(), Value::list(vec![Value::Int(1); many]));
        refused(&format!("{}a", "a+".repeat(1_000_000)));
        refused(&format!("{}retries", "retries+".repeat(100_000)));
    });
}

#[test]
fn large_values_are_refused_before_they_are_made() {
    for text in [
        "1..1000000000",
        "len(0..9223372036854775807)",
        "-9223372036854775807..9223372036854775807",
        "repeat('x', 1000000000)",
        "repeat(repeat('x', 100000), 100000)",
        "sprig.repeat(1000000000, 'x')",
        "sprig.until(1000000000)",
        "sprig.seq(1000000000)",
        "sprig.untilStep(0, 9223372036854775807, 1)",
        "sprig.indent(1000000000, 'x')",
        "replace(repeat('x', 100000), '', repeat('y', 100000))",
        "join(map(1..100000, repeat('x', 100)), repeat('y', 100000))",
        "sprig.regexReplaceAll('x', repeat('x', 100000), repeat('y', 100000))",
        "concat(1..1000000, 1..1000000, 1..1000000)",
        "split(repeat('x,', 10000000), ',')",
    ] {
        let message = refused(text);
        assert!(message.contains("too large") || message.contains("too many steps"), "{text}: {message}");
    }
}

#[test]
fn bombs_run_out_of_steps() {
    for text in [
        "map(1..1000, map(1..1000, map(1..1000, #)))",
        "all(1..1000000, all(1..1000000, # > 0))",
        "let a = 1..1000; let b = map(a, a); let c = map(b, b); let d = map(c, c); len(d)",
        "let a = [1,1]; let b = [a,a]; let c = [b,b,b,b]; reduce(1..100, [#acc, #acc], c)",
        "reduce(1..1000000, [#acc], [])",
        "reduce(1..1000000, #acc + #acc, 'x')",
        "uniq(1..100000)",
        "map(1..100000, sort(1..1000))",
        "let big = 1..100000; map(big, big == big)",
        "map(1..100000, 'x' matches ('a{100}' + string(#)))",
        "let s = repeat('a', 1000000); map(1..100000, indexOf(s, 'b'))",
        "let s = repeat('a', 1000000); map(1..100000, s < s)",
        "let s = repeat('a', 1000000); map(1..100000, {{(s): 1}})",
        "let s = repeat('a', 1000000); groupBy(1..100000, s)",
    ] {
        let message = refused(text);
        assert!(
            ["too many steps", "too large", "nest deeper"].iter().any(|words| message.contains(words)),
            "{text}: {message}"
        );
    }
}

#[test]
fn shared_parts_count_every_time_they_are_written_out() {
    let limits = Limits { bytes: 1024 * 1024, ..Limits::default() };
    for text in [
        "toJson(map(1..1000, map(1..100, repeat('x', 10))))",
        "let s = repeat('x', 100000); map(1..1000, s) | toJson()",
        "let s = repeat('x', 100000); map(1..1000, s) | string()",
        "let s = repeat('x', 100000); map(1..1000, s)",
    ] {
        let error = parse(text).unwrap().evaluate_within(&(), limits).unwrap_err();
        assert!(error.message.contains("too large"), "{text}: {error}");
    }
}

#[test]
fn patterns_cannot_explode() {
    for text in [
        "'x' matches '((a{100}){100}){100}'",
        "repeat('a', 100000) matches '(ab?c*){300}'",
        "'x' matches repeat('(', 10000)",
        "'x' matches repeat('a', 1000000)",
        "repeat('a', 10000000) matches '^(a+)+$'",
    ] {
        refused(text);
    }
    assert_eq!(run("repeat('a', 10000) + '!' matches '^(a+)+$'").unwrap(), Value::Bool(false));
}

#[test]
fn searching_on_behind_each_match_is_paid_for() {
    let program = parse("sprig.regexFindAll('a.*b|a', repeat('a', 10000), -1)").unwrap();
    let limits = Limits { steps: 100_000, ..Limits::default() };
    let error = program.evaluate_within(&(), limits).unwrap_err();
    assert!(error.message.contains("too many steps"), "{error}");
}

#[test]
fn a_json_path_pays_for_every_place_it_visits() {
    let document = format!("{}1{}", "[[1],".repeat(60), "]".repeat(60));
    let text = format!("jsonpath('{document}', '$..*..*..*..*')");
    assert!(refused(&text).contains("too many steps"));
}

#[test]
fn limits_can_be_tightened() {
    let program = parse("map(1..100, # * 2)").unwrap();
    let few = Limits { steps: 50, ..Limits::default() };
    let error = program.evaluate_within(&(), few).unwrap_err();
    assert!(error.message.contains("too many steps"), "{error}");
    let shallow = Limits { depth: 1, ..Limits::default() };
    let error = program.evaluate_within(&(), shallow).unwrap_err();
    assert!(error.message.contains("nests deeper than 1 levels"), "{error}");
    assert!(program.evaluate(&()).is_ok());
}

const WORDS: [&str; 64] = [
    "a",
    "item",
    "users",
    "nothing",
    "1",
    "0",
    "-1",
    "2.5",
    "'x'",
    "''",
    "nil",
    "true",
    "false",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ",",
    ":",
    ";",
    ".",
    "?.",
    "..",
    "#",
    "#acc",
    "#index",
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "==",
    "<",
    ">=",
    "&&",
    "||",
    "!",
    "not",
    "in",
    "contains",
    "matches",
    "??",
    "?",
    "|",
    "let",
    "x",
    "=",
    "if",
    "else",
    "map(",
    "filter(",
    "reduce(",
    "len(",
    "split(",
    "sprig.",
    "trim(",
    "substr(",
    "jsonpath(",
    "date(",
    "int(",
    "sort(",
];

proptest! {
    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        let _ = run(&text);
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = run(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_mixture_of_words_is_answered(words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..25)) {
        let _ = run(&words.join(" "));
        let _ = run(&words.concat());
    }

    #[test]
    fn any_call_is_answered(
        name in prop::sample::select(all_names()),
        arguments in prop::collection::vec(prop::sample::select(vec![
            "1", "-1", "0", "3.7", "'a'", "''", "'ä,b'", "'2006-01-02'", "nil", "true", "[1,2]", "[]", "['b','a']", "{a: 1}",
            "9223372036854775807", "-9223372036854775807", "1e300", "'['", "date('2024-01-02')", "duration('1h')",
        ]), 0..5),
    ) {
        let _ = run(&format!("{name}({})", arguments.join(", ")));
    }

    #[test]
    fn any_json_path_is_answered(path in "[$.@*?()\\[\\]a-c0-9:,'=<>&| -]{0,24}") {
        let document = Value::from(serde_json::json!({"a": [1, {"b": "c"}], "b": {"a": null}}));
        let mut work = work::EvalWork::new(Limits::default(), None);
        let _ = jsonpath::query(&document, &path, &mut work);
    }

    #[test]
    fn numbers_survive_json(number in prop::num::f64::NORMAL, whole in any::<i64>()) {
        prop_assert_eq!(Value::Float(number).to_json().parse::<f64>(), Ok(number));
        prop_assert_eq!(Value::Int(whole).to_json().parse::<i64>(), Ok(whole));
    }

    #[test]
    fn text_survives_json(text in ".*") {
        let back: String = serde_json::from_str(&Value::from(text.as_str()).to_json()).unwrap();
        prop_assert_eq!(back, text);
    }
}

fn all_names() -> Vec<String> {
    let mut names: Vec<String> = builtin::names().map(str::to_owned).collect();
    names.extend(crate::expr::lang::sprig::names().map(|name| format!("sprig.{name}")));
    names
}
