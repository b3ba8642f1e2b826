//! Images that a node has: names, and where programs in them are on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use proofhouse_wire::sync::lock;

/// An image that can be pulled.
#[derive(Debug, Clone, Default)]
pub struct Image {
    name: String,
    programs: BTreeMap<String, PathBuf>,
    slow_pulls: u32,
}

impl Image {
    /// An image with the programs of this machine.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// The same with a program at a path.
    #[must_use]
    pub fn with_program(mut self, path: &str, program: impl Into<PathBuf>) -> Self {
        self.programs.insert(path.to_owned(), program.into());
        self
    }

    /// The same from a registry that does not answer in time so often, and then does.
    #[must_use]
    pub fn slow(mut self, pulls: u32) -> Self {
        self.slow_pulls = pulls;
        self
    }

    /// Where a program of the image is.
    pub(super) fn program(&self, path: &str) -> PathBuf {
        let known = self.programs.get(path).cloned();
        known.unwrap_or_else(|| path.into())
    }
}

/// Why a container cannot be started yet, as a node says it.
#[derive(Debug)]
pub(super) struct NotStarted(pub(super) String);

/// All images that a node can pull; others are not found.
#[derive(Debug, Clone, Default)]
pub struct Images(Arc<Mutex<BTreeMap<String, Image>>>);

impl Images {
    /// These images.
    pub fn new(images: impl IntoIterator<Item = Image>) -> Self {
        let named = images.into_iter().map(|image| (image.name.clone(), image));
        Self(Arc::new(Mutex::new(named.collect())))
    }

    /// Pulls an image; an error is what a registry and a runtime say.
    pub(super) fn pull(&self, name: &str) -> Result<Image, NotStarted> {
        let mut images = lock(&self.0);
        let failed = |why: &str| {
            Err(NotStarted(format!(
                "failed to pull and unpack image \"{name}\": failed to resolve reference \"{name}\": {why}"
            )))
        };
        match images.get_mut(name) {
            None => failed(&format!("{name}: not found")),
            Some(image) if image.slow_pulls > 0 => {
                image.slow_pulls -= 1;
                failed("failed to do request: net/http: TLS handshake timeout")
            }
            Some(image) => Ok(image.clone()),
        }
    }
}
