//! Durations: any text gives a duration or an error, and what is read is what was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_oatf::parse_duration;

fuzz_target!(|text: &str| {
    if let Ok(duration) = parse_duration(text) {
        let seconds = duration.as_secs();
        assert_eq!(parse_duration(&format!("{seconds}s")).ok(), Some(duration));
        assert_eq!(
            parse_duration(&format!("PT{seconds}S")).ok(),
            Some(duration)
        );
    }
});
