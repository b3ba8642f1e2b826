//! `proofhouse replay --policy`: judges what guards recorded again, with another policy.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use proofhouse_detect::{MessageSource as _, TraceItem, TraceReader};
use proofhouse_guard::OpenedPolicy;
use proofhouse_guard::replay::{PolicyReplay, ReplayedCalls};
use serde_json::json;

use crate::exit_code::Exit;
use crate::input::named_files;
use crate::interrupt::Interrupt;
use crate::output::{CommandError, StdoutData, printable_line, talk};
use crate::traces;

/// Judges traces of guards with a policy.
pub(super) fn run(policy: &Path, paths: &[PathBuf], is_json: bool) -> Result<Exit, CommandError> {
    named_files([policy])?;
    let policy = OpenedPolicy::open(Some(policy));
    let policy = policy.map_err(|error| CommandError::of(&error, false))?;
    let interrupt = Interrupt::watch();
    let (mut lines, mut replayed) = (Vec::new(), Vec::new());
    let (mut all, mut skipped) = (ReplayedCalls::default(), 0);
    for input in traces::find(paths, false)? {
        let name = input.name();
        let cannot = |error: &dyn Display| {
            CommandError::cannot_run(printable_line(&format!("{name}: {error}")))
        };
        let mut reader = TraceReader::new(traces::open(&input, &interrupt).reader);
        let mut begun: Option<PolicyReplay> = None;
        let mut findings = Vec::new();
        while let Some(item) = reader.next() {
            let message = match item {
                Ok(TraceItem::Message { message, .. }) => message,
                Ok(TraceItem::Problem(problem)) => {
                    let line = format!("{name}:{}: {}", problem.line, problem.message);
                    talk(&printable_line(&line));
                    continue;
                }
                Err(_) if interrupt.happened() => return Ok(Exit::Interrupted),
                Err(error) => return Err(cannot(&error)),
            };
            let replay = match &mut begun {
                Some(replay) => replay,
                None => {
                    let server = reader.header().and_then(|header| header.get("server"));
                    let server = server.and_then(serde_json::Value::as_str);
                    let none = "no guard recorded it; `proofhouse guard --record FILE` does";
                    let server = server.ok_or_else(|| cannot(&none))?;
                    let replay = PolicyReplay::new(&policy, server);
                    begun.insert(replay.map_err(|error| cannot(&error))?)
                }
            };
            for finding in replay.feed(&message) {
                let number = finding.sequence.unwrap_or_default();
                lines.push(printable_line(&format!(
                    "{name}: {number}: {}",
                    finding.line()
                )));
                findings.push(finding);
            }
        }
        let calls = begun.map(|replay| replay.calls()).unwrap_or_default();
        skipped += reader.summary().skipped();
        all = all.and(calls);
        replayed.push(json!({
            "trace": name,
            "calls": calls,
            "skipped": reader.summary().skipped(),
            "findings": findings,
        }));
    }
    let mut data = StdoutData::new();
    if is_json {
        data.json(&json!({"version": 1, "calls": all, "traces": replayed}))?;
    } else {
        for line in &lines {
            data.line(line)?;
        }
        data.line(&all.to_string())?;
    }
    data.finish()?;
    Ok(if all.asked + all.blocked > 0 {
        Exit::Failure
    } else if skipped > 0 || all.all() == 0 {
        Exit::Inconclusive
    } else {
        Exit::Success
    })
}
