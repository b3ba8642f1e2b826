//! `proofhouse init` and `proofhouse ci init` as a user runs them: what they write can be checked and run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use proofhouse_source::{ReadLimits, Source};
use proofhouse_test_support::http::{TestReply, TestServer};
use serde_json::{Value, json};

use crate::{subjects_support, support};

struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        #[expect(clippy::disallowed_methods, reason = "a file of this test")]
        let text = std::fs::read_to_string(self.path(name));
        text.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_proofhouse"));
        command
            .current_dir(self.0.path())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// YAML as JSON.
fn yaml(text: &str) -> Value {
    let source = Source::read(text, &ReadLimits::default())
        .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    source.root().to_value(&mut |_| panic!("an odd number"))
}

const AGENT: &str = "kind: commonagents.info/v1beta2/agent\nnamespace: test\nname: clerk\ndescription: d\n\
    prompt: You are an assistant.\n";

#[test]
fn without_an_agent_nothing_is_written() {
    let project = Project::new();
    for (file, text) in [
        ("readme.md", "nothing"),
        // An agent that would run on a simulation says nothing about the user's.
        ("agents/clerk.yaml", AGENT),
        ("package.json", r#"{"scripts": {"start": "node x"}}"#),
        ("index.mjs", "import { generateText } from \"ai\";\n"),
        (
            ".vscode/mcp.json",
            r#"{"servers": {"files": {"command": "x"}}}"#,
        ),
    ] {
        project.write(file, text);
        for more in [&[][..], &["--yes"], &["--print"]] {
            let output = project.run(&[&["init", "--no-probe"], more].concat());
            assert_eq!(code(&output), 3, "{file} {more:?}: {}", stderr(&output));
            assert_eq!(stdout(&output), "", "{file}");
            assert!(
                stderr(&output).contains("no agent was found that can be started"),
                "{}",
                stderr(&output)
            );
            assert!(
                stderr(&output).contains("proofhouse init --command"),
                "{}",
                stderr(&output)
            );
        }
        assert!(!project.path("proofhouse.yaml").exists(), "{file}");
    }
    let told = stderr(&project.run(&["init", "--no-probe", "--yes"]));
    assert!(told.contains("clerk, but names no model"), "{told}");
    assert!(
        told.contains("index.mjs uses AI SDK, but has no model as an export"),
        "{told}"
    );
    assert!(
        told.contains("VS Code (.vscode/mcp.json) cannot be started"),
        "{told}"
    );
    let missing = project.run(&[
        "init",
        "--no-probe",
        "--command",
        "no-such-program {prompt}",
    ]);
    assert_eq!(code(&missing), 3, "{}", stderr(&missing));
    assert!(
        stderr(&missing).contains("`no-such-program` is not installed"),
        "{}",
        stderr(&missing)
    );
    assert!(!project.path("proofhouse.yaml").exists());
}

#[test]
fn a_simulation_is_written_when_it_is_asked_for_by_name() {
    let project = Project::new();
    let unknown = project.run(&["init", "--no-probe", "--simulation", "careful"]);
    assert_eq!(code(&unknown), 64);
    assert!(
        stderr(&unknown).contains("sim:careful"),
        "{}",
        stderr(&unknown)
    );
    let asked = ["init", "--no-probe", "--simulation", "sim:careful"];
    let output = project.run(&asked);
    assert_eq!(
        (code(&output), stdout(&output).as_str()),
        (0, ""),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("Wrote proofhouse.yaml"));
    let checked = project.run(&["validate", "--deny-warnings", "proofhouse.yaml"]);
    assert_eq!(code(&checked), 0, "{}", stdout(&checked));
    let ran = project.run(&["run", "--id", "PROOF-001", "--format", "json"]);
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));
    let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(result["subjects"][0]["name"], "sim:careful");
    assert_eq!(result["subjects"][0]["simulation"], true);

    let before = project.read("proofhouse.yaml");
    project.write("proofhouse.yaml", "# mine\n");
    let again = project.run(&[&asked[..], &["--yes"]].concat());
    assert_eq!(code(&again), 3);
    assert!(stderr(&again).contains("--force"), "{}", stderr(&again));
    assert_eq!(project.read("proofhouse.yaml"), "# mine\n");
    let printed = project.run(&[&asked[..], &["--print"]].concat());
    // What is printed has no schema beside it.
    let (line, rest) = before.split_once('\n').unwrap();
    assert_eq!(
        line,
        "# yaml-language-server: $schema=.proofhouse/config.schema.json"
    );
    assert!(project.path(".proofhouse/config.schema.json").is_file());
    assert_eq!((code(&printed), stdout(&printed)), (0, rest.to_owned()));
    assert_eq!(project.read("proofhouse.yaml"), "# mine\n");
    assert_eq!(code(&project.run(&[&asked[..], &["--force"]].concat())), 0);
    assert_eq!(project.read("proofhouse.yaml"), before);
}

