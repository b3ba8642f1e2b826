//! `proofhouse open`: shows a report in a browser.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_campaign::report_format::{FORMATS, ReportFormat};
use proofhouse_campaign::results_directory::{RESULTS, latest};

use crate::environment::environment;
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, shown_path, talk};

/// Open the report of the latest campaign in a browser
///
/// Prints the path of the report, and opens it if a browser is available.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse open\n  \
    proofhouse open results\n  \
    proofhouse open --print\n\n\
    Exit codes:\n  \
    0   the path was printed\n  \
    3   there is no report yet\n  \
    64  invalid arguments, or a file that does not exist")]
pub(crate) struct Open {
    /// The directory of a campaign (`run --out DIR`), or a report file [default: the latest campaign in
    /// .proofhouse/results]
    #[arg(value_name = "DIR")]
    place: Option<PathBuf>,

    /// Only print the path
    #[arg(long)]
    print: bool,
}

impl Open {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let directory = match self.place {
            Some(place) => place,
            None => latest(Path::new("")).ok_or_else(|| {
                CommandError::cannot_run(format!(
                    "there is no report in {RESULTS}; run `proofhouse run` first, or name the directory of a campaign"
                ))
            })?,
        };
        let report = if directory.is_dir() {
            directory.join(ReportFormat::Html.info().file)
        } else {
            directory
        };
        if !report.is_file() {
            return Err(CommandError::usage(format!(
                "{}: no such file; name the directory of a campaign. `proofhouse run` writes its report at the end, unless --report names other formats",
                shown_path(&report)
            )));
        }
        WantedFiles::Report.check(std::slice::from_ref(&report))?;
        let ending = |file: &Path| file.extension().map(std::ffi::OsStr::to_owned);
        let is_report = |file: &str| ending(Path::new(file)) == ending(&report);
        if !FORMATS.iter().any(|format| is_report(format.file)) {
            return Err(CommandError::usage(format!(
                "{} is not a report; name the directory of a campaign, or a file such as {}",
                shown_path(&report),
                ReportFormat::Html.info().file
            )));
        }
        let report = report.canonicalize().unwrap_or(report);
        let mut data = StdoutData::new();
        data.line(&shown_path(&report))?;
        data.finish()?;
        if !self.print && !show(&report) {
            talk("No browser was found. Open the file above in a browser.");
        }
        Ok(Exit::Success)
    }
}

/// Starts a browser; `false` where there is none.
fn show(report: &Path) -> bool {
    let set = environment();
    let is_set = |name: &str| set(name).is_some_and(|value| !value.is_empty());
    let mut programs: Vec<Vec<String>> = Vec::new();
    if let Some(browser) = set("BROWSER") {
        programs.extend(shlex::split(&browser).filter(|words| !words.is_empty()));
    }
    if cfg!(target_os = "macos") {
        programs.push(vec!["open".to_owned()]);
    } else if cfg!(windows) {
        programs.push(["cmd", "/c", "start", ""].map(str::to_owned).to_vec());
    } else if is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") {
        programs.push(vec!["xdg-open".to_owned()]);
    }
    programs.iter().any(|words| {
        let Some((program, arguments)) = words.split_first() else {
            return false;
        };
        let started = Command::new(program)
            .args(arguments)
            .arg(report)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        started.is_ok()
    })
}
