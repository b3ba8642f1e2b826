//! What an address of PostgreSQL says about TLS. The driver knows a part of it, so that it is read here and taken out.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::error::{Result, StoreError};

/// How far a connection is protected, in the words of libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TlsMode {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can.
    Prefer,
    /// Encrypted, or not at all; whoever the server is, unless there are roots.
    Require,
    /// And the server's certificate is from somebody who is trusted.
    VerifyCa,
    /// And it is for the host of the address.
    VerifyFull,
}

/// Whose certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RootCertificates {
    /// Those in a file.
    File(PathBuf),
    /// The public ones.
    Public,
}

/// An address, read as far as it is about TLS.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The rest, for the driver.
    pub(super) rest: String,
    pub(super) protection: TlsMode,
    pub(super) roots: Option<RootCertificates>,
}

impl Address {
    /// # Errors
    ///
    /// When it asks for something that there is not, or that makes no sense.
    pub(super) fn read(text: &str) -> Result<Self> {
        let mut mode: Option<String> = None;
        let mut root: Option<String> = None;
        let mut take = |name: &str, value: String| match name {
            "sslmode" => {
                mode = Some(value);
                true
            }
            "sslrootcert" => {
                root = Some(value).filter(|value| !value.is_empty());
                true
            }
            _ => false,
        };
        let is_url = ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| text.starts_with(scheme));
        let rest = if is_url {
            without_query(text, &mut take)
        } else {
            without_pairs(text, &mut take)
        };
        let roots = root.map(|root| match root.as_str() {
            "system" => RootCertificates::Public,
            _ => RootCertificates::File(PathBuf::from(root)),
        });
        let protection = match (mode.as_deref(), &roots) {
            (None, Some(RootCertificates::Public)) => TlsMode::VerifyFull,
            (None, _) => TlsMode::Prefer,
            (Some(word), _) => protection(word)?,
        };
        match (&roots, protection) {
            (None, TlsMode::VerifyCa | TlsMode::VerifyFull) => Err(wrong(
                "`sslmode` asks for a certificate that is verified: name the file of those who are trusted with \
                 `sslrootcert`, or `sslrootcert=system` for the public ones",
            )),
            (Some(RootCertificates::Public), mode) if mode != TlsMode::VerifyFull => Err(wrong(
                "`sslrootcert=system` needs `sslmode=verify-full`: anybody can have a certificate of theirs for some name",
            )),
            (Some(_), TlsMode::Disable | TlsMode::Prefer) => Err(wrong(
                "`sslrootcert` needs `sslmode=require`, `verify-ca` or `verify-full`: otherwise the connection may not be \
                 encrypted at all",
            )),
            _ => Ok(Self {
                rest,
                protection,
                roots,
            }),
        }
    }
}

fn wrong(message: &str) -> StoreError {
    StoreError::Invalid(format!("the address of PostgreSQL: {message}"))
}

fn protection(word: &str) -> Result<TlsMode> {
    Ok(match word {
        "disable" => TlsMode::Disable,
        "prefer" => TlsMode::Prefer,
        "require" => TlsMode::Require,
        "verify-ca" => TlsMode::VerifyCa,
        "verify-full" => TlsMode::VerifyFull,
        _ => {
            return Err(wrong(
                "`sslmode` is one of `disable`, `prefer`, `require`, `verify-ca` and `verify-full`",
            ));
        }
    })
}

/// A URL without what is taken out of its query.
fn without_query(url: &str, take: &mut impl FnMut(&str, String) -> bool) -> String {
    // As the driver does it: a password may have a question mark.
    let host = url.find('@').map_or(0, |at| at + 1);
    let Some(mark) = url[host..].find('?').map(|at| host + at) else {
        return url.to_owned();
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let kept: Vec<&str> = url[mark + 1..]
        .split('&')
        .filter(|pair| match pair.split_once('=') {
            Some((name, value)) => !take(&decoded(name), decoded(value)),
            None => true,
        })
        .collect();
    if kept.is_empty() {
        url[..mark].to_owned()
    } else {
        format!("{}?{}", &url[..mark], kept.join("&"))
    }
}

/// Pairs of `key=value` without those that are taken out. What is not written as it should be is left to the driver, which
/// complains.
fn without_pairs(text: &str, take: &mut impl FnMut(&str, String) -> bool) -> String {
    let mut kept = String::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let Some((name, value, after)) = pair(rest) else {
            kept.push_str(rest);
            break;
        };
        if !take(name, value) {
            kept.push_str(&rest[..rest.len() - after.len()]);
            kept.push(' ');
        }
        rest = after.trim_start();
    }
    kept
}

/// The first pair: its name, its value without quotes, and what comes after.
fn pair(text: &str) -> Option<(&str, String, &str)> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim_end();
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    let value = value.trim_start();
    let quoted = value.strip_prefix('\'');
    let body = quoted.unwrap_or(value);
    let mut plain = String::new();
    let mut characters = body.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => plain.push(characters.next()?.1),
            '\'' if quoted.is_some() => return Some((name, plain, &body[at + 1..])),
            space if quoted.is_none() && space.is_whitespace() => {
                return Some((name, plain, &body[at..]));
            }
            other => plain.push(other),
        }
    }
    quoted.is_none().then_some((name, plain, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, rest: &str, protection: TlsMode, root: Option<&str>) {
        let roots = root.map(|root| match root {
            "system" => RootCertificates::Public,
            file => RootCertificates::File(file.into()),
        });
        let expected = Address {
            rest: rest.to_owned(),
            protection,
            roots,
        };
        assert_eq!(Address::read(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn what_is_about_tls_is_taken_out() {
        use TlsMode::{Disable, Prefer, Require, VerifyCa, VerifyFull};
        reads("postgres://h/d", "postgres://h/d", Prefer, None);
        let url = "postgresql://u:p?w@h:5/d?sslmode=require&connect_timeout=3";
        let rest = "postgresql://u:p?w@h:5/d?connect_timeout=3";
        reads(url, rest, Require, None);
        let url = "postgres://h/d?sslmode=verify%2Dca&sslrootcert=%2Fa%20b.pem";
        reads(url, "postgres://h/d", VerifyCa, Some("/a b.pem"));
        let url = "postgres://h/d?sslrootcert=system";
        reads(url, "postgres://h/d", VerifyFull, Some("system"));
        let pairs = r"host=h sslmode = 'verify-full'  sslrootcert='/it\'s here.pem' dbname=d";
        reads(
            pairs,
            "host=h dbname=d ",
            VerifyFull,
            Some("/it's here.pem"),
        );
        reads("sslmode=disable host='a b'", "host='a b' ", Disable, None);
        // The driver says what is wrong with these.
        reads("host", "host", Prefer, None);
        reads("host='h", "host='h", Prefer, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (settings, why) in [
            ("sslmode=allow", "is one of"),
            ("sslmode=verify-full", "`sslrootcert`"),
            ("sslmode=verify-ca&sslrootcert=", "`sslrootcert`"),
            ("sslrootcert=/ca.pem", "needs `sslmode=require`"),
            (
                "sslmode=disable&sslrootcert=/ca.pem",
                "needs `sslmode=require`",
            ),
            (
                "sslmode=require&sslrootcert=system",
                "needs `sslmode=verify-full`",
            ),
        ] {
            let error = Address::read(&format!("postgres://u:secret@h/d?{settings}"));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(why), "{settings}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
