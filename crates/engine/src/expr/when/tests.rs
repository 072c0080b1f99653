//! Tests of the `when` language.

use proptest::prelude::*;

use super::*;

fn check(table: &[(&str, bool)]) {
    for (text, expected) in table {
        match evaluate(text) {
            Ok(found) => assert_eq!(found, *expected, "{text}"),
            Err(error) => panic!("{text}: {error}"),
        }
    }
}

fn refusal(text: &str) -> Error {
    match evaluate(text) {
        Ok(found) => panic!("{}: {found}", shorten(text)),
        Err(error) => error,
    }
}

#[test]
fn d1_conditions_that_hold() {
    check(&[
        ("foo == foo", true),
        ("'a/b' == 'a/b'", true),
        ("1/2 == 0.5", true),
        ("a < b", true),
        ("(1 > 0) && (1 < 2)", true),
        ("Error in (Failed, Error)", true),
        ("!(Succeeded in (Failed, Error))", true),
        ("true == true", true),
    ]);
}

#[test]
fn d2_conditions_that_do_not_hold() {
    check(&[
        ("foo == bar", false),
        ("1 <= 0", false),
        ("(1 > 0) && (11 < 2)", false),
        ("Succeeded in (Failed, Error)", false),
        ("false == true", false),
    ]);
}

#[test]
fn d4_the_text_of_an_expression_is_a_condition() {
    check(&[("true", true), ("false", false), ("", true)]);
}

#[test]
fn d5_a_result_that_is_not_boolean_is_refused_with_the_value() {
    for (text, message) in [
        ("foo", "Expected boolean evaluation for 'foo'. Got foo"),
        ("1 + 1", "Expected boolean evaluation for '1 + 1'. Got 2"),
        ("'a' + b", "Expected boolean evaluation for ''a' + b'. Got ab"),
        ("(a, b)", "Expected boolean evaluation for '(a, b)'. Got [a b]"),
    ] {
        assert_eq!(refusal(text).message, message);
    }
}

#[test]
fn every_operator_works() {
    check(&[
        ("a != b", true),
        ("2 >= 2", true),
        ("b > a", true),
        ("b <= a", false),
        ("true || false", true),
        ("false || false", false),
        ("!false", true),
        ("!!true", true),
        ("1 + 2 * 3 == 7", true),
        ("(1 + 2) * 3 == 9", true),
        ("7 % 4 == 3", true),
        ("2 ** 3 == 8", true),
        ("2 ** 3 ** 2 == 64", true),
        ("10 - 2 - 3 == 5", true),
        ("-1 < 0", true),
        ("3 - -1 == 4", true),
        ("'a' + 1 == 'a1'", true),
        ("hello =~ '^h.*o$'", true),
        ("hello !~ '^x'", true),
        ("x1 =~ '[0-9]'", true),
        ("1 in (1, 2)", true),
        ("a in (a)", true),
        ("a in ()", false),
        ("a IN (b, a)", true),
        ("1 == 1 ? true : false", true),
        ("1 == 2 ? true : 2 == 3 ? true : false", false),
        ("true ?? false", true),
        ("6 & 3 == 2", true),
        ("(6 | 1) == 7", true),
        ("(6 ^ 2) == 4", true),
        ("1 << 4 == 16", true),
        ("16 >> 2 == 4", true),
        ("~0 == -1", true),
        ("0x10 == 16", true),
        ("\"it's\" == 'it\\'s'", true),
        ("[a name with-signs] == 'a name with-signs'", true),
        ("v1.2.x == 'v1.2.x'", true),
        ("a\\-b == 'a-b'", true),
        ("_x == '_x'", true),
        ("true&&!false", true),
    ]);
}

#[test]
fn values_of_different_kinds_are_never_equal() {
    check(&[("'1' == 1", false), ("'1' != 1", true), ("'true' == true", false), ("1 == 1.0", true)]);
}

#[test]
fn a_side_that_cannot_matter_is_not_computed() {
    check(&[("false && (a - b)", false), ("true || (a < 1)", true), ("true ? true : (a - b)", true)]);
}

