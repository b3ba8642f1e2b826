//! Serves the first server of a document on a loopback port until it is interrupted: `serve FILE [PORT|stdio]`.
//! The verdict, if there is one, is the last line of its error output.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_range::{ActorEndpoint, RunEvent, RunHandle, RunOptions, run};

#[tokio::main]
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program, not the library"
)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which document?")?;
    let endpoint = match arguments.next().as_deref() {
        Some("stdio") => ActorEndpoint::Stdio,
        port => ActorEndpoint::Listen(([127, 0, 0, 1], port.unwrap_or("0").parse()?).into()),
    };
    let over_stdio = matches!(endpoint, ActorEndpoint::Stdio);
    let text = std::fs::read_to_string(file)?;
    let loaded = proofhouse_oatf::load(&text).map_err(|errors| format!("{errors:?}"))?;
    let actors = loaded.document.attack.execution.actors();
    let mut servers = actors.iter().filter(|actor| actor.mode.is_server());
    let name = servers.next().ok_or("no server")?.name.clone();
    let options = RunOptions {
        endpoints: HashMap::from([(name, endpoint)]),
        settle: Duration::from_secs(86_400),
        max_session: Duration::from_secs(86_400),
        observer: Some(Arc::new(move |event| match event {
            RunEvent::Ready { address, .. } if !over_stdio => {
                println!("{}", address.as_deref().unwrap_or_default());
            }
            RunEvent::Warning { message, .. } => eprintln!("warning: {message}"),
            _ => {}
        })),
        ..RunOptions::default()
    };
    let handle = RunHandle::default();
    let interrupt = handle.clone();
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        interrupt.interrupt();
    });
    let report = run(&loaded.document, options, &handle).await?;
    eprintln!("{} messages, {:?}", report.messages, report.ending);
    if let Some(verdict) = &report.verdict {
        let reached = if report.exposure.reached {
            "reached"
        } else {
            "never reached"
        };
        eprintln!("{}, {reached}", verdict.attack.result.as_str());
    }
    Ok(())
}
