//! `proofhouse serve` as a process of its own, and a client that says exactly what it sends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use proofhouse_test_support::process::signal;
pub use proofhouse_test_support::wait::PATIENCE;
use proofhouse_test_support::wait::until;
use ring::hmac;
use serde_json::{Value, json};

/// The largest answer that is read.
const MAX_ANSWER: u64 = 16 << 20;

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    /// Every cookie that it sets.
    pub cookies: Vec<String>,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Sends one request, as it is, over a connection that ends with it.
pub fn exchange(stream: impl Read + Write, head: &str, body: &[u8]) -> Reply {
    try_exchange(stream, head, body).unwrap_or_else(|| panic!("no answer to {head}"))
}

/// The same where whoever is asked may be gone before it has answered.
pub fn try_exchange(mut stream: impl Read + Write, head: &str, body: &[u8]) -> Option<Reply> {
    let length = body.len();
    let head = format!("{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    // Whoever refuses a body need not read it.
    let _ = stream.write_all(body);
    let _ = stream.flush();
    let mut answer = Vec::new();
    // A refused body resets the connection behind the answer.
    #[expect(clippy::disallowed_methods, reason = "capped by take")]
    let _ = stream.take(MAX_ANSWER).read_to_end(&mut answer);
    reply(&String::from_utf8_lossy(&answer))
}

fn reply(answer: &str) -> Option<Reply> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let pairs: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let cookies = pairs.iter().filter(|(name, _)| name == "set-cookie");
    let cookies = cookies.map(|(_, value)| value.clone()).collect();
    let headers: BTreeMap<String, String> = pairs.into_iter().collect();
    let is_chunked = headers
        .get("transfer-encoding")
        .is_some_and(|coding| coding == "chunked");
    Some(Reply {
        status: status.parse().unwrap(),
        text: if is_chunked {
            body.split("\r\n").skip(1).step_by(2).collect()
        } else {
            body.to_owned()
        },
        headers,
        cookies,
    })
}

/// Sends one request to a server that may not be there, or not any more.
pub fn try_send(address: SocketAddr, head: &str, body: &[u8]) -> Option<Reply> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    try_exchange(stream, head, body)
}

/// A server that ends with the test.
pub struct Served {
    pub api: SocketAddr,
    pub hooks: SocketAddr,
    pub key: String,
    pub directory: tempfile::TempDir,
    /// Its database: a file, or an address.
    store: String,
    child: Child,
}

impl Served {
    /// Serves these files of manifests, with this operator's file.
    pub fn start(files: &[(&str, &str)], operator: &str, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let manifests = directory.path().join("manifests");
        std::fs::create_dir(&manifests).unwrap();
        for (name, text) in files {
            std::fs::write(manifests.join(name), text).unwrap();
        }
        std::fs::write(directory.path().join("operator.yaml"), operator).unwrap();
        Self::start_in(directory, more)
    }

    /// Serves what is in this directory; there may be a store already.
    pub fn start_in(directory: tempfile::TempDir, more: &[&str]) -> Self {
        Self::start_under(&[], "store.db", directory, more)
    }

    /// The same under a program that prepares something and then becomes the server; `store` is where the database is: a file in
    /// the directory, or an address.
    pub fn start_under(
        wrapper: &[&str],
        store: &str,
        directory: tempfile::TempDir,
        more: &[&str],
    ) -> Self {
        let path = |name: &str| directory.path().join(name).display().to_string();
        let is_address = store.contains("://");
        let store = if is_address {
            store.to_owned()
        } else {
            path(store)
        };
        let manifests = path("manifests");
        let mut args = vec!["serve", &manifests, "--store", &store];
        args.extend(["--listen", "127.0.0.1:0", "--webhook-listen", "127.0.0.1:0"]);
        args.extend(["--format", "json"]);
        if !more.contains(&"--model") {
            args.extend(["--model", "sim:careful"]);
        }
        let first_key = path("first-key");
        args.extend(["--first-key-file", &first_key]);
        let operator = path("operator.yaml");
        if !std::fs::read_to_string(&operator)
            .unwrap_or_default()
            .is_empty()
        {
            args.extend(["--settings", &operator]);
        }
        args.extend(more);
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let mut child = super::command_under(wrapper, &args)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let said = std::fs::read_to_string(directory.path().join("log")).unwrap();
        assert!(!line.is_empty(), "it does not serve: {said}");
        let told = super::json(&line);
        let address = |name: &str| {
            let url = told[name].as_str().unwrap();
            url.split("://").nth(1).unwrap().parse().unwrap()
        };
        Self {
            api: address("api"),
            hooks: address("webhooks"),
            key: told["key_file"]
                .as_str()
                .map(|file| std::fs::read_to_string(file).unwrap().trim().to_owned())
                .unwrap_or_default(),
            directory,
            store,
            child,
        }
    }

