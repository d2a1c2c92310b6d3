//! `@geoLookup` and what it fills, from a database that is written here.

use super::*;

/// The parts of `MaxMind`'s format (version 2.0) that a database of countries needs: a tree of 24-bit
/// records, the data, and what tells of both.
mod format {
    fn tagged(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        // From 29 on the length stands in a byte of its own.
        let size = if length < 29 {
            vec![(kind << 5) + length]
        } else {
            vec![(kind << 5) + 29, length - 29]
        };
        [&size, content].concat()
    }

    pub(super) fn text(text: &str) -> Vec<u8> {
        tagged(2, text.as_bytes())
    }

    fn number(kind: u8, value: u32) -> Vec<u8> {
        tagged(kind, &value.to_be_bytes()[if kind == 5 { 2 } else { 0 }..])
    }

    pub(super) fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = vec![(7 << 5) + u8::try_from(entries.len()).unwrap()];
        bytes.extend(entries.iter().flat_map(|(key, value)| [text(key), value.clone()].concat()));
        bytes
    }

    /// A database with one record, for the network of 24 bits.
    pub(super) fn database(network: [u8; 3], record: &[u8]) -> Vec<u8> {
        const NODES: u32 = 24;
        let bits = u32::from_be_bytes([0, network[0], network[1], network[2]]);
        let mut bytes = Vec::new();
        for depth in 0..NODES {
            // A number of nodes means that nothing is known; data begins 16 behind it.
            let next = if depth + 1 < NODES { depth + 1 } else { NODES + 16 };
            let goes_right = bits >> (NODES - 1 - depth) & 1 == 1;
            for side in if goes_right { [NODES, next] } else { [next, NODES] } {
                bytes.extend_from_slice(&side.to_be_bytes()[1..]);
            }
        }
        bytes.extend_from_slice(&[0; 16]);
        bytes.extend_from_slice(record);
        bytes.extend_from_slice(b"\xab\xcd\xefMaxMind.com");
        bytes.extend(map(&[
            ("binary_format_major_version", number(5, 2)),
            ("binary_format_minor_version", number(5, 0)),
            // A number of 64 bits, and a list: kinds whose number stands in a second byte.
            ("build_epoch", vec![1, 2, 1]),
            ("database_type", text("Test-Country")),
            ("description", map(&[])),
            ("ip_version", number(5, 4)),
            ("languages", vec![0, 4]),
            ("node_count", number(6, NODES)),
            ("record_size", number(5, 24)),
        ]));
        bytes
    }
}

use format::{database, map, text};

#[test]
fn rules_know_where_an_address_is() {
    let names = map(&[("en", text("Germany"))]);
    let country = map(&[("iso_code", text("DE")), ("names", names)]);
    let content = database([203, 0, 113], &map(&[("country", country)]));
    let files: Memory = [("places.mmdb", content)].into_iter().collect();
    let rules = "SecGeoLookupDb places.mmdb\n\
                 SecRule ARGS:from \"@geoLookup\" \"id:1,phase:1,pass,chain,\
                 logdata:'%{GEO.COUNTRY_NAME} %{GEO.COUNTRY_CODE3}'\"\n\
                 SecRule GEO:COUNTRY_CODE \"@streq DE\"\n\
                 SecRule ARGS:from \"!@geoLookup\" \"id:2,phase:1,pass\"\n\
                 SecRule &GEO \"@eq 0\" \"id:3,phase:1,pass\"";
    let policy = policy_over(&files, rules, "");
    for evaluation in [Evaluation::Prefiltered, Evaluation::Plain] {
        let way = Way { evaluation, work: Work::UNBOUNDED };
        let sent = |target: &str| {
            let outcome = send(&policy, &get(target), None, MORNING_MS, &way);
            (outcome.ids, outcome.data)
        };
        let known = (vec![1], vec!["Germany DEU".to_owned()]);
        assert_eq!(sent("/?from=203.0.113.9"), known);
        assert_eq!(sent("/?from=::ffff:203.0.113.9"), known);
        for nowhere in ["203.0.114.9", "2001:db8::1", "Dresden", ""] {
            assert_eq!(sent(&format!("/?from={nowhere}")), (vec![2, 3], vec![]), "{nowhere}");
        }
        assert_eq!(sent("/"), (vec![3], vec![]));
    }
}
