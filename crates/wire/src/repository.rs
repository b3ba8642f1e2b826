//! Where the repository of this project is, from the one setting in `Cargo.toml`.

/// The address of the repository, such as `https://git.example/acme/proofhouse`; nothing while there is none.
///
/// Whatever names the project's address (reports, workflows, packages) takes it from here, so that nothing points to an
/// address that nobody owns.
pub const REPOSITORY: Option<&str> = {
    let address = env!("CARGO_PKG_REPOSITORY");
    if address.is_empty() {
        None
    } else {
        Some(address)
    }
};

/// Where a page of the book is, for messages: whoever installed a package has no `docs/` of ours.
#[must_use]
pub fn page(path: &str) -> String {
    page_in(REPOSITORY, path)
}

fn page_in(repository: Option<&str>, path: &str) -> String {
    match repository {
        Some(address) => format!("{path} in {address}"),
        None => format!("{path} in the source of Proofhouse"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_with_where_it_is() {
        let path = "docs/faq.md";
        let address = "https://git.example/acme/proofhouse";
        let known = page_in(Some(address), path);
        assert_eq!(known, format!("{path} in {address}"));
        assert_eq!(
            page_in(None, path),
            "docs/faq.md in the source of Proofhouse"
        );
    }
}
