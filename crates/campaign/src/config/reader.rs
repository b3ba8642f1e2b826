//! Reads the nodes of `proofhouse.yaml` by the table of its keys. No finding shows a value that may be secret.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use proofhouse_source::format::{self, FormatReader, TypeSpec, Wording};
use proofhouse_source::{Diagnostic, DocumentWalk, NodeRef, PathSegment, Source, YamlScalar};
use proofhouse_tools::operator::variables::{VariableProblem, fill};
use proofhouse_wire::files::parse_size;

use super::duration::positive_duration;
use super::subjects::elsewhere;

/// Where `${NAME}` comes from.
#[derive(Clone, Copy)]
pub enum ConfigVariables<'v> {
    /// From nowhere: only the form is checked.
    Unread,
    /// From here; what is not set is an error.
    From(&'v dyn Fn(&str) -> Option<String>),
}

/// What to write instead of a text that cannot be used.
#[derive(Debug, thiserror::Error)]
enum InvalidText {
    #[error("write something")]
    Empty,
    #[error("write a path")]
    NoPath,
    #[error("write an address and a port, such as 127.0.0.1:8080")]
    NotAddress,
    #[error("write it as `10.1.0.0/16` or `fd00::/8`")]
    NotNetwork,
}

/// Walks a file.
pub(super) struct ConfigReader<'s, 'v> {
    pub(super) walk: DocumentWalk<'s>,
    /// What paths are relative to.
    pub(super) directory: &'v Path,
    pub(super) variables: ConfigVariables<'v>,
}

/// The fields of one mapping that is being read.
pub(super) type ConfigMapping<'r, 's, 'v> = format::Fields<'r, 's, ConfigReader<'s, 'v>>;

impl<'s> FormatReader<'s> for ConfigReader<'s, '_> {
    const WORDING: Wording = Wording {
        whole: "the file",
        text: "a text",
        list: "a list",
        mismatch: "PC-002",
        unknown_key: "PC-003",
        empty: "PC-010",
        refused: "PC-005",
        shows_values: false,
    };

    fn walk(&mut self) -> &mut DocumentWalk<'s> {
        &mut self.walk
    }

    /// Says what kind of value is there, and never the value: it may be a secret in the wrong place.
    fn mismatch(&mut self, node: NodeRef<'s>, wanted: &str) {
        let message = format!("{} must be {wanted}, not {}", self.place(), node.kind());
        let quoted =
            wanted == Self::WORDING.text && matches!(node.kind(), "a number" | "a truth value");
        self.error(
            Self::WORDING.mismatch,
            &message,
            quoted.then_some("put it in quotes"),
        );
    }

    fn unknown_key_help(
        &self,
        spec: &'static TypeSpec,
        key: &str,
        near: Option<&'static str>,
    ) -> Option<String> {
        Some(
            match (removed(spec, key).or_else(|| elsewhere(spec, key)), near) {
                (Some(help), _) => help,
                (None, Some(near)) => format!("did you mean `{near}`?"),
                (None, None) => {
                    let keys: Vec<&str> = spec.keys().collect();
                    format!("the keys are: {}", keys.join(", "))
                }
            },
        )
    }

    fn text(&mut self, node: NodeRef<'s>) -> Option<String> {
        match node.scalar() {
            Some(YamlScalar::Text(text)) if !text.contains('\0') => Some(text.to_owned()),
            Some(YamlScalar::Text(_)) => {
                self.unusable("take out the character with the code 0");
                None
            }
            _ => {
                self.mismatch(node, Self::WORDING.text);
                None
            }
        }
    }
}

/// What became of a key that earlier versions had.
fn removed(spec: &TypeSpec, key: &str) -> Option<String> {
    let is_early_stop = spec.name == super::fields::CONFIG.name && key == "early_stop";
    is_early_stop.then(|| {
        "remove it: rates of a campaign that stops on what it sees are not to be trusted, so every repeat is made"
            .to_owned()
    })
}

impl<'s, 'v> ConfigReader<'s, 'v> {
    pub(super) fn new(
        source: &'s Source,
        directory: &'v Path,
        variables: ConfigVariables<'v>,
    ) -> Self {
        Self {
            walk: DocumentWalk::new(source),
            directory,
            variables,
        }
    }

    pub(super) fn into_findings(self) -> Vec<Diagnostic> {
        self.walk.into_findings()
    }

    pub(super) fn error(&mut self, code: &'static str, message: &str, help: Option<&str>) {
        self.walk
            .error(code, message.to_owned(), help.map(str::to_owned));
    }

    /// Says that a value cannot be used, and what to write.
    pub(super) fn unusable(&mut self, help: &str) {
        let place = self.place();
        self.error("PC-005", &format!("{place} cannot be used"), Some(help));
    }

