//! The files of `deploy/`: each is read, and held to what the binary really has: flags, paths, metrics.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use proofhouse_source::{ReadLimits, Source};
use serde_json::Value;

use crate::support;

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(path)
}

fn text(path: &str) -> String {
    let path = deploy(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(what: &str, text: &str) -> Value {
    let (source, errors) = Source::read_leniently(text, &ReadLimits::default());
    assert!(errors.is_empty(), "{what}: {errors:?}");
    let source = source.unwrap();
    source.root().to_value(&mut |_| {})
}

/// The flags of `serve`.
fn flags() -> BTreeSet<String> {
    let help = support::run(&["serve", "--help"]).stdout;
    let words = help.split(|c: char| c.is_whitespace() || c == ',');
    let flags = words.filter(|word| word.starts_with("--"));
    flags.map(str::to_owned).collect()
}

/// Insists that every flag in a text is one of `serve`.
fn has_known_flags(what: &str, text: &str) {
    let known = flags();
    let words = text.split(|c: char| c.is_whitespace() || "\"=,[]".contains(c));
    let used: Vec<&str> = words.filter(|word| word.starts_with("--")).collect();
    assert!(used.len() > 3, "{what}: {used:?}");
    for flag in used {
        assert!(known.contains(flag), "{what}: serve has no {flag}");
    }
}

#[test]
fn the_container_has_no_shell_and_no_root() {
    let file = text("container/Containerfile");
    let (_, last) = file.rsplit_once("\nFROM ").unwrap();
    assert!(last.starts_with("scratch\n"), "{last}");
    let line = |word: &str| {
        let mut lines = last.lines().filter_map(|line| line.strip_prefix(word));
        lines.next().unwrap_or_else(|| panic!("no {word}")).trim()
    };
    let user = line("USER ");
    let numbers: Vec<u32> = user.split(':').map(|part| part.parse().unwrap()).collect();
    assert!(numbers.iter().all(|number| *number > 999), "{user}");
    // Both are lists: without a shell nothing else starts.
    let start: Vec<String> = serde_json::from_str(line("ENTRYPOINT ")).unwrap();
    assert_eq!(start, ["/usr/bin/proofhouse"]);
    let arguments: Vec<String> = serde_json::from_str(line("CMD ")).unwrap();
    assert_eq!(arguments[0], "serve");
    has_known_flags("Containerfile", &arguments.join(" "));
    assert!(!last.contains("RUN ") && !last.contains("ADD "), "{last}");
}

#[test]
fn the_unit_is_hardened() {
    let unit = text("systemd/proofhouse.service");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    has_known_flags("proofhouse.service", start);
    for flag in ["--drain 0s", "--grace 20s"] {
        assert!(start.contains(flag), "{flag}: {start}");
    }
    for line in [
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "DynamicUser=yes",
        "TimeoutStopSec=45",
        "CapabilityBoundingSet=",
        "UMask=0077",
    ] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    // The tool of systemd knows more, where there is one.
    let path = deploy("systemd/proofhouse.service");
    let judged = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--threshold=20"])
        .arg(&path)
        .output();
    let Ok(judged) = judged else {
        proofhouse_test_support::workspace::skipped("the unit", "there is no systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&judged.stdout);
    assert!(judged.status.success(), "{said}");
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&path)
        .output();
    let said = String::from_utf8_lossy(&verified.unwrap().stderr).into_owned();
    // The binary is not installed where tests run.
    let others = said
        .lines()
        .filter(|line| !line.contains("is not executable"));
    assert_eq!(others.count(), 0, "{said}");
}

/// A template with its parts in braces taken out: lines that only steer go, values become a word.
fn plain(template: &str) -> String {
    let mut lines = Vec::new();
    for line in template.lines() {
        let bare = line.trim();
        if bare.starts_with("{{-") && bare.ends_with("}}") {
            if bare.contains("toYaml") {
                let indent = line.len() - line.trim_start().len();
                lines.push(format!("{}x: y", " ".repeat(indent)));
            }
            continue;
        }
        let mut rest = line;
        let mut plain = String::new();
        while let Some((before, after)) = rest.split_once("{{") {
            let (_, after) = after.split_once("}}").unwrap_or_else(|| panic!("{line}"));
            plain.push_str(before);
            plain.push_str("value");
            rest = after;
        }
        plain.push_str(rest);
        lines.push(plain);
    }
    lines.join("\n")
}

#[test]
fn the_chart_is_whole() {
    let chart = yaml("Chart.yaml", &text("helm/proofhouse/Chart.yaml"));
    assert_eq!(chart["apiVersion"], "v2");
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    let values = yaml("values.yaml", &text("helm/proofhouse/values.yaml"));
    let schema: Value = serde_json::from_str(&text("helm/proofhouse/values.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    schema.validate(&values).unwrap();
    let mut kinds = BTreeSet::new();
    for entry in std::fs::read_dir(deploy("helm/proofhouse/templates")).unwrap() {
        let path = entry.unwrap().path();
        let template = std::fs::read_to_string(&path).unwrap();
        let what = path.display().to_string();
        // What opens is closed.
        let words = |word: &str| {
            let parts = template.split("{{").skip(1);
            parts
                .filter(|part| part.trim_start_matches(['-', ' ']).starts_with(word))
                .count()
        };
        assert_eq!(words("if") + words("range"), words("end"), "{what}");
        assert_eq!(
            template.matches("{{").count(),
            template.matches("}}").count()
        );
        // Every value that is used is there.
        for used in template.split(".Values.").skip(1) {
            let end = used.find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
            let used = &used[..end.unwrap_or(used.len())];
            let pointer = format!("/{}", used.replace('.', "/"));
            assert!(values.pointer(&pointer).is_some(), "{what}: no {used}");
        }
        // And what is left is YAML of Kubernetes.
        let object = yaml(&what, &plain(&template));
        assert!(object["apiVersion"].is_string(), "{what}");
        kinds.insert(object["kind"].as_str().unwrap().to_owned());
    }
    for kind in [
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
    ] {
        assert!(kinds.contains(kind), "{kind}");
    }
    let deployment = text("helm/proofhouse/templates/deployment.yaml");
    let arguments: Vec<&str> = deployment
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- --"))
        .collect();
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| format!("--{}", argument.split('=').next().unwrap()))
        .collect();
    has_known_flags("deployment.yaml", &arguments.join(" "));
    // A pod that ends says so before it stops, and has time for all of it.
    assert!(deployment.contains("- --drain={{ .Values.drainSeconds }}s"));
    let time =
        "terminationGracePeriodSeconds: {{ add .Values.drainSeconds .Values.graceSeconds 10 }}";
    assert!(deployment.contains(time), "{deployment}");
    assert!(
        values["drainSeconds"].as_i64() > Some(5),
        "longer than a probe"
    );
    // Several releases have a backlog each.
    let autoscaler = text("helm/proofhouse/templates/autoscaler.yaml");
    let autoscaler = yaml("autoscaler", &plain(&autoscaler));
    let metric = &autoscaler["spec"]["metrics"][0]["external"]["metric"];
    assert!(metric["selector"]["matchLabels"].is_object(), "{metric}");
    let guide = include_str!("../../../../docs/how-to/deployment.md");
    assert!(guide.contains("max(<<.Series>>{<<.LabelMatchers>>})"));
    let pod = yaml("deployment", &plain(&deployment));
    let pod = &pod["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["automountServiceAccountToken"], false);
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/v1/ready");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/v1/health");
    let secret = &container["env"][0];
    assert_eq!(secret["name"], "PROOFHOUSE_STORE");
    assert!(secret["valueFrom"]["secretKeyRef"].is_object());
}

/// A model asks for a key, and what the values name is what the server gets.
#[test]
fn the_chart_runs_a_real_model() {
    let template = text("helm/proofhouse/templates/deployment.yaml");
    let pod = yaml("deployment", &plain(&template));
    let pod = &pod["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert!(container["env"][1]["valueFrom"]["secretKeyRef"].is_object());
    assert!(container["envFrom"][0]["secretRef"].is_object());
    for list in ["secretEnv", "envFromSecrets", "arguments"] {
        let range = format!("range .Values.{list} }}}}");
        assert_eq!(template.matches(&range).count(), 1, "{list}");
    }
    let key = "--audit-key=/audit/audit.key";
    let arguments = container["args"].as_array().unwrap();
    assert!(arguments.iter().any(|one| one == key), "{arguments:?}");
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().any(|one| one["mountPath"] == "/audit"));
    let schema: Value = serde_json::from_str(&text("helm/proofhouse/values.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut values = yaml("values.yaml", &text("helm/proofhouse/values.yaml"));
    values["model"] = "openai:gpt".into();
    values["audit"]["secretName"] = "audit".into();
    values["arguments"] = serde_json::json!(["--strict-webhooks"]);
    values["envFromSecrets"] = serde_json::json!(["models"]);
    let good = serde_json::json!([{"name": "OPENAI_API_KEY", "secretName": "models", "key": "k"}]);
    for (given, is_good) in [(good, true), (serde_json::json!(["OPENAI_API_KEY"]), false)] {
        values["secretEnv"] = given;
        assert_eq!(schema.is_valid(&values), is_good);
    }
}

#[test]
fn whoever_plans_the_nightly_campaign_gets_what_its_workers_get() {
    let job = yaml("nightly.yaml", &text("kubernetes/nightly.yaml"));
    let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let arguments = container["args"].as_array().unwrap().iter();
    let arguments: Vec<&str> = arguments.map(|one| one.as_str().unwrap()).collect();
    let of = |flag: &str| {
        let mut values = arguments.iter().filter_map(|one| one.strip_prefix(flag));
        values.next().unwrap_or_else(|| panic!("no {flag}"))
    };
    let secret = &container["envFrom"][0]["secretRef"]["name"];
    assert_eq!(secret, of("--env-from-secret="));
    assert_eq!(container["image"], of("--proofhouse-image="));
    let help = support::run(&["run", "--help"]).stdout;
    for flag in arguments.iter().filter(|one| one.starts_with("--")) {
        let (flag, _) = flag.split_once('=').unwrap();
        assert!(help.contains(flag), "run has no {flag}");
    }
    // In the chart it is said once for both.
    let template = text("helm/proofhouse/templates/nightly-cronjob.yaml");
    for value in ["secretEnv", "envFromSecrets"] {
        let range = format!("range .Values.nightly.{value}");
        assert_eq!(template.matches(&range).count(), 2, "{value}");
    }
    let schema: Value = serde_json::from_str(&text("helm/proofhouse/values.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut values = yaml("values.yaml", &text("helm/proofhouse/values.yaml"));
    let good = serde_json::json!([{"name": "OPENAI_API_KEY", "secretName": "models", "key": "k"}]);
    for (given, is_good) in [(good, true), (serde_json::json!(["OPENAI_API_KEY"]), false)] {
        values["nightly"]["secretEnv"] = given;
        assert_eq!(schema.is_valid(&values), is_good);
    }
}

#[test]
fn what_is_old_is_pruned_by_commands_that_there_are() {
    let help = support::run(&["campaigns", "prune", "--help"]).stdout;
    let template = plain(&text("helm/proofhouse/templates/prune-cronjob.yaml"));
    for (what, text) in [
        ("prune.yaml", text("kubernetes/prune.yaml")),
        ("prune-cronjob.yaml", template),
    ] {
        let job = yaml(what, &text);
        let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false, "{what}");
        for container in [&pod["initContainers"][0], &pod["containers"][0]] {
            let arguments = container["args"].as_array().unwrap();
            assert_eq!(arguments[..2], ["campaigns", "prune"], "{what}");
            for flag in &arguments[2..] {
                let flag = flag.as_str().unwrap().split('=').next().unwrap();
                assert!(help.contains(flag), "{what}: {flag}");
            }
        }
    }
}

/// The metrics that an expression of Prometheus names, without what histograms add.
fn metrics(expression: &str) -> Vec<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = words.filter(|word| word.starts_with("proofhouse_"));
    names
        .map(|name| name.strip_suffix("_bucket").unwrap_or(name).to_owned())
        .collect()
}

/// Insists that the server has every metric that is named; `docs/reference/server.md` has them all, which another test sees to.
fn are_known(what: &str, expression: &str) {
    let docs = include_str!("../../../../docs/reference/server.md");
    let named = metrics(expression);
    assert!(!named.is_empty(), "{what}: {expression}");
    for name in named {
        let row = format!("| `{name}` |");
        assert!(docs.contains(&row), "{what}: there is no {name}");
    }
    let opened = expression.matches(['(', '{', '[']).count();
    let closed = expression.matches([')', '}', ']']).count();
    assert_eq!(opened, closed, "{expression}");
}

#[test]
fn alerts_and_the_dashboard_ask_for_metrics_that_there_are() {
    let rules = yaml("alerts.yaml", &text("monitoring/alerts.yaml"));
    let guide = include_str!("../../../../docs/how-to/deployment.md");
    let rules = rules["groups"][0]["rules"].as_array().unwrap().clone();
    assert!(rules.len() >= 8, "{rules:?}");
    for rule in rules {
        let name = rule["alert"].as_str().unwrap();
        are_known(name, rule["expr"].as_str().unwrap());
        assert!(
            guide.contains(&format!("`{name}`")),
            "docs/how-to/deployment.md: {name}"
        );
        let severity = rule["labels"]["severity"].as_str().unwrap();
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}"
        );
        assert!(rule["annotations"]["summary"].is_string(), "{name}");
    }
    let dashboard: Value = serde_json::from_str(&text("monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 10);
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_i64().unwrap()));
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().unwrap() {
            are_known(title, target["expr"].as_str().unwrap());
        }
    }
}

/// Runs `promtool`; `None`, told loudly, where there is none.
fn promtool(arguments: &[&str]) -> Option<String> {
    let ran = Command::new("promtool").args(arguments).output();
    let Ok(ran) = ran else {
        proofhouse_test_support::workspace::skipped("alerts and dashboard", "there is no promtool");
        return None;
    };
    let said = [&ran.stdout[..], &ran.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(ran.status.success(), "{arguments:?}: {said}");
    Some(said)
}

#[test]
fn prometheus_itself_takes_alerts_and_the_expressions_of_the_dashboard() {
    let alerts = deploy("monitoring/alerts.yaml").display().to_string();
    let Some(said) = promtool(&["check", "rules", &alerts]) else {
        return;
    };
    let count = text("monitoring/alerts.yaml").matches("- alert:").count();
    assert!(said.contains(&format!("{count} rules found")), "{said}");
    let tests = deploy("monitoring/alerts_test.yaml").display().to_string();
    promtool(&["test", "rules", &tests]);
    // The expressions of the dashboard as rules, with what Grafana puts in their place.
    let dashboard: Value = serde_json::from_str(&text("monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let rules: Vec<Value> = targets
        .enumerate()
        .map(|(number, target)| {
            let expression = target["expr"].as_str().unwrap();
            let expression = expression.replace("$__rate_interval", "5m");
            serde_json::json!({"record": format!("panel_{number}"), "expr": expression})
        })
        .collect();
    let count = rules.len();
    let rules = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dashboard.yaml");
    std::fs::write(&file, rules.to_string()).unwrap();
    let said = promtool(&["check", "rules", &file.display().to_string()]).unwrap();
    assert!(said.contains(&format!("{count} rules found")), "{said}");
}
