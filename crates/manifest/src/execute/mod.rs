//! The backends of actions: one file each, and one row each in the table below. A row gives the variant of [`Execute`], its
//! kind, its keys in actions and tools, and how it is read; the file says the rest, as a [`Backend`].

mod cel;
pub(super) mod http;
mod kubernetes_job;
mod mcp;
mod openapi;
mod stateful_session;
mod stateless_http;

use proofhouse_source::NodeRef;
use proofhouse_source::format::{FieldKind, FieldSpec, FormatReader, TypeSpec};

pub use cel::CelCall;
pub use http::HttpCall;
pub use kubernetes_job::KubernetesJob;
pub use mcp::{Mcp, McpTransport};
pub use openapi::{DescriptionPlace, OpenApi, OperationPattern};
pub use stateful_session::SessionSpec;

use super::decode::{ManifestDecoder, ManifestFields};
use super::fields::field;
use super::names::ReferenceSite;
use crate::interpolate::{HeaderTemplate, TemplateReference};

/// What the block of a backend says of itself, and how it is read.
trait BackendBlock: Sized {
    /// The key of the block.
    const KEY: &'static str;
    /// The keys in it.
    const SPEC: &'static TypeSpec;
    /// What the block means in an action.
    const DOC: &'static str;
    /// What the block of the same name at the top level of a tool means; nothing where there may be none.
    const SHARED_DOC: Option<&'static str> = None;
    /// Whether the backend knows the arguments better than the manifest does.
    const IS_DESCRIBED_BY_BACKEND: bool = false;

    /// Reads the block. What it leaves out may still come from the tool's block.
    fn read<'s>(
        decoder: &mut ManifestDecoder<'s>,
        node: NodeRef<'s>,
        common: Option<&Self>,
    ) -> Option<Self>;

    /// Takes what is absent from the tool's block; returns the references that came along.
    fn inherit(&mut self, _common: &Self) -> Vec<TemplateReference> {
        Vec::new()
    }

    /// Whether an action can be carried out with it; reports what is missing, unless something was reported since `before`.
    fn is_complete(&self, _decoder: &mut ManifestDecoder<'_>, _before: usize) -> bool {
        true
    }

    /// Whether the tool's block makes actions that the manifest does not list.
    fn derives_actions(&self) -> bool {
        false
    }

    /// Whether one initialization serves both.
    fn shares_state(&self, _other: &Self) -> bool {
        true
    }

    /// Whether carrying out the action twice has the effect of doing it once.
    fn may_be_repeated(&self) -> bool {
        false
    }

    /// Why it cannot be in one tool with the block of an earlier action.
    fn conflict_with(&self, _first: &Self) -> Option<BlockConflict> {
        None
    }
}

/// Why two actions cannot be in one tool.
pub(super) struct BlockConflict {
    pub(super) code: &'static str,
    pub(super) message: &'static str,
    pub(super) help: &'static str,
}

/// A block as a variant of [`Execute`].
trait Variant: BackendBlock {
    fn of(execute: &Execute) -> Option<&Self>;
    fn into_execute(self) -> Execute;
}

