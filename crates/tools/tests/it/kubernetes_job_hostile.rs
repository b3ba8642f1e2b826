//! Clusters, Pods and logs that misbehave, and what `kubernetes_job` makes of it.

use std::time::Duration;

use proofhouse_tools::actions::Cluster;
use proofhouse_tools::runtime::{ActionFailure, ToolLimits};
use proofhouse_wire::StatusCode;
use proofhouse_wire::server::Reply;
use serde_json::json;

use crate::kubernetes_support::{
    Fate, Player, TOKEN, Watching, act_and_leave, execute, failure, kubeconfig, limits, playing,
    refusal, script, task, value,
};
use crate::support::act;

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
        assert_eq!(error.failure, ActionFailure::JobDeleted, "{watching:?}");
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
        ActionFailure::Deadline
    );
    assert_eq!(player.count("GET", "/jobs"), 5);
}

#[tokio::test]
async fn refusals_of_the_cluster_are_classified() {
    let chosen = json!({"template": {"spec": {"containers": [{"name": "main", "image": "{x}"}]}}});
    let empty = json!({"template": {"spec": {"containers": []}}});
    let empty_but_chosen = json!({"parallelism": "{x}", "template": {"spec": {"containers": []}}});
    let fixed = script("true");
    for (namespace, spec, status, expected) in [
        ("jobs", &fixed, Some(403), ActionFailure::Forbidden),
        ("jobs", &chosen, Some(403), ActionFailure::Forbidden),
        ("jobs", &fixed, Some(401), ActionFailure::Forbidden),
        ("nowhere", &fixed, None, ActionFailure::Manifest),
        ("nowhere", &chosen, None, ActionFailure::HttpStatus),
        ("jobs", &empty, None, ActionFailure::Manifest),
        ("jobs", &empty_but_chosen, None, ActionFailure::HttpStatus),
        ("jobs", &fixed, Some(500), ActionFailure::HttpStatus),
        ("jobs", &fixed, Some(429), ActionFailure::HttpStatus),
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

/// What clusters say with 403: only what is about the account ends the task.
#[tokio::test]
async fn a_forbidden_job_is_classified_by_its_cause() {
    for (status, message, cause) in [
        (
            403,
            "jobs.batch is forbidden: User \"system:serviceaccount:a:b\" cannot create resource \"jobs\" in API group \"batch\" in the namespace \"jobs\"",
            None,
        ),
        (
            403,
            "jobs.batch \"t-act\" is forbidden: exceeded quota: team, requested: count/jobs.batch=1, used: 5, limited: 5",
            Some("quota"),
        ),
        (
            403,
            "admission webhook \"policy.example.com\" denied the request: images come from our registry",
            Some("admission"),
        ),
        // What policies say where nobody chose a status, seen in a real control plane.
        (
            422,
            "jobs.batch \"t-act\" is forbidden: ValidatingAdmissionPolicy 'plain' with binding 'plain' denied request: no such Jobs here",
            Some("admission"),
        ),
        (
            403,
            "jobs.batch \"t-act\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'small' denied request: too large",
            Some("admission"),
        ),
        (
            403,
            "jobs.batch \"t\" is forbidden: unable to create new content in namespace jobs because it is being terminated",
            Some("admission"),
        ),
    ] {
        let player = Player::troubled(Fate::endless(), Watching::Works, move |method, _, _| {
            (method == "POST").then(|| refusal(status, "Forbidden", message))
        })
        .await;
        let task = task(
            player.cluster(),
            &execute("jobs", &script("true")),
            &limits(),
        );
        let error = failure(act_and_leave(&player, &task).await);
        let told = error.detail.get("cause").and_then(|cause| cause.as_str());
        assert_eq!(
            (told, error.is_recoverable()),
            (cause, cause.is_some()),
            "{message}"
        );
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
    assert_eq!(error.failure, ActionFailure::Forbidden);
    assert!(!error.is_recoverable());
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
    assert_eq!(error.failure, ActionFailure::Unreachable);
    assert!(error.outcome_unknown && !error.is_recoverable());

    // Nobody was ever there.
    let directory = tempfile::tempdir().expect("the test is set up");
    let cluster = Cluster::kubeconfig(kubeconfig(&directory, "http://127.0.0.1:1"));
    let execute = execute("jobs", &script("true"));
    let error = failure(act(&task(cluster, &execute, &limits()), json!({})).await);
    assert_eq!(error.failure, ActionFailure::Unreachable);
    assert!(error.message.contains("127.0.0.1"), "{error}");
    assert!(!error.outcome_unknown);
}

/// Nothing that is asked of a cluster has its effect twice, so a control plane that restarts is waited for.
#[tokio::test]
async fn a_cluster_that_is_away_for_a_while_is_waited_for() {
    let patient = ToolLimits {
        outage: Duration::from_secs(60),
        ..limits()
    };
    // It breaks off the first requests of every kind, more often than any is repeated at once.
    let player = Player::troubled(
        Fate::completed(Some("done"), ""),
        Watching::Works,
        |_, _, nth| (nth < 5).then(Reply::cut),
    )
    .await;
    let spec = execute("jobs", &script("true"));
    let acted = act_and_leave(&player, &task(player.cluster(), &spec, &patient)).await;
    assert_eq!(value(acted), "done");
    assert_eq!(player.count("POST", "/jobs"), 6);
}

/// The Job has done its work; that nobody can read what it said does not end the task.
#[tokio::test]
async fn an_output_that_cannot_be_read_is_told() {
    let player = Player::troubled(
        Fate::completed(None, "out\n"),
        Watching::Works,
        |_, path, _| path.ends_with("/log").then(Reply::cut),
    )
    .await;
    let error = failure(act_and_leave(&player, &playing(&player)).await);
    assert!(error.is_recoverable() && error.outcome_unknown, "{error:?}");
    assert!(
        error.message.starts_with("the Job completed, but"),
        "{error}"
    );
}

/// Whoever runs out of time says what it was doing, in its Pod's last start and in the one before.
#[tokio::test]
async fn a_job_that_takes_too_long_shows_its_logs() {
    let player = Player::start(Fate::restarted("after\n")).await;
    let mut limits = limits();
    limits.job.deadline = Duration::from_secs(2);
    let spec = execute("jobs", &script("true"));
    let error = failure(act_and_leave(&player, &task(player.cluster(), &spec, &limits)).await);
    assert_eq!(error.failure, ActionFailure::Deadline);
    let logs = error.detail["logs"].as_array().unwrap();
    let said: Vec<_> = logs
        .iter()
        .map(|one| (one["log"].as_str().unwrap(), one["previous"] == true))
        .collect();
    assert_eq!(said, [("before\n", true), ("after\n", false)]);
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
        assert_eq!(error.failure, ActionFailure::Response, "{body}");
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
        assert_eq!(error.failure, ActionFailure::Response, "{body}");
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
    assert_eq!(error.failure, ActionFailure::TooLarge);
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
