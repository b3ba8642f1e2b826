//! Looks at processes, and ends those that a test started.

use std::fmt::Display;
use std::io::Read as _;
use std::process::{Child, Command};

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
}
