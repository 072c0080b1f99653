//! The fuzzer's seeds, which hold every text that once broke something, and a few cases of every target.

use octoflow_testkit::fuzz::{Seeds, TARGETS, case};

#[test]
fn no_seed_breaks_anything() {
    for target in &TARGETS {
        let seeds = Seeds::of(target.name).unwrap();
        assert!(seeds.0.len() >= 5, "{} has only {} seeds", target.name, seeds.0.len());
        let broken = Seeds::broken(target.name).unwrap();
        for (name, text) in seeds.0.iter().chain(&broken.0) {
            assert_eq!(target.try_text(text), Ok(()), "{} {name}", target.name);
        }
    }
}

#[test]
fn a_case_is_always_the_same_and_does_not_break_anything() {
    for target in &TARGETS {
        let seeds = Seeds::of(target.name).unwrap();
        for number in 0..50 {
            let text = case(target.name, &seeds, 7, number).text;
            assert_eq!(text, case(target.name, &seeds, 7, number).text);
            assert_eq!(target.try_text(&text), Ok(()), "cargo xtask fuzz {} --seed 7 --case {number}", target.name);
        }
    }
}

#[test]
fn texts_of_the_grammar_mostly_reach_what_lies_behind_the_reader() {
    let seeds = Seeds::default();
    let (mut read, mut ran) = (0, 0);
    for number in 0..200 {
        let text = case("expression", &seeds, 3, number).text;
        let Ok(text) = String::from_utf8(text) else { continue };
        if let Ok(program) = octoflow_engine::expr::lang::parse(&text) {
            read += 1;
            ran += u32::from(program.evaluate(&()).is_ok());
        }
    }
    assert!(read > 60 && ran > 5, "of 200 expressions only {read} can be read and {ran} give a value");
}
