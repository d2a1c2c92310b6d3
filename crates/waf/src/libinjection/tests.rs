//! What holds of both detections: verdicts (made by libinjection 4.0, in [`sqli`] and [`xss`]) and
//! time in proportion to the input.

mod sqli;
mod xss;

use std::time::{Duration, Instant};

/// Inputs that repeat one of these must not take longer than others of their length. The first three
/// take libinjection a second for 40 KB.
#[test]
#[expect(clippy::disallowed_methods, reason = "measures time itself")]
fn time_is_in_proportion_to_the_input() {
    const UNITS: [&str; 30] = [
        "is.",
        ".NOT",
        "NOT`",
        "'\"",
        "'",
        "\"",
        "`",
        "\\'",
        "'\\",
        "/*",
        "/*/",
        "--",
        "-\n",
        "#\n",
        "$a",
        "$a$",
        "$$",
        "q'(",
        "b'0",
        "1.e ",
        "{a ",
        "select.",
        "<a b='",
        "<a ",
        "</>",
        "<!--",
        "-\0",
        "<%%",
        "a='\"`",
        " href=&#0;",
    ];
    // In proportion, a build for debugging takes some hundredths of a second; with the square, many seconds.
    const LEN: usize = 64 << 10;
    for unit in UNITS {
        for before in ["", "1 ", "x '", "<a href='"] {
            let mut input = before.to_owned();
            while input.len() < LEN {
                input.push_str(unit);
            }
            let start = Instant::now();
            super::sqli(input.as_bytes());
            super::xss(input.as_bytes());
            assert!(start.elapsed() < Duration::from_secs(2), "{before:?} {unit:?}");
        }
    }
}
