//! What an operator configures for `kubernetes_job`: the cluster, its certificate and the namespaces.

use proofhouse_tools::actions::Cluster;
use proofhouse_tools::runtime::ActionFailure;
use serde_json::{Value, json};

use crate::kubernetes_support::{
    Fate, Player, TOKEN, execute, failure, kubeconfig, limits, script, task, tls,
};
use crate::support::act;

#[tokio::test]
async fn namespaces_are_the_operators() {
    let in_x = execute("{x}", &script("true"));
    let in_region = execute("{settings.region}", &script("true"));
    let here = execute("jobs", &script("true"));
    let all = ["jobs", "other"];
    for (listed, execute, x, is_allowed) in [
        (&[][..], &here, "one", true),
        (&[], &in_x, "jobs", false),
        (&all, &in_x, "other", true),
        (&all, &in_x, "kube-system", false),
        (&all, &in_x, "../../../api/v1/namespaces/jobs", false),
        (&all, &in_x, "jobs?x=y", false),
        (&all, &in_region, "one", false),
        (&["other"], &here, "one", false),
    ] {
        let player = Player::start(Fate::completed(Some("done"), "")).await;
        let cluster = player.cluster().allowing(listed.iter().copied());
        let acted = act(&task(cluster, execute, &limits()), json!({"x": x})).await;
        assert_eq!(acted.is_ok(), is_allowed, "{execute} {x}");
        if let Err(error) = acted {
            assert_eq!(error.failure, ActionFailure::Forbidden);
            assert_eq!(player.requests().len(), 0);
        }
    }
}

#[tokio::test]
async fn what_is_configured_wrongly_is_named_and_not_quoted() {
    let directory = tempfile::tempdir().expect("the test is set up");
    let write = |name: &str, text: String| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("the test is set up");
        Cluster::kubeconfig(file)
    };
    let good = kubeconfig(&directory, "http://127.0.0.1:1");
    let text = |server: &str, more: Value| {
        let mut cluster = json!({"server": server});
        cluster
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "k",
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "k", "user": {"token": TOKEN}}],
            "contexts": [{"name": "k", "context": {"cluster": "k", "user": "k"}}],
        })
        .to_string()
    };
    let command = text("http://127.0.0.1:1", json!({})).replace(
        &json!({"token": TOKEN}).to_string(),
        &json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": ["-c", format!("echo {TOKEN}; exit 1")],
        }})
        .to_string(),
    );
    for (cluster, expected) in [
        (
            Cluster::none(),
            "no Kubernetes cluster is configured: name a kubeconfig file",
        ),
        (Cluster::kubeconfig("/nowhere/kubeconfig"), "cannot be read"),
        (Cluster::kubeconfig(directory.path()), "is no file"),
        (
            Cluster::kubeconfig(&good).context("none"),
            "it has no context `none`",
        ),
        (
            Cluster::kubeconfig(&good).context("lost"),
            "it has no cluster",
        ),
        (
            write("bad", format!("users: [{{token: {TOKEN}")),
            "it is not a kubeconfig",
        ),
        (
            write("shape", format!("users: {TOKEN}")),
            "it is not a kubeconfig",
        ),
        (write("empty", String::new()), "it has no current context"),
        (write("url", text("http://[", json!({}))), "is no URL"),
        (
            write(
                "proxy",
                text(
                    "http://127.0.0.1:1",
                    json!({"proxy-url": "http://127.0.0.1:2"}),
                ),
            ),
            "names a proxy",
        ),
        (
            write(
                "ca",
                text(
                    "https://127.0.0.1:1",
                    json!({"certificate-authority-data": "no base64"}),
                ),
            ),
            "its certificate authority cannot be read",
        ),
        (
            write("exec", command),
            "the credentials of the kubeconfig cannot be had",
        ),
        (
            Cluster::in_cluster("10.0.0.1", 443),
            "the service account of a Pod is not there",
        ),
    ] {
        let task = task(cluster, &execute("jobs", &script("true")), &limits());
        let error = failure(act(&task, json!({})).await);
        assert!(error.message.contains(expected), "{expected}: {error}");
        assert_eq!(error.failure, ActionFailure::Setting, "{expected}");
        assert!(!format!("{error:?}").contains(TOKEN), "{error}");
    }
}

#[tokio::test]
async fn the_certificate_of_the_cluster_is_checked() {
    let directory = tempfile::tempdir().expect("the test is set up");
    for (is_known, expected) in [
        (true, ActionFailure::Forbidden),
        (false, ActionFailure::Unreachable),
    ] {
        // Three tries.
        let (port, authority) = tls::refusing(3);
        std::fs::write(directory.path().join("ca.pem"), authority).expect("the test is set up");
        let file = kubeconfig(&directory, &format!("https://127.0.0.1:{port}"));
        if is_known {
            #[expect(clippy::disallowed_methods, reason = "the test wrote it")]
            let text = std::fs::read_to_string(&file).unwrap();
            let mut config: Value = serde_json::from_str(&text).unwrap();
            // Beside the kubeconfig.
            config["clusters"][0]["cluster"]["certificate-authority"] = "ca.pem".into();
            std::fs::write(&file, config.to_string()).expect("the test is set up");
        }
        let execute = execute("jobs", &script("true"));
        let task = task(Cluster::kubeconfig(file), &execute, &limits());
        let error = failure(act(&task, json!({})).await);
        assert_eq!(error.failure, expected, "{error}");
        assert!(is_known || error.message.contains("certificate"), "{error}");
    }
}
