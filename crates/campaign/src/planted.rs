//! The canaries of one attack: fresh values for the secrets that its document lists.

use std::hash::{BuildHasher, Hasher, RandomState};

use proofhouse_oatf::Document;

use crate::canaries::{self, CanariesError, CanaryValues};

/// A document with the canaries of this run.
#[derive(Debug)]
pub struct Planted {
    /// The document.
    pub document: Document,
    /// Where they come from.
    pub seed: u64,
    /// The value of each.
    pub values: CanaryValues,
}

impl Planted {
    /// Plants fresh canaries, made from a seed; nothing where the document lists none.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the list of its secrets.
    pub fn new(document: &Document, seed: Option<u64>) -> Result<Option<Self>, CanariesError> {
        let literals = canaries::literals(document)?;
        if literals.is_empty() {
            return Ok(None);
        }
        // Hashers begin with chance from the system.
        let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        let values = canaries::fresh_for(document, &literals, seed);
        Ok(Some(Self {
            document: canaries::replace(document, &values)?,
            seed,
            values,
        }))
    }
}
