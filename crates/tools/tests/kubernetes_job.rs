//! The `kubernetes_job` runtime against a player of the API, and against a cluster where there is one.

mod kubernetes_support;
mod support;

use std::io::Write as _;
use std::time::Duration;

use kubernetes_support::{
    Fate, Player, TOKEN, Watching, execute, kubeconfig, limits, refusal, script, task, tls,
};
use proofhouse_tools::actions::Cluster;
use proofhouse_tools::runtime::{ActionError, Failure, Invocation, Limits, Outcome, ToolTask};
use proofhouse_wire::server::Reply;
use proofhouse_wire::{CancellationToken, StatusCode};
use serde_json::{Value, json};
use support::act;

/// A spec, what becomes of it in the player, and what must come of it.
type Case = (Value, Fate, fn(Acted));
type Acted = Result<Outcome, ActionError>;

/// A task in the player's cluster with a script that the player does not run.
fn playing(player: &Player) -> ToolTask {
    task(
        player.cluster(),
        &execute("jobs", &script("true")),
        &limits(),
    )
}

/// Acts, and makes sure that nothing is left.
async fn act_and_leave(player: &Player, task: &ToolTask) -> Acted {
    let acted = act(task, json!({})).await;
    assert_eq!(player.jobs(), Vec::<String>::new());
    assert_eq!(task.teardown().await, []);
    acted
}

fn value(acted: Acted) -> Value {
    acted.expect("it succeeds").value
}

fn failure(acted: Acted) -> ActionError {
    acted.expect_err("it fails")
}

/// What must be the same in the player and in a real cluster.
fn cases() -> Vec<Case> {
    let unpullable = json!({"backoffLimit": 0, "template": {"spec": {"containers": [
        {"name": "main", "image": "localhost:1/none:1"},
    ]}}});
    vec![
        (
            script("echo noise; printf done > /dev/termination-log"),
            Fate::completed(Some("done"), "noise\n"),
            |acted| assert_eq!(value(acted), "done"),
        ),
        (
            script("printf '{\"n\": 3}' > /dev/termination-log"),
            Fate::completed(Some("{\"n\": 3}"), ""),
            |acted| assert_eq!(value(acted), json!({"n": 3})),
        ),
        (
            script("echo '{x}'; echo two"),
            Fate::completed(None, "one\ntwo\n"),
            |acted| assert_eq!(value(acted), "one\ntwo\n"),
        ),
        (
            script("echo '[1, 2]'"),
            Fate::completed(None, "[1, 2]\n"),
            |acted| assert_eq!(value(acted), json!([1, 2])),
        ),
        (script("true"), Fate::completed(None, ""), |acted| {
            assert_eq!(value(acted), "");
        }),
        (
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ignored"},
                "spec": script("echo whole")}),
            Fate::completed(None, "whole\n"),
            |acted| assert_eq!(value(acted), "whole\n"),
        ),
        (
            script("echo working; exit 3"),
            Fate::failed(3, "Error", "working\n"),
            |acted| {
                let error = failure(acted);
                assert_eq!(error.failure, Failure::JobFailed);
                assert!(error.message.ends_with("exit code 3"), "{error}");
                assert_eq!(error.detail["exit_code"], 3);
                assert_eq!(error.detail["container"], "main");
                assert_eq!(error.detail["reason"], "Error");
                assert_eq!(error.detail["log"], "working\n");
            },
        ),
        (
            unpullable,
            Fate::waiting("ImagePullBackOff", "Back-off pulling image"),
            |acted| {
                let error = failure(acted);
                assert_eq!(error.failure, Failure::Image);
                assert!(error.is_recoverable() && !error.outcome_unknown);
                assert!(error.message.contains("`main` cannot start"), "{error}");
            },
        ),
    ]
}

#[tokio::test]
async fn jobs_yield_their_output() {
    for (spec, fate, check) in cases() {
        let player = Player::start(fate).await;
        let task = task(player.cluster(), &execute("jobs", &spec), &limits());
        check(act_and_leave(&player, &task).await);
        assert_eq!(player.count("DELETE", ""), 1);
    }
}

