//! A look at the client hello before rustls reads it (RFC 8446, section 4.1.2).
//!
//! The order of cipher suites is the server's, with AES-128-GCM first: with SHA-256, which processors
//! have in hardware, a handshake costs a sixth less than with the AES-256 and SHA-384 that OpenSSL
//! clients list first. But a client that lists `ChaCha20` first says that it has no AES in hardware,
//! and is followed. rustls knows one or the other, for a whole configuration, so the choice is made
//! here, from the first bytes. A hello of which too little has come gets the server's order.

/// Lengths of what stands before the list of suites: record header, message header, version, random.
const BEFORE_SESSION: usize = 5 + 4 + 2 + 32;

/// `TLS_CHACHA20_POLY1305_SHA256` and, for TLS 1.2, those with ECDHE and RSA or ECDSA.
const CHACHA: [u16; 3] = [0x1303, 0xcca8, 0xcca9];

/// Whether the first cipher suite of a client hello is one with `ChaCha20`.
pub(super) fn prefers_chacha(received: &[u8]) -> bool {
    first_suite(received).is_some_and(|suite| CHACHA.contains(&suite))
}

fn first_suite(received: &[u8]) -> Option<u16> {
    let (session, rest) = received.get(BEFORE_SESSION..)?.split_first()?;
    let list = rest.get(usize::from(*session)..)?.get(2..)?;
    let (suites, _) = list.as_chunks::<2>();
    // Some clients put a value in front that means nothing (GREASE, RFC 8701).
    suites.iter().map(|suite| u16::from_be_bytes(*suite)).find(|suite| suite & 0x0f0f != 0x0a0a)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(session: &[u8], suites: &[u16]) -> Vec<u8> {
        let mut bytes = vec![22; BEFORE_SESSION];
        bytes.push(u8::try_from(session.len()).unwrap());
        bytes.extend_from_slice(session);
        bytes.extend_from_slice(&u16::try_from(suites.len() * 2).unwrap().to_be_bytes());
        bytes.extend(suites.iter().flat_map(|suite| suite.to_be_bytes()));
        bytes
    }

    #[test]
    fn the_first_suite_that_means_something_counts() {
        fn check(suites: &[u16], expected: bool) {
            assert_eq!(prefers_chacha(&hello(&[], suites)), expected, "{suites:x?}");
            assert_eq!(prefers_chacha(&hello(&[7; 32], suites)), expected, "{suites:x?}");
        }
        check(&[0x1303, 0x1301], true);
        check(&[0x1301, 0x1303], false);
        check(&[0xcca9, 0xc02b], true);
        check(&[0x5a5a, 0xcca8], true);
        check(&[0xeaea, 0x1302, 0x1303], false);
        check(&[], false);
    }

    #[test]
    fn a_hello_cut_anywhere_has_no_preference_or_the_right_one() {
        let whole = hello(&[7; 32], &[0x1303, 0x1301]);
        let list_ends = whole.len() - 2;
        for cut in 0..whole.len() {
            assert_eq!(prefers_chacha(&whole[..cut]), cut >= list_ends, "cut at {cut}");
        }
    }
}
