//! What people read when something is wrong with what they wrote: each message names the cause and the next step.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::net::TcpListener;

use crate::front_door::{Project, Ran};
use crate::support;

/// Runs a command, and looks for texts in what it says.
fn says(project: &Project, arguments: &[&str], code: i32, expected: &[&str]) -> Ran {
    let ran = project.run(arguments);
    assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
    // Messages are as wide as people's terminals, or not broken at all.
    let flat = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in expected {
        assert!(flat.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
    ran
}

#[test]
fn who_is_attacked_is_never_guessed() {
    let project = Project::new();
    project.write("agent.py", "print('hello')\n");
    for (arguments, expected) in [
        (
            &["--model", "openai:gpt-5"][..],
            "--model needs an agent manifest (--subject agent.yaml). To attack the model itself: --subject \
             model:openai:gpt-5",
        ),
        (
            &["--subject", "agent.py"],
            "agent.py is a program; start it with: --command 'python agent.py {prompt}'",
        ),
        (
            &["--subject", "mine"],
            "no subject `mine`: there is no proofhouse.yaml here; run: proofhouse init",
        ),
        (&["--subject", "gullibel"], "did you mean sim:gullible?"),
        (&["--subject", "other.py"], "other.py: no such file"),
        (&["--command", ""], "--command: the command is empty"),
        (&["--command", "sh 'x"], "--command: a quote is not closed"),
        (
            &["--mcp-url", "http://127.0.0.1:1/"],
            "no attack fits this agent",
        ),
        (
            &["--ag-ui-url", "http://127.0.0.1:1/", "--mcp-listen", "8767"],
            "write an address and a port, such as 127.0.0.1:8080",
        ),
        (
            &["--out", "agent.py"],
            "agent.py is a file; name a directory",
        ),
    ] {
        says(&project, &[&["run"], arguments].concat(), 64, &[expected]);
    }
    assert!(!project.path(".proofhouse").exists(), "nothing was run");
    // Both spellings of a protocol are taken by both flags.
    for protocol in ["ag_ui", "ag-ui"] {
        let listed = ["run", "--list", "--protocol", protocol, "--command", "sh x"];
        says(
            &project,
            &[&listed[..], &["--serves", protocol]].concat(),
            0,
            &[],
        );
    }
}

#[test]
fn addresses_to_listen_at_are_explained() {
    let project = Project::new();
    for command in [
        &["serve"][..],
        &["demo-service"],
        &["model", "serve", "sim:careful"],
    ] {
        let arguments = [command, &["--listen", "8767"]].concat();
        let expected = "write an address and a port, such as 127.0.0.1:8080";
        says(&project, &arguments, 64, &[expected]);
    }
}

/// An agent that fails in some way.
const AGENT: &str = concat!(
    include_str!("support/mcp_client.py"),
    "\nimport sys\nif sys.argv[1] == 'late':\n    initialize()\n    call(2, 'tools/list', {})\nprint('first line', \
     file=sys.stderr)\nraise NameError('no such name')\n"
);

#[test]
fn an_agent_that_fails_is_told_from_one_whose_model_does_not_answer() {
    let project = Project::new();
    project.write("agent.py", AGENT);
    let run = ["run", "--no-config", "--protocol", "mcp", "--command"];
    let late = says(
        &project,
        &[&run[..], &["python3 agent.py late {prompt}"]].concat(),
        3,
        &[
            "the agent connected, then failed.",
            "Error: the command failed (exit status 1): NameError: no such name",
            "Fix the error above; if it comes from the model, check its key, address and name.",
        ],
    );
    assert_eq!(
        late.stderr.matches("first line").count(),
        1,
        "{}",
        late.stderr
    );
    assert!(!late.stderr.contains("--copy"), "{}", late.stderr);
    says(
        &project,
        &[&run[..], &["python3 agent.py early"]].concat(),
        3,
        &[
            "The command ran in an empty directory. If it needs files of your project, add `--copy .`",
            "The command has no {prompt}",
        ],
    );
    let here = project.path("").canonicalize().unwrap();
    let missing = format!("There is no nothere.py in {}.", here.display());
    let ran = says(
        &project,
        &[&run[..], &["python3 nothere.py {prompt}"]].concat(),
        3,
        &["start FAILED", &missing],
    );
    assert!(!ran.stderr.contains("has no {prompt}"), "{}", ran.stderr);
}

#[test]
fn an_agent_that_is_not_there_is_told_with_its_address() {
    let project = Project::new();
    // Taken and closed again: nobody listens there.
    let address = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", address.local_addr().unwrap());
    drop(address);
    let ran = says(
        &project,
        &["run", "--no-config", "--ag-ui-url", &url],
        3,
        &[
            "\"endpoint\" is not ready to be tested: no agent answers at its address.",
            &format!("Start your agent at {url}, or correct --ag-ui-url."),
        ],
    );
    assert!(!ran.stderr.contains("was not started"), "{}", ran.stderr);
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let project = Project::new();
    project.write(
        "proofhouse.yaml",
        "proofhouse: 1\nsubjects:\n  - name: mine\n    command: sh x\n    environment:\n      TOKEN: hunter2 ${NO_SUCH_VARIABLE}\n",
    );
    let ran = says(
        &project,
        &["run"],
        64,
        &[
            "PC-006",
            "${NO_SUCH_VARIABLE}",
            "help: export NO_SUCH_VARIABLE=…; in CI, pass it to the step with `env:`",
        ],
    );
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

#[test]
fn yaml_that_cannot_be_read_has_a_help() {
    let project = Project::new();
    for (text, help) in [
        (
            "proofhouse: 1\nsubjects:\n- name: mine\n  command: sh x\n repeats: 2\n",
            "indent this line as far as the key above it",
        ),
        (
            "proofhouse: 1\nprompt: a: b\n",
            "put quotes around a text that holds `: `",
        ),
    ] {
        project.write("proofhouse.yaml", text);
        let ran = project.run(&["validate", "proofhouse.yaml"]);
        assert_ne!(ran.code, 0);
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(all.contains(help), "{text}: {all}");
    }
}

#[test]
fn outcomes_and_reasons_are_explained() {
    for (word, expected) in [
        ("resisted", "All six conditions hold"),
        ("Exploited", "The attack got through"),
        ("not_delivered", "Next: Check that the agent connects"),
    ] {
        let ran = support::run(&["explain", word]);
        assert_eq!(ran.code, Some(0), "{word}: {}", ran.stderr);
        assert!(ran.stdout.contains(expected), "{word}: {}", ran.stdout);
    }
    let near = support::run(&["explain", "not_deliverd"]);
    assert_eq!(near.code, Some(64));
    assert!(
        near.stderr.contains("did you mean not_delivered?"),
        "{}",
        near.stderr
    );
}

#[test]
fn the_legend_and_the_counts_say_what_is_counted() {
    let project = Project::new();
    let run = ["run", "--no-config", "--no-keep", "--id", "PROOF-001"];
    let both = says(
        &project,
        &run,
        0,
        &["100% 4 of 4 runs (2 attacks, 2 controls), 1 got through"],
    );
    let flat = both.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "see: proofhouse explain resisted",
        "ASR@1: 1 of 2 attack–agent pairs were exploited",
        "got through against sim:gullible (1 of 1 runs): the agent",
    ] {
        assert!(flat.contains(expected), "{}", both.stdout);
    }
    let one = project.run(&[&run[..], &["--subject", "sim:gullible"]].concat());
    let flat = one.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("ASR@1: 1 of 1 attacks got through"),
        "{}",
        one.stdout
    );
}

#[test]
fn an_attack_that_nobody_comes_to_ends_and_says_what_it_waited_for() {
    let ran = support::run(&[
        "attack",
        "examples/documents/poisoned-tool.yaml",
        "--mcp-server",
        "127.0.0.1:0",
        "--no-control",
        "--idle-limit",
        "1s",
        "--grace",
        "0s",
    ]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("Waiting for your agent. Connect it to http://127.0.0.1:"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("reason: timed_out"), "{}", ran.stdout);
    assert!(ran.stdout.contains("did not connect"), "{}", ran.stdout);
}

#[test]
fn init_says_only_what_matters() {
    let project = Project::new();
    project.write("agent.py", "print('hello')\n");
    let hint = "agent.py suggests the command";
    let given = [
        "init",
        "--print",
        "--no-discover",
        "--command",
        "sh {prompt}",
    ];
    let ran = says(&project, &given, 0, &[]);
    assert!(!ran.stderr.contains(hint), "{}", ran.stderr);
    says(
        &project,
        &["init", "--no-probe", "--yes", "--print"],
        3,
        &[hint],
    );
}
