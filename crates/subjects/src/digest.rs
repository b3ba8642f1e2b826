//! Tells one description of a subject from another, so that a campaign goes on only with the subjects it began with.

use std::fs::File;
use std::path::Path;

use proofhouse_wire::files::read_capped;
use proofhouse_wire::fnv;
use serde_json::{Value, json};

use crate::command::FILE_ENDINGS;
use crate::headers::RequestHeader;
use crate::spec::{
    CommandSpec, Directory, EndpointSpec, ManifestSpec, ModelSpec, Ready, SubjectKind,
};

/// The largest file whose content counts; of a larger one, its length does.
const MAX_FILE: usize = 64 << 20;

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

/// The program and the files that the words of a command name, with a hash of what is in each: a script that was changed is
/// another subject.
pub(crate) fn named_files(spec: &CommandSpec) -> Vec<String> {
    let directory = match &spec.directory {
        Directory::OfRun => None,
        Directory::CopyOf(path) | Directory::Fixed(path) => Some(path.as_path()),
    };
    let place = |word: &String| {
        let path = Path::new(word);
        match directory {
            Some(directory) if path.is_relative() => directory.join(path),
            Some(_) | None => path.to_owned(),
        }
    };
    let named = spec.words.iter().filter(|word| is_code(word)).map(place);
    let files = named.filter(|path| path.is_file());
    files.map(|path| content_hash(&path)).collect()
}

/// Whether a word names a program or a script, by how it is written. Other files may change in every run.
fn is_code(word: &str) -> bool {
    let path = Path::new(word);
    match path.extension().and_then(|ending| ending.to_str()) {
        Some(ending) => FILE_ENDINGS.contains(&ending),
        None => path.components().count() > 1,
    }
}

/// A hash of the content of a file, or what can be said of one that is too large or cannot be read.
fn content_hash(path: &Path) -> String {
    let read = File::open(path).ok();
    match read.and_then(|file| read_capped(file, MAX_FILE).ok()) {
        Some(bytes) => format!("{:016x}", fnv::hash_64(bytes)),
        None => match path.metadata() {
            Ok(about) => format!("{} bytes", about.len()),
            Err(_) => String::new(),
        },
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
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("agent.py");
        let spec = CommandSpec {
            words: vec!["python3".to_owned(), script.display().to_string()],
            ..CommandSpec::default()
        };
        let of_content = |content: &str| {
            std::fs::write(&script, content).unwrap();
            named_files(&spec)
        };
        assert_eq!(of_content("print(1)"), of_content("print(1)"));
        assert_ne!(of_content("print(1)"), of_content("print(2)"));
        let texts = ["a".to_owned()];
        assert_ne!(digest(&renewed, &texts), one, "its files count");
    }
}
