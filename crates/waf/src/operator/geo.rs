//! `@geoLookup`: where an address is, from a database in the `.mmdb` format, which `MaxMind` and
//! others publish.
//!
//! The database is read once and shared by all workers. A look-up walks at most 128 bits of a tree
//! and decodes one record.

use std::{borrow::Cow, fmt, net::IpAddr};

use maxminddb::{Reader, geoip2};

use super::{Fault, country_code};

/// A database of places.
pub struct Database {
    reader: Reader<Vec<u8>>,
}

/// What is known of an address's place. Anything may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place<'a> {
    /// `COUNTRY_CODE`: two letters (ISO 3166-1).
    pub country_code: Option<&'a str>,
    /// `COUNTRY_NAME`, in English.
    pub country_name: Option<&'a str>,
    /// `COUNTRY_CONTINENT`: two letters, as the reference and version 2 of ModSecurity have it;
    /// version 3 gives the English name.
    pub continent: Option<&'a str>,
    /// `REGION`: the code of the largest subdivision of the country (ISO 3166-2).
    pub region: Option<&'a str>,
    /// `CITY`, in English.
    pub city: Option<&'a str>,
    /// `POSTAL_CODE`.
    pub postal_code: Option<&'a str>,
    /// `LATITUDE`, in degrees.
    pub latitude: Option<f64>,
    /// `LONGITUDE`, in degrees.
    pub longitude: Option<f64>,
    /// `DMA_CODE`: the metropolitan area, in the United States.
    pub metro_code: Option<u16>,
}

impl Database {
    /// Takes the content of a database file. It stays in memory.
    pub fn read(content: Vec<u8>) -> Result<Self, Fault> {
        let reader = Reader::from_source(content).map_err(|error| {
            Fault::new(format!("it is no MaxMind database: {error}"))
                .hint("the older GeoIP format (.dat) is not read; take GeoLite2 (.mmdb) instead")
        })?;
        Ok(Self { reader })
    }

    /// Where the address is; none if the database does not know, or its record cannot be read.
    pub fn look_up(&self, address: IpAddr) -> Option<Place<'_>> {
        let found = self.reader.lookup(address.to_canonical()).ok()?;
        let record: geoip2::City<'_> = found.decode().ok()??;
        Some(Place {
            country_code: record.country.iso_code,
            country_name: record.country.names.english,
            continent: record.continent.code,
            region: record.subdivisions.first().and_then(|subdivision| subdivision.iso_code),
            city: record.city.names.english,
            postal_code: record.postal.code,
            latitude: record.location.latitude,
            longitude: record.location.longitude,
            metro_code: record.location.metro_code,
        })
    }
}

