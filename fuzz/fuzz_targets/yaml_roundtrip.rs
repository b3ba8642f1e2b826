//! What the YAML reader accepts, the canonical writer writes so that it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_source::{ReadLimits, Source, to_yaml};

fuzz_target!(|text: &str| {
    let Ok(source) = Source::read(text, &ReadLimits::default()) else {
        return;
    };
    let mut out_of_range = 0;
    let value = source.root().to_value(&mut |_| out_of_range += 1);
    if out_of_range > 0 {
        return;
    }
    let written = to_yaml(&value);
    let again = Source::read(&written, &ReadLimits::default()).expect("canonical text reads");
    assert_eq!(
        again
            .root()
            .to_value(&mut |_| panic!("a number fell out of range")),
        value
    );
    assert_eq!(to_yaml(&value), written);
});
