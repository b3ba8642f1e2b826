//! The subjects of `proofhouse.yaml`: which kind each is, and what it says.

use std::collections::HashSet;

use proofhouse_source::format::{FormatReader, TypeSpec};
use proofhouse_source::{NodeRef, PathSegment, YamlScalar, did_you_mean};
use proofhouse_subjects::Sealed;
use proofhouse_tools::operator::variables::is_name;

use super::fields::{self, SIMULATIONS, SUBJECTS};
use super::reader::{ConfigFields, ConfigMapping, ConfigReader, ConfigVariables};
use super::secrets::{looks_secret, of_variables, sounds_secret};
use proofhouse_subjects::headers::{self, HeaderSource, RequestHeader};
use proofhouse_subjects::placeholders;
use proofhouse_subjects::spec::{
    CommandSpec, Directory, EndpointSpec, ManifestSpec, McpConfigSpec, ModelSpec, Ready, Serves,
    SubjectKind, SubjectSpec, Urls, from_everywhere,
};

/// Everybody in the file is opened at once, and a report has a column for each.
const MAX_SUBJECTS: usize = 100;
/// How long a name may be; it is in every line about its runs.
const MAX_NAME: usize = 64;

/// Reads all of them. Those that nobody `wants` are checked, but their variables are not looked up.
pub(super) fn read<'s>(
    reader: &mut ConfigReader<'s, '_>,
    node: NodeRef<'s>,
    wants: &dyn Fn(&str) -> bool,
) -> Vec<SubjectSpec> {
    let Some(items) = node.items() else {
        reader.mismatch(node, "a list");
        return Vec::new();
    };
    if items.len() == 0 || items.len() > MAX_SUBJECTS {
        reader.unusable(&format!(
            "name 1 to {MAX_SUBJECTS} subjects, or leave the key out"
        ));
        return Vec::new();
    }
    let mut names = HashSet::new();
    let mut subjects = Vec::new();
    for (index, item) in items.enumerate() {
        let spec = reader.within(PathSegment::Index(index), |reader| {
            let written = item.get("name").and_then(NodeRef::scalar);
            let is_wanted = match written {
                Some(YamlScalar::Text(name)) => wants(name),
                _ => true,
            };
            let variables = reader.variables;
            if !is_wanted {
                reader.variables = ConfigVariables::Unread;
            }
            let spec = subject(reader, item);
            reader.variables = variables;
            let spec = spec?;
            let is_new = spec
                .name
                .as_ref()
                .is_none_or(|name| names.insert(name.clone()));
            if !is_new {
                reader.within(PathSegment::Key("name"), |reader| {
                    let help = Some("give it another name");
                    reader.error("PC-012", "another subject has this name already", help);
                });
            }
            is_new.then_some(spec)
        });
        subjects.extend(spec);
    }
    subjects
}

fn subject<'s>(reader: &mut ConfigReader<'s, '_>, node: NodeRef<'s>) -> Option<SubjectSpec> {
    if let Some(YamlScalar::Text(_)) = node.scalar() {
        let name = reader.word(node, SIMULATIONS)?;
        return Some(SubjectSpec {
            name: Some(name.to_owned()),
            deadline: None,
            kind: SubjectKind::Simulation(name.to_owned()),
        });
    }
    if node.entries().is_none() {
        reader.mismatch(node, "a mapping, or the name of a simulation");
        return None;
    }
    let (told_by, spec) = kind(reader, node)?;
    let mut fields = reader.fields(node, spec)?;
    let name = fields.read("name", |reader, node| reader.parsed(node, name));
    let deadline = match spec.field("deadline") {
        Some(_) => fields.duration("deadline"),
        None => None,
    };
    let kind = match told_by {
        "command" => command(&mut fields).map(SubjectKind::Command),
        "endpoint" => endpoint(&mut fields).map(SubjectKind::Endpoint),
        "manifest" => manifest(&mut fields).map(SubjectKind::Manifest),
        "model" => model(&mut fields).map(SubjectKind::Model),
        _ => {
            let simulation = fields.word("simulation").map(str::to_owned);
            simulation.map(SubjectKind::Simulation)
        }
    }?;
    let name = match &kind {
        SubjectKind::Simulation(simulation) => name.or_else(|| Some(simulation.clone())),
        SubjectKind::Manifest(_)
        | SubjectKind::Model(_)
        | SubjectKind::Command(_)
        | SubjectKind::Endpoint(_) => name,
    };
    // A name is needed, and that it is missing was told.
    Some(SubjectSpec {
        name: Some(name?),
        deadline,
        kind,
    })
}

