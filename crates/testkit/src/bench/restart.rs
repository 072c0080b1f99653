//! The row `restart`: how long a server with very many unfinished runs takes until it lives and until it is ready.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use octoflow_control::registry::{Registry, WriteOptions, kinds};

use super::{
    controller,
    measure::{Outcome, Tools},
    role::Role,
    row::{Goal, Line, median, seconds},
    rows::Size,
    shape,
};

/// A start that takes longer has hung.
const PATIENCE: Duration = Duration::from_secs(300);

/// So many runs that wait for somebody, left behind in this directory.
pub(super) fn leave(count: u32, dir: &Path) -> Outcome<()> {
    let registry = Registry::new(controller::open(dir)?)?;
    registry.restore_all()?;
    let kind = kinds::of_key("Workflow").ok_or("there are no workflows")?;
    let left = std::sync::atomic::AtomicU32::new(count);
    let order = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        let submit = || -> Outcome<()> {
            while left.fetch_update(order, order, |left| left.checked_sub(1)).is_ok() {
                let created = registry.create(kind, "default", shape::suspended(), &WriteOptions::default());
                created.map_err(|fault| fault.to_string())?;
            }
            Ok(())
        };
        let clients: Vec<_> = (0..16).map(|_| scope.spawn(submit)).collect();
        clients.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| Err("a client panicked".into())))
    })?;
    Ok(registry.close()?)
}

pub(super) fn restart(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let mut lines = Vec::new();
    for count in [size.of(5_000, 500), size.of(50_000, 2_000)] {
        let dir = tools.fresh()?;
        tools.role(&Role::Suspended { count, dir: dir.path().to_owned() })?;
        let (mut lives, mut readies, mut afters) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..size.turns(3, 1) {
            let [live, ready, after] = start(tools, dir.path())?;
            lives.push(live);
            readies.push(ready);
            afters.push(after);
        }
        let line = |what, value, unit, goal| Line {
            row: format!("restart, {count} unfinished runs"),
            what,
            ours: String::new(),
            yardstick: String::new(),
            value,
            unit,
            goal,
        };
        let ready = median(readies);
        lines.push(line("until /livez answers", 1e3 * median(lives), "ms", Some(Goal::AtMost(500.0))));
        lines.push(line("until /readyz answers", ready, "s", None));
        lines.push(line("the same, a run", 1e6 * ready / f64::from(count), "µs", None));
        lines.push(line("from the last journal read to ready", median(afters), "s", Some(Goal::AtMost(1.0))));
    }
    Ok(lines)
}

/// Seconds until it lives, until it is ready, and between the last journal that was read and that.
fn start(tools: &Tools, dir: &Path) -> Outcome<[f64; 3]> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut command = Command::new(tools.octoflow());
    command.args(["server", "--listen", &address.to_string(), "--data-dir"]).arg(dir);
    let began = Instant::now();
    let mut server = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let live = until(began, address, "/livez", |status, _| status == 200)?;
    let mut read = None;
    let ready = until(began, address, "/readyz", |status, body| {
        let words: Vec<&str> = body.split(|one: char| !one.is_ascii_digit()).filter(|word| !word.is_empty()).collect();
        if let (None, 503, [.., done, all]) = (read, status, words.as_slice())
            && done == all
            && *all != "0"
        {
            read = Some(began.elapsed());
        }
        status == 200
    })?;
    server.stop()?;
    // A start that was never seen between the two took less than one look at it.
    Ok([seconds(live), seconds(ready), seconds(ready.saturating_sub(read.unwrap_or(ready)))])
}

fn until(
    began: Instant,
    address: SocketAddr,
    path: &str,
    mut enough: impl FnMut(u16, &str) -> bool,
) -> Outcome<Duration> {
    while began.elapsed() < PATIENCE {
        if let Ok((status, body)) = look(address, path)
            && enough(status, &body)
        {
            return Ok(began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(format!("{path} did not answer well within {} seconds", PATIENCE.as_secs()).into())
}

fn look(address: SocketAddr, path: &str) -> Outcome<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let status = text.split(' ').nth(1).ok_or("no status")?.parse()?;
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    // The message alone: other numbers of the answer are not its progress.
    let body = body.find("starting: ").map(|at| body[at..].split(" runs").next().unwrap_or_default().to_owned());
    Ok((status, body.unwrap_or_default()))
}

/// The server of one measurement; it never outlives it.
struct Running(Child);

impl Running {
    fn stop(&mut self) -> Outcome<()> {
        Command::new("kill").arg("-TERM").arg(self.0.id().to_string()).status()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
