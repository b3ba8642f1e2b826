//! Processes that outlive the one that was started: they left its group, but not its environment, and at last
//! they are ours, because nobody else is their parent.
//!
//! Elsewhere than on Linux there is no way to find them without more rights, and these functions find nothing.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

/// What is read of an environment; systems do not allow larger ones without being told to.
const MAX_ENVIRONMENT: u64 = 4 << 20;
/// How often is looked again for those that were started in the meantime.
const ROUNDS: u32 = 50;
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Kills every process that has this variable with this value in the environment it was started with, and all
/// that these started. Returns how many there were.
///
/// The value must be one that nothing else has, such as the name of a temporary directory.
pub fn kill_marked(variable: &str, value: &str) -> usize {
    let mark = format!("{variable}={value}");
    until_none_is_left(|| marked(&mark))
}

/// How many processes there are that [`kill_marked`] would kill.
#[must_use]
pub fn count_marked(variable: &str, value: &str) -> usize {
    let mut found = marked(&format!("{variable}={value}"));
    found.remove(&getpid().as_raw_pid());
    found.len()
}

/// The processes with a mark in their environment, and those below them.
fn marked(mark: &str) -> HashSet<i32> {
    let parents = parents();
    let mut found: HashSet<i32> = parents
        .keys()
        .copied()
        .filter(|pid| is_marked(*pid, mark.as_bytes()))
        .collect();
    // Those below may have cleaned their environment.
    loop {
        let more = parents.iter().filter(|(_, parent)| found.contains(parent));
        let more: Vec<i32> = more.map(|(pid, _)| *pid).collect();
        let before = found.len();
        found.extend(more);
        if found.len() == before {
            break;
        }
    }
    found
}

/// Makes this process the parent of those below it that lose theirs, so that [`end_orphans`] finds them. Says
/// whether the system can.
pub fn adopt_orphans() -> bool {
    #[cfg(target_os = "linux")]
    return rustix::process::set_child_subreaper(Some(getpid())).is_ok();
    #[cfg(not(target_os = "linux"))]
    return false;
}

/// Kills all children of this process, which must have ended by now, and what these leave behind. Returns how
/// many there were. To be called when everything else is over.
pub fn end_orphans() -> usize {
    let this = getpid().as_raw_pid();
    until_none_is_left(|| {
        let children = parents().into_iter();
        let children = children.filter(|(_, parent)| *parent == this);
        children.map(|(pid, _)| pid).collect()
    })
}

/// Kills what is found until nothing is found any more.
fn until_none_is_left(find: impl Fn() -> HashSet<i32>) -> usize {
    let mut killed = HashSet::new();
    let this = getpid().as_raw_pid();
    for round in 0..ROUNDS {
        if round > 0 {
            std::thread::sleep(PAUSE);
        }
        let mut found = find();
        found.remove(&this);
        if found.is_empty() {
            break;
        }
        for pid in found.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        for pid in &found {
            // Whose parent we have become, we bury; others are not ours to wait for.
            let _ = Pid::from_raw(*pid).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
        }
        killed.extend(found);
    }
    killed.len()
}

/// All processes and their parents.
fn parents() -> HashMap<i32, i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    let pids = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.parse::<i32>().ok()
    });
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// The parent of a process, unless it is dead already and waits only to be buried by somebody else.
fn parent(pid: i32) -> Option<i32> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    // The name in parentheses may hold anything, parentheses included.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let is_ours = parent == getpid().as_raw_pid();
    (state != "Z" || is_ours).then_some(parent)
}

fn is_marked(pid: i32, mark: &[u8]) -> bool {
    let environment = read(&format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable == mark)
}

fn read(path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    #[expect(clippy::disallowed_methods, reason = "capped by take")]
    file.take(MAX_ENVIRONMENT).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
