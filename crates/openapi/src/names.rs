//! Names that models can use: letters, digits, `_` and `-`, at most 64 of them, each used once.

use std::collections::HashSet;

/// How long a name may be; what the interfaces of models allow.
pub(crate) const MAX_NAME: usize = 64;

/// Hands out names.
#[derive(Debug, Default)]
pub(crate) struct FunctionNames {
    taken: HashSet<String>,
}

impl FunctionNames {
    /// The name, or one like it that nobody has.
    pub(crate) fn unique(&mut self, wanted: &str) -> String {
        let wanted = if wanted.is_empty() { "unnamed" } else { wanted };
        if self.taken.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        let mut number = 2_usize;
        loop {
            let suffix = format!("_{number}");
            let mut name = cut(wanted, MAX_NAME - suffix.len()).to_owned();
            name.push_str(&suffix);
            if self.taken.insert(name.clone()) {
                return name;
            }
            // Doubling keeps a million equal names from costing a million times a million tries.
            number = match number {
                0..100 => number + 1,
                _ => number.saturating_mul(2).saturating_add(self.taken.len()),
            };
        }
    }

    /// Whether a name is taken.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.taken.contains(name)
    }
}

/// The text as a name; runs of other characters become one `_`.
pub(crate) fn name_of(text: &str) -> String {
    sanitized(text, "_-")
}

/// The text as the name of a property, where dots are allowed too.
pub(crate) fn property_of(text: &str) -> String {
    sanitized(text, "_-.")
}

fn sanitized(text: &str, allowed: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || allowed.contains(c) {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        if name.len() >= MAX_NAME {
            break;
        }
    }
    name.trim_end_matches('_').to_owned()
}

fn cut(name: &str, length: usize) -> &str {
    name.get(..length).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made() {
        for (text, name) in [
            ("listPets", "listPets"),
            ("repos/get-content", "repos_get-content"),
            ("get /a/{b}/c.json", "get_a_b_c_json"),
            ("{x}", "x"),
            ("größe", "gr_e"),
            ("///", ""),
        ] {
            assert_eq!(name_of(text), name, "{text}");
        }
        assert_eq!(name_of(&"é1".repeat(100)).len(), 63);
        assert_eq!(property_of("page[size].x"), "page_size_.x");
    }

    #[test]
    fn names_are_unique_within_their_length() {
        let mut names = FunctionNames::default();
        let long = "a".repeat(64);
        let made: Vec<String> = (0..3).map(|_| names.unique(&long)).collect();
        assert_eq!(made[0], long);
        assert_eq!(made[1], format!("{}_2", "a".repeat(62)));
        assert_eq!(made[2], format!("{}_3", "a".repeat(62)));
        assert_eq!(names.unique(""), "unnamed");
        assert_eq!(names.unique(""), "unnamed_2");
        let many: HashSet<String> = (0..5000).map(|_| names.unique("x")).collect();
        assert_eq!(many.len(), 5000);
        assert!(many.iter().all(|name| name.len() <= MAX_NAME));
    }
}
