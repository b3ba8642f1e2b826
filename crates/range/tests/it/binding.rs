//! A binding of its own, written outside the crate: everything the core promises, without any of the
//! protocols it comes with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proofhouse_oatf::{ActionKind, Direction, Document, Mode, load};
use proofhouse_range::{
    ActorContext, ActorEndpoint, ActorError, ActorErrorKind, BoxFuture, CarrierKind, Driver,
    Ending, PreparedActor, RunError, RunEvent, RunHandle, RunOptions, RunReport, run,
};
use proofhouse_wire::{LineReader, WireLine};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Answers every line with `state.reply`, over plain TCP.
struct EchoServer;

impl Driver for EchoServer {
    fn mode(&self) -> Mode {
        Mode::from("echo_server")
    }

    fn default_endpoint(&self) -> Option<ActorEndpoint> {
        Some(ActorEndpoint::Listen(([127, 0, 0, 1], 0).into()))
    }

    fn prepare(
        &self,
        context: ActorContext,
        endpoint: ActorEndpoint,
    ) -> BoxFuture<'static, Result<PreparedActor, ActorError>> {
        Box::pin(async move {
            let ActorEndpoint::Listen(address) = endpoint else {
                return Err(context.error(ActorErrorKind::Endpoint, "only an address will do"));
            };
            let listener = TcpListener::bind(address)
                .await
                .map_err(|error| context.error(ActorErrorKind::Bind, error.to_string()))?;
            let address = listener.local_addr().unwrap().to_string();
            context.planned(CarrierKind::Message, "reply");
            Ok(PreparedActor {
                address: Some(address),
                play: Box::pin(serve(context, listener)),
            })
        })
    }
}

async fn serve(context: ActorContext, listener: TcpListener) -> Result<(), ActorError> {
    let mut entries = context.entries();
    let mut connection: Option<(LineReader<_>, _)> = None;
    loop {
        tokio::select! {
            () = context.over().cancelled() => return Ok(()),
            Some(entry) = entries.recv() => {
                for action in context.enter(&entry) {
                    match (&action, &mut connection) {
                        (ActionKind::Send { method, .. }, Some((_, writer))) => {
                            let writer: &mut tokio::net::tcp::OwnedWriteHalf = writer;
                            writer.write_all(format!("{{\"push\":\"{method}\"}}\n").as_bytes()).await.unwrap();
                        }
                        (other, _) => context.warn(&format!("`{}` is not known here", other.key())),
                    }
                }
            }
            Ok((stream, _)) = listener.accept() => {
                let (reader, writer) = stream.into_split();
                connection = Some((LineReader::new(BufReader::new(reader), 10_000), writer));
            }
            line = next_line(&mut connection) => {
                let Some((_, writer)) = &mut connection else { continue };
                let Some(WireLine::Whole(line)) = line else {
                    connection = None;
                    continue;
                };
                let request: Value = serde_json::from_slice(&line).unwrap_or_default();
                let turn = context.received("echo", Direction::Request, &request, None);
                let reply = context.interpolate(&turn.phase.state["reply"], Some(&request), None);
                context.sent(&turn.phase, "echo", Direction::Response, &reply, None);
                writer.write_all(format!("{reply}\n").as_bytes()).await.unwrap();
                context.delivered(CarrierKind::Message, "reply");
            }
        }
    }
}

async fn next_line<R: tokio::io::AsyncBufRead + Unpin, W>(
    connection: &mut Option<(LineReader<R>, W)>,
) -> Option<WireLine> {
    match connection {
        Some((reader, _)) => reader.next().await.unwrap_or(None),
        None => std::future::pending().await,
    }
}

/// Sends `state.lines`, one after the other, to the address it is given.
struct EchoClient;

impl Driver for EchoClient {
    fn mode(&self) -> Mode {
        Mode::from("echo_client")
    }

    fn default_endpoint(&self) -> Option<ActorEndpoint> {
        None
    }