/// Which kind a subject is, by the keys that are there.
fn kind<'s>(
    reader: &mut ConfigReader<'s, '_>,
    node: NodeRef<'s>,
) -> Option<(&'static str, &'static TypeSpec)> {
    let has = |key: &str| node.get(key).is_some_and(|value| !value.is_null());
    let there: Vec<_> = SUBJECTS.iter().filter(|(key, _)| has(key)).collect();
    match there.as_slice() {
        [only] | [only, ("model", _)] if !(there.len() == 2 && only.0 != "manifest") => {
            Some(**only)
        }
        [] => {
            let kinds = SUBJECTS.map(|(key, _)| key);
            let all = || SUBJECTS.iter().flat_map(|(_, spec)| spec.keys());
            let written = node.entries().into_iter().flatten().map(|(key, _)| key);
            let unknown: Vec<&str> = written
                .filter(|key| !all().any(|known| known == *key))
                .collect();
            let misspelled = unknown.iter().any(|key| did_you_mean(key, kinds).is_some());
            for key in unknown {
                let near = reader.walk.near(key, all());
                let help = near.map(|near| format!("did you mean `{near}`?"));
                reader.walk.unknown_key("PC-003", key, near, help);
            }
            if !misspelled {
                let help = format!("give it one of: {}", kinds.join(", "));
                reader.error("PC-009", "nothing says what this subject is", Some(&help));
            }
            None
        }
        several => {
            let keys: Vec<String> = several.iter().map(|(key, _)| format!("`{key}`")).collect();
            let message = format!("a subject has one of {}", keys.join(" and "));
            reader.error("PC-009", &message, Some("make two subjects of it"));
            None
        }
    }
}

/// What to say of a key of a subject that other kinds of subjects have.
pub(super) fn elsewhere(spec: &TypeSpec, key: &str) -> Option<String> {
    if !SUBJECTS
        .iter()
        .any(|(_, of_kind)| of_kind.name == spec.name)
    {
        return None;
    }
    let others = SUBJECTS
        .iter()
        .filter(|(_, spec)| spec.field(key).is_some());
    let others: Vec<String> = others.map(|(told_by, _)| format!("`{told_by}`")).collect();
    (!others.is_empty()).then(|| format!("only subjects with {} have it", others.join(" or ")))
}

/// Why a text cannot name a subject.
#[derive(Debug, thiserror::Error)]
enum InvalidName {
    #[error(
        "write at most {MAX_NAME} letters, digits and `-`, `_`, `.` or `:`, with a letter or digit first"
    )]
    Characters,
    #[error("on the command line it would mean something else; write another name")]
    Ambiguous,
}

/// A name that can be told from a simulation and from a file on the command line.
fn name(text: &str) -> Result<String, InvalidName> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || !text.chars().all(plain) || text.len() > MAX_NAME {
        return Err(InvalidName::Characters);
    }
    let is_file = [".yaml", ".yml"].iter().any(|end| text.ends_with(end));
    let is_model = ["sim:", "model:"]
        .iter()
        .any(|start| text.starts_with(start));
    if is_file || is_model {
        Err(InvalidName::Ambiguous)
    } else {
        Ok(text.to_owned())
    }
}

fn manifest(fields: &mut ConfigMapping<'_, '_, '_>) -> Option<ManifestSpec> {
    let path = fields.existing("manifest");
    let agent = fields.some_text("agent");
    let model = fields.some_text("model");
    let base_url = fields.url("base_url");
    let allow = fields.networks("allow");
    Some(ManifestSpec {
        path: path?,
        agent,
        model,
        base_url,
        allow,
    })
}

fn model(fields: &mut ConfigMapping<'_, '_, '_>) -> Option<ModelSpec> {
    let model = fields.some_text("model");
    let base_url = fields.url("base_url");
    let instructions = fields.text("instructions");
    Some(ModelSpec {
        model: model?,
        base_url,
        instructions,
        directory: Some(fields.reader.directory.to_owned()),
    })
}

