//! A language server for what people write here: threat documents, manifests, labelled cases, guard policies, the operator's file
//! and `proofhouse.yaml`. Files that are none of these get nothing.
//!
//! [`formats`] is the table of these formats: how a file is recognized, checked, described and explained. `proofhouse
//! validate` checks with it, too, so that an editor shows what the command would say. [`serve`] speaks the Language
//! Server Protocol over any pair of streams; it reads no files and keeps only the documents that are open.
//!
//! What a client sends is hostile: messages, documents and their number have limits ([`rpc`], [`text`]).

mod actions;
mod completion;
mod cursor;
mod diagnostics;
mod folding;
pub mod formats;
mod hover;
mod navigation;
pub mod rpc;
mod schema_walk;
mod server;
pub mod text;

pub use server::{LspEnd, LspError, LspSettings, serve};
