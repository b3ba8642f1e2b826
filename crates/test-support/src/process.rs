//! Looks at processes, and ends those that a test started.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Once;
use std::time::{Duration, Instant};

/// Longer than any program of ours runs in a test. One that still runs hangs, and so would whoever waits for it.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// A process that ends with the test that started it.
#[derive(Debug)]
pub struct TestProcess(pub Child);

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal, such as `-TERM`.
///
/// # Panics
///
/// If there is no such process.
pub fn signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args([name, &process.to_string()]).status().unwrap();
    assert!(sent.success(), "{name} to {process}");
}

/// Whether a process runs. One that has ended and that nobody has asked about does not.
pub fn is_running(process: &(impl Display + ?Sized)) -> bool {
    status(process).is_some_and(|fields| !fields.starts_with(['Z', 'X']))
}

/// The processes that have this one as their parent, whatever became of them.
pub fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().into_string().ok());
    numbers
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|number| {
            let fields = status(number).unwrap_or_default();
            fields.split_whitespace().nth(1) == Some(&own)
        })
        .collect()
}

/// Kills the children of this process that run `program` for longer than a test may, and says so on stderr. The test that waits for
/// one then fails and has a name, instead of holding up all others. Only the first call has an effect.
pub fn end_what_hangs(program: &'static Path) {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        std::thread::spawn(move || {
            let program = std::fs::canonicalize(program).unwrap();
            let mut seen = HashMap::new();
            loop {
                end_older(&program, LONGEST, &mut seen);
                std::thread::sleep(Duration::from_secs(5));
            }
        });
    });
}

/// Kills the children that run `program` and were first seen longer ago than `limit`.
fn end_older(program: &Path, limit: Duration, seen: &mut HashMap<String, Instant>) {
    let runs = |id: &String| {
        std::fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|link| link == program)
    };
    let ours: Vec<String> = children().into_iter().filter(runs).collect();
    seen.retain(|id, _| ours.contains(id));
    for id in ours {
        let first = *seen.entry(id.clone()).or_insert_with(Instant::now);
        if first.elapsed() > limit {
            #[expect(clippy::print_stderr, reason = "no test would tell it otherwise")]
            {
                let words = std::fs::File::open(format!("/proc/{id}/cmdline"))
                    .and_then(|file| std::io::read_to_string(file.take(4096)));
                let shown = words.unwrap_or_default().replace('\0', " ");
                eprintln!("HANGS, killed after {} s: {shown}", limit.as_secs());
            }
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    }
}

/// How many files this process has open.
pub fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// What the kernel says of a process, from its state on: its name before that may hold anything.
fn status(process: &(impl Display + ?Sized)) -> Option<String> {
    let file = std::fs::File::open(format!("/proc/{process}/stat")).ok()?;
    let text = std::io::read_to_string(file.take(4096)).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.trim_start().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_seen_until_they_end() {
        let mut sleeps = Command::new("sleep");
        let started = TestProcess(sleeps.arg("600").spawn().unwrap());
        let id = started.0.id();
        assert!(is_running(&id) && is_running(&std::process::id()));
        assert!(children().contains(&id.to_string()));
        assert!(open_files() > 2);
        drop(started);
        assert!(!is_running(&id));
    }

    #[test]
    fn what_hangs_is_killed_and_others_are_not() {
        let start = |line: &str| {
            let mut words = line.split(' ');
            let mut command = Command::new(words.next().unwrap());
            TestProcess(command.args(words).spawn().unwrap())
        };
        let (mut hangs, other) = (start("tail -f /dev/null"), start("sleep 600"));
        let hanging = ["/usr/bin/tail", "/bin/tail"].map(std::fs::canonicalize);
        let hanging = hanging.into_iter().find_map(Result::ok).unwrap();
        let mut seen = HashMap::new();
        // It has become the program once it runs it.
        crate::wait::until_true("the hanging program is seen", || {
            end_older(&hanging, LONGEST, &mut seen);
            seen.len() == 1
        });
        assert!(is_running(&hangs.0.id()), "it may run for a while");
        end_older(&hanging, Duration::ZERO, &mut seen);
        assert!(!hangs.0.wait().unwrap().success());
        assert!(is_running(&other.0.id()));
    }
}