#[tokio::test]
async fn jobs_yield_their_output_in_a_real_cluster() {
    #[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
    let variable = |name: &str| std::env::var_os(name);
    if variable("KUBECONFIG").is_none() {
        let text =
            "SKIPPED: kubernetes_job in a real cluster: set KUBECONFIG, and perhaps KUBE_NAMESPACE";
        let _ = writeln!(std::io::stderr(), "{text}");
        return;
    }
    let namespace = variable("KUBE_NAMESPACE").and_then(|name| name.into_string().ok());
    let namespace = namespace.unwrap_or_else(|| "default".to_owned());
    let mut limits = Limits::default();
    limits.job.deadline = Duration::from_secs(120);
    for (spec, _, check) in cases() {
        let task = task(
            Cluster::infer(variable),
            &execute(&namespace, &spec),
            &limits,
        );
        check(act(&task, json!({})).await);
        assert_eq!(task.teardown().await, []);
    }
}

#[tokio::test]
async fn what_is_sent_is_bounded_labelled_and_signed() {
    let player = Player::start(Fate::completed(None, "x")).await;
    let task = task(
        player.cluster(),
        &execute(
            "jobs",
            &json!({"activeDeadlineSeconds": 9000, "template": {"spec": {"containers": [
                {"name": "main", "image": "i", "env": [{"name": "KEY", "value": "{settings.api_key}"}],
                 "args": ["{x}", "{settings.region}"]},
            ]}}}),
        ),
        &limits(),
    );
    assert!(act_and_leave(&player, &task).await.is_ok());
    let job = player.posted();
    let name = job["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("t-act-") && name.len() <= 63, "{name}");
    assert_eq!(
        job["metadata"]["labels"]["app.kubernetes.io/managed-by"],
        "proofhouse"
    );
    assert_eq!(job["metadata"]["labels"]["proofhouse/tool"], "demo-t");
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert_eq!(job["spec"]["activeDeadlineSeconds"], 20);
    assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 300);
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["one", "north"]));
    assert_eq!(container["env"][0]["value"], "sk-secret/1");
    let requests = player.requests();
    assert_eq!(
        requests[0].query,
        "&fieldManager=proofhouse&fieldValidation=Strict"
    );
    assert!(
        requests
            .iter()
            .all(|asked| asked.authorization == format!("Bearer {TOKEN}"))
    );
    let delete = requests
        .iter()
        .find(|asked| asked.method == "DELETE")
        .unwrap();
    assert_eq!(delete.body["propagationPolicy"], "Background");
    assert_eq!(delete.body["preconditions"]["uid"], "0b5c-1");
    let log = requests
        .iter()
        .find(|asked| asked.path.ends_with("/log"))
        .unwrap();
    assert!(
        log.query.contains("limitBytes=") && log.query.contains("tailLines="),
        "{}",
        log.query
    );
}

#[tokio::test]
async fn watches_may_do_what_they_like() {
    for watching in [
        Watching::Works,
        Watching::Ends,
        Watching::Silent,
        Watching::NoAnswer,
        Watching::Gone,
        Watching::GoneAtOnce,
        Watching::Garbage,
        Watching::LongLine,
        Watching::Cut,
        Watching::Forbidden,
    ] {
        let player = Player::watched(Fate::completed(Some("done"), ""), watching).await;
        let acted = act_and_leave(&player, &playing(&player)).await;
        assert_eq!(
            acted.map(|outcome| outcome.value),
            Ok(json!("done")),
            "{watching:?}"
        );
        let player = Player::watched(Fate::deleted(), watching).await;
        let error = failure(act_and_leave(&player, &playing(&player)).await);
        assert_eq!(error.failure, Failure::JobDeleted, "{watching:?}");
    }
}