fn command(fields: &mut ConfigMapping<'_, '_, '_>) -> Option<CommandSpec> {
    let words = fields.read("command", |reader, node| words(reader, node));
    let fixed = fields.existing("directory");
    let copy = fields.existing("copy_of");
    if fields.has("directory") && fields.has("copy_of") {
        let message = "a command has `directory` or `copy_of`, not both";
        fields.clash("copy_of", message, None);
    }
    let mut secrets = Vec::new();
    let environment = fields.read("environment", |reader, node| {
        Some(variables(reader, node, |reader, name, written, value| {
            secrets.extend(of_variables(name, written, &value, reader.variables));
            environment_variable(reader, name, value)
        }))
    });
    let serves = fields.word("serves").and_then(|word| match word {
        "ag-ui" => Some(Serves::AgUi),
        "a2a" => Some(Serves::A2a),
        "mcp" => Some(Serves::Mcp),
        _ => None,
    });
    let ready = fields.read("ready", |reader, node| ready(reader, node));
    let headers = fields.read("headers", |reader, node| {
        Some(variables(reader, node, header))
    });
    for key in ["ready", "headers"] {
        if fields.has(key) && !fields.has("serves") {
            let message = format!("`{key}` means nothing for a command that does one task");
            fields.clash(key, &message, Some("say with `serves` what it serves"));
        }
    }
    let mcp_config = fields.read("mcp_config", |reader, node| mcp_config(reader, node));
    let max_disk = fields.size("max_disk");
    let here = fields.reader.directory;
    let (directory, words) = match (fixed, copy) {
        (Some(directory), _) => (Directory::Fixed(directory), words?),
        (None, Some(directory)) => (Directory::CopyOf(directory), words?),
        // It runs elsewhere, and must find its files all the same.
        (None, None) => {
            let words = words?
                .iter()
                .map(|word| from_everywhere(word, here))
                .collect();
            (Directory::OfRun, words)
        }
    };
    Some(CommandSpec {
        words,
        directory,
        environment: environment.unwrap_or_default(),
        secrets: secrets.into_iter().map(Sealed::new).collect(),
        serves,
        ready: ready.unwrap_or_default(),
        headers: headers.unwrap_or_default(),
        mcp_config,
        max_disk,
    })
}

/// The program and its arguments: one text, or a list.
fn words<'s>(reader: &mut ConfigReader<'s, '_>, node: NodeRef<'s>) -> Option<Vec<String>> {
    let words = match node.items() {
        Some(_) => {
            let before = reader.walk.findings().len();
            let words = reader.one_or_more(node, ConfigReader::text);
            if reader.walk.findings().len() > before {
                return None;
            }
            words
        }
        None => {
            let text = reader.text(node)?;
            shlex::split(&text).unwrap_or_default()
        }
    };
    if words.first().is_none_or(String::is_empty) {
        reader.unusable("write a program and its arguments; quotes and backslashes must be closed");
        return None;
    }
    if let Some(problem) = words.iter().find_map(|word| placeholders::problem(word)) {
        reader.unusable(&problem);
        return None;
    }
    Some(words)
}

fn ready<'s>(reader: &mut ConfigReader<'s, '_>, node: NodeRef<'s>) -> Option<Ready> {
    let mut fields = reader.fields(node, &fields::READY)?;
    let line = fields.some_text("line");
    let url = fields.some_text("url");
    match (line, url) {
        (Some(line), None) => Some(Ready::Line(line)),
        (None, Some(url)) => {
            let is_one = ["/", "http://", "https://"]
                .iter()
                .any(|start| url.starts_with(start));
            if !is_one {
                let help = "write a path such as /health, or a URL that begins with http://";
                reader.unusable(help);
            }
            is_one.then_some(Ready::Url(url))
        }
        _ => {
            if fields.has("line") == fields.has("url") {
                fields.reader.unusable("give it either `line` or `url`");
            }
            None
        }
    }
}

fn mcp_config<'s>(reader: &mut ConfigReader<'s, '_>, node: NodeRef<'s>) -> Option<McpConfigSpec> {
    if node.entries().is_none() {
        let file = reader.existing(node)?;
        return Some(McpConfigSpec {
            file,
            in_place: false,
        });
    }
    let mut fields = reader.fields(node, &fields::MCP_CONFIG)?;
    let file = fields.existing("file");
    let in_place = fields.flag("in_place").unwrap_or_default();
    Some(McpConfigSpec {
        file: file?,
        in_place,
    })
}

