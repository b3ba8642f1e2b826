//! Drives the binary as a user would: what each command prints, where, and how it exits.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests, helpers included"
)]

use std::fs;
use std::path::Path;
use std::process::Stdio;

use proofhouse_test_support::workspace::vectors;

use crate::support::{command, finish, json, run, run_with_input};

const BROKEN: &str = "examples/documents/broken.yaml";
const VALID: &str = "examples/documents/poisoned-tool.yaml";

#[test]
fn validate_shows_the_place() {
    let ran = run(&["validate", BROKEN]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!("validate-human", ran.stdout);
}

#[test]
fn the_book_shows_the_real_output() {
    let page = include_str!("../../../../docs/how-to/own-scenarios.md");
    let (_, shown) = page
        .split_once("$ proofhouse validate examples/documents/broken.yaml\n")
        .unwrap();
    let shown = shown.split("```").next().unwrap();
    assert_eq!(shown, run(&["validate", BROKEN]).stdout);
}

#[test]
fn validate_for_programs() {
    let ran = run(&["validate", BROKEN, VALID, "--format", "json"]);
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!("validate-json", ran.stdout);
    let report = json(&ran.stdout);
    assert_eq!(report["summary"]["valid"], 1);
}

#[test]
fn validate_for_code_scanning() {
    let ran = run(&["validate", BROKEN, "--format", "sarif"]);
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(
        "validate-sarif",
        ran.stdout.replace(env!("CARGO_PKG_VERSION"), "VERSION")
    );
}

#[test]
fn validate_for_github() {
    let ran = run(&["validate", BROKEN, "--format", "github"]);
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!("validate-github", ran.stdout);
}

#[test]
fn validate_good_documents() {
    let ran = run(&["validate", VALID]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "1 document: 1 valid\n")
    );
}

#[test]
fn validate_reads_stdin_once() {
    let ran = run_with_input(&["validate", "-", "-"], b"oatf: \"0.1\"\n");
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("<stdin>:1:1") && ran.stdout.contains("V-003"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .ends_with("1 document: 0 valid, 1 invalid (1 error, 0 warnings)\n")
    );
}

#[test]
fn validate_searches_directories_in_order() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    for name in ["b.yml", "a.yaml", "sub/c.yaml", "ignored.txt"] {
        fs::write(dir.path().join(name), "oatf: 1\n").unwrap();
    }
    let path = dir.path().to_str().unwrap();
    let report = json(&run(&["validate", path, "--format", "json"]).stdout);
    let names: Vec<&str> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap().strip_prefix(path).unwrap())
        .collect();
    assert_eq!(names, ["/a.yaml", "/b.yml", "/sub/c.yaml"]);
}

#[test]
fn validate_warnings_can_be_hidden_or_denied() {
    let text = b"attack: {execution: {mode: mcp_server, state: {}}}\noatf: \"0.1\"\n";
    let plain = run_with_input(&["validate", "-"], text);
    assert_eq!(plain.code, Some(0));
    assert!(plain.stdout.contains("warning[W-001]"));
    let hidden = run_with_input(&["validate", "-", "--no-warnings"], text);
    assert_eq!(
        (hidden.code, hidden.stdout.as_str()),
        (Some(0), "1 document: 1 valid\n")
    );
    let denied = run_with_input(&["validate", "-", "--deny-warnings"], text);
    assert_eq!(denied.code, Some(1));
    assert!(denied.stdout.contains("error[W-001]"));
}

#[test]
fn hostile_input_is_refused_in_words() {
    for (input, expected) in [
        (&b""[..], "PH-003"),
        (b"\xff\xfe\x00", "PH-001"),
        (b"a: \0", "PH-001"),
        (b"a: 1\n---\nb: 2\n", "PH-004"),
        (b"a: [\n", "PH-005"),
        (b"- a\n", "PH-007"),
        (b"x: &a [*a, *a]\n", "V-020"),
    ] {
        let ran = run_with_input(&["validate", "-"], input);
        assert_eq!(ran.code, Some(1), "{input:?}");
        assert!(ran.stdout.contains(expected), "{input:?}: {}", ran.stdout);
    }
    let large = vec![b'#'; 5 << 20];
    let ran = run_with_input(&["validate", "-"], &large);
    assert!(ran.stdout.contains("PH-002") && ran.code == Some(1));
    let ran = run_with_input(&["validate", "-", "--max-size", "8M"], &large);
    assert!(ran.stdout.contains("PH-003"), "{}", ran.stdout);
}