#[tokio::test]
async fn a_watch_that_never_tells_anything_is_given_up() {
    let player = Player::watched(Fate::endless(), Watching::Ends).await;
    let mut limits = limits();
    limits.job.deadline = Duration::from_millis(2000);
    let task = task(player.cluster(), &execute("jobs", &script("true")), &limits);
    assert_eq!(
        failure(act_and_leave(&player, &task).await).failure,
        Failure::Deadline
    );
    assert_eq!(player.count("GET", "/jobs"), 5);
}

#[tokio::test]
async fn a_job_that_was_replaced_is_gone_and_the_new_one_stays() {
    let player = Player::watched(Fate::replaced(), Watching::Silent).await;
    let task = playing(&player);
    let error = failure(act(&task, json!({})).await);
    assert_eq!(error.failure, Failure::JobDeleted);
    assert!(error.outcome_unknown);
    assert_eq!(task.teardown().await, []);
    assert_eq!(player.jobs().len(), 1);
}

#[tokio::test]
async fn containers_that_cannot_start_end_the_wait_early() {
    for (reason, expected) in [
        ("ErrImagePull", Failure::Image),
        ("ImagePullBackOff", Failure::Image),
        ("InvalidImageName", Failure::Image),
        ("ErrImageNeverPull", Failure::Image),
        ("CreateContainerConfigError", Failure::JobFailed),
        ("CreateContainerError", Failure::JobFailed),
    ] {
        let player = Player::start(Fate::waiting(reason, "because of sk-secret/1")).await;
        let error = failure(act_and_leave(&player, &playing(&player)).await);
        assert_eq!(error.failure, expected, "{reason}");
        assert!(error.is_recoverable());
        assert_eq!(error.detail["reason"], reason);
        assert_eq!(error.detail["message"], "because of [redacted]");
    }
}

#[tokio::test]
async fn time_runs_out() {
    let mut limits = limits();
    limits.job.deadline = Duration::from_millis(1500);
    for (fate, started, reason) in [
        (Fate::endless(), true, None),
        (Fate::unschedulable(), false, Some("Unschedulable")),
        // Containers are being created; nothing is known to be wrong.
        (Fate::waiting("ContainerCreating", ""), false, None),
        (Fate::overdue(), false, None),
    ] {
        let player = Player::start(fate).await;
        let task = task(
            player.cluster(),
            &execute("jobs", &script("sleep 60")),
            &limits,
        );
        let error = failure(act_and_leave(&player, &task).await);
        assert_eq!(error.failure, Failure::Deadline);
        assert!(error.is_recoverable());
        assert_eq!(error.outcome_unknown, started, "{error:?}");
        let told = error.detail.get("reason").and_then(Value::as_str);
        assert_eq!(told, reason);
    }
}

#[tokio::test]
async fn refusals_of_the_cluster_are_classified() {
    let chosen = json!({"template": {"spec": {"containers": [{"name": "main", "image": "{x}"}]}}});
    let empty = json!({"template": {"spec": {"containers": []}}});
    let empty_but_chosen = json!({"parallelism": "{x}", "template": {"spec": {"containers": []}}});
    let fixed = script("true");
    for (namespace, spec, status, expected) in [
        ("jobs", &fixed, Some(403), Failure::Forbidden),
        ("jobs", &chosen, Some(403), Failure::Forbidden),
        ("jobs", &fixed, Some(401), Failure::Forbidden),
        ("nowhere", &fixed, None, Failure::Manifest),
        ("nowhere", &chosen, None, Failure::HttpStatus),
        ("jobs", &empty, None, Failure::Manifest),
        ("jobs", &empty_but_chosen, None, Failure::HttpStatus),
        ("jobs", &fixed, Some(500), Failure::HttpStatus),
        ("jobs", &fixed, Some(429), Failure::HttpStatus),
    ] {
        let player = Player::troubled(Fate::endless(), Watching::Works, move |method, _, _| {
            let status = status.filter(|_| method == "POST")?;
            let message = format!("no, {TOKEN} may not use sk-secret/1 {}", "x".repeat(9000));
            Some(refusal(status, "Because", &message))
        })
        .await;
        let task = task(player.cluster(), &execute(namespace, spec), &limits());
        let error = failure(act_and_leave(&player, &task).await);
        assert_eq!(error.failure, expected, "{namespace} {spec} {status:?}");
        let shown = format!("{error:?}");
        assert!(
            !shown.contains(TOKEN) && !shown.contains("sk-secret"),
            "{shown}"
        );
        assert!(shown.len() < 3000, "{}", shown.len());
        assert_eq!(player.count("DELETE", ""), 0);
    }
}

