//! Holds README.md and the book below `docs/` together: the summary, the links, the generated pages, and the commands
//! that are shown.
#![allow(clippy::panic, reason = "a test that cannot go on fails")]

mod commands;
mod not_run;
mod pages;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use proofhouse_test_support::{peers, workspace};

use crate::support::run;
use pages::{BookPage, root};

/// The pages that are read outside of the book.
const BESIDE_THE_BOOK: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "examples/tools/README.md",
    "examples/agents/README.md",
    "examples/events/README.md",
];

fn everything() -> Vec<BookPage> {
    let mut all = BookPage::below("docs");
    all.extend(BESIDE_THE_BOOK.iter().map(|path| BookPage::read(path)));
    all
}

/// A path without `.` and `..` in it.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[test]
fn the_summary_lists_every_page_once() {
    let summary = BookPage::read("docs/SUMMARY.md");
    let listed: Vec<String> = summary
        .links()
        .into_iter()
        .map(|link| format!("docs/{link}"))
        .collect();
    let unique: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    let pages = BookPage::below("docs");
    let pages: BTreeSet<&String> = pages
        .iter()
        .map(|page| &page.path)
        .filter(|path| *path != "docs/SUMMARY.md")
        .collect();
    let missing: Vec<_> = pages.difference(&unique).collect();
    let gone: Vec<_> = unique.difference(&pages).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/SUMMARY.md does not list {missing:?}, and lists {gone:?}, which are not there"
    );
}

/// The lines of a summary that mdBook would refuse or read as something else: it knows a title, titles of parts, chapters before
/// and after the numbered ones, and numbered ones, which are lists of links.
fn misread_by_mdbook(summary: &str) -> Vec<String> {
    let mut misread = Vec::new();
    let (mut is_after, mut depth) = (false, None);
    let mut lines = summary.lines().filter(|line| !line.trim().is_empty());
    if lines.next() != Some("# Summary") {
        misread.push("the title".to_owned());
    }
    let mut has_chapters = false;
    for line in lines {
        let item = line.trim_start();
        let (step, rest) = (line.len() - item.len(), item.strip_prefix("- "));
        let link = rest.unwrap_or(item);
        let is_link = link.starts_with('[')
            && link.ends_with(".md)")
            && link.matches("](").count() == 1
            && !link.contains('\t');
        let fits = if line.starts_with("# ") {
            depth = None;
            !is_after
        } else if rest.is_some() {
            let deeper = depth.map_or(0, |depth| depth + 2);
            depth = Some(step);
            has_chapters = true;
            is_link && !is_after && step % 2 == 0 && step <= deeper
        } else {
            is_after = has_chapters;
            is_link && step == 0
        };
        if !fits {
            misread.push(line.to_owned());
        }
    }
    misread
}

#[test]
fn mdbook_can_read_the_summary() {
    let summary = BookPage::read("docs/SUMMARY.md");
    let misread = misread_by_mdbook(&summary.text);
    assert!(misread.is_empty(), "docs/SUMMARY.md: {misread:#?}");
    for (wrong, lines) in [
        ("- [One](one.md)\n", 1),
        ("# Summary\n\n- One\n", 1),
        ("# Summary\n\n- [One](one.md)\n    - [Two](two.md)\n", 1),
        ("# Summary\n\n# Part\n\n  - [Two](two.md)\n", 1),
        (
            "# Summary\n\n- [One](one.md)\n\n[End](end.md)\n\n- [Two](two.md)\n",
            1,
        ),
        (
            "# Summary\n\n- [One](one.md)\n\n[End](end.md)\n\n# Part\n",
            1,
        ),
        ("# Summary\n\nSome words.\n", 1),
    ] {
        assert_eq!(misread_by_mdbook(wrong).len(), lines, "{wrong}");
    }
    let book = BookPage::read("docs/book.toml").text;
    assert!(book.contains("src = \".\"") && book.contains("create-missing = false"));
}