impl<'a> Place<'a> {
    /// What is known, by the names under which `GEO` has it.
    ///
    /// `COUNTRY_CODE3` follows from the two letters; `AREA_CODE`, which the older format had, is
    /// never known.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Cow<'a, str>)> {
        let text = |text: Option<&'a str>| text.map(Cow::Borrowed);
        // As C prints `%f`.
        let degrees = |degrees: Option<f64>| degrees.map(|value| format!("{value:.6}").into());
        [
            ("COUNTRY_CODE", text(self.country_code)),
            ("COUNTRY_CODE3", text(self.country_code.and_then(country_code::three_letters))),
            ("COUNTRY_NAME", text(self.country_name)),
            ("COUNTRY_CONTINENT", text(self.continent)),
            ("REGION", text(self.region)),
            ("CITY", text(self.city)),
            ("POSTAL_CODE", text(self.postal_code)),
            ("LATITUDE", degrees(self.latitude)),
            ("LONGITUDE", degrees(self.longitude)),
            ("DMA_CODE", self.metro_code.map(|code| code.to_string().into())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = self.reader.metadata();
        f.debug_struct("Database")
            .field("type", &metadata.database_type)
            .field("build_epoch", &metadata.build_epoch)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of the format (version 2.0) that a small database needs.
    mod format {
        fn tagged(kind: u8, content: &[u8]) -> Vec<u8> {
            let length = u8::try_from(content.len()).expect("short content");
            let mut bytes = if length < 29 {
                vec![(kind << 5) + length]
            } else {
                vec![(kind << 5) + 29, length - 29]
            };
            bytes.extend_from_slice(content);
            bytes
        }

        pub(super) fn string(text: &str) -> Vec<u8> {
            tagged(2, text.as_bytes())
        }

        pub(super) fn double(value: f64) -> Vec<u8> {
            tagged(3, &value.to_be_bytes())
        }

        pub(super) fn uint16(value: u16) -> Vec<u8> {
            tagged(5, &value.to_be_bytes())
        }

        pub(super) fn uint32(value: u32) -> Vec<u8> {
            tagged(6, &value.to_be_bytes())
        }

        pub(super) fn uint64(value: u64) -> Vec<u8> {
            [&[8, 2][..], &value.to_be_bytes()].concat()
        }

        pub(super) fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
            let mut bytes = vec![7 << 5 | u8::try_from(entries.len()).expect("few entries")];
            for (key, value) in entries {
                bytes.extend(string(key));
                bytes.extend(value);
            }
            bytes
        }

        pub(super) fn array(items: &[Vec<u8>]) -> Vec<u8> {
            let mut bytes = vec![u8::try_from(items.len()).expect("few items"), 4];
            bytes.extend(items.iter().flatten());
            bytes
        }

        /// A database that has one record, for the network of 24 bits.
        pub(super) fn database(network: [u8; 3], record: &[u8]) -> Vec<u8> {
            const NODES: u32 = 24;
            let bits = u32::from_be_bytes([0, network[0], network[1], network[2]]);
            let mut bytes = Vec::new();
            for depth in 0..NODES {
                // Behind the nodes come "not found" and 16 bytes before the data.
                let next = if depth + 1 < NODES { depth + 1 } else { NODES + 16 };
                let one = bits >> (NODES - 1 - depth) & 1 == 1;
                for side in if one { [NODES, next] } else { [next, NODES] } {
                    bytes.extend_from_slice(&side.to_be_bytes()[1..]);
                }
            }
            bytes.extend_from_slice(&[0; 16]);
            bytes.extend_from_slice(record);
            bytes.extend_from_slice(b"\xab\xcd\xefMaxMind.com");
            bytes.extend(map(&[
                ("binary_format_major_version", uint16(2)),
                ("binary_format_minor_version", uint16(0)),
                ("build_epoch", uint64(1_700_000_000)),
                ("database_type", string("Test-City")),
                ("description", map(&[("en", string("A test"))])),
                ("ip_version", uint16(4)),
                ("languages", array(&[string("en")])),
                ("node_count", uint32(NODES)),
                ("record_size", uint16(24)),
            ]));
            bytes
        }
    }

    use format::{array, database, double, map, string, uint16};

    fn english(name: &str) -> (&'static str, Vec<u8>) {
        ("names", map(&[("en", string(name))]))
    }

    #[test]
    fn places_are_found_by_their_network() {
        let record = map(&[
            ("city", map(&[english("Dresden")])),
            ("continent", map(&[("code", string("EU")), english("Europe")])),
            ("country", map(&[("iso_code", string("DE")), english("Germany")])),
            (
                "location",
                map(&[
                    ("latitude", double(51.05)),
                    ("longitude", double(-13.7372)),
                    ("metro_code", uint16(7)),
                ]),
            ),
            ("postal", map(&[("code", string("01069"))])),
            ("subdivisions", array(&[map(&[("iso_code", string("SN"))])])),
        ]);
        let database = Database::read(database([192, 0, 2], &record)).expect("a database");
        let look_up = |address: &str| database.look_up(address.parse().expect("an address"));
        let place = look_up("192.0.2.77").expect("a place");
        let fields: Vec<_> = place.fields().collect();
        let expected = [
            ("COUNTRY_CODE", "DE"),
            ("COUNTRY_CODE3", "DEU"),
            ("COUNTRY_NAME", "Germany"),
            ("COUNTRY_CONTINENT", "EU"),
            ("REGION", "SN"),
            ("CITY", "Dresden"),
            ("POSTAL_CODE", "01069"),
            ("LATITUDE", "51.050000"),
            ("LONGITUDE", "-13.737200"),
            ("DMA_CODE", "7"),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name, Cow::Borrowed(value))));
        assert_eq!(look_up("::ffff:192.0.2.1"), Some(place));
        assert_eq!(look_up("192.0.3.77"), None);
        assert_eq!(look_up("2001:db8::1"), None);
    }

    #[test]
    fn what_is_not_known_is_missing() {
        let record = map(&[("country", map(&[("iso_code", string("ZZ"))]))]);
        let database = Database::read(database([10, 0, 0], &record)).expect("a database");
        let place = database.look_up([10, 0, 0, 1].into()).expect("a place");
        assert_eq!(place.fields().collect::<Vec<_>>(), [("COUNTRY_CODE", Cow::Borrowed("ZZ"))]);
    }

    #[test]
    fn records_that_cannot_be_read_are_no_places() {
        let database = Database::read(database([10, 0, 0], &string("no map"))).expect("a database");
        assert_eq!(database.look_up([10, 0, 0, 1].into()), None);
    }

    #[test]
    fn other_files_are_refused() {
        for content in [&b""[..], b"GeoIP", &[0xff; 4096]] {
            assert!(Database::read(content.to_vec()).is_err());
        }
    }
}