/// Declares the backends: a name for each, and the type of its block.
macro_rules! backends {
    ($( $(#[$doc:meta])+ $name:ident($block:ty), )+) => {
        /// How an action is done.
        #[derive(Debug, Clone)]
        #[expect(clippy::large_enum_variant, reason = "one per action, read once")]
        pub enum Execute {
            $( $(#[$doc])+ $name($block), )+
        }

        /// The kinds of backend that an action can have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum BackendKind {
            $( $(#[$doc])+ $name, )+
        }

        impl BackendKind {
            /// Every kind.
            pub const ALL: [Self; COUNT] = [$( Self::$name, )+];

            /// The key of the block in the manifest.
            ///
            /// ```
            /// use proofhouse_manifest::BackendKind;
            ///
            /// assert_eq!(BackendKind::StatelessHttp.key(), "stateless_http");
            /// assert_eq!(BackendKind::from_key("mcp"), Some(BackendKind::Mcp));
            /// assert_eq!(BackendKind::from_key("smtp"), None);
            /// ```
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self {
                    $( Self::$name => <$block as BackendBlock>::KEY, )+
                }
            }

            /// Whether the backend knows the arguments better than the manifest does: a description or a server tells.
            #[must_use]
            pub const fn is_described_by_backend(self) -> bool {
                match self {
                    $( Self::$name => <$block as BackendBlock>::IS_DESCRIBED_BY_BACKEND, )+
                }
            }

            /// The keys of its block.
            pub(super) fn spec(self) -> &'static TypeSpec {
                match self {
                    $( Self::$name => <$block as BackendBlock>::SPEC, )+
                }
            }

            /// Reads the block of an action, with what it inherits.
            fn read<'s>(
                self,
                decoder: &mut ManifestDecoder<'s>,
                node: NodeRef<'s>,
                shared: &SharedBlocks,
                before: usize,
            ) -> Option<Execute> {
                match self {
                    $( Self::$name => decoder.block::<$block>(node, shared, before), )+
                }
            }

            /// Reads the block at the top level of a tool.
            fn read_shared<'s>(self, decoder: &mut ManifestDecoder<'s>, node: NodeRef<'s>) -> Option<Execute> {
                match self {
                    $( Self::$name => {
                        <$block as BackendBlock>::read(decoder, node, None).map(Variant::into_execute)
                    } )+
                }
            }
        }

        impl Execute {
            /// The kind of backend.
            #[must_use]
            pub fn kind(&self) -> BackendKind {
                match self {
                    $( Self::$name(_) => BackendKind::$name, )+
                }
            }

            /// Whether both are served by one initialization: the same backend, and for descriptions and MCP
            /// servers the same one.
            #[must_use]
            pub fn shares_state(&self, other: &Self) -> bool {
                match self {
                    $( Self::$name(block) => {
                        Variant::of(other).is_some_and(|other| block.shares_state(other))
                    } )+
                }
            }

            /// Whether carrying out the action twice has the effect of doing it once.
            #[must_use]
            pub fn may_be_repeated(&self) -> bool {
                match self {
                    $( Self::$name(block) => block.may_be_repeated(), )+
                }
            }

            /// Whether the block, at the top level of a tool, makes actions that the manifest does not list.
            pub(super) fn derives_actions(&self) -> bool {
                match self {
                    $( Self::$name(block) => block.derives_actions(), )+
                }
            }

            /// Why it cannot be in one tool with that of an earlier action.
            pub(super) fn conflict_with(&self, first: &Self) -> Option<BlockConflict> {
                match self {
                    $( Self::$name(block) => block.conflict_with(Variant::of(first)?), )+
                }
            }
        }

        $( impl Variant for $block {
            fn of(execute: &Execute) -> Option<&Self> {
                match execute {
                    Execute::$name(block) => Some(block),
                    _ => None,
                }
            }

            fn into_execute(self) -> Execute {
                Execute::$name(self)
            }
        } )+

        /// How many there are.
        const COUNT: usize = [$( <$block as BackendBlock>::KEY, )+].len();

        pub(super) static EXECUTE: TypeSpec = TypeSpec {
            name: "Execute",
            doc: "How an action is done; exactly one backend.",
            extensions: true,
            exactly_one: Some("TM-007"),
            fields: &[$( key_of::<$block>(<$block as BackendBlock>::DOC), )+],
        };

        /// The blocks that may stand at the top level of a tool.
        const SHARED_FIELDS: [Option<FieldSpec>; COUNT] = [$(
            match <$block as BackendBlock>::SHARED_DOC {
                Some(doc) => Some(key_of::<$block>(doc)),
                None => None,
            },
        )+];
    };
}

// The one table of backends, in the order in which the schema and the reference name them.
backends! {
    /// An expression.
    Cel(CelCall),
    /// One HTTP request.
    StatelessHttp(HttpCall),
    /// A request in a remote session.
    StatefulSession(SessionSpec),
    /// An operation of an OpenAPI description.
    OpenApi(OpenApi),
    /// A tool of an MCP server.
    Mcp(Mcp),
    /// A Kubernetes Job.
    KubernetesJob(KubernetesJob),
}

/// The key of a block.
const fn key_of<B: BackendBlock>(doc: &'static str) -> FieldSpec {
    field(B::KEY, FieldKind::Type(B::SPEC), doc)
}

/// How many blocks may stand at the top level of a tool.
pub(super) const SHARED_COUNT: usize = {
    let (mut count, mut at) = (0, 0);
    while at < COUNT {
        if SHARED_FIELDS[at].is_some() {
            count += 1;
        }
        at += 1;
    }
    count
};

/// The keys of a tool: its own, then the blocks that may stand there.
pub(super) const fn with_shared_blocks<const OWN: usize, const ALL: usize>(
    own: [FieldSpec; OWN],
) -> [FieldSpec; ALL] {
    let mut all = [own[0]; ALL];
    let mut next = 0;
    while next < OWN {
        all[next] = own[next];
        next += 1;
    }
    let mut at = 0;
    while at < COUNT {
        if let Some(block) = SHARED_FIELDS[at] {
            all[next] = block;
            next += 1;
        }
        at += 1;
    }
    all
}

impl BackendKind {
    /// The kind of a key.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.key() == key)
    }
}

