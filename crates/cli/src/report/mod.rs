//! The formats in which findings about files are printed; what they look like is in the crate `report`.

use clap::ValueEnum;
use proofhouse_lsp::formats::explanations;
use proofhouse_report::findings::{self, Checked};

use crate::output::{CommandError, StdoutData};

macro_rules! formats {
    ($($(#[doc = $about:literal])+ $format:ident, $write:path;)+) => {
        /// How findings are printed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        pub(crate) enum FindingFormat {
            $($(#[doc = $about])+ $format,)+
        }

        impl FindingFormat {
            /// Prints the findings of all documents.
            pub(crate) fn write(self, data: &mut StdoutData, checked: &[Checked]) -> Result<(), CommandError> {
                match self {
                    $(Self::$format => $write(data, checked),)+
                }
            }
        }
    };
}

// The one table of formats of `validate`: what it is for, its name, and the function that writes it.
formats! {
    /// For people, with the place in the file underlined
    Human, human;
    /// For programs
    Json, json;
    /// SARIF 2.1.0, for code scanning
    Sarif, sarif;
    /// Annotations for GitHub Actions
    Github, github;
}

fn human(data: &mut StdoutData, checked: &[Checked]) -> Result<(), CommandError> {
    data.write(&findings::human::text(checked))
}

fn json(data: &mut StdoutData, checked: &[Checked]) -> Result<(), CommandError> {
    data.json(&findings::json::document(checked))
}

fn sarif(data: &mut StdoutData, checked: &[Checked]) -> Result<(), CommandError> {
    data.json(&findings::sarif::document(checked, explanations()))
}

fn github(data: &mut StdoutData, checked: &[Checked]) -> Result<(), CommandError> {
    data.write(&findings::github::annotations(checked))
}

/// A number of things, such as `1 document` or `2 documents`.
pub(crate) fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
