//! Runs the commands that README.md, the tutorial and the how-to pages show, page by page, in a shell.
//!
//! A page is one session: `cd`, `export` and what an earlier command wrote stay. A command that is not run is listed with
//! the reason. What is shown below a command has to be what it prints; a line `…` stands for any lines.
#![allow(clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use proofhouse_test_support::{loopback, workspace};

use super::not_run::NOT_RUN;
use super::pages::{BookPage, ShownCommand, root};
use crate::support::run;

/// The longest that the session of a page may take, in seconds; far longer than any takes.
const LONGEST: &str = "900";

/// Commands that end with another code than 0.
const EXITS: &[(&str, i32)] = &[
    ("proofhouse guard approve --lock my.lock", 1),
    // `grep -c` counts none.
    ("grep -c mail_send answers.jsonl", 1),
    ("proofhouse validate examples/documents/broken.yaml", 1),
    (
        "proofhouse run --protocol mcp --category capability_poisoning --out results",
        1,
    ),
    ("proofhouse replay results/PROOF-001/agent/1", 1),
    (
        "proofhouse run --subject sim:gullible --id PROOF-001 --out results",
        1,
    ),
    (
        "proofhouse replay results/PROOF-001/sim:gullible/1 --messages full",
        1,
    ),
    (
        "proofhouse run --subject sim:gullible --id PROOF-001 --repeats 20 --out repeated",
        1,
    ),
    (
        "proofhouse run copied/ --subject sim:gullible --subject sim:careful --out results",
        1,
    ),
    (
        "proofhouse run attacks/ --subject sim:gullible --out first",
        2,
    ),
    (
        "proofhouse scan examples/traces/poisoned-tool.jsonl --rules examples/documents/poisoned-tool.yaml",
        1,
    ),
    (
        "proofhouse scan examples/traces/poisoned-tool.jsonl --rules examples/documents/poisoned-tool.yaml --format sarif \
         > findings.sarif",
        1,
    ),
];

fn sessions() -> Vec<BookPage> {
    let mut pages = vec![BookPage::read("README.md")];
    pages.extend(BookPage::below("docs/tutorial"));
    pages.extend(BookPage::below("docs/how-to"));
    pages
}

fn reason(command: &str) -> Option<&'static str> {
    NOT_RUN
        .iter()
        .find(|(text, _)| *text == command)
        .map(|(_, reason)| *reason)
}

