//! Texts that are nearly right: made from the grammar of each target, to a depth that sometimes is too deep.

use std::fmt::Write as _;

use super::{flow, kubejob, plugin, words};
use crate::sim::Draw;

pub(super) fn text(target: &str, draw: &mut Draw) -> String {
    let depth = *draw.pick(&[1, 2, 3, 4, 5, 8]);
    match target {
        "expression" => expression(draw, depth),
        "when" => condition(draw, depth),
        "depends" => dependency(draw, depth),
        "template" => template(draw, depth),
        "taskset" => crate::sim::random_task_set(draw).to_string(),
        "volcano" => crate::sim::random_job(draw).to_string(),
        "kubejob" => kubejob::random_job(draw),
        "cronjob" => kubejob::random_cron_job(draw),
        "jobflow" => flow::random_flow(draw),
        "jobtemplate" => flow::random_template(draw),
        "patch" => flow::random_patch(draw),
        "selector" => plugin::random_selector(draw, depth),
        "increment" => plugin::random_increment(draw, depth),
        "plugin" => plugin::random_job(draw),
        "answer" => plugin::random_answer(draw, depth),
        _ => manifest(draw),
    }
}

/// One word of the target's language.
pub(super) fn word(target: &str, draw: &mut Draw) -> String {
    match target {
        "expression" => match draw.below(4) {
            0 => format!("{}(", draw.pick(words::FUNCTIONS)),
            1 => (*draw.pick(words::BINARY)).to_owned(),
            2 => expression(draw, 1),
            _ => (*draw.pick(words::LITERALS)).to_owned(),
        },
        "when" => condition(draw, 1),
        "depends" => dependency(draw, 1),
        "template" => tag(draw, 1),
        "taskset" => (*draw.pick(words::ROLES)).to_owned(),
        "volcano" => (*draw.pick(words::TASKS)).to_owned(),
        "kubejob" | "cronjob" => (*draw.pick(words::KUBE_JOBS)).to_owned(),
        "jobflow" | "jobtemplate" | "patch" => (*draw.pick(words::FLOWS)).to_owned(),
        "selector" => plugin::random_selector(draw, 1),
        "increment" | "plugin" | "answer" => (*draw.pick(words::PLUGINS)).to_owned(),
        _ => match draw.below(4) {
            0 => format!("\n      {}", draw.pick(words::YAML)),
            1 => format!(", {}", draw.pick(words::YAML)),
            2 => tag(draw, 2),
            _ => (*draw.pick(words::NUMBERS)).to_owned(),
        },
    }
}

fn expression(draw: &mut Draw, depth: u64) -> String {
    if depth == 0 || draw.chance(10) {
        return if draw.chance(8) {
            (*draw.pick(words::NUMBERS)).to_owned()
        } else {
            (*draw.pick(words::LITERALS)).to_owned()
        };
    }
    let below = |draw: &mut Draw| expression(draw, depth - 1);
    match draw.below(14) {
        0..=2 => format!("{} {} {}", below(draw), draw.pick(words::BINARY), below(draw)),
        3..=6 => {
            let name = *draw.pick(words::FUNCTIONS);
            let arguments: Vec<String> = (0..draw.between(0, 3)).map(|_| below(draw)).collect();
            format!("{name}({})", arguments.join(", "))
        }
        7 => {
            let name = *draw.pick(words::CLOSURES);
            let closure = match draw.below(5) {
                0 => "#".to_owned(),
                1 => ".a".to_owned(),
                2 => format!("{{# {} {}}}", draw.pick(words::BINARY), below(draw)),
                3 => format!("#index {} {}", draw.pick(words::BINARY), below(draw)),
                _ => below(draw),
            };
            format!("{name}({}, {closure})", below(draw))
        }
        8 => format!("{} ? {} : {}", below(draw), below(draw), below(draw)),
        9 => format!("({})", below(draw)),
        10 => format!("[{}, {}]", below(draw), below(draw)),
        11 => format!("{{a: {}, {}: {}}}", below(draw), draw.pick(&["b", "'c d'", "(1)"]), below(draw)),
        12 => {
            let access =
                *draw.pick(&["[0]", "[-1]", "[1:2]", "[:1]", "['a']", ".a", "?.a", ".Format('2006')", "[99]", "[:]"]);
            format!("{}{access}", below(draw))
        }
        _ => match draw.below(4) {
            0 => format!("let x = {}; x {} x", below(draw), draw.pick(words::BINARY)),
            1 => format!("!{}", below(draw)),
            2 => format!("-{}", below(draw)),
            _ => format!("{} | {}()", below(draw), draw.pick(words::FUNCTIONS)),
        },
    }
}

