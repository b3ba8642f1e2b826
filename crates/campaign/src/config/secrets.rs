//! What in a configuration is probably a secret: by its name, by its look, or because a variable holds it.

use super::reader::ConfigVariables;

/// How keys of well-known services begin.
const KEYS: [&str; 14] = [
    "sk-",
    "sk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "hf_",
];
/// What follows the beginning of a key is at least this long.
const KEY_LENGTH: usize = 12;
/// Shorter values of variables, such as `debug`, are words that must stay readable.
const SHORTEST_VALUE: usize = 8;

/// Whether what has this name is usually a secret.
#[must_use]
pub fn sounds_secret(name: &str) -> bool {
    const WORDS: [&str; 8] = [
        "authorization",
        "cookie",
        "token",
        "secret",
        "password",
        "passwd",
        "credential",
        "key",
    ];
    let name = name.to_ascii_lowercase();
    let mut words = name.split(['-', '_', '.']);
    WORDS[..7].iter().any(|word| name.contains(word)) || words.any(|word| word.ends_with("key"))
}

/// Whether a value is a secret whatever its name: a private key, a URL with a password, a key of a well-known
/// service.
#[must_use]
pub fn looks_secret(value: &str) -> bool {
    let is_private_key = value.contains("-----BEGIN") && value.contains("PRIVATE KEY");
    let has_password = value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        let password = user.and_then(|user| user.split_once(':'));
        password.is_some_and(|(_, password)| !password.is_empty() && !password.contains("${"))
    });
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let has_key = value.split(|c: char| !is_of_key(c)).any(|word| {
        let mut rests = KEYS.iter().filter_map(|start| word.strip_prefix(start));
        rests.any(|rest| rest.len() >= KEY_LENGTH)
    });
    is_private_key || has_password || has_key
}

/// What variables brought into a value: it must not be in traces and results.
pub(super) fn of_variables(
    name: &str,
    written: &str,
    filled: &str,
    variables: ConfigVariables<'_>,
) -> Vec<String> {
    let ConfigVariables::From(lookup) = variables else {
        return Vec::new();
    };
    let names = written
        .split("${")
        .skip(1)
        .filter_map(|rest| rest.split_once('}'));
    let mut secrets: Vec<String> = names.filter_map(|(name, _)| lookup(name)).collect();
    if !secrets.is_empty() {
        secrets.push(filled.to_owned());
    }
    secrets.retain(|secret| sounds_secret(name) || secret.chars().count() >= SHORTEST_VALUE);
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "OPENAI_API_KEY",
            "apikey",
            "DB_PASSWORD",
            "auth-token",
        ] {
            assert!(sounds_secret(name), "{name}");
        }
        for name in ["MONKEYS", "LOG_LEVEL", "Accept", "KEYBOARD"] {
            assert!(!sounds_secret(name), "{name}");
        }
    }

    #[test]
    fn looks_of_secrets() {
        for value in [
            "postgres://me:hunter2@db/x",
            "-----BEGIN RSA PRIVATE KEY-----\nabc",
            "sk-abcdefghijklmnop",
            "use ghp_0123456789abcdef now",
            "AKIAIOSFODNN7EXAMPLE",
        ] {
            assert!(looks_secret(value), "{value}");
        }
        for value in [
            "postgres://me:${PASSWORD}@db/x",
            "http://127.0.0.1:80/a@b",
            "sk-short",
            "task-abcdefghijklmnop",
            "{mcp_url}",
            "-----BEGIN PUBLIC KEY-----",
        ] {
            assert!(!looks_secret(value), "{value}");
        }
    }

    #[test]
    fn values_of_variables_are_secrets() {
        let lookup = |name: &str| match name {
            "A" => Some("long-enough".to_owned()),
            "B" => Some("debug".to_owned()),
            _ => None,
        };
        let of = |name: &str, written: &str, filled: &str| {
            of_variables(name, written, filled, ConfigVariables::From(&lookup))
        };
        assert_eq!(
            of("X", "x ${A}", "x long-enough"),
            ["long-enough", "x long-enough"]
        );
        assert_eq!(of("LEVEL", "${B}", "debug"), [""; 0]);
        assert_eq!(of("MY_TOKEN", "${B}", "debug"), ["debug", "debug"]);
        assert_eq!(of("X", "plain and long", "plain and long"), [""; 0]);
    }
}
