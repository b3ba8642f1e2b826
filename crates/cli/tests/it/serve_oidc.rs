//! Signing in to the dashboard with a real identity provider (npm `oidc-provider`), as a browser would.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use proofhouse_test_support::peers;
use proofhouse_test_support::wait::until;
use serde_json::json;

use crate::support;
use crate::support::served::{Reply, Served};

const CLERK: &str = r#"
kind: commonagents.info/v1beta2/agent
namespace: shop
name: clerk
description: Keeps watch.
prompt: You keep watch.
"#;

/// A provider that ends with the test.
struct Provider {
    issuer: String,
    child: Child,
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn provider(redirect: &str) -> Option<Provider> {
    let test = "signing in with an identity provider";
    let peers = peers::installed(test, "oidc-provider/node_modules")?;
    let [program, file] = peers::words(&peers, "oidc-provider", "server");
    let mut child = Command::new(program)
        .args([&file, redirect])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let issuer = support::json(&line)["issuer"].as_str().unwrap().to_owned();
    Some(Provider { issuer, child })
}

/// A browser: it keeps cookies by host and follows where it is sent.
#[derive(Default)]
struct Browser {
    cookies: BTreeMap<SocketAddr, BTreeMap<String, String>>,
}

impl Browser {
    fn ask(&mut self, method: &str, url: &str, form: &str) -> Reply {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        let address: SocketAddr = host.parse().unwrap();
        let jar = self.cookies.entry(address).or_default();
        let cookies: Vec<String> = jar
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let head = format!(
            "{method} /{path} HTTP/1.1\r\nhost: {host}\r\ncookie: {}\r\n\
             content-type: application/x-www-form-urlencoded",
            cookies.join("; ")
        );
        let reply = Served::send_all(address, &head, form.as_bytes());
        for set in &reply.1 {
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            jar.insert(name.to_owned(), value.to_owned());
        }
        reply.0
    }

    /// Follows redirects until there is a page, and returns where that is.
    fn follow(&mut self, url: &str) -> (String, Reply) {
        let mut url = url.to_owned();
        for _ in 0..10 {
            let reply = self.ask("GET", &url, "");
            if !(300..400).contains(&reply.status) {
                return (url, reply);
            }
            url = joined(&url, reply.header("location"));
        }
        panic!("too many redirects: {url}")
    }

    /// Signs in at the provider as somebody in these groups, and returns the last page and where it is.
    fn sign_in(&mut self, root: &str, user: &str, groups: &str) -> (String, Reply) {
        let (mut at, mut page) = self.follow(&format!("{root}/dashboard/oidc/begin"));
        for _ in 0..2 {
            if !at.contains("/interaction/") {
                break;
            }
            assert_eq!(page.status, 200, "{page:?}");
            let form = format!("user={user}&groups={groups}");
            let reply = self.ask("POST", &at, &form);
            let next = joined(&at, reply.header("location"));
            (at, page) = self.follow(&next);
        }
        (at, page)
    }
}

fn joined(base: &str, location: &str) -> String {
    if location.starts_with("http") {
        return location.to_owned();
    }
    let host: Vec<&str> = base.splitn(4, '/').take(3).collect();
    format!("{}{location}", host.join("/"))
}

#[test]
fn people_sign_in_with_their_organization() {
    let served = Served::start(&[("clerk.yaml", CLERK)], "egress: {}\n", &[]);
    let root = format!("http://{}", served.api);
    let Some(provider) = provider(&format!("{root}/dashboard/oidc/callback")) else {
        return;
    };
    let begin = served.look("", "/dashboard/oidc/begin");
    assert_eq!(begin.status, 404, "{begin:?}");
    let settings = json!({"sign_in": {
        "issuer": provider.issuer, "client_id": "proofhouse", "client_secret": "a secret: with signs & more",
        "public_url": root,
        "grants": [
            {"group": "watchers", "role": "reader", "namespaces": ["shop"]},
            {"group": "boss", "role": "admin"},
        ],
    }});
    std::fs::write(served.path("operator.yaml"), settings.to_string()).unwrap();
    served.signal("-HUP");
    until("the provider", || {
        let page = served.look("", "/dashboard/sign-in");
        page.text.contains("your organization").then_some(())
    });
    let task = served.begin("clerk", None);

    let mut ann = Browser::default();
    let (at, page) = ann.sign_in(&root, "ann", "watchers,others");
    assert_eq!(page.status, 200, "{at} {page:?}\n{}", served.log());
    let (_, page) = ann.follow(&format!("{root}/dashboard"));
    assert!(page.text.contains(&task), "{page:?}");
    // A reader has no form to cancel with, and may not without one either.
    let (_, page) = ann.follow(&format!("{root}/dashboard/tasks/{task}"));
    assert!(!page.text.contains("Cancel the task"), "{page:?}");
    let token = support::served::form_token(&page.text);
    let cancel = format!("{root}/dashboard/tasks/{task}/cancel");
    let reply = ann.ask("POST", &cancel, &format!("form_token={token}"));
    assert_eq!(reply.status, 403, "{reply:?}");

    let mut boss = Browser::default();
    let (_, page) = boss.sign_in(&root, "carl", "boss");
    assert_eq!(page.status, 200, "{page:?}");
    let (_, page) = boss.follow(&format!("{root}/dashboard/tasks/{task}"));
    let token = support::served::form_token(&page.text);
    let reply = boss.ask("POST", &cancel, &format!("form_token={token}"));
    assert_eq!(reply.status, 303, "{reply:?}");

    let mut stranger = Browser::default();
    let (_, page) = stranger.sign_in(&root, "eve", "nobody");
    assert_eq!(page.status, 403, "{page:?}");
    assert!(page.text.contains("no group"), "{page:?}");
    let (at, _) = stranger.follow(&format!("{root}/dashboard"));
    assert!(at.ends_with("/dashboard/sign-in"), "{at}");
    // A way back that was begun in another browser, or is used twice, leads nowhere.
    let mut thief = Browser::default();
    let (at, _) = thief.follow(&format!("{root}/dashboard/oidc/callback?code=x&state=y"));
    let reply = thief.ask("GET", &at, "");
    assert_eq!(reply.status, 400, "{reply:?}");

    let entries = served.get("/v1/audit")["entries"].clone();
    let entries = entries.as_array().unwrap();
    let by = |person: &str, action: &str| {
        entries.iter().find(|entry| {
            entry["entry"]["actor"]["person"] == person && entry["entry"]["action"] == action
        })
    };
    assert!(
        by("ann@example.com", "session.begin").is_some(),
        "{entries:?}"
    );
    let cancelled = by("carl@example.com", "task.cancel").unwrap();
    assert_eq!(cancelled["entry"]["outcome"], "done");
    let refused = by("ann@example.com", "task.cancel").unwrap();
    assert_eq!(refused["entry"]["outcome"], "refused");
}