impl Execute {
    /// The key of the block in the manifest.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.kind().key()
    }
}

/// The blocks at the top level of a tool, which actions inherit from. A description or a server there makes all its
/// operations actions.
#[derive(Debug, Clone, Default)]
pub struct SharedBlocks {
    blocks: Vec<Execute>,
}

impl SharedBlocks {
    /// These blocks, at most one of a kind.
    #[must_use]
    pub fn new(blocks: impl IntoIterator<Item = Execute>) -> Self {
        Self {
            blocks: blocks.into_iter().collect(),
        }
    }

    /// Every block.
    pub fn blocks(&self) -> impl Iterator<Item = &Execute> {
        self.blocks.iter()
    }

    /// The block of a kind.
    #[must_use]
    pub fn of(&self, kind: BackendKind) -> Option<&Execute> {
        self.blocks.iter().find(|block| block.kind() == kind)
    }

    fn block<B: Variant>(&self) -> Option<&B> {
        self.blocks.iter().find_map(B::of)
    }
}

impl<'s> ManifestDecoder<'s> {
    /// Reads an execute block and completes it from the tool's shared blocks.
    pub(super) fn execute(&mut self, node: NodeRef<'s>, shared: &SharedBlocks) -> Option<Execute> {
        let mut block = self.fields(node, &EXECUTE)?;
        let key = block.only()?;
        let before = block.reader.walk.findings().len();
        let Some(kind) = BackendKind::from_key(key) else {
            let message = format!("`{key}` has no runtime");
            block.reader.error("TM-008", message, None);
            return None;
        };
        block.read(key, |decoder, node| {
            kind.read(decoder, node, shared, before)
        })
    }

    /// Reads the blocks at the top level of a tool.
    pub(super) fn shared_blocks(fields: &mut ManifestFields<'_, 's>) -> SharedBlocks {
        let kinds = BackendKind::ALL.into_iter().zip(&SHARED_FIELDS);
        let kinds = kinds.filter(|(_, field)| field.is_some());
        SharedBlocks::new(kinds.filter_map(|(kind, _)| {
            fields.read(kind.key(), |decoder, node| kind.read_shared(decoder, node))
        }))
    }

    fn block<B: Variant>(
        &mut self,
        node: NodeRef<'s>,
        shared: &SharedBlocks,
        before: usize,
    ) -> Option<Execute> {
        let common = shared.block::<B>();
        let mut block = B::read(self, node, common)?;
        self.inherit(common, |common| block.inherit(common));
        block
            .is_complete(self, before)
            .then(|| block.into_execute())
    }

    /// Merges a shared block and checks the references that came from it.
    fn inherit<T>(&mut self, common: Option<&T>, merge: impl FnOnce(&T) -> Vec<TemplateReference>) {
        let Some(common) = common else { return };
        for reference in merge(common) {
            // Everything but parameters was checked where the shared block stands.
            if reference.root == crate::interpolate::Root::Parameters
                && let Some(unknown) = self.names.check(&reference, ReferenceSite::Execute)
            {
                let message = format!(
                    "{}, which the shared block of the tool uses",
                    unknown.message
                );
                self.error(unknown.code, message, unknown.help);
            }
        }
    }

    /// Reports a missing key, unless something about the block was reported already.
    fn need(&mut self, there: bool, key: &str, before: usize) -> Option<()> {
        if there {
            return Some(());
        }
        if self.walk.findings().len() == before {
            self.error(
                "TM-005",
                format!("`{key}` is missing, here and in the tool's shared block"),
                None,
            );
        }
        None
    }
}

/// Takes what is absent from the shared block; returns the references that came along.
fn take<T: Clone>(own: &mut Option<T>, common: Option<&T>, references: impl FnOnce(&T)) {
    if own.is_none()
        && let Some(common) = common
    {
        references(common);
        *own = Some(common.clone());
    }
}

fn inherit_headers(
    own: &mut Vec<HeaderTemplate>,
    common: &[HeaderTemplate],
    taken: &mut Vec<TemplateReference>,
) {
    for header in common {
        if !own.iter().any(|mine| mine.name == header.name) {
            taken.extend(header.value.references().cloned());
            own.push(header.clone());
        }
    }
}