#[test]
fn documents_cannot_drive_the_terminal() {
    let text = "oatf: \"0.1\"\nattack:\n  \"\\e[2J\": 1\n  status: \"\\e]0;x\\a\"\n  execution: {mode: mcp_server, state: {}}\n";
    let ran = run_with_input(&["validate", "-"], text.as_bytes());
    assert!(
        !ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'),
        "{}",
        ran.stdout
    );
    let raw = "oatf: \"0.1\"\nattack:\n  status: \"a\u{1b}[2Jb\"\n  execution: {mode: mcp_server, state: {}}\n";
    let ran = run_with_input(&["validate", "-"], raw.as_bytes());
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
}

/// The agent that a trigger or a schedule names may be in a file that was not given.
#[test]
fn starts_of_agents_that_are_elsewhere_are_shown_in_their_place() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "trigger.yaml",
            "kind: commonagents.info/v1beta2/trigger\nnamespace: demo\nname: t\nagent: absent\nowner: ada\nsource: {type: github}\nenabled: true\n",
        ),
        (
            "schedule.yaml",
            "kind: commonagents.info/v1/schedule\nnamespace: demo\nname: s\nagent: absent\ncron: \"0 9 * * *\"\nowner: ada\ninputs: {message: hello}\nenabled: true\n",
        ),
    ] {
        let file = directory.path().join(name);
        fs::write(&file, text).unwrap();
        for format in ["human", "json", "sarif", "github"] {
            let ran = run(&["validate", file.to_str().unwrap(), "--format", format]);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{format}");
            assert!(ran.stdout.contains("no agent `absent`"), "{}", ran.stdout);
            if format == "human" {
                assert!(ran.stdout.contains("agent: absent"), "{}", ran.stdout);
            }
        }
    }
}

#[test]
fn usage_errors_exit_with_64() {
    for args in [
        &["validate"][..],
        &["validate", "no/such/file.yaml"],
        &["validate", "crates/cli/src/templates/../commands"],
        &["validate", VALID, "--format", "xml"],
        &["validate", VALID, "--max-size", "lots"],
        &["validate", VALID, "--no-warnings", "--deny-warnings"],
        &["explain", "V-999"],
        &["schema", "nothing"],
        &["new", "--mode", "grpc_server"],
        &["new", "--id", "lower-001"],
        &["new", "--name", ""],
        &["new", "--name", " "],
        &["new", "--name", "a\u{1b}[2Jb"],
        &["new", "--name", "two\nlines"],
        &["conformance", "no/such/dir"],
        &["conformance", "examples"],
        &["dance"],
        &[],
    ] {
        let ran = run(args);
        assert_eq!(ran.code, Some(64), "{args:?}: {}", ran.stderr);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in [
        "run",
        "scan",
        "explain-verdict",
        "tool",
        "model",
        "demo-service",
        "validate",
        "fmt",
        "explain",
        "new",
        "schema",
        "conformance",
        "completions",
        "man",
    ] {
        let ran = run(&[command, "--help"]);
        assert_eq!(ran.code, Some(0), "{command}");
        assert!(ran.stdout.contains("Example"), "{command}");
    }
    assert!(run(&["--help"]).stdout.contains("Exit codes"));
    assert!(run(&["--version"]).stdout.starts_with("proofhouse "));
}

#[test]
fn options_stand_under_the_heading_that_they_belong_to() {
    for (command, option, later) in [
        ("run", "--repeats", "Subjects:"),
        ("run", "--fail-on", "Subjects:"),
        ("attack", "--trace", "Endpoints:"),
        ("scan", "--format", "Semantic indicators:"),
        ("explain-verdict", "--limit", "Semantic indicators:"),
        ("serve", "--format", "Telemetry:"),
    ] {
        let help = run(&[command, "--help"]).stdout;
        let (general, _) = help.split_once(&format!("\n{later}\n")).unwrap();
        let option = format!(" {option} ");
        assert!(general.contains(&option), "{command}{option}");
    }
}

#[test]
fn explain_prints_one_or_all() {
    insta::assert_snapshot!("explain-one", run(&["explain", "v-008"]).stdout);
    let all = run(&["explain"]).stdout;
    for code in ["V-001", "V-049", "W-007", "N-008", "PH-001", "PH-204"] {
        assert!(all.lines().any(|line| line.starts_with(code)), "{code}");
    }
    assert_eq!(
        json(&run(&["explain", "N-003", "--format", "json"]).stdout)["kind"],
        "normalization"
    );
    assert!(
        json(&run(&["explain", "--format", "json"]).stdout)
            .as_array()
            .unwrap()
            .len()
            > 70
    );
}

#[test]
fn new_documents_are_valid_in_every_mode() {
    for mode in [
        "mcp_server",
        "mcp_client",
        "a2a_server",
        "a2a_client",
        "ag_ui_client",
    ] {
        let made = run(&["new", "--mode", mode, "--name", "It's \"odd\": #1"]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        let checked = run_with_input(
            &["validate", "-", "--deny-warnings"],
            made.stdout.as_bytes(),
        );
        assert_eq!(checked.stdout, "1 document: 1 valid\n", "{mode}");
        // What it writes needs no formatting.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("attack.yaml");
        let path = path.to_str().unwrap();
        let made = run(&["new", "--mode", mode, "--id", "ACME-007", "--out", path]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        let checked = run(&["fmt", "--check", path]);
        assert_eq!(checked.code, Some(0), "{mode}: {}", checked.stdout);
    }
}

#[test]
fn new_does_not_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attack.yaml");
    let path = path.to_str().unwrap();
    assert_eq!(run(&["new", "-o", path]).code, Some(0));
    let before = fs::metadata(path).unwrap().len();
    let again = run(&["new", "-o", path]);
    assert_eq!(again.code, Some(3));
    assert!(again.stderr.contains("cannot write"));
    assert_eq!(fs::metadata(path).unwrap().len(), before);
}

fn text_of(path: &Path) -> String {
    String::from_utf8(fs::File::open(path).map(read_all).unwrap()).unwrap()
}

fn read_all(file: fs::File) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "capped by take")]
    file.take(1 << 20).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn fmt_rewrites_in_place_and_then_agrees() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.yaml");
    let name = path.to_str().unwrap();
    fs::write(
        &path,
        "# kept\n\noatf: '0.1'\nattack:\n  execution: {mode: mcp_server, state: {tools: []}}\n",
    )
    .unwrap();
    let checked = run(&["fmt", "--check", name]);
    assert_eq!((checked.code, checked.stdout.trim()), (Some(1), name));
    let done = run(&["fmt", name]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""));
    assert!(done.stderr.contains("formatted"));
    insta::assert_snapshot!("fmt", text_of(&path));
    assert_eq!(run(&["fmt", "--check", name]).code, Some(0));
    assert_eq!(run(&["fmt", name]).stderr, "");
}

