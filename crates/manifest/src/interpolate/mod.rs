//! Interpolation: one engine for every `{…}` of a manifest, with a rule per position.
//!
//! A [`Template`] is parsed once, when the manifest is read. A [`TemplateScope`] holds what its references can
//! name. How a value enters the text depends on where it stands: in a URL it is percent-encoded, in a
//! header it may not break the line, in a body it keeps its JSON type.

mod path_check;
mod position;
mod scope;
mod secret;
mod template;
mod token_hosts;
mod url;

pub use path_check::{PathCheck, PathRefusal, climbs};
pub use position::breaks_line;
pub use position::{BodyShape, BodyTemplate, HeaderTemplate, RenderError};
pub use scope::find_dotted;
pub use scope::{ResolveError, TemplateScope};
pub use secret::MASK;
pub use secret::{Sealed, Secrets};
pub use template::{Root, Template, TemplatePiece, TemplateReference};
pub use token_hosts::{NotAHost, TokenHosts};

pub use url::encode;
pub use url::{UrlTemplate, UrlTemplateError};
