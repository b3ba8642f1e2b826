//! Loading: text to a validated, normalized document.

use std::hint::black_box;

use crate::{Options, corpus, figure};

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let documents = corpus::documents(&options.documents)?;
    let bytes: usize = documents.iter().map(String::len).sum();
    let passes = if options.quick { 1 } else { 10 };
    let pair = figure::side_by_side(
        options.quick,
        || {
            for text in documents.iter().cycle().take(documents.len() * passes) {
                black_box(proofhouse_oatf::load(black_box(text)).is_ok());
            }
        },
        || {
            for text in documents.iter().cycle().take(documents.len() * passes) {
                black_box(oatf::load(black_box(text)).is_ok());
            }
        },
    );
    let rate = |amount: f64, time: std::time::Duration| amount * passes as f64 / time.as_secs_f64();
    let megabytes = bytes as f64 / 1e6;
    let count = documents.len() as f64;
    figure::say(&format!(
        "load: {} documents, {megabytes:.2} MB; documents/s: ours {:.0}, oatf 0.4.0 {:.0}",
        documents.len(),
        rate(count, pair.ours),
        rate(count, pair.peer),
    ));
    let (ours, peer) = (rate(megabytes, pair.ours), rate(megabytes, pair.peer));
    figure::print("load", ours, peer, ours / peer, "MB/s");
    Ok(())
}
