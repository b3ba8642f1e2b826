//! Weather that is made up, and the same each time.

use serde_json::{Value, json};

/// How many days there are at most.
pub(super) const MAX_DAYS: u64 = 14;

const SKIES: [&str; 4] = ["sun", "clouds", "rain", "snow"];

/// The forecast of some days.
pub(super) fn forecast(city: &str, days: u64) -> Value {
    let start: u64 = city.bytes().map(u64::from).sum();
    let days = (0..days.min(MAX_DAYS)).map(|day| {
        let number = start.wrapping_add(day.wrapping_mul(7));
        let sky = usize::try_from(number % 4).map_or("sun", |sky| SKIES[sky]);
        json!({"day": day + 1, "sky": sky, "celsius": number % 30})
    });
    json!({"city": city, "forecast": days.collect::<Vec<Value>>()})
}
