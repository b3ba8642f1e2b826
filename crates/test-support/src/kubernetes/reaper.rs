//! Ends the processes of a test and removes their files, in whatever way the test itself ends.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

use proofhouse_wire::sync::lock;

/// Remembers groups of processes, and kills those that are left when its standard input ends.
const SCRIPT: &str = r#"
groups=
while read -r sign group; do
    case $sign in
    +) groups="$groups $group " ;;
    *) groups=$(echo "$groups" | sed "s/ $group / /") ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
[ -z "$1" ] || rm -rf -- "$1"
"#;

/// A small process that outlives the test by a moment.
#[derive(Debug)]
pub(super) struct Reaper {
    input: Mutex<Option<ChildStdin>>,
    shell: Child,
}

impl Reaper {
    /// Removes the directory at the end.
    pub(super) fn new(directory: &Path) -> Self {
        use std::os::unix::process::CommandExt as _;
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "reaper"]).arg(directory);
        shell.stdin(Stdio::piped());
        let mut shell = shell.process_group(0).spawn().unwrap();
        Self {
            input: Mutex::new(shell.stdin.take()),
            shell,
        }
    }

    /// A group that ends with the test.
    pub(super) fn add(&self, group: u32) {
        self.tell('+', group);
    }

    /// A group that has ended; its number may become somebody else's.
    pub(super) fn remove(&self, group: u32) {
        self.tell('-', group);
    }

    fn tell(&self, sign: char, group: u32) {
        let mut input = lock(&self.input);
        if let Some(input) = input.as_mut() {
            let _ = writeln!(input, "{sign} {group}");
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        let mut input = lock(&self.input);
        drop(input.take());
        let _ = self.shell.wait();
    }
}
