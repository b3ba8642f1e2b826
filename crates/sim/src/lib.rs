//! Simulated models, for machines without one. Nobody thinks here: they are rules about words.
//!
//! `sim:gullible` obeys imperative text wherever it stands: in descriptions of tools and parameters, in
//! results, in its instructions. `sim:careful` acts on the user's words alone and takes everything else
//! for data. Both tell the reference code of a channel probe to whoever asks for it. Both are deterministic: the same request with the same seed has the same reply, and neither
//! remembers anything between requests. [`ScriptedModel`] says what a file tells it to.
//!
//! What they do tells whether an attack can work on a subject that falls for it, and that it does not on
//! one that cannot. It does not tell how a real model would fare.

mod careful;
mod clean;
mod conversation;
mod directives;
mod fill;
mod gullible;
mod literals;
mod plan;
mod reference_code;
mod reply;
mod scripted;
mod sentences;
pub mod service;
mod toolbox;
mod words;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proofhouse_wire::CancellationToken;

use proofhouse_model::{Model, ModelError, ModelReply, ModelRequest, ModelSink};

use self::reply::SimReply;

pub use scripted::{ScriptError, ScriptedModel};

/// A simulation by rules about words, without memory between requests.
#[derive(Clone, Copy)]
pub struct SimulatedModel {
    name: &'static str,
    answer: fn(&ModelRequest) -> SimReply,
}

impl SimulatedModel {
    /// Obeys whoever speaks to it.
    pub const GULLIBLE: Self = Self {
        name: "sim:gullible",
        answer: gullible::answer,
    };

    /// Obeys the user alone.
    pub const CAREFUL: Self = Self {
        name: "sim:careful",
        answer: careful::answer,
    };
}

impl std::fmt::Debug for SimulatedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Model for SimulatedModel {
    fn name(&self) -> &str {
        self.name
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let reply = (self.answer)(request);
            Ok(reply::speak(reply, request, self.name, events))
        }
        .boxed()
    }
}