fn endpoint(fields: &mut ConfigMapping<'_, '_, '_>) -> Option<EndpointSpec> {
    let urls = fields.read("endpoint", |reader, node| {
        let mut fields = reader.fields(node, &fields::URLS)?;
        let urls = Urls {
            ag_ui: fields.url("ag_ui"),
            a2a: fields.url("a2a"),
            mcp: fields.url("mcp"),
        };
        if !["ag_ui", "a2a", "mcp"].iter().any(|key| fields.has(key)) {
            fields.reader.unusable("give it one of ag_ui, a2a, mcp");
        }
        Some(urls)
    });
    let listen = fields.read("listen", |reader, node| {
        let mut fields = reader.fields(node, &fields::LISTEN)?;
        Some((fields.address("mcp"), fields.address("a2a")))
    });
    let headers = fields.read("headers", |reader, node| {
        Some(variables(reader, node, header))
    });
    let (mcp_listen, a2a_listen) = listen.unwrap_or_default();
    Some(EndpointSpec {
        urls: urls?,
        mcp_listen,
        a2a_listen,
        headers: headers.unwrap_or_default(),
    })
}

/// Names with values that may be secrets: the value as it is written, and with its variables in place.
fn variables<'s, T>(
    reader: &mut ConfigReader<'s, '_>,
    node: NodeRef<'s>,
    mut make: impl FnMut(&mut ConfigReader<'s, '_>, &str, &str, String) -> Option<T>,
) -> Vec<T> {
    let Some(entries) = node.entries() else {
        reader.mismatch(node, "a mapping");
        return Vec::new();
    };
    let mut list = Vec::new();
    for (name, value) in entries {
        list.extend(reader.within(PathSegment::Key(name), |reader| {
            let written = match value.scalar() {
                Some(YamlScalar::Int(number)) => number.to_string(),
                Some(YamlScalar::Bool(value)) => value.to_string(),
                _ => reader.text(value)?,
            };
            // Placeholders are none: what they stand for is the attack's.
            let is_plain = !written.is_empty() && !written.contains(['{']);
            if (is_plain && sounds_secret(name)) || looks_secret(&written) {
                let help = "write `${NAME}` and set that variable where proofhouse runs";
                reader.secret("probably a secret", help);
                return None;
            }
            let filled = reader.filled(&written)?;
            make(reader, name, &written, filled)
        }));
    }
    list
}

fn environment_variable(
    reader: &mut ConfigReader<'_, '_>,
    name: &str,
    value: String,
) -> Option<(String, Sealed<String>)> {
    if !is_name(name) || value.contains('\0') {
        reader.unusable("the name of a variable has letters, digits and `_`");
        return None;
    }
    Some((name.to_owned(), Sealed::new(value)))
}

fn header(
    reader: &mut ConfigReader<'_, '_>,
    name: &str,
    written: &str,
    value: String,
) -> Option<RequestHeader> {
    let checked = headers::check_name(name).and_then(|()| headers::check_value(name, &value));
    if let Err(message) = checked {
        reader.error("PC-005", &message.to_string(), None);
        return None;
    }
    // One that ends in a variable can be described without its value.
    let variable = written.split_once("${").and_then(|(before, rest)| {
        let name = rest.strip_suffix('}')?;
        (is_name(name) && !before.ends_with('$')).then(|| (before.to_owned(), name.to_owned()))
    });
    let value = match variable {
        Some((before, name)) => HeaderSource::Variable { before, name },
        None => HeaderSource::Given(Sealed::new(value)),
    };
    Some(RequestHeader {
        name: name.to_owned(),
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_subjects() {
        for good in ["mine", "gpt-5", "a.b:c_1"] {
            assert!(name(good).is_ok(), "{good}");
        }
        for wrong in [
            "",
            "-x",
            "a b",
            "a/b",
            "ü",
            "x.yaml",
            "sim:careful",
            "model:x",
        ] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
        assert!(name(&"a".repeat(MAX_NAME + 1)).is_err());
    }
}