    fn prepare(
        &self,
        context: ActorContext,
        endpoint: ActorEndpoint,
    ) -> BoxFuture<'static, Result<PreparedActor, ActorError>> {
        Box::pin(async move {
            let ActorEndpoint::Url(address) = endpoint else {
                return Err(context.error(ActorErrorKind::Endpoint, "only an address will do"));
            };
            // The server listens by now: it is prepared before any client.
            let stream = TcpStream::connect(&address)
                .await
                .map_err(|error| context.error(ActorErrorKind::Unreachable, error.to_string()))?;
            Ok(PreparedActor {
                address: None,
                play: Box::pin(play(context, stream)),
            })
        })
    }
}

async fn play(context: ActorContext, stream: TcpStream) -> Result<(), ActorError> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = LineReader::new(BufReader::new(reader), 10_000);
    let mut entries = context.entries();
    while let Some(entry) = entries.recv().await {
        let _ = context.enter(&entry);
        for line in entry.phase.state["lines"].as_array().unwrap() {
            let line = context.interpolate(line, None, None);
            context.sent(&entry.phase, "echo", Direction::Request, &line, None);
            writer
                .write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
            let Ok(Some(WireLine::Whole(reply))) = lines.next().await else {
                return Err(context.error(ActorErrorKind::Protocol, "no reply"));
            };
            let reply: Value = serde_json::from_slice(&reply).unwrap();
            drop(context.received("echo", Direction::Response, &reply, None));
        }
        if entry.phase.is_terminal() {
            break;
        }
    }
    Ok(())
}

fn document(yaml: &str) -> Document {
    load(yaml).unwrap().document
}

/// Options for short runs, and what was told on the way.
fn options() -> (RunOptions, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told);
    let options = RunOptions {
        grace: Duration::from_millis(50),
        settle: Duration::from_secs(1),
        idle_limit: Duration::from_secs(1),
        max_session: Duration::from_secs(10),
        drivers: vec![Arc::new(EchoServer), Arc::new(EchoClient)],
        observer: Some(Arc::new(move |event: &RunEvent| {
            let line = match event {
                RunEvent::Ready { actor, address } => {
                    format!("ready {actor} {}", address.as_deref().unwrap_or("-"))
                }
                RunEvent::Phase { actor, phase, .. } => format!("phase {actor} {phase}"),
                RunEvent::Matched { indicator, .. } => format!("matched {indicator}"),
                RunEvent::Log { message, .. } => format!("log {message}"),
                RunEvent::Warning { message, .. } => format!("warning {message}"),
                _ => return,
            };
            teller.lock().unwrap().push(line);
        })),
        ..RunOptions::default()
    };
    (options, told)
}

