//! The canaries of one attack: fresh values for the secrets that its document lists.

use std::hash::{BuildHasher, Hasher, RandomState};

use proofhouse_campaign::canaries::{self, CanariesError, CanaryValues};
use proofhouse_oatf::Document;

/// A document with the canaries of this run.
pub(crate) struct Planted {
    pub(crate) document: Document,
    /// Where they come from.
    pub(crate) seed: u64,
    /// The value of each.
    pub(crate) values: CanaryValues,
}

impl Planted {
    /// Plants fresh canaries, made from a seed; nothing where the document lists none.
    pub(crate) fn new(
        document: &Document,
        seed: Option<u64>,
    ) -> Result<Option<Self>, CanariesError> {
        let literals = canaries::literals(document)?;
        if literals.is_empty() {
            return Ok(None);
        }
        // Hashers begin with chance from the system.
        let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        let values = canaries::fresh(&literals, seed);
        Ok(Some(Self {
            document: canaries::replace(document, &values)?,
            seed,
            values,
        }))
    }
}