    /// A text that stands for something, which `read` finds out.
    pub(super) fn parsed<T, E: fmt::Display>(
        &mut self,
        node: NodeRef<'s>,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(node)?;
        match read(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.unusable(&error.to_string());
                None
            }
        }
    }

    /// A path, from where the file is.
    pub(super) fn path(&mut self, node: NodeRef<'s>) -> Option<PathBuf> {
        let directory = self.directory;
        self.parsed(node, |text| {
            if text.is_empty() {
                Err(InvalidText::NoPath)
            } else {
                Ok(directory.join(text))
            }
        })
    }

    /// A path to something that is there.
    pub(super) fn existing(&mut self, node: NodeRef<'s>) -> Option<PathBuf> {
        let path = self.path(node)?;
        if !path.exists() {
            let place = self.place();
            let help = "paths are relative to the file that names them";
            self.error(
                "PC-011",
                &format!("{place} names a file that is not there"),
                Some(help),
            );
            return None;
        }
        Some(path)
    }

    /// A text with the variables of the environment in place.
    pub(super) fn filled(&mut self, text: &str) -> Option<String> {
        let filled = match self.variables {
            ConfigVariables::Unread => fill(text, &|_| Some(String::new())),
            ConfigVariables::From(lookup) => fill(text, lookup),
        };
        match filled {
            Ok(filled) => return Some(filled),
            Err(VariableProblem::NotSet(name)) => self.error(
                "PC-006",
                &format!("the environment variable `{name}` is not set"),
                Some(&format!(
                    "export {name}=…; in CI, pass it to the step with `env:`"
                )),
            ),
            Err(VariableProblem::Malformed) => self.error(
                "PC-007",
                "`${` must start a variable, such as `${NAME}`",
                Some("write `$${` for the text `${`"),
            ),
            Err(VariableProblem::TooLong) => self.unusable("its variables make it too long"),
        }
        None
    }

    pub(super) fn url(&mut self, node: NodeRef<'s>) -> Option<String> {
        let text = self.text(node)?;
        let written = text.split_once("://").map_or("", |(_, rest)| rest);
        let authority = written.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        if user.is_some_and(|user| !user.contains("${")) {
            let help = "leave it out, and say with `headers` who you are";
            self.secret("a URL with a password", help);
            return None;
        }
        let url = self.filled(&text)?;
        // A variable may be the whole URL, and is not looked up everywhere.
        if matches!(self.variables, ConfigVariables::Unread) && text.contains("${") {
            return None;
        }
        let rest = ["http://", "https://"]
            .iter()
            .find_map(|scheme| url.strip_prefix(scheme));
        if rest.is_none_or(str::is_empty) || url.contains(char::is_whitespace) {
            self.unusable("write a URL that begins with http:// or https://");
            return None;
        }
        Some(url)
    }

    /// Says that a secret stands in the file, and never which.
    pub(super) fn secret(&mut self, what: &str, help: &str) {
        let place = self.place();
        let message = format!("{place} is {what} and must not stand in the file");
        self.walk
            .error_at_key("PC-008", message, Some(help.to_owned()));
    }
}

/// What `proofhouse.yaml` has beside what every format has.
pub(super) trait ConfigFields {
    /// Says that a key does not go together with what else is there.
    fn clash(&mut self, key: &'static str, message: &str, help: Option<&str>);

    /// A text that has something in it.
    fn some_text(&mut self, key: &'static str) -> Option<String>;

    fn duration(&mut self, key: &'static str) -> Option<Duration>;

    /// Bytes: a number, or a text such as `8M`.
    fn size(&mut self, key: &'static str) -> Option<u64>;

    fn path(&mut self, key: &'static str) -> Option<PathBuf>;

    fn existing(&mut self, key: &'static str) -> Option<PathBuf>;

    fn url(&mut self, key: &'static str) -> Option<String>;

    fn address(&mut self, key: &'static str) -> Option<SocketAddr>;

    fn networks(&mut self, key: &'static str) -> Vec<IpNet>;

    /// Texts that have something in them.
    fn some_texts(&mut self, key: &'static str) -> Vec<String>;
}

impl ConfigFields for ConfigMapping<'_, '_, '_> {
    fn clash(&mut self, key: &'static str, message: &str, help: Option<&str>) {
        self.reader.within(PathSegment::Key(key), |reader| {
            let help = help.map(str::to_owned);
            reader.walk.error_at_key("PC-013", message.to_owned(), help);
        });
    }

    fn some_text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, |reader, node| {
            reader.parsed(node, |text| {
                if text.trim().is_empty() {
                    Err(InvalidText::Empty)
                } else {
                    Ok(text.to_owned())
                }
            })
        })
    }

    fn duration(&mut self, key: &'static str) -> Option<Duration> {
        self.read(key, |reader, node| reader.parsed(node, positive_duration))
    }

    fn size(&mut self, key: &'static str) -> Option<u64> {
        self.read(key, |reader, node| match node.scalar() {
            Some(YamlScalar::Int(number)) if number > 0 => u64::try_from(number).ok(),
            Some(YamlScalar::Int(_)) => {
                reader.unusable("write a number of bytes above 0");
                None
            }
            _ => reader.parsed(node, |text| parse_size(text).map(|size| size as u64)),
        })
    }

    fn path(&mut self, key: &'static str) -> Option<PathBuf> {
        self.read(key, |reader, node| reader.path(node))
    }

    fn existing(&mut self, key: &'static str) -> Option<PathBuf> {
        self.read(key, |reader, node| reader.existing(node))
    }

    fn url(&mut self, key: &'static str) -> Option<String> {
        self.read(key, |reader, node| reader.url(node))
    }

    fn address(&mut self, key: &'static str) -> Option<SocketAddr> {
        self.read(key, |reader, node| {
            reader.parsed(node, |text| {
                let parsed = text.parse();
                parsed.map_err(|_| InvalidText::NotAddress)
            })
        })
    }

    fn networks(&mut self, key: &'static str) -> Vec<IpNet> {
        let read = self.read(key, |reader, node| {
            Some(reader.one_or_more(node, |reader, item| {
                reader.parsed(item, |text| {
                    proofhouse_subjects::spec::network(text).map_err(|_| InvalidText::NotNetwork)
                })
            }))
        });
        read.unwrap_or_default()
    }

    fn some_texts(&mut self, key: &'static str) -> Vec<String> {
        let read = self.read(key, |reader, node| {
            Some(reader.one_or_more(node, |reader, item| {
                reader.parsed(item, |text| {
                    if text.is_empty() {
                        Err(InvalidText::Empty)
                    } else {
                        Ok(text.to_owned())
                    }
                })
            }))
        });
        read.unwrap_or_default()
    }
}
