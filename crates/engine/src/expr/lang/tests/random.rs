//! Tests of functions that depend on the evaluation context: the current time and random numbers.

use super::super::*;
use super::refuses;

/// 2023-11-14T22:13:20Z.
const PRESENT: i64 = 1_700_000_000;

struct At(&'static str);

impl Env for At {
    fn root(&self, _name: &str) -> Option<Value> {
        None
    }

    fn eval_context(&self) -> Option<EvalContext> {
        let moment = jiff::Timestamp::from_second(PRESENT).expect("a time");
        Some(EvalContext { moment, seed: Seed::of(self.0) })
    }
}

fn drawn(text: &str, who: &'static str) -> Value {
    parse(text).and_then(|program| program.evaluate(&At(who))).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn text(text: &str) -> String {
    let value = drawn(text, "w");
    value.as_str().map_or_else(|| value.to_json(), str::to_owned)
}

#[test]
fn the_present_is_that_of_the_occasion() {
    for (expression, expected) in [
        ("now().Unix()", "1700000000"),
        ("string(now())", "2023-11-14 22:13:20 +0000 UTC"),
        ("now() - duration('1h') < now()", "true"),
        ("sprig.date('2006-01-02', sprig.now())", "2023-11-14"),
        ("sprig.ago(1699999990)", "10s"),
        ("sprig.ago(date('2023-11-14T20:13:20Z'))", "2h0m0s"),
        ("now() | sprig.unixEpoch()", "1700000000"),
    ] {
        assert_eq!(text(expression), expected, "{expression}");
    }
}

#[test]
fn zones_are_utc_and_fixed_offsets() {
    for (expression, expected) in [
        ("now().In(timezone('+02:00')).Format('15:04 -07:00')", "00:13 +02:00"),
        ("now().In(timezone('Etc/GMT+5')).Hour()", "17"),
        ("now().In('-01:00').UTC().Hour()", "22"),
        ("timezone('UTC')", "UTC"),
        ("sprig.dateInZone('15:04', sprig.now(), '+01:30')", "23:43"),
        ("sprig.dateInZone('15:04', sprig.now(), 'UTC')", "22:13"),
        ("date('2024-01-02 03:00:00', '2006-01-02 15:04:05', '+02:00').UTC().Hour()", "1"),
        ("date('2024-01-02 03:00:00 +0500', '2006-01-02 15:04:05 -0700', '+02:00').UTC().Day()", "1"),
    ] {
        assert_eq!(text(expression), expected, "{expression}");
    }
    refuses(&[
        ("timezone('Europe/Zurich')", 1, "use UTC or a fixed offset such as +02:00"),
        ("date('2024-01-02').In('Mars')", 1, "zone tables differ"),
        ("date('2024-01-02', '2006-01-02', 'Europe/Zurich')", 1, "zone tables differ"),
    ]);
}

#[test]
fn what_is_drawn_has_its_form() {
    let all = |expression: &str, length: usize, fits: fn(char) -> bool| {
        let drawn = text(expression);
        assert!(drawn.chars().count() == length && drawn.chars().all(fits), "{expression}: {drawn}");
    };
    all("sprig.randAlphaNum(40)", 40, |c| c.is_ascii_alphanumeric());
    all("sprig.randAlpha(40)", 40, |c| c.is_ascii_alphabetic());
    all("sprig.randNumeric(40)", 40, |c| c.is_ascii_digit());
    all("sprig.randAscii(40)", 40, |c| c == ' ' || c.is_ascii_graphic());
    all("sprig.b64dec(sprig.randBytes(0))", 0, |_| false);
    assert_eq!(text("sprig.randBytes(30)").len(), 40);
    for _ in 0..20 {
        let dice: i64 = text("sprig.randInt(-1, 2)").parse().unwrap();
        assert!((-1..2).contains(&dice));
    }
    let mut letters: Vec<char> = text("sprig.shuffle('hellö')").chars().collect();
    letters.sort_unstable();
    assert_eq!(letters, ['e', 'h', 'l', 'l', 'ö']);
    let uuid = text("sprig.uuidv4()");
    let groups: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(groups, [8, 4, 4, 4, 12], "{uuid}");
    assert!(uuid[14..].starts_with('4') && matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
}

#[test]
fn who_asks_again_gets_the_same_and_others_get_other_numbers() {
    let expression = "[sprig.uuidv4(), sprig.randAlphaNum(20), sprig.shuffle('abcdefghijklmnopqrstuvwxyz')]";
    assert_eq!(drawn(expression, "one").to_json(), drawn(expression, "one").to_json());
    assert_ne!(drawn(expression, "one").to_json(), drawn(expression, "other").to_json());
    assert_eq!(text("sprig.uuidv4() == sprig.uuidv4()"), "false", "two calls of one expression differ");
    assert_eq!(text("map(1..50, sprig.uuidv4()) | uniq() | len()"), "50");
}

#[test]
fn what_cannot_be_drawn_says_why() {
    for (expression, words) in [
        ("sprig.randInt(3, 3)", "no number from 3 on and below 3"),
        ("sprig.randAlpha(-1)", "-1 is negative"),
        ("sprig.randAlpha(9000000000)", "too many steps"),
        ("sprig.shuffle(1)", "needs a string"),
    ] {
        let error = parse(expression).and_then(|program| program.evaluate(&At("w"))).unwrap_err();
        assert!(error.message.contains(words), "{expression}: {error}");
    }
}

#[test]
fn without_an_occasion_there_is_no_present_and_no_chance() {
    refuses(&[
        ("now()", 1, "now() has a value only while a workflow runs"),
        ("sprig.uuidv4()", 7, "uuidv4() has a value only while a workflow runs"),
        ("sprig.randInt(1, 2)", 7, "randInt() has a value only while a workflow runs"),
    ]);
    for good in ["now().Year() > 2000", "sprig.uuidv4()", "sprig.randAlpha(5)"] {
        assert!(parse(good).is_ok_and(|program| program.flaws().is_empty()), "{good}");
    }
    assert!(parse("sprig.randAlpha()").is_err(), "the number of arguments is known before");
}
