//! Any text is read without a panic, findings lie inside it, and what loads survives being written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_oatf::{ReadLimits, check, load, serialize, to_value};

fuzz_target!(|text: &str| {
    let mut last = None;
    for finding in check(text, &ReadLimits::default()) {
        let Some(span) = finding.span else {
            continue;
        };
        assert!(
            text.get(span.range()).is_some(),
            "{finding} lies outside: {span:?}"
        );
        assert!(last <= Some(span.offset), "{finding} is out of order");
        last = Some(span.offset);
    }
    if let Ok(loaded) = load(text) {
        let canonical = serialize(&loaded.document);
        let again = load(&canonical).expect("canonical text loads");
        assert_eq!(to_value(&again.document), to_value(&loaded.document));
        assert_eq!(serialize(&again.document), canonical);
    }
});
