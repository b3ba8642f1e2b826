//! A server of today on the database that a server of before left behind when it was killed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use proofhouse_test_support::postgres::Postgres;
use proofhouse_test_support::wait::until;
use serde_json::json;

use crate::support;
use crate::support::served::Served;
use crate::support::shop::shop_with;

const SAID: &str = r#"events:
  - name: said
    message: "{event.payload.text}"
    receive: {webhook: {filter: "true"}}
"#;

/// A directory with the manifests of then.
fn shop() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("manifests")).unwrap();
    let shop = shop_with(SAID, "'ann@example.com'");
    std::fs::write(directory.path().join("manifests/shop.yaml"), shop).unwrap();
    std::fs::write(directory.path().join("operator.yaml"), "").unwrap();
    directory
}

#[test]
fn tasks_that_were_under_way_go_on_after_an_upgrade() {
    let directory = shop();
    let database = directory.path().join("store.db");
    let statements = include_str!("../../../store/tests/it/databases/version-3.sqlite.sql");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute_batch(statements).unwrap();
    drop(connection);
    goes_on(directory, "store.db");
}

#[test]
fn tasks_that_were_under_way_go_on_after_an_upgrade_on_postgres() {
    let Some(postgres) = Postgres::private("tasks_that_were_under_way_go_on_on_postgres") else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let connected = tokio_postgres::connect(postgres.url(), tokio_postgres::NoTls);
        let (client, connection) = connected.await.unwrap();
        let connection = tokio::spawn(connection);
        let statements = include_str!("../../../store/tests/it/databases/version-3.postgres.sql");
        client.batch_execute(statements).await.unwrap();
        drop(client);
        let _ = connection.await;
    });
    goes_on(shop(), postgres.url());
}

/// Serves the database of then: what waited is answered and done, who was idle is told something, and the keys are there.
fn goes_on(directory: tempfile::TempDir, store: &str) {
    let more = ["--lease", "1s", "--keep-tasks", "forever"];
    let mut served = Served::start_under(&[], store, directory, &more);
    // There were keys, so that none is made by itself.
    assert_eq!(served.key, "");
    served.key = served.new_key(&["--role", "admin", "--name", "new"]);
    let waits = served.get("/v1/tasks/task-waits");
    assert_eq!(waits["state"], "waiting", "{waits}");
    let path = "/v1/tasks/task-waits/reviews/1";
    let ann = served.new_key(&["--role", "approver", "--user", "ann@example.com"]);
    let answer = json!({"approve": true});
    let reply = served.ask_as(&ann, "POST", path, Some(&answer));
    assert_eq!(reply.status, 204, "{reply:?}");
    until("the refund", || {
        let turns = served.get("/v1/tasks/task-waits/turns").to_string();
        turns.contains(r#""paid":3"#).then_some(())
    });
    let said = json!({"message": "Are you still there?"});
    let reply = served.ask("POST", "/v1/tasks/task-idle/messages", Some(&said));
    assert_eq!(reply.status, 202, "{reply:?}");
    until("an answer", || {
        let turns = served.get("/v1/tasks/task-idle/turns").to_string();
        turns.contains("Are you still there?").then_some(())
    });
    assert_eq!(served.get("/v1/tasks/task-ended")["state"], "ended");
    let listed = support::json(&served.keys(&["list", "--format", "json"]));
    assert_eq!(listed["keys"][0]["namespaces"], json!(null));
}