    /// The process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What it said on stderr.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap()
    }

    /// Sends a request as its first lines say.
    pub fn send(address: SocketAddr, head: &str, body: &[u8]) -> Reply {
        try_send(address, head, body).unwrap_or_else(|| panic!("no answer to {head}"))
    }

    /// The same with all cookies that the answer sets.
    pub fn send_all(address: SocketAddr, head: &str, body: &[u8]) -> (Reply, Vec<String>) {
        let reply = Self::send(address, head, body);
        let cookies = reply.cookies.clone();
        (reply, cookies)
    }

    /// Asks the API with this key.
    pub fn ask_as(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}", self.api);
        if !key.is_empty() {
            head.push_str(&format!("\r\nauthorization: Bearer {key}"));
        }
        let body = body.map(|body| {
            head.push_str("\r\ncontent-type: application/json");
            body.to_string()
        });
        Self::send(self.api, &head, body.unwrap_or_default().as_bytes())
    }

    /// Asks the API with the key for everything.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        self.ask_as(&self.key, method, path, body)
    }

    /// What the API says, which must be well.
    pub fn get(&self, path: &str) -> Value {
        let reply = self.ask("GET", path, None);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.json()
    }

    /// Begins a task and returns its id.
    pub fn begin(&self, agent: &str, message: Option<&str>) -> String {
        self.begin_as(&self.key, agent, message)
    }

    /// The same with this key.
    pub fn begin_as(&self, key: &str, agent: &str, message: Option<&str>) -> String {
        let order = json!({"agent": agent, "message": message});
        let reply = self.ask_as(key, "POST", "/v1/tasks", Some(&order));
        assert_eq!(reply.status, 201, "{reply:?}\n{}", self.log());
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    /// Posts a webhook with these headers.
    pub fn hook(&self, tool: &str, headers: &str, body: &[u8]) -> Reply {
        let host = self.hooks;
        let head = format!(
            "POST /v1/webhooks/events/{tool} HTTP/1.1\r\nhost: {host}\r\n\
             content-type: application/json{headers}"
        );
        Self::send(self.hooks, &head, body)
    }

    /// Posts a webhook as GitHub would.
    pub fn github(&self, tool: &str, secret: &str, delivery: &str, body: &Value) -> Reply {
        let body = body.to_string();
        let signature = github_signature(secret, body.as_bytes());
        let headers = format!(
            "\r\nx-github-delivery: {delivery}\r\nx-github-event: issue_comment\r\n\
             x-hub-signature-256: {signature}"
        );
        self.hook(tool, &headers, body.as_bytes())
    }

    /// Runs `proofhouse keys` on its store, and returns what it prints.
    pub fn keys(&self, args: &[&str]) -> String {
        let ran = super::run(&[&["keys"], args, &["--store", &self.store]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    }

    /// Makes a key with `proofhouse keys create`.
    pub fn new_key(&self, args: &[&str]) -> String {
        self.keys(&[&["create"], args].concat()).trim().to_owned()
    }

    /// Asks a page of the dashboard with this cookie.
    pub fn look(&self, cookie: &str, path: &str) -> Reply {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}",
            self.api
        );
        Self::send(self.api, &head, b"")
    }

    /// Sends a form of the dashboard with these cookies.
    pub fn post_form(&self, cookies: &str, path: &str, form: &str) -> Reply {
        let head = form_head(&self.api.to_string(), "http", cookies, path);
        Self::send(self.api, &head, form.as_bytes())
    }

    /// Signs in to the dashboard, and returns the answer.
    pub fn sign_in(&self, key: &str) -> Reply {
        let page = self.look("", "/dashboard/sign-in");
        let form = format!("form_token={}&key={key}", form_token(&page.text));
        self.post_form(&cookie_of(&page), "/dashboard/sign-in", &form)
    }

    /// Asks the process to end, without waiting for it.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Sends the process a signal.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits until the process has ended, and returns its exit code and its directory.
    pub fn ended(mut self) -> (Option<i32>, tempfile::TempDir) {
        let ended = until("the end of the server", || self.child.try_wait().unwrap());
        let empty = tempfile::tempdir().unwrap();
        (ended.code(), std::mem::replace(&mut self.directory, empty))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first lines of a form that a page of the dashboard sends.
pub fn form_head(host: &str, scheme: &str, cookies: &str, path: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\norigin: {scheme}://{host}\r\ncookie: {cookies}\r\n\
         content-type: application/x-www-form-urlencoded"
    )
}

/// The token of the first form of a page.
pub fn form_token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"form_token\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// The cookie that an answer sets, as a browser sends it back.
pub fn cookie_of(reply: &Reply) -> String {
    let cookie = reply.header("set-cookie").split(';').next();
    cookie.unwrap_or_default().to_owned()
}

/// `X-Hub-Signature-256` of a body.
pub fn github_signature(secret: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, body);
    let hex: Vec<String> = tag.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256={}", hex.concat())
}

/// The text of a file that comes with the project.
pub fn example(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    std::fs::read_to_string(root.join(path)).unwrap()
}
