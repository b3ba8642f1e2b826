//! Variables in texts: `${NAME}` is looked up, `$${` is the text `${`.

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariableProblem {
    /// The variable is not set.
    NotSet(String),
    /// This is no variable.
    Malformed,
    /// The text becomes too long.
    TooLong,
}

/// A variable that is named often enough would fill the memory.
pub const MAX_BYTES: usize = 1 << 20;

/// The text with its variables in place. Values are not searched for variables again.
///
/// ```
/// use proofhouse_tools::operator::variables::fill;
/// let lookup = |name: &str| (name == "KEY").then(|| "sk-1".to_owned());
/// assert_eq!(fill("Bearer ${KEY}", &lookup).as_deref(), Ok("Bearer sk-1"));
/// ```
///
/// # Errors
///
/// Returns what is wrong first.
pub fn fill(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, VariableProblem> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            filled.push_str(&rest[..at - 1]);
            filled.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        filled.push_str(&rest[..at]);
        let name = rest[at + 2..].split('}').next().unwrap_or_default();
        let after = at + 2 + name.len();
        if !is_name(name) || !rest[after..].starts_with('}') {
            return Err(VariableProblem::Malformed);
        }
        let value = lookup(name).ok_or_else(|| VariableProblem::NotSet(name.to_owned()))?;
        filled.push_str(&value);
        rest = &rest[after + 1..];
        if filled.len() > MAX_BYTES {
            return Err(VariableProblem::TooLong);
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Whether a text can name a variable.
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.len() <= 200
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_once() {
        let lookup = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "NESTED" => Some("${A}".to_owned()),
            "LONG" => Some("x".repeat(MAX_BYTES)),
            _ => None,
        };
        for (text, expected) in [
            ("", Ok("")),
            ("plain $5 {x}", Ok("plain $5 {x}")),
            ("${A}", Ok("1")),
            ("<${A}${A}>", Ok("<11>")),
            ("${NESTED}", Ok("${A}")),
            ("$${A}", Ok("${A}")),
            ("$${A} ${A}", Ok("${A} 1")),
            ("${B}", Err(VariableProblem::NotSet("B".to_owned()))),
            ("${A", Err(VariableProblem::Malformed)),
            ("${}", Err(VariableProblem::Malformed)),
            ("${A-B}", Err(VariableProblem::Malformed)),
            ("${1A}", Err(VariableProblem::Malformed)),
            ("${A:-1}", Err(VariableProblem::Malformed)),
            ("${LONG}${A}", Err(VariableProblem::TooLong)),
            ("ü${A}ü", Ok("ü1ü")),
        ] {
            assert_eq!(fill(text, &lookup), expected.map(str::to_owned), "{text}");
        }
    }
}