#[test]
fn quoted_dates_compare_as_points_in_time() {
    check(&[
        ("'2024-01-02' < '2024-01-03'", true),
        ("'2024-01-02T00:00:00Z' == '2024-01-02'", true),
        ("'2024-01-02T02:00:00+02:00' == '2024-01-02 00:00:00'", true),
        ("'2024-01-02' == 1704153600", true),
        ("'2024-13-02' == '2024-13-02'", true),
    ]);
}

#[test]
fn wrong_texts_are_refused_with_a_place_and_a_hint() {
    for (text, column, reason, hint) in [
        ("/a/b == x", 1, "expected a value before '/'", true),
        ("hello world == x", 7, "'world' cannot follow", true),
        ("5m == 5m", 2, "'m' cannot follow", true),
        ("a == a@b", 7, "Invalid token: '@'", true),
        ("a-b == c", 2, "'-' computes with numbers", true),
        ("a == ", 6, "expected a value before the end", false),
        ("(a == a", 1, "this '(' is never closed", false),
        ("a == a)", 7, "there is no '(' for this ')'", false),
        ("'a == a", 1, "this text is never closed", false),
        ("a && true", 1, "'&&' needs true or false", true),
        ("a < 1", 3, "'<' compares two numbers or two texts", false),
        ("!a", 1, "'!' needs true or false", true),
        ("1.2.3 == 1", 1, "'1.2.3' is not a number", true),
        ("a =~ '('", 3, "the pattern '(' is not valid", false),
        ("a, b", 2, "a list needs parentheses", false),
        ("1 == 1 ? true", 14, "expected ':'", false),
    ] {
        let error = refusal(text);
        let start = format!("Invalid 'when' expression '{text}': ");
        assert!(error.message.starts_with(&start), "{error}");
        assert!(error.message.contains(reason), "{error}");
        assert_eq!(error.message.contains("(hint: "), hint, "{error}");
        assert_eq!(error.column, column, "{error}");
    }
}

#[test]
fn names_can_be_variables_instead() {
    let variables = |name: &str| match name {
        "cronworkflow.failed" => Some(Value::Int(3)),
        "last" => Some(Value::Nil),
        _ => None,
    };
    assert_eq!(evaluate_with("cronworkflow.failed < 5", &variables), Ok(true));
    assert_eq!(evaluate_with("last ?? true", &variables), Ok(true));
    let error = evaluate_with("unknown == 1", &variables).unwrap_err();
    assert!(error.message.contains("there is no variable 'unknown'"), "{error}");
}

#[test]
fn hostile_texts_are_refused() {
    for text in [
        format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        "(".repeat(100_000),
        format!("{}true", "!".repeat(100_000)),
        "true?".repeat(100_000),
        format!("{}a", "a+".repeat(1_000_000)),
        format!("{}a == a", "a+".repeat(300_000)),
        "a =~ '((a{100}){100}){100}'".to_owned(),
        format!("{}true", "a =~ '(ab?c*){300}' || ".repeat(10_000)),
    ] {
        refusal(&text);
    }
}

#[test]
fn a_pattern_that_makes_others_go_back_and_forth_is_matched_in_one_pass() {
    let text = "a".repeat(100_000);
    assert_eq!(evaluate(&format!("'{text}!' =~ '^(a+)+$'")), Ok(false));
}

#[test]
fn a_long_flat_condition_is_fine() {
    let text = format!("{}a == b", "a == b || ".repeat(50_000));
    assert_eq!(evaluate(&text), Ok(false));
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        let _ = evaluate(&text);
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = evaluate(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_mixture_of_tokens_is_answered(words in prop::collection::vec(prop::sample::select(vec![
        "a", "1", "'x'", "==", "<", "=~", "&&", "||", "!", "-", "+", "**", "<<", "%", "in", "(", ")", ",", "?", ":", "??",
        "true", "[", "]", "\\", "'",
    ]), 0..30)) {
        let _ = evaluate(&words.join(" "));
    }
}
