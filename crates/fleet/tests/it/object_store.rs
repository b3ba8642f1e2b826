//! Traces in an object store: written by workers, read by reports, and told when they are gone or changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_fleet::trace_place::TraceAccess;
use proofhouse_fleet::traces::{TraceStore, TraceStoreError};
use proofhouse_fleet::worker::WorkerEnd;
use proofhouse_fleet::{report, retention};
use proofhouse_store::model::CampaignState;
use proofhouse_test_support::http::{TestReply, TestServer};
use proofhouse_test_support::peers;
use proofhouse_wire::client::Client;
use proofhouse_wire::{Bytes, HeaderMap, Method, ProxySettings, Url, WireLimits};

use crate::support::{PROGRAM, access, planned, settings, worker};
use crate::work::store;

const KEY_ID: &str = "key-id-of-the-test";
const SECRET: &str = "secret-of-the-test";

/// The S3 at this address, with credentials.
fn s3_at(url: &str) -> TraceAccess {
    let variables: HashMap<&str, String> = [
        ("AWS_ENDPOINT_URL", url.to_owned()),
        ("AWS_ACCESS_KEY_ID", KEY_ID.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", "eu-central-1".to_owned()),
    ]
    .into();
    TraceAccess {
        environment: Arc::new(move |name| variables.get(name).cloned()),
        proxies: ProxySettings::default(),
    }
}

/// Asks the server itself, beside our store.
async fn ask(method: Method, url: &str, body: Bytes) -> (u16, Bytes) {
    let client = Client::new(WireLimits::default()).unwrap();
    let url = Url::parse(url).unwrap();
    let time = Duration::from_secs(30);
    // The server looks whether somebody signed, not how.
    let mut headers = HeaderMap::new();
    let scope =
        format!("AWS4-HMAC-SHA256 Credential={KEY_ID}/20260101/eu-central-1/s3/aws4_request");
    headers.insert("authorization", scope.parse().unwrap());
    let answer = client.exchange(method, &url, headers, body, time);
    let answer = answer.await.unwrap();
    (answer.status.as_u16(), answer.body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_of_a_campaign_go_to_s3_and_come_back() {
    let Some(peers) = peers::installed("traces in S3", "moto/venv") else {
        return;
    };
    let server = peers::program(&peers, "moto", &["evidence"]);
    let (url, _child, _stdin) = peers::listening(&server).await;
    let place = "s3://evidence/nightly/traces";
    let traces = TraceStore::open(place, &s3_at(&url)).unwrap();
    let (directory, store) = store().await;
    let mut wanted = settings("s3");
    wanted.traces = Some(place.to_owned());
    let campaign = planned(&store, wanted).await;
    let end = worker(&store, "one", &campaign, Some(traces.clone())).await;
    assert_eq!(end.unwrap(), WorkerEnd::Over(CampaignState::Finished));
    let campaign = store.campaign(campaign.id).await.unwrap();
    let mut stored = report::read(&store, &campaign, PROGRAM).await.unwrap();
    let runs = &stored.result.runs;
    let lost = runs.iter().find_map(|run| run.trace_lost.as_deref());
    assert_eq!(lost, None);
    assert_eq!(stored.traces.len(), runs.len(), "every run names its trace");
    let out = directory.path().join("out");
    let lost = stored.fetch_traces(&traces, &out).await.unwrap();
    assert!(lost.is_empty(), "{lost:?}");
    let read = proofhouse_campaign::replay::traces(&stored.result, &out);
    assert_eq!(read.len(), stored.result.runs.len());
    assert!(read.values().all(|messages| !messages.is_empty()));

    // One is replaced by another that is whole in itself, and one is removed.
    let mut digests: Vec<String> = stored.traces.values().cloned().collect();
    digests.sort();
    digests.dedup();
    let object = |digest: &str| {
        let start = &digest[..2];
        format!("{url}/evidence/nightly/traces/{start}/{digest}.jsonl.gz")
    };
    let [changed, gone, other] = [&digests[0], &digests[1], &digests[2]];
    let (found, foreign) = ask(Method::GET, &object(other), Bytes::new()).await;
    assert_eq!(found, 200);
    assert_eq!(&foreign[..2], [0x1f, 0x8b], "it is compressed");
    assert_eq!(ask(Method::PUT, &object(changed), foreign).await.0, 200);
    assert_eq!(
        ask(Method::DELETE, &object(gone), Bytes::new()).await.0,
        204
    );
    let again = directory.path().join("again");
    let lost = stored.fetch_traces(&traces, &again).await.unwrap();
    let lost = lost.join("\n");
    assert!(
        lost.contains(&format!(
            "trace {changed} cannot be read: its digest is {other}"
        )),
        "{lost}"
    );
    assert!(
        lost.contains(&format!("trace {gone} cannot be read: NoSuchKey")),
        "{lost}"
    );
    let told = stored.result.runs.iter();
    assert!(told.filter(|run| run.trace_lost.is_some()).count() >= 2);

    // What no campaign names any more is removed there.
    let open = |place: &str| TraceStore::open(place, &s3_at(&url));
    let pruned = retention::prune(&store, Duration::ZERO, true, &open);
    let pruned = pruned.await.unwrap();
    assert!(pruned.problems.is_empty(), "{:?}", pruned.problems);
    assert_eq!(pruned.traces, digests.len() as u64);
    let (_, listed) = ask(Method::GET, &format!("{url}/evidence"), Bytes::new()).await;
    let listed = String::from_utf8_lossy(&listed);
    assert!(!listed.contains(".jsonl.gz"), "{listed}");
    // A bucket that is not there is told.
    let nowhere = TraceStore::open("s3://nowhere", &s3_at(&url)).unwrap();
    let file = directory.path().join("trace.jsonl");
    std::fs::write(&file, "{}\n").unwrap();
    let refused = nowhere.put_file(&file).await.unwrap_err().to_string();
    assert!(refused.contains("NoSuchBucket"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_that_is_gone_or_changed_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let place = format!("file://{}/with space", directory.path().display());
    let traces = TraceStore::open(&place, &access()).unwrap();
    let file = directory.path().join("trace.jsonl");
    let mut digests = Vec::new();
    for text in ["one\n", "two\n", "three\n"] {
        std::fs::write(&file, text).unwrap();
        digests.push(traces.put_file(&file).await.unwrap());
        let read = traces.get(digests.last().unwrap()).await.unwrap();
        assert_eq!(read, text.as_bytes());
    }
    let kept = |digest: &str| {
        let start = &digest[..2];
        let below = format!("with space/{start}/{digest}.jsonl.gz");
        directory.path().join(below)
    };
    std::fs::copy(kept(&digests[1]), kept(&digests[0])).unwrap();
    let told = traces.get(&digests[0]).await.unwrap_err().to_string();
    assert!(
        told.contains(&format!("its digest is {}", digests[1])),
        "{told}"
    );
    traces.remove(&digests[1]).await.unwrap();
    traces.remove(&digests[1]).await.unwrap();
    let told = traces.get(&digests[1]).await.unwrap_err().to_string();
    assert!(told.ends_with("it is not there"), "{told}");
    // Half of one is none.
    let whole = std::fs::metadata(kept(&digests[2])).unwrap().len();
    let mut writing = std::fs::OpenOptions::new();
    let file = writing.write(true).open(kept(&digests[2])).unwrap();
    file.set_len(whole / 2).unwrap();
    assert!(traces.get(&digests[2]).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_sent_to_nobody_in_clear_and_never_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.jsonl");
    std::fs::write(&file, "{}\n").unwrap();
    // A server that tells what it should not.
    let body = format!(
        "<Error><Code>SignatureDoesNotMatch</Code><Message>{KEY_ID} did not sign this with {SECRET}</Message></Error>"
    );
    let server = TestServer::start(move |_, _| TestReply::Plain(403, "", body.clone()));
    let url = format!("http://{}", server.address());
    let traces = TraceStore::open("s3://evidence", &s3_at(&url)).unwrap();
    let refused = traces.put_file(&file).await.unwrap_err();
    assert!(matches!(refused, TraceStoreError::Write(_)), "{refused:?}");
    let told = format!("{refused} {refused:?} {traces:?}");
    assert!(told.contains("SignatureDoesNotMatch"), "{told}");
    assert!(!told.contains(SECRET) && !told.contains(KEY_ID), "{told}");
    let seen = server.requests();
    assert!(seen[0].path.starts_with("/evidence/"), "{seen:?}");
    let signed = seen[0].header("authorization").unwrap();
    assert!(signed.starts_with("AWS4-HMAC-SHA256 "), "{signed}");
    assert!(!signed.contains(SECRET), "{signed}");
    // Elsewhere than on this machine it must be TLS.
    let plain = s3_at("http://store.example");
    let traces = TraceStore::open("s3://evidence", &plain).unwrap();
    let refused = traces.put_file(&file).await.unwrap_err().to_string();
    assert!(
        refused.contains("store.example is not encrypted"),
        "{refused}"
    );
}