#[test]
fn every_command_shown_is_run_or_has_a_reason() {
    for program in ["bash", "timeout", "python3", "git"] {
        if Command::new(program).arg("--version").output().is_err() {
            workspace::skipped(
                "the commands of the book",
                &format!("there is no {program}"),
            );
            return;
        }
    }
    let mut wrong = String::new();
    for page in sessions() {
        let commands = page.commands();
        if commands
            .iter()
            .any(|command| reason(&command.text).is_none())
        {
            play(&page, &commands, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A row that no page needs hides a command that somebody changed.
#[test]
fn every_row_on_commands_is_of_a_command_that_is_shown() {
    let pages = sessions();
    let shown: BTreeSet<String> = pages
        .iter()
        .flat_map(BookPage::commands)
        .map(|command| command.text)
        .collect();
    let rows = NOT_RUN.iter().map(|(text, _)| *text);
    for text in rows.chain(EXITS.iter().map(|(text, _)| *text)) {
        assert!(shown.contains(text), "no page shows `{text}`");
    }
}

/// Runs the commands of one page in one shell, in a directory of its own.
fn play(page: &BookPage, commands: &[ShownCommand], wrong: &mut String) {
    let directory = tempfile::tempdir().expect("a directory");
    let notes = directory.path().join("notes");
    let session = directory.path().join("session");
    fs::create_dir(&notes).expect("a directory");
    fs::create_dir(&session).expect("a directory");
    #[cfg(unix)]
    std::os::unix::fs::symlink(root().join("examples"), session.join("examples")).expect("a link");
    let port = loopback::free_address().port().to_string();
    let script = script(commands, &notes, &port);
    let binary = Path::new(env!("CARGO_BIN_EXE_proofhouse"));
    let path = format!(
        "{}:{}",
        binary.parent().expect("a directory").display(),
        workspace::setting("PATH").unwrap_or_default()
    );
    // A command that serves would hold up everything; it belongs into the list of those that are not run.
    let status = Command::new("timeout")
        .args(["--kill-after=10", LONGEST, "bash", "-c", &script])
        .current_dir(&session)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENAI_BASE_URL")
        .status()
        .expect("the session runs");
    if !status.success() {
        let _ = writeln!(wrong, "{}: the session ended early: {status}", page.path);
    }
    for (number, command) in commands.iter().enumerate() {
        if reason(&command.text).is_some() {
            continue;
        }
        let note = |end: &str| {
            #[expect(clippy::disallowed_methods, reason = "what this test wrote")]
            let text = fs::read_to_string(notes.join(format!("{number}.{end}")));
            text.unwrap_or_default()
        };
        let printed = note("out").replace(&port, "8766");
        let code: Option<i32> = note("code").trim().parse().ok();
        let expected = EXITS.iter().find(|(text, _)| *text == command.text);
        let expected = expected.map_or(0, |(_, code)| *code);
        if code != Some(expected) {
            let _ = writeln!(
                wrong,
                "{}: `{}` ended with {code:?}, not {expected}:\n{printed}",
                page.path, command.text
            );
        }
        let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
        let shown: Vec<&str> = command.output.iter().map(String::as_str).collect();
        if !shown.is_empty() && !fits(&shown, &printed) {
            let _ = writeln!(
                wrong,
                "{}: `{}` does not print what is shown, but:\n{}\n",
                page.path,
                command.text,
                printed.join("\n")
            );
        }
    }
}

/// The commands as one script. What each prints, and its code, goes to files.
fn script(commands: &[ShownCommand], notes: &Path, port: &str) -> String {
    let mut script = String::from("set -m\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n");
    for (number, command) in commands.iter().enumerate() {
        if reason(&command.text).is_some() {
            continue;
        }
        let text = command.text.replace("8766", port);
        let note = notes.join(number.to_string());
        let note = note.display();
        let end = if text.ends_with('&') { "" } else { ";" };
        let _ = writeln!(script, "{{ {text}{end} }} >{note}.out 2>&1 </dev/null");
        let _ = writeln!(script, "echo $? >{note}.code");
        if text.ends_with('&') {
            // The next command finds the server listening, as a reader's would.
            let _ = writeln!(
                script,
                "until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do jobs %% >/dev/null || break; sleep 0.1; done"
            );
        }
        if text.starts_with("kill ") {
            let _ = writeln!(script, "wait 2>/dev/null");
        }
    }
    script
}

/// Whether the lines that are shown are those that were printed. `…` alone stands for any number of lines.
fn fits(shown: &[&str], printed: &[&str]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), None) => fits(rest, printed),
        (Some((&"…", rest)), Some((_, later))) => fits(rest, printed) || fits(shown, later),
        (Some((line, rest)), Some((real, later))) => line == real && fits(rest, later),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Also what is not run has the right names: every flag that any page shows is in the help of its command.
#[test]
fn every_flag_shown_exists() {
    let mut pages = vec![BookPage::read("README.md")];
    pages.extend(BookPage::below("docs"));
    let mut unknown = String::new();
    for page in pages {
        for command in page.commands() {
            check_flags(&page.path, &command.text, &mut unknown);
        }
    }
    assert!(unknown.is_empty(), "{unknown}");
}

fn check_flags(page: &str, command: &str, unknown: &mut String) {
    // What is in quotes is a value, such as the command of an agent.
    let outside: String = command.split(['\'', '"']).step_by(2).collect();
    // The word by itself, not the end of an address.
    let is_word = |place: &usize| *place == 0 || outside[..*place].ends_with(' ');
    let places = outside.match_indices("proofhouse ").map(|(place, _)| place);
    let Some(position) = places.filter(|place| is_word(place)).min() else {
        return;
    };
    let before = outside[..position].trim_end();
    if !(before.is_empty() || before.ends_with(['&', '|']) || before.contains('=')) {
        return;
    }
    let mut words = outside[position..]
        .split(['|', ';', '>', '&'])
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1);
    let Some(name) = words.next() else {
        return;
    };
    // What comes after two dashes is a command of its own.
    let words: Vec<&str> = words.take_while(|word| *word != "--").collect();
    let mut help = run(&[name, "--help"]).stdout;
    if help.contains("Commands:\n")
        && let Some(part) = words.first().filter(|word| !word.starts_with('-'))
    {
        help = run(&[name, part, "--help"]).stdout;
    }
    if help.is_empty() {
        let _ = writeln!(
            unknown,
            "{page}: there is no `proofhouse {name}` ({command})"
        );
    }
    let known: BTreeSet<&str> = help
        .split(|character: char| !(character.is_alphanumeric() || character == '-'))
        .collect();
    for flag in words
        .iter()
        .filter(|word| word.starts_with("--") && word.len() > 2)
    {
        let flag = flag.split('=').next().unwrap_or_default();
        if !known.contains(flag) {
            let _ = writeln!(
                unknown,
                "{page}: `proofhouse {name}` has no {flag} ({command})"
            );
        }
    }
}
