//! The fuzzer's command. The work is done in a child of the same program, so that a text that ends it, by the stack or by
//! memory, is told like any other finding.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the program talks to the person who started it")]

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use octoflow_testkit::fuzz::{BROKE, Seeds, TARGETS, Target, case, folder};

const HELP: &str = "\
The fuzzer

    cargo xtask fuzz [--seconds N] [--seed S] [TARGET]   all targets, or one, for N seconds in all (60)
    cargo xtask fuzz TARGET --case N --seed S            one case again: prints it and what is broken
    cargo xtask fuzz TARGET FILE                         a text of a file

Targets: expression, when, depends, template, manifest, taskset, volcano, kubejob, cronjob, jobflow, jobtemplate, patch,
selector, increment, plugin, answer.
Findings are kept among the seeds of their target, in crates/testkit/seeds, where the tests try them again.";

/// A case that takes longer than this does not come back; the slowest honest one takes a second.
const PATIENCE: Duration = Duration::from_secs(60);
/// What one case may use, with everything the program holds anyway, in kibibytes: four gibibytes.
const MEMORY: u64 = 4 * 1024 * 1024;

#[derive(Default)]
struct Options {
    seconds: Option<u64>,
    seed: Option<u64>,
    case: Option<u64>,
    target: Option<&'static Target>,
    file: Option<PathBuf>,
    /// Where a child tells which case it is at.
    mark: Option<PathBuf>,
    /// The first case of a child.
    from: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match read(&words) {
        Ok(Some(options)) => act(&options),
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("{why}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the fuzzer cannot work: {error}");
            ExitCode::from(2)
        }
    }
}

fn read(words: &[String]) -> Result<Option<Options>, String> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: &String| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number"));
        match word.as_str() {
            "-h" | "--help" => return Ok(None),
            "--seconds" => options.seconds = Some(number(value()?)?),
            "--seed" => options.seed = Some(number(value()?)?),
            "--case" => options.case = Some(number(value()?)?),
            "--mark" => options.mark = Some(PathBuf::from(value()?)),
            "--from" => options.from = number(value()?)?,
            name if options.target.is_none() => {
                let target = Target::named(name).ok_or_else(|| format!("there is no target `{name}`"))?;
                options.target = Some(target);
            }
            file if options.file.is_none() => options.file = Some(PathBuf::from(file)),
            other => return Err(format!("`{other}` is too much")),
        }
    }
    if (options.case.is_some() || options.file.is_some()) && options.target.is_none() {
        return Err("say which target".to_owned());
    }
    Ok(Some(options))
}

/// How many findings there are.
fn act(options: &Options) -> io::Result<u64> {
    if let (Some(target), Some(file)) = (options.target, &options.file) {
        return Ok(tell(target, &fs::read(file)?));
    }
    if let (Some(target), Some(number)) = (options.target, options.case) {
        let seeds = Seeds::of(target.name)?;
        let one = case(target.name, &seeds, options.seed.unwrap_or_default(), number);
        println!("--- {}\n{}\n---", one.made, String::from_utf8_lossy(&one.text));
        return Ok(tell(target, &one.text));
    }
    if let (Some(target), Some(mark)) = (options.target, &options.mark) {
        return child(target, options, mark);
    }
    supervise(options)
}

fn tell(target: &Target, text: &[u8]) -> u64 {
    match target.try_text(text) {
        Ok(()) => {
            println!("nothing is broken");
            0
        }
        Err(what) => {
            println!("{what}");
            1
        }
    }
}

/// Shares the time among the targets and collects what their children find.
fn supervise(options: &Options) -> io::Result<u64> {
    let seed =
        options.seed.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()));
    let targets: Vec<&Target> =
        TARGETS.iter().filter(|target| options.target.is_none_or(|one| one.name == target.name)).collect();
    let share = Duration::from_secs(options.seconds.unwrap_or(60)) / u32::try_from(targets.len()).unwrap_or(1);
    let scratch = tempfile::tempdir()?;
    let mut findings = 0;
    for target in targets {
        let mark = scratch.path().join(target.name);
        let (began, mut from, mut found) = (Instant::now(), 0, 0);
        // After some findings the rest is likely the same one.
        while began.elapsed() < share && found < 5 {
            let left = share.saturating_sub(began.elapsed()).as_secs_f64().ceil();
            fs::write(&mark, [0; 8])?;
            let status = Command::new("sh")
                .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$@\""), "sh"])
                .arg(std::env::current_exe()?)
                .args([target.name, "--seed", &seed.to_string(), "--from", &from.to_string()])
                .args(["--seconds", &format!("{left:.0}"), "--mark"])
                .arg(&mark)
                .status()?;
            let last = number(&mark)?;
            if status.success() {
                from = last;
                break;
            }
            found += 1;
            let seeds = Seeds::of(target.name)?;
            let text = case(target.name, &seeds, seed, last).text;
            let kept = keep(target, &text)?;
            println!("{}: case {last} of seed {seed} is broken ({status}); kept as {}", target.name, kept.display());
            println!("    cargo xtask fuzz {} {}", target.name, kept.display());
            from = last + 1;
        }
        findings += found;
        println!(
            "{}: {} cases of seed {seed} in {:.0} s, {found} broken",
            target.name,
            from,
            began.elapsed().as_secs_f64()
        );
    }
    Ok(findings)
}

fn number(mark: &Path) -> io::Result<u64> {
    let bytes = fs::read(mark)?;
    Ok(bytes.try_into().map(u64::from_le_bytes).unwrap_or_default())
}

fn keep(target: &Target, text: &[u8]) -> io::Result<PathBuf> {
    let sum = text
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let file = folder(target.name).join(format!("{BROKE}{sum:016x}"));
    fs::write(&file, text)?;
    Ok(file)
}

/// Tries case after case until the time is over or one is broken.
fn child(target: &'static Target, options: &Options, mark: &Path) -> io::Result<u64> {
    let seeds = Seeds::of(target.name)?;
    let mark = File::options().write(true).open(mark)?;
    let (seed, until) =
        (options.seed.unwrap_or_default(), Instant::now() + Duration::from_secs(options.seconds.unwrap_or(60)));
    let (at, over) = (AtomicU64::new(options.from), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| watch(&at, &over));
        // A plain thread with a plain stack, as the engine has it.
        let worker = scope.spawn(|| -> io::Result<u64> {
            for number in options.from.. {
                at.store(number, Ordering::Relaxed);
                mark.write_all_at(&number.to_le_bytes(), 0)?;
                if Instant::now() >= until {
                    return Ok(0);
                }
                if let Err(what) = target.try_text(&case(target.name, &seeds, seed, number).text) {
                    println!("{}: {what}", target.name);
                    return Ok(1);
                }
            }
            Ok(0)
        });
        let outcome = worker.join();
        over.store(true, Ordering::Relaxed);
        outcome.unwrap_or(Ok(1))
    })
}

/// Ends the program when a case does not come back.
fn watch(at: &AtomicU64, over: &AtomicBool) {
    let (mut seen, mut since) = (u64::MAX, Instant::now());
    while !over.load(Ordering::Relaxed) {
        let now = at.load(Ordering::Relaxed);
        if now != seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() > PATIENCE {
            println!("case {now} does not come back");
            std::process::abort();
        }
        thread::sleep(Duration::from_millis(50));
    }
}
