//! Processes: spoken to, flooding, hanging, forking; none of them stays.

#![cfg(unix)]

use std::time::{Duration, Instant};

use proofhouse_test_support::process::is_running;
use proofhouse_test_support::wait::soon;
use proofhouse_wire::{ProcessError, Spawn, WireLimits, WireLine, kill_marked};
use tokio::io::AsyncWriteExt;

fn shell(script: &str) -> Spawn {
    Spawn {
        program: "sh".to_owned(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        ..Spawn::default()
    }
}

fn limits() -> WireLimits {
    WireLimits {
        max_stderr_bytes: 100,
        exit_timeout: Duration::from_millis(300),
        ..WireLimits::default()
    }
}

#[tokio::test]
async fn lines_go_there_and_back() {
    let (mut child, mut stdin, mut lines) = shell("cat").start(&limits()).unwrap();
    stdin.write_all(b"hello\n").await.unwrap();
    assert_eq!(
        lines.next().await.unwrap(),
        Some(WireLine::Whole(b"hello".to_vec()))
    );
    drop(stdin);
    assert_eq!(lines.next().await.unwrap(), None);
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_flood_on_stderr_neither_blocks_nor_grows() {
    let script = "i=0; while [ $i -lt 20000 ]; do echo error-$i >&2; i=$((i+1)); done; echo done";
    let (child, _stdin, mut lines) = shell(script).start(&limits()).unwrap();
    assert_eq!(
        lines.next().await.unwrap(),
        Some(WireLine::Whole(b"done".to_vec()))
    );
    // The last of it may be on its way still.
    soon("the last of it", || {
        child.stderr().trim_end().ends_with("error-19999")
    })
    .await;
    let kept = child.stderr();
    assert!(
        kept.len() <= 100 && kept.trim_end().ends_with("error-19999"),
        "{kept}"
    );
}

#[tokio::test]
async fn a_process_that_ignores_everything_is_killed_with_its_children() {
    let script = "trap '' TERM; sleep 1000 & echo $!; wait; wait; sleep 1000";
    let (child, stdin, mut lines) = shell(script).start(&limits()).unwrap();
    let Some(WireLine::Whole(pid)) = lines.next().await.unwrap() else {
        panic!("no line");
    };
    drop(stdin);
    let started = Instant::now();
    child.stop().await;
    assert!(started.elapsed() < Duration::from_secs(30));
    let pid = String::from_utf8(pid).unwrap();
    soon("the end of its child", || !is_running(&pid)).await;
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    let spawn = Spawn {
        program: "no-such-program-here".to_owned(),
        ..Spawn::default()
    };
    let error = spawn.start(&limits()).unwrap_err();
    assert!(matches!(error, ProcessError::Start { .. }));
    assert!(error.to_string().contains("no-such-program-here"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_leaves_the_group_is_found_by_its_environment() {
    let mark = format!("processes-test-{}", std::process::id());
    let marked = |mark: &str| Spawn {
        environment: vec![("PROOFHOUSE_TEST_MARK".to_owned(), mark.to_owned())],
        // In a session of its own, and with a child that has no environment at all.
        ..shell("setsid sh -c 'env -i sleep 600 & echo here; wait' & wait")
    };
    let (ours, _in, mut said) = marked(&mark).start(&limits()).unwrap();
    let (mut other, _other_in, mut other_said) = marked("another").start(&limits()).unwrap();
    for lines in [&mut said, &mut other_said] {
        assert_eq!(
            lines.next().await.unwrap(),
            Some(WireLine::Whole(b"here".to_vec()))
        );
    }
    drop(ours);
    let killed = kill_marked("PROOFHOUSE_TEST_MARK", &mark);
    assert!(killed >= 2, "{killed}");
    // Whoever held its output open is gone.
    let rest = tokio::time::timeout(Duration::from_secs(60), said.next()).await;
    assert_eq!(rest.unwrap().unwrap(), None);
    let waits = tokio::time::timeout(Duration::from_millis(100), other.wait()).await;
    assert!(waits.is_err(), "others are left alone");
    drop(other);
    assert!(kill_marked("PROOFHOUSE_TEST_MARK", "another") >= 2);
}
