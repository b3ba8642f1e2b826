//! Errors of the operating system in plain words: the one place where a person's wording of them is decided.

/// What systems say, and what people read instead.
const WORDINGS: [(&str, &str); 3] = [
    ("cannot read: No such file or directory", "no such file"),
    ("No such file or directory", "no such file"),
    (
        "Address already in use",
        "this address is already in use; stop the program that listens there, or choose another port",
    ),
];

/// How far a line that is quoted from elsewhere is indented.
const QUOTED: &str = "    ";

/// A message without the numbers that systems give their errors (`os error 2`), and with one wording for the errors that
/// people meet most. What other programs wrote stays as it is: indented lines, and errors without such a number.
///
/// ```
/// use proofhouse_source::plain_error;
///
/// assert_eq!(plain_error("a.yaml: No such file or directory (os error 2)"), "a.yaml: no such file");
/// ```
#[must_use]
pub fn plain_error(message: &str) -> String {
    let lines = message.split_inclusive('\n').map(|line| {
        if line.starts_with(QUOTED) {
            line.to_owned()
        } else {
            plain_line(line)
        }
    });
    lines.collect()
}

fn plain_line(message: &str) -> String {
    let mut plain = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(" (os error ") {
        let number = after.find(|c: char| !c.is_ascii_digit() && c != '-');
        match number {
            Some(end) if after[end..].starts_with(')') => {
                rest = &after[end + 1..];
                let found = WORDINGS.iter().find(|(found, _)| before.ends_with(found));
                match found {
                    Some((found, wording)) => {
                        plain.push_str(&before[..before.len() - found.len()]);
                        plain.push_str(wording);
                    }
                    None => plain.push_str(before),
                }
            }
            _ => {
                plain.push_str(before);
                plain.push_str(" (os error ");
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_in_plain_words() {
        for (message, expected) in [
            (
                "a: cannot read: No such file or directory (os error 2)",
                "a: no such file",
            ),
            (
                "b: cannot write: Permission denied (os error 13); try",
                "b: cannot write: Permission denied; try",
            ),
            ("c (os error x) (os error 5)", "c (os error x)"),
            (
                "d: Address already in use (os error 98)",
                "d: this address is already in use; stop the program that listens there, or choose another port",
            ),
            ("e (os error 5", "e (os error 5"),
            ("f", "f"),
            (
                "g: No such file or directory (os error 2)\n  what it wrote:\n    No such file or directory (os error 2)\n",
                "g: no such file\n  what it wrote:\n    No such file or directory (os error 2)\n",
            ),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
                "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
            ),
        ] {
            assert_eq!(plain_error(message), expected);
        }
    }
}