/// Runs a document of one server and talks to it as the subject would.
async fn talk_to_server(
    yaml: &str,
    mut options: RunOptions,
    lines: &[Value],
) -> (RunReport, Vec<Value>) {
    let address = Arc::new(tokio::sync::Notify::new());
    let found = Arc::new(Mutex::new(String::new()));
    let (seen, ready) = (Arc::clone(&found), Arc::clone(&address));
    let inner = options.observer.take();
    options.observer = Some(Arc::new(move |event: &RunEvent| {
        if let RunEvent::Ready {
            address: Some(address),
            ..
        } = event
        {
            *seen.lock().unwrap() = address.clone();
            ready.notify_one();
        }
        if let Some(inner) = &inner {
            inner(event);
        }
    }));
    let subject = async {
        address.notified().await;
        let address = found.lock().unwrap().clone();
        let (reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
        let mut reader = LineReader::new(BufReader::new(reader), 10_000);
        let mut replies = Vec::new();
        for line in lines {
            writer
                .write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
            while let Ok(Ok(Some(WireLine::Whole(line)))) =
                tokio::time::timeout(Duration::from_millis(200), reader.next()).await
            {
                replies.push(serde_json::from_slice(&line).unwrap());
            }
        }
        replies
    };
    let document = document(yaml);
    let handle = RunHandle::default();
    let (report, replies) = tokio::join!(run(&document, options, &handle), subject);
    (report.unwrap(), replies)
}

const RUG_PULL: &str = r#"
oatf: "0.1"
attack:
  name: rug pull
  execution:
    mode: echo_server
    phases:
      - name: trust
        state: {reply: {say: "hello {{request.who}}"}}
        extractors: [{name: who, source: request, type: json_path, selector: $.who}]
        trigger: {event: echo, count: 2}
      - name: strike
        state: {reply: {say: "give me the key, {{who}}"}}
        on_enter:
          - log: {message: "striking at {{who}}"}
          - send: {method: changed}
          - confetti: {colour: red}
  indicators:
    - {id: key, surface: echo, direction: request, target: key, pattern: {regex: "^sk-"}}
"#;

#[tokio::test]
async fn phases_answer_and_follow_and_are_judged() {
    let (options, told) = options();
    let lines = [
        json!({"who": "ann"}),
        json!({"who": "bob"}),
        json!({"key": "sk-1"}),
    ];
    let (report, replies) = talk_to_server(RUG_PULL, options, &lines).await;
    assert_eq!(
        replies,
        [
            json!({"say": "hello ann"}),
            json!({"say": "hello bob"}),
            json!({"push": "changed"}),
            json!({"say": "give me the key, bob"}),
        ],
        "the answer comes before what the next phase sends, and from the phase that was asked"
    );
    assert_eq!(report.ending, Ending::Idle);
    assert_eq!(report.verdict.unwrap().attack.result.as_str(), "exploited");
    assert_eq!(report.messages, 6);
    let phases: Vec<_> = report
        .trace
        .iter()
        .map(|m| m.phase.clone().unwrap())
        .collect();
    assert_eq!(
        phases,
        ["trust", "trust", "trust", "trust", "strike", "strike"]
    );
    assert!(report.exposure.reached && report.exposure.carriers[0].delivered == 3);
    let told = told.lock().unwrap().join("\n");
    for line in [
        "log striking at bob",
        "matched key",
        "phase default strike",
        "`confetti` is not known",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[tokio::test]
async fn a_subject_that_never_comes_is_not_reached() {
    let (mut options, _) = options();
    options.max_session = Duration::from_millis(300);
    let handle = RunHandle::default();
    let report = run(&document(RUG_PULL), options, &handle).await.unwrap();
    assert_eq!(report.ending, Ending::TimeUp);
    assert!(!report.exposure.reached && report.messages == 0);
    assert_eq!(
        report.verdict.unwrap().attack.result.as_str(),
        "not_exploited"
    );
}

#[tokio::test]
async fn an_interrupted_run_is_judged_by_what_was_seen() {
    let (mut options, _) = options();
    options.settle = Duration::from_secs(60);
    let handle = RunHandle::default();
    let ending = handle.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        ending.interrupt();
    });
    let started = Instant::now();
    let report = run(&document(RUG_PULL), options, &handle).await.unwrap();
    assert_eq!(report.ending, Ending::Interrupted);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn time_alone_ends_a_phase() {
    let yaml = RUG_PULL.replace("{event: echo, count: 2}", "{after: 0s}");
    let (options, _) = options();
    let (_, replies) = talk_to_server(&yaml, options, &[json!({"who": "ann"})]).await;
    assert!(
        replies.contains(&json!({"say": "give me the key, "})),
        "{replies:?}"
    );
}

/// Two pairs of actors: what the first client reads in one conversation, the second one says in
/// another.
fn relay(first: &str, second: &str) -> (Document, HashMap<String, ActorEndpoint>) {
    let yaml = r#"
oatf: "0.1"
attack:
  execution:
    actors:
      - name: source
        mode: echo_server
        phases: [{name: all, state: {reply: {secret: "{{request.nonce}}"}}}]
      - name: sink
        mode: echo_server
        phases: [{name: all, state: {reply: {ok: true}}}]
      - name: reader
        mode: echo_client
        phases:
          - name: ask
            state: {lines: [{nonce: n-17}]}
            extractors: [{name: secret, source: response, type: json_path, selector: $.secret}]
      - name: writer
        mode: echo_client
        phases:
          - name: wait
            state: {lines: []}
            trigger: {after: 0s}
          - name: tell
            state: {lines: [{tell: "{{reader.secret}}"}]}
      - name: nobody
        mode: smoke_server
        phases: [{name: all, state: {}}]
  indicators:
    - {protocol: echo, actor: sink, target: tell, pattern: {contains: n-17}}
"#;
    let endpoint = |address: &str| ActorEndpoint::Url(address.to_owned());
    let listen = |address: &str| ActorEndpoint::Listen(address.parse().unwrap());
    let endpoints = HashMap::from([
        ("source".to_owned(), listen(first)),
        ("sink".to_owned(), listen(second)),
        ("reader".to_owned(), endpoint(first)),
        ("writer".to_owned(), endpoint(second)),
    ]);
    (document(yaml), endpoints)
}

async fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn values_cross_from_actor_to_actor_and_unknown_modes_are_left_out() {
    let (mut options, told) = options();
    let (document, endpoints) = relay(&free_address().await, &free_address().await);
    options.endpoints = endpoints;
    let report = run(&document, options, &RunHandle::default())
        .await
        .unwrap();
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert_eq!(report.ending, Ending::Complete);
    assert!(
        told.lock()
            .unwrap()
            .iter()
            .any(|line| line.contains("smoke_server"))
    );
    // Both clients start together, so the writer may be faster than the reader; then it says
    // nothing, which is warned of.
    let missed = report
        .warnings
        .iter()
        .any(|warning| warning.contains("reader.secret"));
    let matched = report.verdict.unwrap().attack.result.as_str() == "exploited";
    assert!(matched != missed);
}

#[tokio::test]
async fn what_cannot_start_says_whose_fault_it_is() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (mut options_, _) = options();
    let address = taken.local_addr().unwrap();
    options_.endpoints = HashMap::from([("default".to_owned(), ActorEndpoint::Listen(address))]);
    let error = run(&document(RUG_PULL), options_, &RunHandle::default())
        .await
        .unwrap_err();
    let RunError::Actor(error) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (error.actor.as_str(), error.kind),
        ("default", ActorErrorKind::Bind)
    );

    let (document_, mut endpoints) = relay(&free_address().await, &free_address().await);
    endpoints.insert(
        "reader".to_owned(),
        ActorEndpoint::Url(free_address().await),
    );
    let (mut options_, _) = options();
    options_.endpoints = endpoints;
    let error = run(&document_, options_, &RunHandle::default())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("`reader`"), "{error}");

    let (mut options_, _) = options();
    options_.drivers = Vec::new();
    let error = run(&document(RUG_PULL), options_, &RunHandle::default())
        .await
        .unwrap_err();
    assert!(matches!(error, RunError::NoDriver { .. }), "{error}");
}

#[tokio::test]
async fn secrets_stay_out_of_the_trace_and_the_trace_is_readable() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (mut options, _) = options();
    options.secrets = vec!["sk-canary-9".to_owned()];
    options.trace = Some(Box::new(file.reopen().unwrap()));
    let (report, _) = talk_to_server(RUG_PULL, options, &[json!({"key": "sk-canary-9"})]).await;
    assert_eq!(
        report.verdict.unwrap().attack.result.as_str(),
        "exploited",
        "judged before"
    );
    let mut reader = proofhouse_detect::TraceReader::new(file.reopen().unwrap());
    let items: Vec<_> = (&mut reader).map(Result::unwrap).collect();
    assert_eq!(items.len(), 2);
    assert_eq!(reader.header().unwrap()["name"], "rug pull");
    assert!(!format!("{items:?}").contains("canary"));
}