/// Who copies a program from a page can run it.
#[test]
fn programs_on_pages_define_the_names_they_use() {
    let undefined = |pages: Vec<PathBuf>| {
        let checked = Command::new("python3")
            .arg(root().join("crates/cli/tests/it/book/python_names.py"))
            .args(pages)
            .output()
            .unwrap_or_else(|error| panic!("python3: {error}"));
        let told = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(
            checked.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&checked.stderr)
        );
        told
    };
    let pages = everything();
    let pages = pages.iter().map(|page| root().join(&page.path));
    let told = undefined(pages.chain([root().join("python/README.md")]).collect());
    assert!(told.is_empty(), "{told}");
    // It does see what is not there, also where it is used in a function.
    let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let page = directory.path().join("page.md");
    let program = "```python\nimport os\n\ndef go(prompt):\n    return os.path, prompt, my_agent, LOST\n```\n";
    fs::write(&page, program).unwrap_or_else(|error| panic!("{error}"));
    let told = undefined(vec![page]);
    assert!(told.contains(":1: this program uses LOST,"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    let page = directory.path().join("broken.md");
    fs::write(&page, "```python\ndef go(:\n```\n").unwrap_or_else(|error| panic!("{error}"));
    let told = undefined(vec![page]);
    assert!(told.contains(":1: this program cannot be parsed"), "{told}");
}

/// The same for TypeScript and JavaScript, where a Node.js can parse both.
#[test]
fn scripts_on_pages_can_be_parsed() {
    let test = "the scripts on pages";
    let Some(peers) = peers::installed(test, "node") else {
        return;
    };
    let broken = |pages: Vec<PathBuf>| {
        let checked = Command::new(peers::node(&peers))
            .args(["--disable-warning=ExperimentalWarning"])
            .arg(root().join("crates/cli/tests/it/book/script_syntax.mjs"))
            .args(pages)
            .output()
            .unwrap_or_else(|error| panic!("node: {error}"));
        let complaint = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.stderr.is_empty(), "{complaint}");
        String::from_utf8_lossy(&checked.stdout).into_owned()
    };
    let pages = everything();
    let told = broken(pages.iter().map(|page| root().join(&page.path)).collect());
    if told.starts_with("TOO OLD") {
        workspace::skipped(
            test,
            "Node.js is older than 22.13; run scripts/peers DIRECTORY node",
        );
        return;
    }
    assert!(told.is_empty(), "{told}");
    let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let page = directory.path().join("page.md");
    let text = "```ts\nconst one: string = 1;\n```\n\n```js\nconst two = 1 2;\n```\n";
    fs::write(&page, text).unwrap_or_else(|error| panic!("{error}"));
    let told = broken(vec![page]);
    assert!(told.contains(":5: this program cannot be parsed"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

/// A page on a framework has whole programs, and they do what the page on agents asks of an agent.
#[test]
fn programs_of_frameworks_read_the_servers_and_the_task() {
    let guide = BookPage::read("docs/how-to/your-agent.md");
    let row = guide.text.lines();
    let row = row
        .filter(|line| line.starts_with("| is built with a framework |"))
        .collect::<String>();
    let frameworks: Vec<&str> = row
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    assert!(frameworks.len() >= 10, "{frameworks:?}");
    for page in frameworks {
        let page = BookPage::read(&format!("docs/how-to/{page}"));
        let programs = page.blocks().into_iter().filter(|block| {
            let is_import =
                |line: &String| line.starts_with("import ") || line.starts_with("from ");
            matches!(block.language.as_str(), "python" | "ts" | "js")
                && block.lines.iter().any(is_import)
        });
        let mut count = 0;
        for program in programs {
            count += 1;
            let text = program.lines.join("\n");
            let task = if program.language == "python" {
                "sys.argv[1]"
            } else {
                "process.argv[2]"
            };
            for needed in ["PROOFHOUSE_MCP_URLS", ".split(\",\")", task] {
                assert!(text.contains(needed), "{}: no {needed}", page.path);
            }
        }
        assert!(count > 0, "{} has no program", page.path);
        let trial = format!("{:?}", page.path.trim_start_matches("docs/how-to/"));
        assert!(
            BookPage::read("tests/init/trial.py").text.contains(&trial),
            "{}: scripts/init-trial does not run its program",
            page.path
        );
    }
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let mut broken = String::new();
    for page in everything() {
        let here = Path::new(&page.path);
        for link in page.links() {
            if link.starts_with("https://") {
                continue;
            }
            let (target, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let path = if target.is_empty() {
                here.to_owned()
            } else {
                plain(&here.parent().expect("a directory").join(target))
            };
            if !root().join(&path).exists() {
                let _ = writeln!(broken, "{}: no {target}", page.path);
            } else if !anchor.is_empty() && path.extension().is_some_and(|end| end == "md") {
                let other = BookPage::read(path.to_str().expect("a path in UTF-8"));
                if !other.anchors().iter().any(|one| one == anchor) {
                    let _ = writeln!(
                        broken,
                        "{}: {} has no heading #{anchor}",
                        page.path, other.path
                    );
                }
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{broken}");
}

/// A reader who lands on a page learns from its first sentence whether it is the right one.
#[test]
fn every_page_opens_with_what_it_is_for() {
    for page in everything() {
        if page.path == "docs/SUMMARY.md" {
            continue;
        }
        let mut lines = page
            .text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("<!--"));
        let title = lines.next().unwrap_or_default();
        assert!(
            title.starts_with("# "),
            "{}: no title, but {title}",
            page.path
        );
        let opening = lines.next().unwrap_or_default();
        let is_sentence =
            !opening.starts_with(['#', '|', '-', '!', '<']) && !opening.starts_with("```");
        // A page of a decision opens with its context.
        assert!(
            is_sentence || opening == "## Context",
            "{}: opens with {opening:?}, not with a sentence that says what it is for",
            page.path
        );
    }
}

/// What `text` should be is in a file of the repository; `PROOFHOUSE_UPDATE_DOCS=1` writes it.
fn committed(path: &str, text: &str) {
    if workspace::setting("PROOFHOUSE_UPDATE_DOCS").is_some() {
        fs::write(root().join(path), text).expect("the page can be written");
    }
    assert!(
        BookPage::read(path).text == text,
        "{path} is not what the program says; update it: \
         PROOFHOUSE_UPDATE_DOCS=1 cargo test -p proofhouse --test it book::"
    );
}

#[test]
fn the_page_of_diagnostic_codes_is_generated() {
    let all = run(&["explain", "--format", "json"]).stdout;
    let all: Vec<serde_json::Value> = serde_json::from_str(&all).expect("JSON");
    // Outcomes and their reasons are words, and have a page of their own.
    let all: Vec<_> = all
        .into_iter()
        .filter(|one| one["code"].as_str().is_some_and(|code| code.contains('-')))
        .collect();
    let mut page = String::from(
        "# Diagnostic codes\n\n\
         <!-- Made by the test `book::the_page_of_diagnostic_codes_is_generated`. Change the tables of codes instead. -->\n\n\
         Every finding of `proofhouse validate`, `run`, `attack` and `scan` has a stable code. This page lists all of them;\n\
         `proofhouse explain CODE` says more about one.\n",
    );
    let families = [
        ("V", "Rules of the threat format"),
        ("W", "Warnings of the threat format"),
        ("N", "Steps of normalization"),
        ("PH", "Our own rules for threat documents"),
        ("XP", "Documents that cannot be played or cannot match"),
        ("LC", "Labelled cases"),
        ("TM", "Manifests of tools, agents, triggers and schedules"),
        ("OC", "The operator's file"),
        ("PC", "The configuration, `proofhouse.yaml`"),
        ("GP", "Policies of the guard"),
    ];
    let mut shown = 0;
    for (family, title) in families {
        let _ = write!(
            page,
            "\n## {title}\n\n| code | kind | meaning |\n|---|---|---|\n"
        );
        for one in &all {
            let text = |key: &str| one[key].as_str().unwrap_or_default();
            if text("code").split('-').next() == Some(family) {
                shown += 1;
                let meaning = text("title").replace('|', "\\|");
                let _ = writeln!(
                    page,
                    "| `{}` | {} | {meaning} |",
                    text("code"),
                    text("kind")
                );
            }
        }
    }
    assert_eq!(
        shown,
        all.len(),
        "a code of a family that the page does not have"
    );
    committed("docs/reference/diagnostics.md", &page);
}

#[test]
fn the_page_of_exit_codes_shows_the_help() {
    let help = run(&["--help"]).stdout;
    let (_, table) = help
        .split_once("Exit codes:\n")
        .expect("the help has exit codes");
    let page = BookPage::read("docs/reference/exit-codes.md");
    let (before, rest) = page.text.split_once("```text\n").expect("a block of text");
    let (_, after) = rest.split_once("```\n").expect("its end");
    let table = table.trim_end();
    committed(
        "docs/reference/exit-codes.md",
        &format!("{before}```text\n{table}\n```\n{after}"),
    );
}

/// The programs of the pages on frameworks are those that tests run, but for the name of the model.
#[test]
fn programs_of_frameworks_are_those_that_are_tested() {
    for (page, language, program) in [
        ("langgraph", "python", "agent-langgraph/agent.py"),
        ("openai-agents", "python", "agent-openai/agent.py"),
        ("ai-sdk", "ts", "agent-ts/agent.ts"),
    ] {
        let page = BookPage::read(&format!("docs/how-to/{page}.md"));
        let blocks = page.blocks();
        let block = blocks.iter().find(|block| block.language == language);
        let block = block.unwrap_or_else(|| panic!("{}: no program", page.path));
        let tested = BookPage::read(&format!("tests/peers/{program}"));
        let tested = tested.text.replace("\"mock\"", "\"gpt-5\"");
        let mut tested = tested.lines();
        for line in &block.lines {
            assert!(
                tested.any(|real| real == line),
                "tests/peers/{program} has no line `{line}`, or not in this order ({})",
                page.path
            );
        }
    }
}
