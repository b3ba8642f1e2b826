//! Names that look alike: what a name looks like to a hurried reader, and whether it mixes scripts to do so.

/// What a name looks like: letters of other scripts as the Latin ones that they resemble, digits as letters, pairs such
/// as `rn` as `m`, without case and separators.
///
/// ```
/// use proofhouse_guard::pins::skeleton;
///
/// assert_eq!(skeleton("send_email"), skeleton("sеnd-Emai1")); // with a Cyrillic е
/// assert_ne!(skeleton("read_file"), skeleton("write_file"));
/// ```
#[must_use]
pub fn skeleton(name: &str) -> String {
    let plain: String = name
        .chars()
        .filter(|c| c.is_alphanumeric())
        .map(|c| looks_like(c).unwrap_or(c))
        .flat_map(char::to_lowercase)
        .map(|c| match c {
            '0' => 'o',
            '1' | 'i' | '|' => 'l',
            '5' => 's',
            c => c,
        })
        .collect();
    plain.replace("rn", "m").replace("vv", "w")
}

/// Whether a name has Latin letters and others that look like Latin ones: nobody writes such a name by accident.
#[must_use]
pub fn is_mixed(name: &str) -> bool {
    let has_latin = name.chars().any(|c| c.is_ascii_alphabetic());
    has_latin && name.chars().any(|c| looks_like(c).is_some())
}

/// The Latin letter or digit that a character of another script looks like.
fn looks_like(c: char) -> Option<char> {
    // Full-width forms, and the styled letters of mathematics.
    if let '\u{ff01}'..='\u{ff5e}' = c {
        return char::from_u32(u32::from(c) - 0xff01 + 0x21);
    }
    if let '\u{1d400}'..='\u{1d6a3}' = c {
        let letter = (u32::from(c) - 0x1d400) % 52;
        let base = if letter < 26 { 0x41 } else { 0x61 - 26 };
        return char::from_u32(base + letter);
    }
    const PAIRS: &[(char, &str)] = &[
        ('a', "аα"),
        ('b', "Ьƅ"),
        ('c', "сϲ"),
        ('d', "ԁ"),
        ('e', "еҽє"),
        ('g', "ɡ"),
        ('h', "һ"),
        ('i', "іιɩ"),
        ('j', "јϳ"),
        ('k', "кκ"),
        ('l', "ӏⅼ"),
        ('m', "мⅿ"),
        ('n', "ո"),
        ('o', "оοօ"),
        ('p', "рρ"),
        ('q', "ԛ"),
        ('r', "г"),
        ('s', "ѕ"),
        ('t', "тτ"),
        ('u', "υս"),
        ('v', "ѵν"),
        ('w', "ԝω"),
        ('x', "хχ"),
        ('y', "уγ"),
        ('A', "АΑ"),
        ('B', "ВΒ"),
        ('C', "С"),
        ('E', "ЕΕ"),
        ('H', "НΗ"),
        ('I', "ІΙ"),
        ('J', "Ј"),
        ('K', "КΚ"),
        ('M', "МΜ"),
        ('N', "Ν"),
        ('O', "ОΟ"),
        ('P', "РΡ"),
        ('S', "Ѕ"),
        ('T', "ТΤ"),
        ('X', "ХΧ"),
        ('Y', "ҮΥ"),
        ('Z', "Ζ"),
    ];
    let mut pairs = PAIRS.iter();
    let found = pairs.find(|(_, alike)| alike.contains(c));
    found.map(|(latin, _)| *latin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_alike_has_one_skeleton() {
        for (one, other) in [
            ("transfer", "transfеr"),
            ("admin_reset", "adrnin-reset"),
            ("list_files", "Iist_files"),
            ("open", "ｏｐｅｎ"),
            ("post0", "posto"),
        ] {
            assert_eq!(skeleton(one), skeleton(other), "{one} {other}");
        }
        for (one, other) in [("get_a", "get_b"), ("read", "reads"), ("search", "fetch")] {
            assert_ne!(skeleton(one), skeleton(other));
        }
    }

    #[test]
    fn names_in_one_script_are_not_mixed() {
        assert!(is_mixed("pаypal"));
        assert!(!is_mixed("paypal") && !is_mixed("оплата") && !is_mixed("日本語_tool"));
    }
}
