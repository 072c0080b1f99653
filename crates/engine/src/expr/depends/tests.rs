//! Tests of the `depends` logic.

use proptest::prelude::*;

use super::*;

/// `depends` holds when exactly these outcomes are true.
fn holds(text: &str, truths: &[(&str, TaskOutcome)]) -> bool {
    parse(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .evaluate(&mut |task, outcome| truths.contains(&(task, outcome)))
}

fn refusal(text: &str) -> Error {
    let shown: String = text.chars().take(100).collect();
    parse(text).expect_err(&shown)
}

#[test]
fn outcomes_combine_like_booleans() {
    let truths = [("P", TaskOutcome::Succeeded), ("F", TaskOutcome::Failed)];
    for (text, expected) in [
        ("P && (F.Succeeded || F.Failed)", true),
        ("P || F", true),
        ("P && F", false),
        ("!F", true),
        ("!!P", true),
        ("!(P && F.Failed)", false),
        ("P && F || P", true),
        ("P && (F || !P)", false),
        ("F.Failed&&P.Succeeded", true),
    ] {
        assert_eq!(holds(text, &truths), expected, "{text}");
    }
}

#[test]
fn a_bare_name_holds_for_success_skip_and_daemon_only() {
    for (outcome, expected) in [
        (TaskOutcome::Succeeded, true),
        (TaskOutcome::Skipped, true),
        (TaskOutcome::Daemoned, true),
        (TaskOutcome::Failed, false),
        (TaskOutcome::Errored, false),
        (TaskOutcome::Omitted, false),
    ] {
        assert_eq!(holds("A", &[("A", outcome)]), expected, "{outcome:?}");
    }
}

#[test]
fn the_caller_can_answer_bare_names_itself() {
    let depends = parse("A || B.Failed").unwrap();
    let mut asked = Vec::new();
    let answer = depends.evaluate_terms(&mut |term| {
        asked.push((term.task.clone(), term.outcome));
        false
    });
    assert!(!answer);
    assert_eq!(asked, [("A".to_owned(), None), ("B".to_owned(), Some(TaskOutcome::Failed))]);
}

#[test]
fn names_with_dashes_are_one_word() {
    let depends = parse("should-execute-2.Succeeded || should_not-3").unwrap();
    assert_eq!(depends.tasks(), ["should-execute-2", "should_not-3"]);
}

#[test]
fn tasks_are_listed_once_in_order_of_mention() {
    assert_eq!(parse("B && A.Failed || (B.Skipped && C)").unwrap().tasks(), ["B", "A", "C"]);
}

#[test]
fn wrong_texts_are_refused_with_their_place() {
    for (text, message, column) in [
        ("A.Sucess", "task result 'Sucess' for task 'A' is invalid", 3),
        ("A &&", "expected a task name before the end", 5),
        ("", "expected a task name before the end", 1),
        ("A B", "expected && or || before 'B'", 3),
        ("A & B", "'&' must be doubled: '&&'", 3),
        ("(A", "this '(' is never closed", 1),
        ("A)", "there is no '(' for this ')'", 2),
        ("A == B", "'=' has no meaning here", 3),
        ("A.", "expected a task result after 'A.'", 3),
    ] {
        let error = refusal(text);
        assert!(error.message.starts_with(message), "{text}: {error}");
        assert_eq!(error.column, column, "{text}");
    }
    assert!(refusal("A.Succeded").message.ends_with("did you mean 'Succeeded'?"));
}

#[test]
fn hostile_texts_are_refused() {
    for text in [
        format!("{}A{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{}A", "!".repeat(100_000)),
        "A||".repeat(1_000_000),
    ] {
        refusal(&text);
    }
}

#[test]
fn a_long_flat_condition_is_fine() {
    let names: Vec<String> = (0..10_000).map(|n| format!("task-{n}")).collect();
    let depends = parse(&names.join(" && ")).unwrap();
    assert_eq!(depends.tasks(), names);
    assert!(depends.evaluate(&mut |_, _| true));
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        let _ = parse(&text);
    }

    #[test]
    fn any_mixture_of_tokens_is_answered(words in prop::collection::vec(
        prop::sample::select(vec!["A", "b-c", ".", "Failed", "&&", "||", "!", "(", ")", " "]), 0..40)) {
        if let Ok(depends) = parse(&words.concat()) {
            depends.evaluate(&mut |_, _| false);
        }
    }
}