#[tokio::test]
async fn a_refusal_while_waiting_ends_the_task_and_cleans_up() {
    let player = Player::troubled(Fate::endless(), Watching::Ends, |method, path, _| {
        let is_job = method == "GET" && path.contains("/jobs/");
        is_job.then(|| refusal(403, "Forbidden", "cannot get jobs"))
    })
    .await;
    let error = failure(act_and_leave(&player, &playing(&player)).await);
    assert_eq!(error.failure, Failure::Forbidden);
    assert!(!error.is_recoverable());
}

#[tokio::test]
async fn namespaces_are_the_operators() {
    let in_x = execute("{x}", &script("true"));
    let in_region = execute("{settings.region}", &script("true"));
    let here = execute("jobs", &script("true"));
    let all = ["jobs", "other"];
    for (listed, execute, x, is_allowed) in [
        (&[][..], &here, "one", true),
        (&[], &in_x, "jobs", false),
        (&all, &in_x, "other", true),
        (&all, &in_x, "kube-system", false),
        (&all, &in_x, "../../../api/v1/namespaces/jobs", false),
        (&all, &in_x, "jobs?x=y", false),
        (&all, &in_region, "one", false),
        (&["other"], &here, "one", false),
    ] {
        let player = Player::start(Fate::completed(Some("done"), "")).await;
        let cluster = player.cluster().allowing(listed.iter().copied());
        let acted = act(&task(cluster, execute, &limits()), json!({"x": x})).await;
        assert_eq!(acted.is_ok(), is_allowed, "{execute} {x}");
        if let Err(error) = acted {
            assert_eq!(error.failure, Failure::Forbidden);
            assert_eq!(player.requests().len(), 0);
        }
    }
}

fn named(id: &str) -> Invocation {
    Invocation {
        id: id.to_owned(),
        action: "act".to_owned(),
        context: json!({"agent": {"name": "a"}}),
        ..Invocation::default()
    }
}

#[tokio::test]
async fn a_job_that_is_there_already_is_adopted_if_it_is_ours() {
    let first = Player::start(Fate::completed(Some("done"), "")).await;
    assert!(playing(&first).carry_out(named("call-7")).await.is_ok());
    let job = first.posted();

    let second = Player::start(Fate::completed(Some("done"), "")).await;
    second.put(job.clone());
    let task = playing(&second);
    assert_eq!(value(task.carry_out(named("call-7")).await), "done");
    assert_eq!((second.count("POST", ""), second.jobs().len()), (1, 0));

    let mut foreign = job;
    foreign["metadata"]["labels"]["proofhouse/invocation"] = "another".into();
    let third = Player::start(Fate::completed(Some("theirs"), "")).await;
    third.put(foreign);
    let task = playing(&third);
    let error = failure(task.carry_out(named("call-7")).await);
    assert_eq!(error.failure, Failure::HttpStatus);
    assert_eq!(error.detail["status"], 409);
    assert_eq!(task.teardown().await, []);
    assert_eq!((third.jobs().len(), third.count("DELETE", "")), (1, 0));
}

#[tokio::test]
async fn a_lost_answer_makes_no_second_job() {
    let mut fate = Fate::completed(Some("done"), "");
    fate.loses_answer = true;
    let player = Player::start(fate).await;
    assert_eq!(
        value(act_and_leave(&player, &playing(&player)).await),
        "done"
    );
    assert_eq!(
        (player.count("POST", ""), player.count("DELETE", "")),
        (2, 1)
    );
}