#[test]
fn fmt_leaves_comments_and_broken_documents_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.yaml");
    let name = path.to_str().unwrap();
    let commented = "oatf: \"0.1\"\nattack:\n  # why\n  execution: {mode: mcp_server, state: {}}\n";
    fs::write(&path, commented).unwrap();
    let ran = run(&["fmt", name]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("1 comment inside") && ran.stderr.contains("--drop-comments"));
    assert_eq!(text_of(&path), commented);
    assert_eq!(run(&["fmt", "--drop-comments", name]).code, Some(0));
    assert!(!text_of(&path).contains("# why"));

    let broken = "oatf: \"0.1\"\nattack: {}\n";
    fs::write(&path, broken).unwrap();
    let ran = run(&["fmt", name]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("V-004"));
    assert_eq!(text_of(&path), broken);
}

#[cfg(unix)]
#[test]
fn fmt_keeps_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real.yaml"), dir.path().join("link.yaml"));
    fs::write(
        &real,
        "oatf: '0.1'\nattack:\n  execution: {mode: mcp_server, state: {}}\n",
    )
    .unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, &link).unwrap();
    assert_eq!(run(&["fmt", link.to_str().unwrap()]).code, Some(0));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert!(text_of(&real).contains("name: Untitled"));
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "no temporary file is left behind");
}

#[test]
fn fmt_of_stdin_goes_to_stdout() {
    let text = b"oatf: '0.1'\nattack:\n  execution: {mode: mcp_server, state: {}}\n";
    let ran = run_with_input(&["fmt", "-"], text);
    assert_eq!(ran.code, Some(0));
    let again = run_with_input(&["fmt", "-"], ran.stdout.as_bytes());
    assert_eq!(again.stdout, ran.stdout);
    assert_eq!(run_with_input(&["fmt", "-", "--check"], text).code, Some(1));
}

