//! Tells one description of a subject from another, so that a campaign goes on only with the subjects it began with.

use proofhouse_wire::fnv;
use serde_json::{Value, json};

use crate::headers::RequestHeader;
use crate::spec::{
    CommandSpec, Directory, EndpointSpec, ManifestSpec, ModelSpec, Ready, SubjectKind,
};

/// A short text that changes with the description: a hash, the same everywhere. The texts are those of files
/// that belong to the subject.
pub(crate) fn digest(kind: &SubjectKind, texts: &[String]) -> String {
    let description = json!([described(kind), texts]).to_string();
    format!("{:016x}", fnv::hash_64(description.bytes()))
}

/// Everything that makes the subject what it is. Values of headers do not: a token that was renewed makes
/// no other subject, and the less is made of secrets the better.
fn described(kind: &SubjectKind) -> Value {
    match kind {
        SubjectKind::Simulation(model) => json!({"simulation": model}),
        SubjectKind::Manifest(ManifestSpec {
            path: _,
            agent,
            model,
            base_url,
            allow,
        }) => {
            let allow: Vec<String> = allow.iter().map(ToString::to_string).collect();
            json!({"manifest": [agent, model, base_url, allow]})
        }
        SubjectKind::Model(ModelSpec {
            model,
            base_url,
            instructions,
            directory: _,
        }) => json!({"model": [model, base_url, instructions]}),
        SubjectKind::Command(CommandSpec {
            words,
            directory,
            environment,
            secrets: _,
            serves,
            ready,
            headers,
            mcp_config,
            max_disk,
        }) => {
            let directory = match directory {
                Directory::OfRun => json!(null),
                Directory::CopyOf(path) => json!({"copy": path.display().to_string()}),
                Directory::Fixed(path) => json!({"fixed": path.display().to_string()}),
            };
            let environment = environment.iter();
            let environment: Vec<_> = environment
                .map(|(name, value)| (name, value.expose()))
                .collect();
            let ready = match ready {
                Ready::Port => json!(null),
                Ready::Line(line) => json!({"line": line}),
                Ready::Url(url) => json!({"url": url}),
            };
            let mcp_config = mcp_config
                .as_ref()
                .map(|config| (config.file.display().to_string(), config.in_place));
            let serves = serves.map(|serves| format!("{serves:?}"));
            json!({"command": [
                words, directory, environment, serves, ready, names(headers), mcp_config, max_disk
            ]})
        }
        SubjectKind::Endpoint(EndpointSpec {
            urls,
            mcp_listen,
            a2a_listen,
            headers,
        }) => {
            let urls: Vec<&str> = urls.all().collect();
            let listens = [mcp_listen, a2a_listen].map(|listen| listen.map(|at| at.to_string()));
            json!({"endpoint": [urls, listens, names(headers)]})
        }
    }
}

fn names(headers: &[RequestHeader]) -> Vec<String> {
    headers.iter().map(RequestHeader::described).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str], header: &str) -> SubjectKind {
        SubjectKind::Command(CommandSpec {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            headers: vec![RequestHeader::read(header).unwrap()],
            ..CommandSpec::default()
        })
    }

    #[test]
    fn what_makes_another_subject_makes_another_digest() {
        let one = digest(&command(&["agent", "--fast"], "X-Key: secret-1"), &[]);
        assert_eq!(one.len(), 16);
        let renewed = command(&["agent", "--fast"], "X-Key: secret-2");
        assert_eq!(digest(&renewed, &[]), one);
        for other in [
            command(&["agent"], "X-Key: secret-1"),
            command(&["agent --fast"], "X-Key: secret-1"),
            command(&["agent", "--fast"], "Other: secret-1"),
            SubjectKind::Simulation("sim:careful".to_owned()),
        ] {
            assert_ne!(digest(&other, &[]), one, "{other:?}");
        }
        let texts = ["a".to_owned()];
        assert_ne!(digest(&renewed, &texts), one, "its files count");
    }
}
