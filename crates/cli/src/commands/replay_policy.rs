//! `proofhouse replay --policy`: judges what guards recorded again, with another policy.

use std::path::{Path, PathBuf};

use proofhouse_guard::OpenedPolicy;
use proofhouse_guard::replay::{ReplayedCalls, replay_trace};
use serde_json::json;

use crate::exit_code::Exit;
use crate::interrupt::Interrupt;
use crate::output::{CommandError, StdoutData, printable_line};
use crate::traces;

/// Judges traces of guards with a policy.
pub(super) fn run(policy: &Path, paths: &[PathBuf], is_json: bool) -> Result<Exit, CommandError> {
    let policy = OpenedPolicy::open(Some(policy));
    let policy = policy.map_err(|error| CommandError::of(&error, false))?;
    let (mut all, mut skipped) = (ReplayedCalls::default(), 0);
    let (mut data, mut sessions) = (StdoutData::new(), Vec::new());
    for input in traces::find(paths, false)? {
        let name = printable_line(&input.name());
        let opened = traces::open(&input, &Interrupt::watch());
        let session = replay_trace(&policy, opened.reader).map_err(|error| {
            CommandError::cannot_run(printable_line(&format!("{name}: {error}")))
        })?;
        for finding in session.findings.iter().filter(|_| !is_json) {
            let number = finding.sequence.unwrap_or_default();
            data.line(&format!("{name}: {number}: {}", finding.line()))?;
        }
        (all, skipped) = (all.and(session.calls), skipped + session.skipped);
        sessions.push(json!({"trace": name, "session": session}));
    }
    if is_json {
        data.json(&json!({"version": 1, "calls": all, "traces": sessions}))?;
    } else {
        data.line(&all.to_string())?;
    }
    data.finish()?;
    Ok(match all {
        ReplayedCalls {
            asked: 0,
            blocked: 0,
            passed: 1..,
        } if skipped == 0 => Exit::Success,
        ReplayedCalls {
            asked: 0,
            blocked: 0,
            ..
        } => Exit::Inconclusive,
        _ => Exit::Failure,
    })
}
