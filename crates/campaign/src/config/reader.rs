//! Reads the nodes of `proofhouse.yaml` by the table of its keys. No finding shows a value that may be secret.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use proofhouse_source::{Diagnostic, NodeRef, Scalar, Segment, Source, Walk, did_you_mean};
use proofhouse_tools::operator::variables::{Problem, fill};
use proofhouse_wire::files::parse_size;

use super::duration::duration;
use super::fields::{Kind, TypeSpec};

/// Where `${NAME}` comes from.
#[derive(Clone, Copy)]
pub enum Variables<'v> {
    /// From nowhere: only the form is checked.
    Unread,
    /// From here; what is not set is an error.
    From(&'v dyn Fn(&str) -> Option<String>),
}

/// Walks a file.
pub(super) struct Reader<'s, 'v> {
    pub(super) walk: Walk<'s>,
    /// What paths are relative to.
    pub(super) directory: &'v Path,
    pub(super) variables: Variables<'v>,
}

/// The fields of one mapping that is being read.
pub(super) struct Fields<'r, 's, 'v> {
    pub(super) reader: &'r mut Reader<'s, 'v>,
    node: NodeRef<'s>,
    spec: &'static TypeSpec,
}

impl<'s, 'v> Reader<'s, 'v> {
    pub(super) fn new(source: &'s Source, directory: &'v Path, variables: Variables<'v>) -> Self {
        Self {
            walk: Walk::new(source),
            directory,
            variables,
        }
    }

    pub(super) fn into_findings(self) -> Vec<Diagnostic> {
        self.walk.into_findings()
    }

    pub(super) fn within<T>(
        &mut self,
        segment: Segment<'s>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.walk.enter(segment);
        let result = read(self);
        self.walk.leave();
        result
    }

    pub(super) fn error(&mut self, code: &'static str, message: &str, help: Option<&str>) {
        self.walk
            .error(code, message.to_owned(), help.map(str::to_owned));
    }

    /// Says that a value cannot be used, and what to write.
    pub(super) fn unusable(&mut self, help: &str) {
        let place = self.walk.place("the file");
        self.error("PC-005", &format!("{place} cannot be used"), Some(help));
    }

    pub(super) fn mismatch(&mut self, node: NodeRef<'s>, wanted: &str) {
        let place = self.walk.place("the file");
        let message = format!("{place} must be {wanted}, not {}", node.kind());
        let quoted = wanted == "a text" && matches!(node.kind(), "a number" | "a truth value");
        self.error("PC-002", &message, quoted.then_some("put it in quotes"));
    }