/// A program of the project that says it has every package.
#[cfg(unix)]
fn install(project: &Project, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    project.write(name, &format!("#!/bin/sh\n{script}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.path(name), mode).unwrap();
}

#[test]
#[cfg(unix)]
fn an_agent_of_a_framework_gets_an_adapter_that_is_shown_first() {
    let project = Project::new();
    project.write(
        "src/app.py",
        "from agents import Agent\n\nassistant = Agent(name=\"x\")\n",
    );
    install(&project, ".venv/bin/python", "echo agents");
    let output = project.run(&["init", "--no-probe", "--yes"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(
        stderr(&output).contains(".venv/bin/python -m pip install 'openai-agents'"),
        "{}",
        stderr(&output)
    );
    assert!(!project.path("proofhouse_agent.py").exists());

    install(&project, ".venv/bin/python", "echo");
    let output = project.run(&["init", "--no-probe", "--yes"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let adapter = project.read("proofhouse_agent.py");
    assert!(adapter.contains("from app import assistant"), "{adapter}");
    for line in adapter.lines() {
        assert!(stderr(&output).contains(line), "{line} is shown");
    }
    let written = yaml(&project.read("proofhouse.yaml"));
    assert_eq!(
        written["subjects"][0]["command"],
        ".venv/bin/python proofhouse_agent.py {prompt}"
    );
    assert_eq!(
        code(&project.run(&["validate", "--deny-warnings", "proofhouse.yaml"])),
        0
    );
    // Whose adapter was changed keeps it.
    project.write("proofhouse_agent.py", "# mine\n");
    std::fs::remove_file(project.path("proofhouse.yaml")).unwrap();
    let again = project.run(&["init", "--no-probe", "--yes"]);
    assert_eq!(code(&again), 3, "{}", stderr(&again));
    assert_eq!(project.read("proofhouse_agent.py"), "# mine\n");
    assert!(!project.path("proofhouse.yaml").exists());
}

#[test]
#[cfg(unix)]
fn clients_of_mcp_reach_the_attack_where_they_read_their_configuration() {
    for (client, file, agent, told) in [
        (
            "claude",
            ".mcp.json",
            "[ \"$3\" = --mcp-config ] && [ \"$7\" = mcp__web ] && exec AGENT --config \"$4\"",
            None,
        ),
        // It knows no other place, and works only where it is told to trust the directory.
        (
            "cursor-agent",
            ".cursor/mcp.json",
            "[ \"$3 $4\" = '--trust --approve-mcps' ] && exec AGENT --config .cursor/mcp.json",
            Some("add [\"Mcp(web:*)\"] to `permissions.allow` in .cursor/cli.json"),
        ),
    ] {
        let project = Project::new();
        let config = r#"{"mcpServers": {"web": {"url": "http://127.0.0.1:1/mcp"}}}"#;
        project.write(file, config);
        project.write("attacks/injected.yaml", support::documents::INJECTED);
        let agent = agent.replace("AGENT", &format!("{} --comply", subjects_support::agent()));
        install(&project, &format!("bin/{client}"), &agent);
        #[expect(clippy::disallowed_methods, reason = "the stub needs python3")]
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", project.path("bin").display());
        let proofhouse = |arguments: &[&str]| {
            let mut command = project.command(arguments);
            command.env("PATH", &path).output().unwrap()
        };
        let output = proofhouse(&["init", "--no-probe", "--yes"]);
        assert_eq!(code(&output), 0, "{client}: {}", stderr(&output));
        if let Some(told) = told {
            assert!(stderr(&output).contains(told), "{}", stderr(&output));
        }
        let checked = project.run(&["validate", "--deny-warnings", "proofhouse.yaml"]);
        assert_eq!(code(&checked), 0, "{client}: {}", stdout(&checked));
        let ran = proofhouse(&["run", "attacks", "--no-probes", "--format", "json"]);
        assert_eq!(code(&ran), 1, "{client}: {}", stderr(&ran));
        let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!(result["runs"][0]["outcome"], "exploited", "{client}");
        assert_eq!(project.read(file), config, "{client}");
    }
}

#[test]
fn what_is_found_is_written_checked_and_run() {
    let project = Project::new();
    project.write("agents/clerk.yaml", &format!("{AGENT}model: sim:careful\n"));
    project.write(
        ".mcp.json",
        r#"{"mcpServers": {"files": {"command": "x"}}}"#,
    );
    project.write("package.json", r#"{"scripts": {"start": "node x"}}"#);
    let output = project.run(&["init", "--yes", "--no-probe"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for expected in [
        "the agent clerk in agents/clerk.yaml",
        "1 MCP server in .mcp.json",
        "package.json suggests the command",
    ] {
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    insta::assert_snapshot!("init-project", project.read("proofhouse.yaml"));
    let checked = project.run(&["validate", "--deny-warnings", "proofhouse.yaml"]);
    assert_eq!(code(&checked), 0, "{}", stdout(&checked));
    let ran = project.run(&["run", "--id", "PROOF-001", "--format", "json"]);
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));
    let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        (
            &result["subjects"][0]["name"],
            &result["subjects"][0]["kind"]
        ),
        (&"clerk".into(), &"manifest".into())
    );
}

#[test]
fn a_command_is_written_with_its_quotes() {
    let project = Project::new();
    let command = "sh -c 'echo \"$0: #1\"' {prompt}";
    let output = project.run(&["init", "--no-probe", "--command", command]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let written = yaml(&project.read("proofhouse.yaml"));
    assert_eq!(written["subjects"][0]["command"], command);
    assert_eq!(code(&project.run(&["validate", "proofhouse.yaml"])), 0);
    let output = project.run(&["init", "--print", "--no-probe", "--command", "sh 'x"]);
    assert_eq!(code(&output), 64);
}

#[test]
fn an_agent_that_runs_is_asked_what_it_speaks() {
    let demo = support::Demo::start(&[]);
    let project = Project::new();
    let url = format!("http://{}/", demo.address);
    let output = project.run(&["init", "--endpoint", &url]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("speaks MCP"),
        "{}",
        stderr(&output)
    );
    let written = yaml(&project.read("proofhouse.yaml"));
    assert_eq!(
        written["subjects"][0]["endpoint"]["mcp"],
        format!("{url}mcp")
    );
    assert_eq!(code(&project.run(&["validate", "proofhouse.yaml"])), 0);
    for wrong in ["ftp://x", "http://127.0.0.1:1/"] {
        let output = project.run(&["init", "--print", "--endpoint", wrong]);
        assert_eq!(code(&output), 64, "{wrong}: {}", stderr(&output));
    }
}

#[test]
fn a_served_agent_is_found_over_each_protocol() {
    let project = Project::new();
    project.write("agent.yaml", AGENT);
    let mut child = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .current_dir(project.0.path())
        .args(["agent", "serve", "agent.yaml", "--format", "json"])
        .args([
            "--ag-ui",
            "127.0.0.1:0",
            "--a2a",
            "127.0.0.1:0",
            "--mcp",
            "127.0.0.1:0",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut told = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut told, &mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let mut arguments = vec!["init", "--print"];
    let urls: Vec<&str> = ["ag_ui", "a2a", "mcp"]
        .iter()
        .map(|key| told[key].as_str().unwrap())
        .collect();
    for url in &urls {
        arguments.extend(["--endpoint", url]);
    }
    let output = project.run(&arguments);
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let written = yaml(&stdout(&output));
    let subjects = written["subjects"].as_array().unwrap();
    for (subject, (key, url)) in subjects
        .iter()
        .zip(["ag_ui", "a2a", "mcp"].iter().zip(urls))
    {
        let expected = serde_json::json!({(*key): url});
        assert_eq!(subject["endpoint"], expected, "{written}");
    }
}

#[test]
fn a_workflow_for_github_is_whole() {
    let project = Project::new();
    project.write(".github/dependabot.yml", "version: 2\n");
    project.write(
        "proofhouse.yaml",
        "proofhouse: 1\nsubjects: [{name: x, endpoint: {mcp: \"${AGENT_URL}\"}}]\n",
    );
    let output = project.run(&["ci", "init"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).contains("AGENT_URL"), "{}", stderr(&output));
    let text = project.read(".github/workflows/proofhouse.yml");
    insta::assert_snapshot!(
        "ci-github",
        text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
    );
    assert!(
        !text.contains('@')
            || text.matches('@').count()
                == text.matches("uses: ").count() + text.matches("[@]").count(),
        "{text}"
    );
    let workflow = yaml(&text);
    assert_eq!(
        workflow["permissions"],
        serde_json::json!({"contents": "read"})
    );
    let job = &workflow["jobs"]["proofhouse"];
    assert_eq!(job["permissions"]["security-events"], "write");
    let steps = job["steps"].as_array().unwrap();
    for step in steps {
        if let Some(uses) = step["uses"].as_str() {
            let (_, version) = uses.split_once('@').unwrap();
            assert!(
                version.starts_with('v') && version[1..].parse::<u32>().is_ok(),
                "{uses}"
            );
        } else {
            assert!(step["run"].is_string(), "{step}");
        }
    }
    let attack = steps.iter().find(|step| step["name"] == "Attack").unwrap();
    assert_eq!(attack["env"]["AGENT_URL"], "${{ secrets.AGENT_URL }}");
    assert!(
        steps
            .iter()
            .any(|step| step["uses"] == "github/codeql-action/upload-sarif@v4")
    );

    assert_eq!(
        code(&project.run(&["ci", "init"])),
        3,
        "it is not overwritten"
    );
    assert_eq!(code(&project.run(&["ci", "init", "--force"])), 0);
}

#[test]
fn a_job_for_gitlab_is_whole() {
    let project = Project::new();
    let output = project.run(&["ci", "init"]);
    assert_eq!(code(&output), 64, "nothing says who: {}", stderr(&output));
    let output = project.run(&["ci", "init", "gitlab"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("proofhouse init"),
        "{}",
        stderr(&output)
    );
    let text = project.read(".gitlab-ci.yml");
    insta::assert_snapshot!(
        "ci-gitlab",
        text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
    );
    let job = &yaml(&text)["proofhouse"];
    assert_eq!(
        job["artifacts"]["reports"]["junit"],
        "proofhouse-results/junit.xml"
    );
    assert_eq!(job["cache"][1]["policy"], "$PROOFHOUSE_BASELINE");
    assert_eq!(
        code(&project.run(&["ci", "init"])),
        3,
        "it is not overwritten"
    );
    assert_eq!(
        code(&project.run(&["ci", "init", "--force"])),
        0,
        "it is ours"
    );
    assert!(!project.path(".gitlab/proofhouse.yml").exists());
    // With a configuration of the project's own, the job is a file to be included.
    project.write(".gitlab-ci.yml", "stages: [test]\n");
    let output = project.run(&["ci", "init", "--all"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("include: [{local: .gitlab/proofhouse.yml}]"),
        "{}",
        stderr(&output)
    );
    assert!(project.path(".gitlab/proofhouse.yml").is_file());
    assert!(project.path(".github/workflows/proofhouse.yml").is_file());
    let printed = stdout(&project.run(&["ci", "init", "--all", "--print"]));
    for document in printed.split("---\n") {
        yaml(document);
    }
}

#[test]
fn our_own_repository_is_tested_with_its_own_source() {
    let ran = support::run(&["ci", "init", "--all", "--print"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let documents: Vec<Value> = ran.stdout.split("---\n").map(yaml).collect();
    let steps = documents[0]["jobs"]["proofhouse"]["steps"]
        .as_array()
        .unwrap();
    let install = steps
        .iter()
        .find(|step| step["name"] == "Install proofhouse")
        .unwrap();
    let install = install["run"].as_str().unwrap();
    assert!(
        install.ends_with("cargo install --locked --path crates/cli\n"),
        "{install}"
    );
    let install = documents[1]["proofhouse"]["script"][0].as_str().unwrap();
    assert!(
        install.starts_with("cargo install") && install.ends_with("--path crates/cli"),
        "{install}"
    );
}

#[test]
fn a_project_below_the_root_of_its_repository_runs_there() {
    let project = Project::new();
    project.write(".git/HEAD", "ref: refs/heads/main\n");
    project.write("agents/clerk/proofhouse.yaml", "proofhouse: 1\n");
    let output = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .current_dir(project.path("agents/clerk"))
        .args(["ci", "init", "--all"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let workflow = yaml(&project.read(".github/workflows/proofhouse.yml"));
    let job = &workflow["jobs"]["proofhouse"];
    assert_eq!(job["defaults"]["run"]["working-directory"], "agents/clerk");
    let job = &yaml(&project.read(".gitlab-ci.yml"))["proofhouse"];
    let script = job["script"].as_array().unwrap();
    assert!(
        script.iter().any(|line| line == "cd agents/clerk"),
        "{script:?}"
    );
    assert_eq!(
        job["artifacts"]["paths"][0],
        "agents/clerk/proofhouse-results/"
    );
}

/// Runs a script of a workflow as its host would, with our binary in the path.
#[cfg(unix)]
fn script(project: &Project, shell: &str, text: &str) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_proofhouse"))
        .parent()
        .unwrap();
    Command::new(shell)
        .args(["-e", "-c", text])
        .current_dir(project.0.path())
        .env("PATH", format!("{}:/usr/bin:/bin", binary.display()))
        .env("GITHUB_STEP_SUMMARY", project.path("summary.md"))
        .env("CI_COMMIT_BRANCH", "main")
        .env("CI_DEFAULT_BRANCH", "main")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
#[cfg(unix)]
fn the_scripts_of_the_workflows_do_what_they_say() {
    let project = Project::new();
    let config = |subject: &str| {
        let text = format!(
            "proofhouse: 1\nsubjects: [{{name: mine, simulation: {subject}}}]\nfilters: {{ids: PROOF-001}}\nrepeats: 5\n"
        );
        project.write("proofhouse.yaml", &text);
    };
    config("sim:careful");
    assert_eq!(code(&project.run(&["ci", "init", "--all"])), 0);
    let workflow = yaml(&project.read(".github/workflows/proofhouse.yml"));
    let steps = workflow["jobs"]["proofhouse"]["steps"].as_array().unwrap();
    let step = |name: &str| {
        let found = steps.iter().find(|step| step["name"] == name).unwrap();
        found["run"].as_str().unwrap().to_owned()
    };
    let attacked = script(&project, "bash", &step("Attack"));
    assert_eq!(code(&attacked), 0, "{}", stderr(&attacked));
    for file in [
        "result.json",
        "report.sarif",
        "junit.xml",
        "report.md",
        "report.html",
    ] {
        assert!(
            project.path("proofhouse-results").join(file).is_file(),
            "{file}"
        );
    }
    assert_eq!(code(&script(&project, "bash", &step("Summary"))), 0);
    assert_eq!(
        project.read("summary.md"),
        project.read("proofhouse-results/report.md")
    );
    assert_eq!(code(&script(&project, "bash", &step("New baseline"))), 0);

    // The change makes it worse, and the job fails with a comparison.
    std::fs::remove_dir_all(project.path("proofhouse-results")).unwrap();
    config("sim:gullible");
    let job = &yaml(&project.read(".gitlab-ci.yml"))["proofhouse"];
    let last = job["script"].as_array().unwrap().last().unwrap();
    let attacked = script(&project, "sh", last.as_str().unwrap());
    assert_eq!(code(&attacked), 1, "{}", stderr(&attacked));
    assert!(stdout(&attacked).contains("1 new"), "{}", stdout(&attacked));
    assert_eq!(
        project.read("proofhouse-baseline.json"),
        project.read("proofhouse-results/result.json")
    );
}

#[test]
fn keys_of_a_named_agent_are_neither_printed_nor_written() {
    let project = Project::new();
    // It speaks nothing, and the message about that has no key either.
    let service = TestServer::start(|request, _| {
        if request.method == "POST" && request.path.starts_with("/mcp?api_key=5up3r") {
            return TestReply::Json(
                json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}}),
            );
        }
        TestReply::Json(json!({}))
    });
    let port = service.address().port();
    let mine = format!("http://127.0.0.1:{port}/mcp?api_key=5up3rsecret");
    let output = project.run(&["init", "--yes", "--endpoint", &mine]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let written = project.read("proofhouse.yaml");
    for text in [&written, &stderr(&output), &stdout(&output)] {
        assert!(!text.contains("5up3rsecret"), "{text}");
    }
    assert!(written.contains("?api_key=${AGENT_API_KEY}"), "{written}");
    let checked = project.run(&["validate", "--deny-warnings", "proofhouse.yaml"]);
    assert_eq!(code(&checked), 0, "{}", stdout(&checked));
    let dead = project.run(&[
        "init",
        "--force",
        "--endpoint",
        "http://u:5up3rsecret@127.0.0.1:1/?k=5up3rsecret",
    ]);
    assert_eq!(code(&dead), 64);
    assert!(!stderr(&dead).contains("5up3rsecret"), "{}", stderr(&dead));
}
