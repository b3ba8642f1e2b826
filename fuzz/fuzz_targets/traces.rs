//! Any bytes are read as any format without a panic, every line is accounted for, what is read is
//! written and read as the same, and a scan does not depend on the number of threads.
#![no_main]

use std::num::NonZero;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use proofhouse_detect::{
    FORMATS, ImportOptions, TraceItem, TraceMessage, TraceReadLimits, ScanOptions, Scanner, TraceReader,
    TraceWriter, open,
};

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let document = proofhouse_oatf::load(
        r#"
oatf: "0.1"
attack:
  execution: {mode: mcp_server, state: {tools: []}}
  indicators:
    - {target: "", pattern: {contains: "a"}}
    - {target: "content[*].text", pattern: {regex: "[0-9]{2}"}}
    - {protocol: a2a, target: "message.parts[*].text", pattern: {starts_with: "x"}}
    - {target: "", expression: {cel: "has(message.name) && message.name == 'a'"}}
"#,
    );
    let document = document.expect("the document is valid").document;
    let scanner = Scanner::builder().add("all", document).build();
    scanner.expect("the scanner is built")
});

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    // The first choice is to tell the format by its content.
    let choice = usize::from(choice) % (FORMATS.len() + 1);
    let format = choice.checked_sub(1).map(|row| FORMATS[row].format);
    let limits = TraceReadLimits {
        max_line_bytes: 4 << 10,
        max_bytes: Some(1 << 20),
        max_document_bytes: 64 << 10,
        max_open_requests: 16,
        max_open_request_bytes: 4 << 10,
        ..TraceReadLimits::default()
    };
    let import = ImportOptions {
        limits,
        ..ImportOptions::default()
    };
    let (_, messages) = open(bytes, format, &import);
    let messages: Vec<TraceMessage> = messages
        .filter_map(|item| match item {
            Ok(TraceItem::Message { message, .. }) => Some(message),
            _ => None,
        })
        .collect();
    round_trip(&messages);
    let verdicts = |jobs: usize| {
        let options = ScanOptions {
            format,
            import: import.clone(),
            jobs: NonZero::new(jobs).expect("not zero"),
            piece_bytes: 64,
        };
        let scanned = SCANNER.scan_input(bytes, &options, |_| {});
        assert_eq!(scanned.summary.messages, messages.len() as u64);
        // Not the whole verdict: it holds the time at which it was given.
        let verdicts = scanned.session.verdicts();
        let found: Vec<_> = verdicts.iter().map(|verdict| &verdict.indicators).collect();
        serde_json::to_string(&found).expect("findings are JSON")
    };
    let alone = verdicts(1);
    if choice & 0x40 != 0 {
        assert_eq!(verdicts(3), alone);
    }
});

fn round_trip(messages: &[TraceMessage]) {
    let mut writer = TraceWriter::new(Vec::new());
    for message in messages {
        writer.write(message).expect("memory takes everything");
    }
    let text = writer.finish().expect("memory takes everything");
    let again: Vec<TraceMessage> = TraceReader::new(text.as_slice())
        .filter_map(|item| match item {
            Ok(TraceItem::Message { message, .. }) => Some(message),
            _ => None,
        })
        .collect();
    assert_eq!(again, messages);
}
