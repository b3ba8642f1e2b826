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
