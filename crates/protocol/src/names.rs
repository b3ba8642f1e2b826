//! The macro behind every closed set of names: an enum whose rows are its whole definition.

/// Defines an enum from rows of a doc comment, a variant and the name that the wire has for it, with `ALL`,
/// `as_str`, `parse` and `Display`.
macro_rules! names {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The one of this name on the wire; `None` for a name that is not known.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Some(match name {
                    $($text => Self::$variant,)+
                    _ => return None,
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}