#[tokio::test]
async fn cancelling_deletes_the_job() {
    let player = Player::start(Fate::endless()).await;
    let task = playing(&player);
    let mut invocation = named("");
    invocation.cancel = CancellationToken::new();
    let cancel = invocation.cancel.clone();
    let (acted, ()) = tokio::join!(task.carry_out(invocation), async {
        player.has_job().await;
        cancel.cancel();
    });
    let error = failure(acted);
    assert_eq!(error.failure, Failure::Cancelled);
    assert!(error.outcome_unknown);
    assert_eq!(player.jobs(), Vec::<String>::new());
    assert_eq!(task.teardown().await, []);
}

#[tokio::test]
async fn the_end_of_the_task_deletes_what_is_left() {
    // A call under way.
    let player = Player::start(Fate::endless()).await;
    let task = playing(&player);
    let (acted, errors) = tokio::join!(act(&task, json!({})), async {
        player.has_job().await;
        task.teardown().await
    });
    assert_eq!(failure(acted).failure, Failure::Cancelled);
    assert_eq!((errors, player.jobs().len()), (vec![], 0));

    // A call whose caller went away.
    let player = Player::start(Fate::endless()).await;
    let task = playing(&player);
    let gone = tokio::time::timeout(Duration::from_millis(800), act(&task, json!({}))).await;
    assert!(gone.is_err());
    assert_eq!(player.jobs().len(), 1);
    assert_eq!(task.teardown().await, []);
    assert_eq!(player.jobs().len(), 0);

    // A Job that could not be deleted at once.
    let player = Player::troubled(
        Fate::completed(Some("done"), ""),
        Watching::Works,
        |method, _, nth| (method == "DELETE" && nth < 3).then(|| refusal(500, "", "later")),
    )
    .await;
    let task = playing(&player);
    assert_eq!(value(act(&task, json!({})).await), "done");
    assert_eq!(player.jobs().len(), 1);
    assert_eq!(task.teardown().await, []);
    assert_eq!(player.jobs().len(), 0);

    // One that never can.
    let player = Player::troubled(
        Fate::completed(Some("done"), ""),
        Watching::Works,
        |method, _, _| (method == "DELETE").then(|| refusal(403, "Forbidden", "cannot delete")),
    )
    .await;
    let task = playing(&player);
    assert_eq!(value(act(&task, json!({})).await), "done");
    let errors = task.teardown().await;
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].message.contains("delete the Job t-act-"),
        "{}",
        errors[0]
    );
}

#[tokio::test]
async fn hiccups_of_the_api_pass() {
    let player = Player::troubled(
        Fate::completed(None, "out\n"),
        Watching::Ends,
        |_, _, nth| match nth {
            0 => Some(refusal(503, "", "").with_header("retry-after", "0")),
            1 => Some(Reply::cut()),
            _ => None,
        },
    )
    .await;
    assert_eq!(
        value(act_and_leave(&player, &playing(&player)).await),
        "out\n"
    );
}

#[tokio::test]
async fn a_cluster_that_stops_answering_is_told() {
    // It breaks off every request once the Job is there.
    let player = Player::troubled(Fate::endless(), Watching::Ends, |method, _, _| {
        (method == "GET").then(Reply::cut)
    })
    .await;
    let error = failure(act_and_leave(&player, &playing(&player)).await);
    assert_eq!(error.failure, Failure::Unreachable);
    assert!(error.outcome_unknown && !error.is_recoverable());

    // Nobody was ever there.
    let directory = tempfile::tempdir().expect("the test is set up");
    let cluster = Cluster::kubeconfig(kubeconfig(&directory, "http://127.0.0.1:1"));
    let execute = execute("jobs", &script("true"));
    let error = failure(act(&task(cluster, &execute, &limits()), json!({})).await);
    assert_eq!(error.failure, Failure::Unreachable);
    assert!(error.message.contains("127.0.0.1"), "{error}");
    assert!(!error.outcome_unknown);
}

