//! Configurations of the operator: what is read, what is refused, and that nothing is shown of them.

use std::sync::Arc;

use proofhouse_manifest::{Bundle, Tool};
use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use proofhouse_tools::auth::{ClientAuthentication, ProviderConfig};
use proofhouse_tools::operator::{CODES, KubernetesConfig, OperatorConfig};
use proofhouse_tools::runtime::Environment;
use proptest::prelude::*;
use serde_json::{Map, json};

const KEY: &str = include_str!("keys/rsa_pkcs8.pem");

fn lookup(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("sk-from-env\n".to_owned()),
        "KEY" => Some(KEY.to_owned()),
        "HOST" => Some("10.9.8.7".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn read(text: &str) -> (OperatorConfig, Vec<Diagnostic>) {
    OperatorConfig::read(text, &lookup)
}

/// A configuration without findings.
fn good(text: &str) -> OperatorConfig {
    let (config, findings) = read(text);
    assert!(findings.is_empty(), "{findings:#?}");
    config
}

/// Tools of one name in these namespaces.
fn named_alike(namespaces: &[&str]) -> Vec<Arc<Tool>> {
    let texts = namespaces.iter().map(|namespace| {
        format!(
            "kind: commonagents.info/v1beta2/tool\nnamespace: {namespace}\nname: hub\ndescription: d\n\
             settings: {{properties: {{api_key: {{}}}}}}\n\
             actions: [{{name: a, description: d, execute: {{cel: {{expression: '1'}}}}}}]\n"
        )
    });
    let (bundle, findings) = Bundle::read(&texts.collect::<Vec<_>>().join("---\n"));
    assert!(findings.is_empty(), "{findings:#?}");
    bundle.tools().cloned().map(Arc::new).collect()
}

/// Two teams may call their tools the same, and neither takes what is signed for the other.
#[test]
fn webhooks_belong_to_one_tool() {
    let config = good(
        "webhooks:\n  shop/hub: {scheme: github, secret: a-secret}\n  hub: {scheme: token, header: X-A, secret: b}\n",
    );
    let tools = named_alike(&["shop", "ops", "lab"]);
    let scheme = |tool: &Tool, tools: &[Arc<Tool>]| {
        let source = config.webhooks.of_tool(tool, tools.iter());
        source.map(|source| source.map(|source| source.scheme.name.to_string()))
    };
    assert_eq!(scheme(&tools[0], &tools), Ok(Some("github".to_owned())));
    let error = scheme(&tools[1], &tools).unwrap_err().to_string();
    assert!(
        error.contains("`webhooks.hub`")
            && error.contains("lab, ops, shop")
            && error.ends_with("write `ops/hub`"),
        "{error}"
    );
    assert_eq!(
        scheme(&tools[1], &tools[1..2]),
        Ok(Some("token".to_owned()))
    );
    let only = good("webhooks: {shop/hub: {scheme: github, secret: a-secret}}\n");
    assert!(only.webhooks.source("shop/hub").is_some());
    assert!(only.webhooks.source("hub").is_none());
    assert!(only.webhooks.source("ops/hub").is_none());
}

/// A setting of the command line is for one tool.
#[test]
fn a_setting_that_several_tools_declare_is_refused() {
    let one = |name: &str| {
        let mut settings = Map::new();
        settings.insert(name.to_owned(), json!("sk-1"));
        settings
    };
    let shared = Environment::for_tools(Map::new(), one("api_key"), String::new);
    let tools = named_alike(&["shop", "ops"]);
    let error = shared.check_shared(tools.iter()).unwrap_err();
    assert!(
        error.message.contains("ops/hub, shop/hub") && error.message.contains("`ops/hub.api_key`"),
        "{error}"
    );
    assert_eq!(shared.check_shared(tools[..1].iter()), Ok(()));
    let other = Environment::for_tools(Map::new(), one("other"), String::new);
    assert_eq!(other.check_shared(tools.iter()), Ok(()));
}

#[test]
fn webhooks_are_signed_as_configured() {
    let config = good(
        "webhooks:\n  github-pr: {scheme: github, secrets: [a-secret, '${TOKEN}']}\n  billing:\n    scheme: hmac\n    \
         header: X-Sig\n    hash: sha512\n    encoding: base64\n    prefix: 'v1='\n    timestamp_header: X-Time\n    \
         signed: '{timestamp}.{body}'\n    secret: a-secret\n",
    );
    assert_eq!(
        config.webhooks.names().collect::<Vec<_>>(),
        ["billing", "github-pr"]
    );
    let github = config.webhooks.source("github-pr").unwrap();
    assert_eq!((&*github.scheme.name, github.secrets.len()), ("github", 2));
    assert_eq!(github.secrets[1].expose(), "sk-from-env\n");
    let billing = config.webhooks.source("billing").unwrap();
    assert_eq!(billing.scheme.header, "x-sig");
    assert!(!format!("{config:?}").contains("a-secret"));
    for (source, code, column, message) in [
        (
            "{scheme: githup, secret: a-secret}",
            "OC-005",
            22,
            "cannot be used",
        ),
        ("{secret: a-secret}", "OC-004", 10, "needs `scheme`"),
        ("{scheme: github}", "OC-004", 10, "needs `secrets`"),
        (
            "{scheme: github, secret: ''}",
            "OC-005",
            38,
            "the secret is empty",
        ),
        (
            "{scheme: github, secrets: [x, '${EMPTY}']}",
            "OC-005",
            43,
            "the secret is empty",
        ),
        (
            "{scheme: standard, secret: 'whsec_?'}",
            "OC-005",
            40,
            "not base64",
        ),
        (
            "{scheme: github, secret: a, header: X}",
            "OC-005",
            49,
            "only for the scheme `token` or `hmac`",
        ),
        ("{scheme: hmac, secret: a}", "OC-004", 10, "needs `header`"),
        (
            "{scheme: hmac, secret: a, header: 'a b'}",
            "OC-005",
            47,
            "name of a header",
        ),
        (
            "{scheme: hmac, secret: a, header: X, hash: md5}",
            "OC-005",
            56,
            "cannot be used",
        ),
        (
            "{scheme: hmac, secret: a, header: X, signed: '{timestamp}'}",
            "OC-005",
            10,
            "must hold `{body}`",
        ),
        (
            "{scheme: hmac, secret: a, header: X, timestamp_header: T}",
            "OC-005",
            10,
            "does not hold `{timestamp}`",
        ),
        (
            "{scheme: hmac, secret: a, header: X, signed: '{timestamp}{body}'}",
            "OC-005",
            10,
            "no `timestamp_header`",
        ),
        (
            "{scheme: hmac, secret: a, header: X, signed: '{id}{body}'}",
            "OC-005",
            10,
            "no `id_header`",
        ),
        (
            "{scheme: github, secret: a, secrt: b}",
            "OC-003",
            41,
            "unknown key",
        ),
        ("[]", "OC-002", 10, "must be a mapping"),
    ] {
        let (config, findings) = read(&format!("webhooks: {{x: {source}}}\n"));
        let found = &findings[0];
        let place = found.span.unwrap().column;
        assert_eq!(
            (findings.len(), found.code),
            (1, code),
            "{source}: {findings:#?}"
        );
        assert!(
            found.message.contains(message),
            "{source}: {}",
            found.message
        );
        assert_eq!(place, column + 2, "{source}: {}", found.message);
        assert!(config.webhooks.source("x").is_none(), "{source}");
    }
}

#[test]
fn everything_can_be_configured() {
    let text = r"
settings:
  demo/weather: {api_key: '<${TOKEN}>'}
  demo/other: {limits: {most: 5, words: [a, '$${b}']}}
auth:
  fixed: {type: static, token: sk-1, tools: '*', hosts: '*'}
  env: {type: env, variable: TOKEN, tools: [demo/weather, other/*], hosts: [api.test, '*.b.test:8443']}
  machine:
    type: client_credentials
    token_url: https://login.test/token
    client_id: 17
    client_secret: ${TOKEN}
    authentication: client_secret_post
    scope: [read, write]
    audience: https://api.test
    parameters: {resource: r1}
    tools: demo/*
    hosts: api.test
  person-1:
    type: refresh_token
    token_url: http://127.0.0.1:8080/token
    client_id: me
    refresh_token: sk-refresh
    tools: demo/*
    hosts: api.test
  github:
    type: github_app
    app_id: 12345
    installation_id: 678
    private_key: ${KEY}
    repositories: [one]
    permissions: {contents: read}
    tools: demo/*
    hosts: api.github.com
egress:
  allow: [10.1.0.0/16, '${HOST}', 'fd00::/8']
kubernetes: {kubeconfig: '${HOST}.config', context: ci, namespaces: [jobs]}
mcp: {environment: {LANG: C.UTF-8, TRIES: 3, KEY: sk-1}}
";
    let config = good(text);
    assert_eq!(
        json!(config.settings.expose()),
        json!({
            "demo/weather": {"api_key": "<sk-from-env\n>"},
            "demo/other": {"limits": {"most": 5, "words": ["a", "${b}"]}},
        })
    );
    let (_, _, binding) = config
        .auth
        .iter()
        .find(|(name, _, _)| *name == "env")
        .unwrap();
    for (namespace, name, expected) in [
        ("demo", "weather", true),
        ("demo", "weather2", false),
        ("other", "anything", true),
        ("others", "anything", false),
    ] {
        assert_eq!(
            binding.is_for(namespace, name),
            expected,
            "{namespace}/{name}"
        );
    }
    for (url, expected) in [
        ("https://api.test/x", true),
        ("https://a.b.test:8443", true),
        ("https://a.b.test", false),
        ("https://api.test.evil.net", false),
    ] {
        assert_eq!(
            binding.hosts.allows(&url.parse().unwrap()),
            expected,
            "{url}"
        );
    }
    let Some(ProviderConfig::Fixed(token)) = config.auth.get("env") else {
        panic!("no token");
    };
    assert_eq!(token.expose(), "sk-from-env");
    let Some(ProviderConfig::ClientCredentials(grant)) = config.auth.get("machine") else {
        panic!("no client");
    };
    let client = &grant.client;
    assert_eq!(
        (client.token_url.as_str(), client.id.as_str()),
        ("https://login.test/token", "17")
    );
    assert_eq!(client.authentication, ClientAuthentication::Post);
    assert_eq!(client.scope.as_deref(), Some("read write"));
    let parameters: Vec<(&str, &str)> = client
        .parameters
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose().as_str()))
        .collect();
    assert_eq!(
        parameters,
        [("audience", "https://api.test"), ("resource", "r1")]
    );
    let Some(ProviderConfig::GithubApp(app)) = config.auth.get("github") else {
        panic!("no app");
    };
    assert_eq!((app.app_id.as_str(), app.installation_id), ("12345", 678));
    assert_eq!(app.api_url.as_str(), "https://api.github.com/");
    assert_eq!(config.auth.iter().count(), 5);
    for (address, open) in [
        ("10.1.2.3", true),
        ("10.9.8.7", true),
        ("10.9.8.8", false),
        ("fd00::1", true),
    ] {
        let checked = config.egress.check(address.parse().unwrap());
        assert_eq!(checked.is_ok(), open, "{address}");
    }
    assert_eq!(
        config.kubernetes,
        KubernetesConfig {
            kubeconfig: Some("10.9.8.7.config".into()),
            context: Some("ci".to_owned()),
            namespaces: vec!["jobs".to_owned()],
            in_cluster: false,
        }
    );
    let variables = [("LANG", "C.UTF-8"), ("TRIES", "3"), ("KEY", "sk-1")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(*config.mcp_environment.expose(), variables);
    let shown = format!("{config:?}");
    assert!(
        !shown.contains("sk-") && !shown.contains("BEGIN"),
        "{shown}"
    );
}

#[test]
fn people_sign_in_as_configured() {
    let block = |issuer: &str, role: &str| {
        format!(
            "sign_in:\n  issuer: {issuer}\n  client_id: us\n  client_secret: '${{TOKEN}}'\n  \
             public_url: https://agents.example.com\n  grants:\n    - {{group: ops, role: {role}, namespaces: [shop]}}\n"
        )
    };
    let config = good(&block("https://id.example.com", "operator"));
    assert!(!format!("{config:?}").contains("sk-from-env"));
    let sign_in = config.sign_in.unwrap();
    assert_eq!(sign_in.issuer.as_str(), "https://id.example.com/");
    assert_eq!(sign_in.groups_claim, "groups");
    assert_eq!(sign_in.grants[0].role, "operator");
    assert_eq!(sign_in.grants[0].namespaces, Some(vec!["shop".to_owned()]));
    good(&block("http://127.0.0.1:8080", "admin"));
    for (text, said) in [
        (block("http://id.example.com", "admin"), "https://"),
        (block("https://user@id.example.com", "admin"), "https://"),
        (
            block("https://id.example.com", "root"),
            "use one of: reader, starter",
        ),
        (
            "sign_in: {issuer: https://id.example.com}\n".to_owned(),
            "client_id",
        ),
    ] {
        let (config, findings) = read(&text);
        assert!(config.sign_in.is_none(), "{text}");
        let told = format!("{findings:?}");
        assert!(told.contains(said), "{text}: {told}");
    }
}

#[test]
fn a_file_without_the_keys_is_all_settings() {
    let config = good("n/t: {api_key: sk-1, region: '${HOST}'}\nn/u: {nested: {auth: 1}}\n");
    let all = |text: &str| json!(good(text).settings.expose());
    assert_eq!(
        json!(config.settings.expose()),
        json!({"n/t": {"api_key": "sk-1", "region": "10.9.8.7"}, "n/u": {"nested": {"auth": 1}}})
    );
    assert_eq!(
        all("{\"n/t\": {\"a\": [1, true]}}"),
        json!({"n/t": {"a": [1, true]}})
    );
    assert_eq!(all(""), json!({}));
    assert_eq!(all("# nothing\n"), json!({}));
    assert_eq!(
        all("settings: {n/t: {settings: 1}}"),
        json!({"n/t": {"settings": 1}})
    );
}

/// Settings were everybody's once: the error says how to write them now.
#[test]
fn settings_belong_to_a_tool() {
    for (text, place) in [
        ("api_key: sk-1\n", ("OC-012", 1, 1)),
        ("settings:\n  api_key: sk-1\n", ("OC-012", 2, 3)),
        ("settings:\n  weather.api_key: sk-1\n", ("OC-012", 2, 3)),
        ("settings:\n  a/b/c: {api_key: sk-1}\n", ("OC-012", 2, 3)),
        ("settings:\n  /b: {api_key: sk-1}\n", ("OC-012", 2, 3)),
        ("settings:\n  a/b: sk-1\n", ("OC-002", 2, 8)),
    ] {
        let (config, _) = read(text);
        let (found, help) = findings(text);
        assert_eq!(found, [place], "{text}");
        let explains = help.contains("`NAMESPACE/TOOL: {");
        assert!(place.0 != "OC-012" || explains, "{text}: {help}");
        assert!(config.settings.expose().is_empty(), "{text}");
    }
}

#[test]
fn providers_are_bound_to_tools_and_hosts() {
    for (rest, expected) in [
        ("tools: '*'", vec![("OC-004", 2, 3)]),
        ("hosts: '*'", vec![("OC-004", 2, 3)]),
        ("tools: [], hosts: '*'", vec![("OC-005", 2, 34)]),
        ("tools: weather, hosts: '*'", vec![("OC-005", 2, 41)]),
        ("tools: '*/x', hosts: '*'", vec![("OC-005", 2, 41)]),
        (
            "tools: n/t, hosts: 'https://h.test/'",
            vec![("OC-005", 2, 53)],
        ),
        ("tools: n/t, hosts: ''", vec![("OC-005", 2, 53)]),
    ] {
        let text = format!("auth:\n  p: {{type: static, token: sk-1, {rest}}}\n");
        let (config, _) = read(&text);
        let (found, _) = findings(&text);
        assert_eq!(found, expected, "{text}");
        assert!(config.auth.get("p").is_none(), "{text}");
    }
}

/// The code and the place of each finding, and the help of the first.
fn findings(text: &str) -> (Vec<(&'static str, usize, usize)>, String) {
    let (config, findings) = read(text);
    for finding in &findings {
        let shown = format!("{finding:?}{config:?}");
        assert!(!shown.contains("sk-"), "{shown}");
        assert!(CODES.iter().any(|(code, _)| *code == finding.code));
    }
    let help = findings.first().and_then(|first| first.help.clone());
    let places = findings.iter().map(|finding| {
        let span = finding.span.expect("every finding has a place");
        (finding.code, span.line, span.column)
    });
    (places.collect(), help.unwrap_or_default())
}

#[test]
fn findings_have_places_and_show_no_value() {
    let provider = |fields: &str| format!("auth:\n  p: {{{fields}, tools: '*', hosts: '*'}}\n");
    let client = "type: client_credentials, client_id: a, client_secret: sk-1";
    for (text, expected, help) in [
        ("a: [", vec![("OC-001", 1, 4)], ""),
        ("- sk-1\n", vec![("OC-002", 1, 1)], ""),
        (
            "settings: sk-1\n",
            vec![("OC-002", 1, 11)],
            "below `settings`",
        ),
        ("auth: sk-1\n", vec![("OC-002", 1, 7)], "below `settings`"),
        ("auth: {p: sk-1}\n", vec![("OC-002", 1, 11)], ""),
        (
            "settings: {}\nautth: {}\n",
            vec![("OC-003", 2, 1)],
            "did you mean `auth`?",
        ),
        (
            "settings: {}\napi_key: sk-1\n",
            vec![("OC-003", 2, 1)],
            "below `settings`",
        ),
        (
            "egress: {alow: []}\n",
            vec![("OC-003", 1, 10)],
            "did you mean `allow`?",
        ),
        ("egress: {allow: 10.0.0.0/8}\n", vec![("OC-002", 1, 17)], ""),
        (
            "egress: {allow: [sk-1]}\n",
            vec![("OC-005", 1, 18)],
            "10.1.0.0/16",
        ),
        (
            "egress: {allow: [10.0.0.0/33]}\n",
            vec![("OC-005", 1, 18)],
            "",
        ),
        (
            "egress: {allow: [0.0.0.0/0]}\n",
            vec![("OC-011", 1, 18)],
            "",
        ),
        ("egress:\n", vec![("OC-010", 1, 1)], ""),
        ("n/t:\n  a: x${NOPE}\n", vec![("OC-006", 2, 6)], ""),
        ("n/t: {a: [1, '${sk-1}']}\n", vec![("OC-007", 1, 14)], "$${"),
        ("n/t: {a: .inf}\n", vec![("OC-002", 1, 10)], ""),
        (
            "setings: {a: sk-1}\n",
            vec![("OC-008", 1, 1), ("OC-012", 1, 1)],
            "`settings:`",
        ),
        (
            "n/t: {a: 1}\negress.allow: [sk-1]\n",
            vec![("OC-008", 2, 1), ("OC-012", 2, 1)],
            "`egress:`",
        ),
        (&provider("token: sk-1"), vec![("OC-004", 2, 3)], ""),
        (
            &provider("type: sk-1"),
            vec![("OC-005", 2, 13)],
            "use one of",
        ),
        (
            &provider("type: statik, token: sk-1"),
            vec![("OC-005", 2, 13)],
            "`static`",
        ),
        (&provider("type: static"), vec![("OC-004", 2, 3)], ""),
        (
            &provider("type: static, tokn: sk-1"),
            vec![("OC-003", 2, 21)],
            "`token`",
        ),
        (
            &provider("type: static, token: ''"),
            vec![("OC-005", 2, 28)],
            "",
        ),
        (
            &provider("type: static, token: [sk-1]"),
            vec![("OC-002", 2, 21)],
            "",
        ),
        (
            &provider("type: env, variable: NOPE"),
            vec![("OC-006", 2, 28)],
            "",
        ),
        (
            &provider("type: env, variable: EMPTY"),
            vec![("OC-006", 2, 28)],
            "",
        ),
        (
            &provider("type: env, variable: sk-1"),
            vec![("OC-005", 2, 28)],
            "static",
        ),
        (&provider(client), vec![("OC-004", 2, 3)], ""),
        (
            &provider(&format!("{client}, token_url: sk-1")),
            vec![("OC-005", 2, 79)],
            "",
        ),
        (
            &provider(&format!("{client}, token_url: 'ftp://h.test'")),
            vec![("OC-005", 2, 79)],
            "",
        ),
        (
            &provider(&format!("{client}, token_url: 'https://u:sk-1@h.test'")),
            vec![("OC-005", 2, 79)],
            "",
        ),
        (
            &provider(&format!("{client}, token_url: 'http://h.test'")),
            vec![("OC-009", 2, 79)],
            "",
        ),
        (
            &provider(&format!(
                "{client}, token_url: 'https://h.test', authentication: x"
            )),
            vec![("OC-005", 2, 113)],
            "client_secret_post",
        ),
        (
            &provider(&format!(
                "{client}, token_url: 'https://h.test', parameters: {{scope: x}}"
            )),
            vec![("OC-005", 2, 117)],
            "",
        ),
        (
            &provider("type: github_app, app_id: 1, installation_id: x, private_key: sk-1"),
            vec![("OC-005", 2, 53), ("OC-005", 2, 69)],
            "",
        ),
        (
            "kubernetes: {kubeconfg: sk-1}\n",
            vec![("OC-003", 1, 14)],
            "did you mean `kubeconfig`?",
        ),
        ("kubernetes: sk-1\n", vec![("OC-002", 1, 13)], ""),
        (
            "kubernetes: {namespaces: []}\n",
            vec![("OC-005", 1, 14)],
            "leave it out",
        ),
        (
            "kubernetes: {namespaces: [[sk-1]]}\n",
            vec![("OC-002", 1, 27)],
            "",
        ),
        (
            "kubernetes: {in_cluster: sk-1}\n",
            vec![("OC-002", 1, 26)],
            "",
        ),
        (
            "kubernetes: {in_cluster: true, kubeconfig: sk-1, context: ''}\n",
            vec![("OC-005", 1, 44), ("OC-005", 1, 59)],
            "one of them",
        ),
        (
            "mcp: {environment: {A=B: sk-1, C: [sk-1]}}\n",
            vec![("OC-005", 1, 26), ("OC-002", 1, 32)],
            "",
        ),
        (
            "mcp: {env: {A: sk-1}}\n",
            vec![("OC-003", 1, 7)],
            "environment",
        ),
        (
            "auth: {a b: {type: static, token: sk-1, tools: '*', hosts: '*'}}\n",
            vec![("OC-005", 1, 8)],
            "letters",
        ),
    ] {
        let found = findings(text);
        assert_eq!(found.0, expected, "{text}");
        assert!(found.1.contains(help), "{text}: {}", found.1);
    }
}

#[test]
fn a_cluster_is_the_one_that_is_configured_or_that_kubectl_would_use() {
    let outside = |name: &str| (name == "KUBECONFIG").then(|| "outside".into());
    let inside = |name: &str| match name {
        "KUBERNETES_SERVICE_HOST" => Some("10.0.0.1".into()),
        "KUBERNETES_SERVICE_PORT" => Some("443".into()),
        _ => outside(name),
    };
    let shown = |text: &str| format!("{:?}", good(text).kubernetes.cluster(inside));
    assert!(shown("").contains("outside"));
    assert!(shown("kubernetes: {context: ci}").contains("Some(\"ci\")"));
    let own = shown("kubernetes: {kubeconfig: own, namespaces: [jobs]}");
    assert!(own.contains("\"own\"") && own.contains("jobs"), "{own}");
    assert!(shown("kubernetes: {in_cluster: true}").contains("10.0.0.1"));
    let nowhere = good("kubernetes: {in_cluster: true}").kubernetes;
    assert!(!nowhere.cluster(outside).is_configured());
}

#[test]
fn what_is_wrong_is_left_out_and_the_rest_is_kept() {
    let text = "settings: {n/t: {a: 1}}\nauth:\n  bad: {type: env, variable: NOPE, tools: '*', hosts: '*'}\n  \
                good: {type: static, token: sk-1, tools: '*', hosts: '*'}\n";
    let (config, findings) = read(text);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].severity, DiagnosticSeverity::Error);
    assert!(findings[0].message.contains("`NOPE`"));
    assert!(config.auth.get("bad").is_none() && config.auth.get("good").is_some());
    assert_eq!(json!(config.settings.expose()), json!({"n/t": {"a": 1}}));
}

#[test]
fn files_are_bounded() {
    let deep = "[".repeat(100);
    let wide = "- 1\n".repeat(60_000);
    let long = format!("a: {}\n", "x".repeat(1 << 20));
    for text in [&*deep, &*wide, &*long] {
        let (_, findings) = read(text);
        assert_eq!(findings[0].code, "OC-001");
    }
    let many = "${BIG}".repeat(100_000);
    let big = |_: &str| Some("x".repeat(1 << 16));
    let (_, findings) = OperatorConfig::read(&format!("n/t:\n  a: {many}\n"), &big);
    assert_eq!(findings[0].code, "OC-005");
    let lines: String = (0..1_000)
        .map(|n| format!("n/k{n}: {{a: '${{BIG}}'}}\n"))
        .collect();
    let (_, findings) = OperatorConfig::read(&lines, &big);
    assert!(findings.len() > 700 && findings.iter().all(|found| found.code == "OC-005"));
}

#[test]
fn the_guide_lists_every_code_and_its_example_is_valid() {
    let guide = include_str!("../../../../docs/reference/running-tools.md");
    for (code, meaning) in CODES {
        assert!(guide.contains(&format!("| {code} | {meaning} |")), "{code}");
    }
    let example = guide
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("an example");
    let everything = |name: &str| match name {
        "APP_KEY" => Some(KEY.to_owned()),
        _ => Some("value".to_owned()),
    };
    let (config, findings) = OperatorConfig::read(example, &everything);
    assert!(findings.is_empty(), "{findings:#?}");
    assert_eq!(config.auth.iter().count(), 5);
}

proptest! {
    #[test]
    fn any_text_is_read_and_shown_by_nobody(at in 0usize..330, length in 0usize..40, with in "[{}:\\[\\]\"a\n $.-]{0,6}") {
        let mut text = "settings: {n/t: {a: 's-e-c-r-e-t ${TOKEN}'}}\nauth:\n  p: {type: static, token: s-e-c-r-e-t, tools: n/t, hosts: h}\n  \
            q: {type: client_credentials, token_url: 'https://h.test', client_id: a, client_secret: s-e-c-r-e-t}\n  \
            r: {type: github_app, app_id: 1, installation_id: 2, private_key: s-e-c-r-e-t}\n\
            egress: {allow: [10.0.0.0/8]}\n".to_owned();
        let (from, to) = (at.min(text.len()), (at + length).min(text.len()));
        text.replace_range(from..to, &with);
        let (config, findings) = read(&text);
        let shown = format!("{config:?}");
        prop_assert!(!shown.contains("s-e-c-r-e-t"), "{}", shown);
        let mut last = 0;
        for finding in findings {
            let span = finding.span.expect("a place");
            prop_assert!(text.get(span.range()).is_some());
            prop_assert!(last <= span.offset);
            // A secret that lost its place may be taken for a key, which is shown.
            let is_key = finding.code == "OC-003" || finding.code == "OC-008" || finding.code == "OC-012" || finding.code == "OC-001";
            prop_assert!(is_key || !finding.message.contains("s-e-c-r-e-t"), "{}", finding);
            last = span.offset;
        }
    }
}