    /// Opens a mapping: its unknown keys and those it lacks are reported.
    pub(super) fn open(
        &mut self,
        node: NodeRef<'s>,
        spec: &'static TypeSpec,
        elsewhere: impl Fn(&str) -> Option<String>,
    ) -> Option<Fields<'_, 's, 'v>> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping");
            return None;
        };
        let keys = spec.keys();
        self.walk.unknown_keys("PC-003", node, &keys, |key, near| {
            Some(match (elsewhere(key), near) {
                (Some(elsewhere), _) => elsewhere,
                (None, Some(near)) => format!("did you mean `{near}`?"),
                (None, None) => format!("the keys are: {}", keys.join(", ")),
            })
        });
        let written: Vec<&str> = entries.map(|(key, _)| key).collect();
        for field in spec.fields.iter().filter(|field| field.required) {
            let misspelled = written
                .iter()
                .any(|key| !keys.contains(key) && did_you_mean(key, [field.key]).is_some());
            let missing = node.get(field.key).is_none_or(NodeRef::is_null);
            if missing && !misspelled {
                let place = self.walk.place("the file");
                let help = (field.key == "proofhouse").then_some("start with `proofhouse: 1`");
                self.error("PC-004", &format!("{place} needs `{}`", field.key), help);
            }
        }
        Some(Fields {
            reader: self,
            node,
            spec,
        })
    }

    pub(super) fn text(&mut self, node: NodeRef<'s>) -> Option<String> {
        match node.scalar() {
            Some(Scalar::Text(text)) if !text.contains('\0') => Some(text.to_owned()),
            Some(Scalar::Text(_)) => {
                self.unusable("take out the character with the code 0");
                None
            }
            _ => {
                self.mismatch(node, "a text");
                None
            }
        }
    }

    /// A text that stands for something, which `read` finds out.
    pub(super) fn parsed<T>(
        &mut self,
        node: NodeRef<'s>,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(node)?;
        match read(&text) {
            Ok(value) => Some(value),
            Err(help) => {
                self.unusable(&help);
                None
            }
        }
    }

    /// One of some words.
    pub(super) fn choice(
        &mut self,
        node: NodeRef<'s>,
        words: &[&'static str],
    ) -> Option<&'static str> {
        self.parsed(node, |text| {
            let found = words.iter().find(|word| **word == text);
            found
                .copied()
                .ok_or_else(|| match did_you_mean(text, words.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("write one of {}", words.join(", ")),
                })
        })
    }

    /// A path, from where the file is.
    pub(super) fn path(&mut self, node: NodeRef<'s>) -> Option<PathBuf> {
        let directory = self.directory;
        self.parsed(node, |text| match text.is_empty() {
            true => Err("write a path".to_owned()),
            false => Ok(directory.join(text)),
        })
    }

    /// A path to something that is there.
    pub(super) fn existing(&mut self, node: NodeRef<'s>) -> Option<PathBuf> {
        let path = self.path(node)?;
        if !path.exists() {
            let place = self.walk.place("the file");
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
            Variables::Unread => fill(text, &|_| Some(String::new())),
            Variables::From(lookup) => fill(text, lookup),
        };
        match filled {
            Ok(filled) => return Some(filled),
            Err(Problem::NotSet(name)) => self.error(
                "PC-006",
                &format!("the environment variable `{name}` is not set"),
                None,
            ),
            Err(Problem::Malformed) => self.error(
                "PC-007",
                "`${` must start a variable, such as `${NAME}`",
                Some("write `$${` for the text `${`"),
            ),
            Err(Problem::TooLong) => self.unusable("its variables make it too long"),
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
        if matches!(self.variables, Variables::Unread) && text.contains("${") {
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
        let place = self.walk.place("the file");
        let message = format!("{place} is {what} and must not stand in the file");
        self.walk
            .error_at_key("PC-008", message, Some(help.to_owned()));
    }

    /// The items of a list; one value stands for a list of one.
    pub(super) fn each<T>(
        &mut self,
        node: NodeRef<'s>,
        mut read: impl FnMut(&mut Self, NodeRef<'s>) -> Option<T>,
    ) -> Vec<T> {
        let Some(items) = node.items() else {
            return read(self, node).into_iter().collect();
        };
        let mut list = Vec::new();
        for (index, item) in items.enumerate() {
            list.extend(self.within(Segment::Index(index), |reader| read(reader, item)));
        }
        list
    }
}

impl<'s, 'v> Fields<'_, 's, 'v> {
    /// Reads one field with what the table says of it. Nothing behind a key counts as absent, and is told.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Reader<'s, 'v>, NodeRef<'s>, &'static Kind) -> Option<T>,
    ) -> Option<T> {
        let field = self.spec.field(key);
        debug_assert!(field.is_some(), "{} has no key {key}", self.spec.name);
        let (field, node) = (field?, self.node.get(key)?);
        self.reader.within(Segment::Key(key), |reader| {
            if node.is_null() {
                if !field.required {
                    let message = format!("`{key}` is empty and counts as absent");
                    let help = Some("give it a value or remove the key".to_owned());
                    reader.walk.warn_at_key("PC-010", message, help);
                }
                return None;
            }
            read(reader, node, &field.kind)
        })
    }

    /// Says that a key does not go together with what else is there.
    pub(super) fn clash(&mut self, key: &'static str, message: &str, help: Option<&str>) {
        self.reader.within(Segment::Key(key), |reader| {
            let help = help.map(str::to_owned);
            reader.walk.error_at_key("PC-013", message.to_owned(), help);
        });
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.node.get(key).is_some_and(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, |reader, node, _| reader.text(node))
    }

    /// A text that has something in it.
    pub(super) fn some_text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, |reader, node, _| {
            reader.parsed(node, |text| match text.trim().is_empty() {
                true => Err("write something".to_owned()),
                false => Ok(text.to_owned()),
            })
        })
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, |reader, node, _| match node.scalar() {
            Some(Scalar::Bool(value)) => Some(value),
            _ => {
                reader.mismatch(node, "true or false");
                None
            }
        })
    }

    /// A whole number in the range of the table.
    pub(super) fn whole<T: TryFrom<u64>>(&mut self, key: &'static str) -> Option<T> {
        self.read(key, |reader, node, kind| {
            let (min, max) = match kind {
                Kind::Whole { min, max } => (*min, *max),
                _ => (0, u64::MAX),
            };
            let number = match node.scalar() {
                Some(Scalar::Int(number)) => u64::try_from(number).ok(),
                Some(Scalar::UInt(number)) => Some(number),
                Some(Scalar::Float(_) | Scalar::OutOfRange(_)) => None,
                _ => {
                    reader.mismatch(node, "a whole number");
                    return None;
                }
            };
            let fits = number.filter(|number| (min..=max).contains(number));
            let fits = fits.and_then(|number| T::try_from(number).ok());
            if fits.is_none() {
                reader.unusable(&format!("write a whole number from {min} to {max}"));
            }
            fits
        })
    }

    /// A number from 0 to 1.
    pub(super) fn share(&mut self, key: &'static str) -> Option<f64> {
        self.read(key, |reader, node, _| {
            let number = match node.scalar() {
                Some(Scalar::Float(number)) => number,
                Some(Scalar::Int(0)) => 0.0,
                Some(Scalar::Int(1)) => 1.0,
                Some(Scalar::Int(_) | Scalar::UInt(_) | Scalar::OutOfRange(_)) => f64::NAN,
                _ => {
                    reader.mismatch(node, "a number");
                    return None;
                }
            };
            let fits = (0.0..=1.0).contains(&number);
            if !fits {
                reader.unusable("write a number from 0 to 1");
            }
            fits.then_some(number)
        })
    }

    pub(super) fn duration(&mut self, key: &'static str) -> Option<Duration> {
        self.read(key, |reader, node, _| {
            reader.parsed(node, |text| match duration(text) {
                Ok(time) if time.is_zero() => Err("write more than no time".to_owned()),
                read => read.map_err(|error| error.to_string()),
            })
        })
    }

    /// Bytes: a number, or a text such as `8M`.
    pub(super) fn size(&mut self, key: &'static str) -> Option<u64> {
        self.read(key, |reader, node, _| match node.scalar() {
            Some(Scalar::Int(number)) if number > 0 => u64::try_from(number).ok(),
            Some(Scalar::Int(_)) => {
                reader.unusable("write a number of bytes above 0");
                None
            }
            _ => reader.parsed(node, |text| {
                Ok(parse_size(text).map_err(|error| error.to_string())? as u64)
            }),
        })
    }

    pub(super) fn path(&mut self, key: &'static str) -> Option<PathBuf> {
        self.read(key, |reader, node, _| reader.path(node))
    }

    pub(super) fn existing(&mut self, key: &'static str) -> Option<PathBuf> {
        self.read(key, |reader, node, _| reader.existing(node))
    }

    pub(super) fn url(&mut self, key: &'static str) -> Option<String> {
        self.read(key, |reader, node, _| reader.url(node))
    }

    pub(super) fn address(&mut self, key: &'static str) -> Option<SocketAddr> {
        self.read(key, |reader, node, _| {
            reader.parsed(node, |text| {
                let parsed = text.parse();
                parsed.map_err(|_| "write an address and a port, such as 127.0.0.1:8080".to_owned())
            })
        })
    }

    pub(super) fn networks(&mut self, key: &'static str) -> Vec<IpNet> {
        let read = self.read(key, |reader, node, _| {
            Some(reader.each(node, |reader, item| {
                reader.parsed(item, |text| {
                    proofhouse_subjects::spec::network(text)
                        .map_err(|error| error.to_string())
                        .map_err(|_| "write it as `10.1.0.0/16` or `fd00::/8`".to_owned())
                })
            }))
        });
        read.unwrap_or_default()
    }

    /// Texts that have something in them.
    pub(super) fn texts(&mut self, key: &'static str) -> Vec<String> {
        let read = self.read(key, |reader, node, _| {
            Some(reader.each(node, |reader, item| {
                reader.parsed(item, |text| match text.is_empty() {
                    true => Err("write something".to_owned()),
                    false => Ok(text.to_owned()),
                })
            }))
        });
        read.unwrap_or_default()
    }

    /// One of the words of the table.
    pub(super) fn choice(&mut self, key: &'static str) -> Option<&'static str> {
        self.read(key, |reader, node, kind| match kind {
            Kind::Choice(words) => reader.choice(node, words),
            _ => None,
        })
    }

    /// Some of the words of the table.
    pub(super) fn choices(&mut self, key: &'static str) -> Vec<&'static str> {
        let read = self.read(key, |reader, node, kind| match kind {
            Kind::Choices(words) => {
                Some(reader.each(node, |reader, item| reader.choice(item, words)))
            }
            _ => None,
        });
        read.unwrap_or_default()
    }
}