#[tokio::test]
async fn answers_that_are_none_are_told() {
    for body in [
        "[]",
        "not json",
        "{}",
        "{\"kind\": \"Pod\", \"apiVersion\": \"v1\"}",
    ] {
        let player = Player::troubled(Fate::endless(), Watching::Works, move |method, _, _| {
            (method == "POST").then(|| Reply::json(StatusCode::CREATED, body))
        })
        .await;
        let error = failure(act_and_leave(&player, &playing(&player)).await);
        assert_eq!(error.failure, Failure::Response, "{body}");
    }
    for body in [
        "[]",
        "7",
        "{\"items\": 1}",
        "{\"items\": [{\"spec\": 1}]}",
        "x",
    ] {
        let player = Player::troubled(
            Fate::completed(Some("done"), ""),
            Watching::Works,
            move |_, path, _| {
                path.ends_with("/pods")
                    .then(|| Reply::json(StatusCode::OK, body))
            },
        )
        .await;
        let error = failure(act_and_leave(&player, &playing(&player)).await);
        assert_eq!(error.failure, Failure::Response, "{body}");
        assert!(
            error.message.starts_with("the Job completed, but"),
            "{error}"
        );
    }
    let player = Player::start(Fate::completed_without_pod()).await;
    let error = failure(act_and_leave(&player, &playing(&player)).await);
    assert!(error.message.contains("its Pod is gone"), "{error}");
}

#[tokio::test]
async fn only_pods_that_the_job_owns_are_believed() {
    let mut fate = Fate::completed(None, "true\n");
    fate.impostor = Some(b"false\n".to_vec());
    let player = Player::start(fate).await;
    assert_eq!(value(act_and_leave(&player, &playing(&player)).await), true);
}

#[tokio::test]
async fn the_end_of_a_long_log_is_kept() {
    let mut limits = limits();
    // The player takes its time with megabytes.
    (limits.http, limits.job.deadline) = (Duration::from_secs(20), Duration::from_secs(60));
    let most = limits.max_result_bytes;
    let spec = execute("jobs", &script("true"));
    let lines = |count: usize, length: usize| {
        let mut log = format!("{}\n", "y".repeat(length)).repeat(count);
        log.push_str("the last line\n");
        log
    };
    for log in [lines(200_000, 60), lines(9_000, 2_000), lines(40, 1 << 19)] {
        let player = Player::start(Fate::completed(None, log)).await;
        let outcome = act_and_leave(&player, &task(player.cluster(), &spec, &limits))
            .await
            .unwrap();
        let text = outcome.value.as_str().unwrap();
        assert!(
            text.len() <= most && text.len() > most / 4,
            "{}",
            text.len()
        );
        assert!(text.starts_with("[earlier output left out]\ny"));
        assert!(text.ends_with("y\nthe last line\n"));
    }
    let player = Player::start(Fate::completed(None, "y".repeat(11 << 20))).await;
    let error = failure(act_and_leave(&player, &task(player.cluster(), &spec, &limits)).await);
    assert_eq!(error.failure, Failure::TooLarge);
    let player = Player::start(Fate::completed(None, b"a\xffb\0".as_slice())).await;
    assert_eq!(
        value(act_and_leave(&player, &task(player.cluster(), &spec, &limits)).await),
        "a\u{fffd}b\0"
    );
}

#[tokio::test]
async fn secrets_do_not_come_back() {
    let told = format!("key sk-secret/1 and {TOKEN}\n");
    let player = Player::start(Fate::completed(None, &told)).await;
    let acted = act_and_leave(&player, &playing(&player)).await;
    assert_eq!(value(acted), "key [redacted] and [redacted]\n");

    let player = Player::start(Fate::failed(1, "Error", &told.repeat(1000))).await;
    let error = failure(act_and_leave(&player, &playing(&player)).await);
    let log = error.detail["log"].as_str().unwrap();
    assert!(
        log.len() <= 4096 && log.ends_with("key [redacted] and [redacted]\n"),
        "{log}"
    );
    assert!(
        !log.contains("secret") && !log.contains("kube-token"),
        "{log}"
    );
}

