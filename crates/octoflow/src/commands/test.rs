//! `octoflow test FILE|DIR…`: runs every case of the test files and reports what differs from the expectations. The
//! result is data and goes to standard output; nothing is started, and no data directory is touched.

use std::time::{Duration, Instant};

use anyhow::Result;
use regex::Regex;

use crate::{
    cli::{Test, TestFormat},
    exit::{Exit, Failure},
    logic::{self, Case, Verdict},
    output::{Output, json::pretty, trial},
};

/// Case with its result and its duration in real time.
pub(crate) struct TestResult<'a> {
    pub case: Case<'a>,
    pub verdict: Verdict,
    pub took: Duration,
}

pub(crate) fn test(args: &Test, output: &Output) -> Result<Exit> {
    let filter = args
        .filter
        .as_deref()
        .map(Regex::new)
        .transpose()
        .map_err(|error| Failure::usage(format!("--filter is not a regular expression: {error}")))?;
    let suites = logic::read(&args.places)?;
    if !suites.problems.is_empty() {
        output.talk(suites.problems.render(output.talk_paint().is_on()).trim_end());
        let count = suites.problems.len();
        output.talk(&format!("\n{count} {} found; nothing was tested", plural(count, "problem")));
        return Ok(Exit::InvalidManifest);
    }
    let all = suites.sheets.iter().flat_map(logic::cases);
    let chosen: Vec<Case<'_>> =
        all.filter(|case| filter.as_ref().is_none_or(|filter| filter.is_match(&trial::title(case)))).collect();
    if args.list {
        for case in &chosen {
            output.line(&trial::title(case))?;
        }
        return Ok(Exit::Succeeded);
    }
    if chosen.is_empty() {
        return Err(Failure::usage("no case is chosen by --filter").help("--list shows the cases").into());
    }
    let mut tried = Vec::new();
    for case in chosen {
        let begun = Instant::now();
        let verdict = logic::run_case(&case)?;
        let one = TestResult { case, verdict, took: begun.elapsed() };
        if args.output == TestFormat::Pretty {
            output.text(&trial::pretty(&one, output.paint()))?;
            one.verdict.node_lines.iter().for_each(|line| output.detail(line.trim_end()));
        }
        tried.push(one);
    }
    match args.output {
        TestFormat::Pretty => output.line(&trial::summary(&tried, output.paint()))?,
        TestFormat::Junit => output.data(&trial::junit(&tried))?,
        TestFormat::Json => output.data(&pretty(&trial::json(&tried)))?,
    }
    let failed = tried.iter().any(|one| !one.verdict.passed());
    Ok(if failed { Exit::Failed } else { Exit::Succeeded })
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}