#[test]
fn conformance_counts_and_fails() {
    let dir = tempfile::tempdir().unwrap();
    let suite = dir.path().join("primitives");
    fs::create_dir(&suite).unwrap();
    fs::write(
        suite.join("parse-duration.yaml"),
        "- {name: good, id: D-1, input: 5m, expected: {seconds: 300}}\n\
         - {name: bad, id: D-2, input: 5m, expected: {seconds: 1}}\n",
    )
    .unwrap();
    let ran = run(&["conformance", dir.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout
            .contains("FAIL primitives/parse-duration D-2 bad")
    );
    assert_eq!(ran.stdout.lines().last(), Some("1 passed, 1 failed"));
    let verbose = run(&["conformance", dir.path().to_str().unwrap(), "--verbose"]);
    assert!(
        verbose
            .stdout
            .contains("ok   primitives/parse-duration D-1 good")
    );
    let report = run(&[
        "conformance",
        dir.path().to_str().unwrap(),
        "--format",
        "json",
    ]);
    assert_eq!(json(&report.stdout)["failed"], 1);
}

#[test]
fn public_vectors_pass() {
    let Some(vectors) = vectors("public_vectors_pass", "") else {
        return;
    };
    let ran = run(&[
        "conformance",
        vectors.join("oatf-conformance").to_str().unwrap(),
    ]);
    assert_eq!(ran.stdout, "414 passed, 0 failed\n");
    let ran = run(&[
        "validate",
        vectors.join("oatf-scenarios").to_str().unwrap(),
        "--no-warnings",
    ]);
    assert_eq!(ran.stdout, "40 documents: 40 valid\n");
}

#[test]
fn completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            run(&["completions", shell]).stdout.contains("proofhouse"),
            "{shell}"
        );
    }
    assert!(run(&["man"]).stdout.contains(".TH proofhouse"));
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        run(&["man", "--dir", dir.path().to_str().unwrap()]).code,
        Some(0)
    );
    for page in ["validate", "tool-call", "demo-service"] {
        let page = format!("proofhouse-{page}.1");
        assert!(dir.path().join(&page).exists(), "{page}");
    }
}

#[test]
fn colour_is_for_terminals_only() {
    let mut forced = command(&["validate", BROKEN]);
    forced.env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR");
    assert!(finish(forced.output().unwrap()).stdout.contains('\u{1b}'));
    let mut refused = command(&["validate", BROKEN]);
    refused.env("NO_COLOR", "1").env_remove("CLICOLOR_FORCE");
    assert!(!finish(refused.output().unwrap()).stdout.contains('\u{1b}'));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = command(&["explain"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = finish(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn mistakes_beside_letters_beyond_ascii_are_shown() {
    for text in [
        "oatf: \"0.1\"\nattack:\n  name: \"foo\" é\n",
        "oatf: \"0.1\"\nattack:\n  name: 'it'é\n",
        "oatf: \"0.1\"\nattack:\n  name: [a] é\n",
        "oatf: \"0.1\"\n# \u{80}\u{9b}\u{fffe}\nattack: [\n",
        "é: \u{2028}\n\u{feff}b: [",
    ] {
        let ran = run_with_input(&["validate", "-"], text.as_bytes());
        assert_eq!(ran.code, Some(1), "{text:?}: {}", ran.stderr);
        assert!(!ran.stdout.contains('\u{9b}'), "{text:?}");
        assert_eq!(
            run_with_input(&["fmt", "-"], text.as_bytes()).code,
            Some(1),
            "{text:?}"
        );
    }
}

#[test]
fn a_flood_of_findings_is_cut_short_for_people_only() {
    let keys: String = (0..5_000).map(|n| format!("  k{n}: 1\n")).collect();
    let text =
        format!("oatf: \"0.1\"\nattack:\n{keys}  execution: {{mode: mcp_server, state: {{}}}}\n");
    let ran = run_with_input(&["validate", "-"], text.as_bytes());
    assert_eq!(ran.stdout.matches("PH-009").count(), 100);
    assert!(
        ran.stdout.contains("<stdin>: and 4900 more"),
        "{}",
        ran.stdout
    );
    let report =
        json(&run_with_input(&["validate", "-", "--format", "json"], text.as_bytes()).stdout);
    assert_eq!(report["summary"]["errors"], 5_000);
}

#[test]
fn the_largest_size_limit_is_no_limit() {
    let ran = run(&["validate", VALID, "--max-size", "18446744073709551615"]);
    assert_eq!(ran.stdout, "1 document: 1 valid\n");
}

#[test]
fn fmt_takes_what_new_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attack.yaml");
    let path = path.to_str().unwrap();
    assert_eq!(run(&["new", "-o", path]).code, Some(0));
    assert_eq!(run(&["fmt", path]).code, Some(0));
    assert_eq!(run(&["validate", path, "--deny-warnings"]).code, Some(0));
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_and_odd_files_are_not_passed_over() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    symlink("nowhere", dir.path().join("broken.yaml")).unwrap();
    let ran = run(&["validate", dir.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("cannot read"), "{}", ran.stdout);

    let odd = dir.path().join("e\u{1b}[31m\nx.yaml");
    fs::write(&odd, "oatf: 1\n").unwrap();
    for format in ["human", "github"] {
        let ran = run(&["validate", odd.to_str().unwrap(), "--format", format]);
        assert!(
            !ran.stdout.contains('\u{1b}') && ran.stdout.contains("\u{fffd}[31m\u{fffd}x"),
            "{}",
            ran.stdout
        );
    }
    let ran = run(&["fmt", "/dev/null"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("not a regular file"));
}
