//! The `kubernetes_job` runtime against a player of the API; `kubernetes_real_cluster` has a real one.

use std::time::Duration;

use proofhouse_tools::runtime::{ActionFailure, Invocation};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::kubernetes_support::{
    Acted, Fate, Player, TOKEN, Watching, act_and_leave, execute, failure, limits, playing,
    refusal, script, task, value,
};
use crate::support::act;

/// A spec, what becomes of it in the player, and what must come of it.
pub(crate) type Case = (Value, Fate, fn(Acted));

/// What must be the same in the player and in a real cluster.
pub(crate) fn cases() -> Vec<Case> {
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
                assert_eq!(error.failure, ActionFailure::JobFailed);
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
                assert_eq!(error.failure, ActionFailure::Image);
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
async fn a_job_that_was_replaced_is_gone_and_the_new_one_stays() {
    let player = Player::watched(Fate::replaced(), Watching::Silent).await;
    let task = playing(&player);
    let error = failure(act(&task, json!({})).await);
    assert_eq!(error.failure, ActionFailure::JobDeleted);
    assert!(error.outcome_unknown);
    assert_eq!(task.teardown().await, []);
    assert_eq!(player.jobs().len(), 1);
}

#[tokio::test]
async fn containers_that_cannot_start_end_the_wait_early() {
    for (reason, expected) in [
        ("ErrImagePull", ActionFailure::Image),
        ("ImagePullBackOff", ActionFailure::Image),
        ("InvalidImageName", ActionFailure::Image),
        ("ErrImageNeverPull", ActionFailure::Image),
        ("CreateContainerConfigError", ActionFailure::JobFailed),
        ("CreateContainerError", ActionFailure::JobFailed),
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
        assert_eq!(error.failure, ActionFailure::Deadline);
        assert!(error.is_recoverable());
        assert_eq!(error.outcome_unknown, started, "{error:?}");
        let told = error.detail.get("reason").and_then(Value::as_str);
        assert_eq!(told, reason);
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
    third.put(foreign.clone());
    let task = playing(&third);
    let error = failure(task.carry_out(named("call-7")).await);
    assert_eq!(error.failure, ActionFailure::HttpStatus);
    assert_eq!(error.detail["status"], 409);
    assert_eq!(task.teardown().await, []);
    assert_eq!((third.jobs().len(), third.count("DELETE", "")), (1, 0));

    // Whether ours was made is not known, and one that is there is not it.
    let fourth = Player::troubled(Fate::endless(), Watching::Works, |method, _, _| {
        (method == "POST").then(|| refusal(500, "", "later"))
    })
    .await;
    fourth.put(foreign);
    let task = playing(&fourth);
    let error = failure(task.carry_out(named("call-7")).await);
    assert_eq!(error.failure, ActionFailure::HttpStatus);
    assert!(error.outcome_unknown);
    assert_eq!(task.teardown().await, []);
    assert_eq!((fourth.jobs().len(), fourth.count("DELETE", "")), (1, 0));
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
    assert_eq!(error.failure, ActionFailure::Cancelled);
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
    assert_eq!(failure(acted).failure, ActionFailure::Cancelled);
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
