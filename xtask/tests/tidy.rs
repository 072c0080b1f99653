//! The project rules, checked on the project itself by the same code as `cargo xtask tidy`.

use std::fmt::Write;

#[test]
fn the_project_obeys_its_own_rules() {
    let problems = xtask::tidy::check(&xtask::root()).expect("the rules can be checked");
    let mut list = String::new();
    for problem in &problems {
        writeln!(list, "{problem}").expect("a string takes any text");
    }
    assert!(problems.is_empty(), "{} project rules broken:\n{list}", problems.len());
}