fn condition(draw: &mut Draw, depth: u64) -> String {
    const TERMS: &[&str] = &[
        "a",
        "b",
        "1",
        "2.5",
        "'x y'",
        "\"q\"",
        "true",
        "false",
        "foo-bar",
        "(1, 2)",
        "[esc aped]",
        "'2024-01-01'",
        "-1",
        "ü",
    ];
    const SIGNS: &[&str] = &[
        "==", "!=", "<", ">", "<=", ">=", "=~", "!~", "in", "&&", "||", "+", "-", "*", "/", "%", "**", "?", ":", "??",
        "&", "|", "^", "<<", ">>",
    ];
    if depth == 0 || draw.chance(15) {
        return (*draw.pick(TERMS)).to_owned();
    }
    match draw.below(5) {
        0 => format!("({})", condition(draw, depth - 1)),
        1 => format!("!{}", condition(draw, depth - 1)),
        _ => format!("{} {} {}", condition(draw, depth - 1), draw.pick(SIGNS), condition(draw, depth - 1)),
    }
}

fn dependency(draw: &mut Draw, depth: u64) -> String {
    if depth == 0 || draw.chance(20) {
        return format!(
            "{}{}",
            draw.pick(&["a", "b-1", "C_2", "task-with-long-name", "9x"]),
            draw.pick(words::OUTCOMES)
        );
    }
    match draw.below(5) {
        0 => format!("({})", dependency(draw, depth - 1)),
        1 => format!("!{}", dependency(draw, depth - 1)),
        _ => {
            let sign = draw.pick(&["&&", "||", " && ", " || ", " and ", "&"]);
            format!("{}{sign}{}", dependency(draw, depth - 1), dependency(draw, depth - 1))
        }
    }
}

fn tag(draw: &mut Draw, depth: u64) -> String {
    match draw.below(5) {
        0 => format!("{{{{={}}}}}", expression(draw, depth)),
        1 => format!("{{{{ {} }}}}", draw.pick(words::TAGS)),
        2 => format!("{{{{inputs.parameters.{{{{{}}}}}}}}}", draw.pick(words::TAGS)),
        _ => format!("{{{{{}}}}}", draw.pick(words::TAGS)),
    }
}

fn template(draw: &mut Draw, depth: u64) -> String {
    (0..draw.between(1, depth + 1)).fold(String::new(), |mut text, _| {
        let _ = write!(
            text,
            "{}{}",
            draw.pick(&["", "text ", "{", "}", "$", "\\n", "{{", "}}", "\n", "é"]),
            tag(draw, depth.min(3))
        );
        text
    })
}

fn manifest(draw: &mut Draw) -> String {
    let mut text =
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: w}\nspec:\n  entrypoint: main\n".to_owned();
    if draw.chance(30) {
        let _ = writeln!(text, "  {}", draw.pick(words::YAML));
    }
    text.push_str("  arguments: {parameters: [{name: p, value: \"[1, 2]\"}]}\n  templates:\n  - name: main\n");
    if draw.chance(20) {
        let _ = writeln!(text, "    {}", draw.pick(words::YAML));
    }
    let names = ["a", "b", "c", "d"];
    let dag = draw.chance(50);
    text.push_str(if dag { "    dag:\n      tasks:\n" } else { "    steps:\n" });
    for name in &names[..draw.between(1, 4) as usize] {
        let margin = "        ";
        text.push_str(if dag { "      - " } else { "    - - " });
        let called = draw.pick(&["leaf", "leaf", "leaf", "main", "say", "pause"]);
        let _ = writeln!(text, "name: {name}\n{margin}template: {called}");
        for _ in 0..draw.between(0, 2) {
            let _ = writeln!(text, "{margin}{}", draw.pick(words::YAML));
        }
        if draw.chance(50) {
            let value = serde_json::Value::from(template(draw, 2));
            let _ = writeln!(text, "{margin}arguments: {{parameters: [{{name: t, value: {value}}}]}}");
        }
    }
    let said = serde_json::Value::from(template(draw, 2));
    let _ = write!(
        text,
        "  - name: leaf\n    inputs: {{parameters: [{{name: t, default: x}}]}}\n    outputs: {{parameters: [{{name: p, valueFrom: {{path: /tmp/p}}}}]}}\n    container: {{image: i, command: [c], args: [{said}]}}\n"
    );
    text.push_str("  - name: say\n    script: {image: i, command: [sh], source: \"echo {{workflow.parameters.p}}\"}\n");
    text.push_str("  - name: pause\n    suspend: {duration: 1}\n");
    if draw.chance(20) {
        let _ = writeln!(text, "    {}", draw.pick(words::YAML));
    }
    text
}
