//! What the demo's origins serve: a year of tides, made up by an honest formula.

use std::f64::consts::TAU;
use std::fmt::Write as _;
use std::sync::OnceLock;

use hyper::body::Bytes;

pub(super) const STYLE: &str = "\
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
       color: #123; background: #f6fafb }
h1 { font-weight: 300 } img { width: 100%; height: auto }
table { border-collapse: collapse; width: 100% }
td, th { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #d5e3e8 }
td:first-child, th:first-child { text-align: left }
@media (prefers-color-scheme: dark) { body { color: #dee; background: #0b1a20 }
  td, th { border-color: #1d3640 } }
";

/// The moon's and the sun's tide: hours of their periods, metres of their heights.
const WAVES: [(f64, f64); 4] = [(12.4206, 1.9), (12.0, 0.6), (23.9345, 0.25), (25.8193, 0.2)];
const DAYS: u32 = 365;
const HOURS_SHOWN: [u32; 12] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22];

/// The height of the water, in metres over the mean.
fn height(hour: f64) -> f64 {
    WAVES.iter().map(|(period, height)| height * (TAU * hour / period).cos()).sum()
}

/// A page of some 60 KB.
pub(super) fn tables() -> &'static Bytes {
    static PAGE: OnceLock<Bytes> = OnceLock::new();
    PAGE.get_or_init(|| {
        let mut page = String::from(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tides</title>\
             <link rel=\"stylesheet\" href=\"style.css\"></head><body><h1>A year of tides</h1>\
             <img src=\"tide.svg\" alt=\"Two weeks of tides\"><p>Metres over the mean, every two \
             hours. <a href=\"api/tides\">As data</a>, <a href=\"slow\">slowly</a>, and <a \
             href=\"hello\">from the gate itself</a>.</p><table><tr><th>day",
        );
        // Writing to a string cannot fail.
        for hour in HOURS_SHOWN {
            let _ = write!(page, "<th>{hour}:00");
        }
        for day in 0..DAYS {
            let _ = write!(page, "\n<tr><td>day {}", day + 1);
            for hour in HOURS_SHOWN {
                let _ = write!(page, "<td>{:+.3} m", height(f64::from(day * 24 + hour)));
            }
        }
        page.push_str("\n</table></body></html>\n");
        page.into()
    })
}

/// Two weeks of tides as a picture.
pub(super) fn curve() -> &'static Bytes {
    static PICTURE: OnceLock<Bytes> = OnceLock::new();
    PICTURE.get_or_init(|| {
        let mut picture = String::from(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1344 240\"><rect \
             width=\"1344\" height=\"240\" fill=\"#e3f0f4\"/><polyline fill=\"none\" \
             stroke=\"#17708c\" stroke-width=\"2\" points=\"",
        );
        for point in 0..=14 * 24 * 2 {
            let hour = f64::from(point) / 2.0;
            let _ = write!(picture, "{},{:.1} ", point * 2, 120.0 - 35.0 * height(hour));
        }
        picture.push_str("\"/></svg>\n");
        picture.into()
    })
}

/// A day of tides as some 1 KB of JSON.
pub(super) fn data() -> &'static Bytes {
    static DATA: OnceLock<Bytes> = OnceLock::new();
    DATA.get_or_init(|| {
        let tides = (0..24).map(|hour| {
            let metres = (height(f64::from(hour)) * 100.0).round() / 100.0;
            serde_json::json!({ "hour": hour, "metres": metres, "unit": "m over the mean" })
        });
        let tides: Vec<_> = tides.collect();
        serde_json::json!({ "place": "the harbour", "tides": tides }).to_string().into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_their_sizes() {
        let check = |what: &Bytes, least: usize, most: usize| {
            assert!((least..=most).contains(&what.len()), "{}", what.len());
        };
        check(tables(), 55_000, 70_000);
        check(data(), 1_000, 2_000);
        check(curve(), 5_000, 15_000);
    }
}
