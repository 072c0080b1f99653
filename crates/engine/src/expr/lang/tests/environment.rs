//! Names: where they come from, what shadows what, and which are mentioned.

use std::cell::RefCell;

use super::*;

#[test]
fn names_come_from_the_environment() {
    gives(&[
        ("inputs.parameters.name", "\"world\""),
        ("'hello ' + inputs.parameters.name", "\"hello world\""),
        ("inputs.parameters['my-count']", "\"3\""),
        ("inputs.parameters['my-' + 'count']", "\"3\""),
        ("item.n > 5 ? 'big' : 'small'", "\"big\""),
        ("$env['item'].n", "7"),
        ("$env.retries", "\"2\""),
        ("$env['absent']", "null"),
        ("'item' in $env", "true"),
        ("'absent' in $env", "false"),
    ]);
}

#[test]
fn an_unknown_name_is_named_with_the_nearest_known_one() {
    refuses(&[
        ("input.parameters.x", 1, "unknown name 'input'; did you mean 'inputs'?"),
        ("1 + wat", 5, "unknown name 'wat'"),
        ("$env", 1, "'$env' is not a value by itself"),
    ]);
}

/// An environment that builds one task's outputs when asked for that task only.
#[derive(Default)]
struct Lazy {
    asked: RefCell<Vec<String>>,
}

impl Env for Lazy {
    fn root(&self, name: &str) -> Option<Value> {
        self.asked.borrow_mut().push(name.to_owned());
        None
    }

    fn member(&self, root: &str, key: &str) -> Option<Value> {
        self.asked.borrow_mut().push(format!("{root}.{key}"));
        let result = Value::from_iter([("result".to_owned(), Value::from(format!("of {key}")))]);
        (root == "tasks").then(|| Value::from_iter([("outputs".to_owned(), result)]))
    }
}

#[test]
fn a_member_is_asked_for_before_its_root() {
    for text in ["tasks['a-b'].outputs.result", "tasks['a' + '-b'].outputs['result']", "tasks?.['a-b'].outputs.result"]
    {
        let env = Lazy::default();
        let value = parse(text).unwrap().evaluate(&env).unwrap();
        assert_eq!(value.to_text(), "of a-b", "{text}");
        assert_eq!(*env.asked.borrow(), ["tasks.a-b"], "{text}");
    }
}

#[test]
fn i9_names_of_functions_are_still_variables() {
    let env = Lazy::default();
    for task in ["join", "split", "map", "filter", "len", "sprig", "in", "not", "matches"] {
        for text in [format!("tasks.{task}.outputs.result"), format!("tasks['{task}'].outputs.result")] {
            let value = parse(&text).unwrap().evaluate(&env).unwrap();
            assert_eq!(value.to_text(), format!("of {task}"));
        }
    }
    let roots = Fixed(["join", "map", "split", "len"].map(|name| (name.to_owned(), Value::from(name))).into());
    let text = "join + map + split + join([len], '') + string(len('ab'))";
    let value = parse(text).unwrap().evaluate(&roots).unwrap();
    assert_eq!(value.to_text(), "joinmapsplitlen2");
}

#[test]
fn i10_the_item_works_inside_sprig() {
    let env = Fixed([("item".to_owned(), Value::from(" x "))].into());
    for text in ["sprig.trim(item)", "item | sprig.trim()", "sprig.upper(sprig.trim(item)) | lower()"] {
        assert_eq!(parse(text).unwrap().evaluate(&env).unwrap().to_text(), "x", "{text}");
    }
}

fn paths(text: &str) -> Vec<Vec<String>> {
    let references = parse(text).unwrap().roots();
    references.into_iter().map(|reference| reference.path).collect()
}

#[test]
fn references_are_listed_with_their_static_paths() {
    for (text, expected) in [
        ("tasks['a-b'].outputs.result", vec![vec!["tasks", "a-b", "outputs", "result"]]),
        ("a?.b.c ?? d", vec![vec!["a", "b", "c"], vec!["d"]]),
        ("let x = item; x.y + z", vec![vec!["item"], vec!["z"]]),
        ("steps[name].outputs", vec![vec!["steps"], vec!["name"]]),
        ("steps['a'][0].b", vec![vec!["steps", "a"]]),
        ("map(items, # + .x + other)", vec![vec!["items"], vec!["other"]]),
        ("sprig.trim(item)", vec![vec!["item"]]),
        ("x + x.y + x", vec![vec!["x"], vec!["x", "y"]]),
        ("true ? a : false ? b : c", vec![vec!["a"], vec!["b"], vec!["c"]]),
        ("$env['lastRetry'].exitCode", vec![vec!["lastRetry", "exitCode"]]),
        ("{a: b, c: [d]}", vec![vec!["b"], vec!["d"]]),
        ("1 + 2", vec![]),
    ] {
        assert_eq!(paths(text), expected, "{text}");
    }
}

#[test]
fn a_reference_knows_where_it_stands() {
    let references = parse("1 + asInt(lastRetry.exitCode)").unwrap().roots();
    assert_eq!(references[0].root(), "lastRetry");
    assert_eq!((references[0].column, references[0].length), (11, 9));
}

#[test]
fn an_expression_without_names_needs_no_environment() {
    assert_eq!(parse("1 + 1").unwrap().evaluate(&()).unwrap(), Value::Int(2));
}