#[tokio::test]
async fn what_is_configured_wrongly_is_named_and_not_quoted() {
    let directory = tempfile::tempdir().expect("the test is set up");
    let write = |name: &str, text: String| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("the test is set up");
        Cluster::kubeconfig(file)
    };
    let good = kubeconfig(&directory, "http://127.0.0.1:1");
    let text = |server: &str, more: Value| {
        let mut cluster = json!({"server": server});
        cluster
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "k",
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "k", "user": {"token": TOKEN}}],
            "contexts": [{"name": "k", "context": {"cluster": "k", "user": "k"}}],
        })
        .to_string()
    };
    let command = text("http://127.0.0.1:1", json!({})).replace(
        &json!({"token": TOKEN}).to_string(),
        &json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": ["-c", format!("echo {TOKEN}; exit 1")],
        }})
        .to_string(),
    );
    for (cluster, expected) in [
        (
            Cluster::none(),
            "no Kubernetes cluster is configured: name a kubeconfig file",
        ),
        (Cluster::kubeconfig("/nowhere/kubeconfig"), "cannot be read"),
        (Cluster::kubeconfig(directory.path()), "is no file"),
        (
            Cluster::kubeconfig(&good).context("none"),
            "it has no context `none`",
        ),
        (
            Cluster::kubeconfig(&good).context("lost"),
            "it has no cluster",
        ),
        (
            write("bad", format!("users: [{{token: {TOKEN}")),
            "it is not a kubeconfig",
        ),
        (
            write("shape", format!("users: {TOKEN}")),
            "it is not a kubeconfig",
        ),
        (write("empty", String::new()), "it has no current context"),
        (write("url", text("http://[", json!({}))), "is no URL"),
        (
            write(
                "proxy",
                text(
                    "http://127.0.0.1:1",
                    json!({"proxy-url": "http://127.0.0.1:2"}),
                ),
            ),
            "names a proxy",
        ),
        (
            write(
                "ca",
                text(
                    "https://127.0.0.1:1",
                    json!({"certificate-authority-data": "no base64"}),
                ),
            ),
            "its certificate authority cannot be read",
        ),
        (
            write("exec", command),
            "the credentials of the kubeconfig cannot be had",
        ),
        (
            Cluster::in_cluster("10.0.0.1", 443),
            "the service account of a Pod is not there",
        ),
    ] {
        let task = task(cluster, &execute("jobs", &script("true")), &limits());
        let error = failure(act(&task, json!({})).await);
        assert!(error.message.contains(expected), "{expected}: {error}");
        assert_eq!(error.failure, Failure::Setting, "{expected}");
        assert!(!format!("{error:?}").contains(TOKEN), "{error}");
    }
}

#[tokio::test]
async fn the_certificate_of_the_cluster_is_checked() {
    let directory = tempfile::tempdir().expect("the test is set up");
    let authority = directory.path().join("ca.pem");
    std::fs::write(&authority, tls::AUTHORITY).expect("the test is set up");
    for (is_known, expected) in [(true, Failure::Forbidden), (false, Failure::Unreachable)] {
        // Three tries.
        let server = format!("https://127.0.0.1:{}", tls::refusing(3));
        let file = kubeconfig(&directory, &server);
        if is_known {
            #[expect(clippy::disallowed_methods, reason = "the test wrote it")]
            let text = std::fs::read_to_string(&file).unwrap();
            let mut config: Value = serde_json::from_str(&text).unwrap();
            // Beside the kubeconfig.
            config["clusters"][0]["cluster"]["certificate-authority"] = "ca.pem".into();
            std::fs::write(&file, config.to_string()).expect("the test is set up");
        }
        let execute = execute("jobs", &script("true"));
        let task = task(Cluster::kubeconfig(file), &execute, &limits());
        let error = failure(act(&task, json!({})).await);
        assert_eq!(error.failure, expected, "{error}");
        assert!(is_known || error.message.contains("certificate"), "{error}");
    }
}
