//! Who a client is by its certificate.
//!
//! The subject is given as RFC 4514 text, the form of LDAP, Java and nginx's `$ssl_client_s_dn`: the
//! most specific part first (`CN=Ann,O=Example,C=SE`), with its escapes. It is made to go into a
//! header field: whatever is outside printable ASCII is escaped as `\` and two hex digits, so it can
//! neither break a field nor be read in two ways.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509Certificate, X509Name};

/// Names of attribute types (RFC 4514, section 3, and `emailAddress` as everybody writes it); others
/// are written as their object identifier.
const ATTRIBUTE_TYPES: [(&str, &str); 10] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// A client's verified certificate. A client without one has no such value; one whose certificate
/// does not verify has no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its subject as RFC 4514 text, in printable ASCII.
    pub subject: String,
    /// SHA-256 over its DER, in lower-case hex.
    pub fingerprint: String,
}

impl ClientCertificate {
    /// What `der` says; `None` if it cannot be read, which its verification excludes.
    pub(super) fn read(der: &CertificateDer<'_>) -> Option<ClientCertificate> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let hash = digest(&SHA256, der);
        let mut fingerprint = String::with_capacity(64);
        for byte in hash.as_ref() {
            push_hex(&mut fingerprint, *byte);
        }
        Some(ClientCertificate { subject: subject_text(certificate.subject()), fingerprint })
    }
}

/// RFC 4514, section 2: the parts in reverse order, joined by commas; those of one part by plus signs.
fn subject_text(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter_rdn().collect();
    let mut text = String::new();
    for part in parts.into_iter().rev() {
        if !text.is_empty() {
            text.push(',');
        }
        for (index, attribute) in part.iter().enumerate() {
            if index > 0 {
                text.push('+');
            }
            push_attribute(&mut text, attribute);
        }
    }
    text
}

fn push_attribute(text: &mut String, attribute: &AttributeTypeAndValue<'_>) {
    let id = attribute.attr_type().to_id_string();
    let known = ATTRIBUTE_TYPES.iter().find(|(known, _)| *known == id);
    match (known, attribute.as_str()) {
        (Some((_, name)), Ok(value)) => {
            text.push_str(name);
            text.push('=');
            push_escaped(text, value);
        }
        // Neither name nor string form: the value as `#` and the hex of its encoding (section 2.4).
        (known, _) => {
            text.push_str(known.map_or(id.as_str(), |(_, name)| name));
            text.push_str("=#");
            push_encoding(text, attribute);
        }
    }
}

/// The value's DER. Strings of a directory are short, so their length always fits three octets.
fn push_encoding(text: &mut String, attribute: &AttributeTypeAndValue<'_>) {
    let value = attribute.attr_value();
    let data = value.data;
    // Universal class, primitive: the tag number is the whole identifier octet (X.690, 8.1.2).
    push_hex(text, u8::try_from(value.tag().0).unwrap_or(0));
    let length = data.len().to_be_bytes();
    let length = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    if data.len() >= 0x80 {
        push_hex(text, 0x80 | u8::try_from(length.len()).unwrap_or(0));
    }
    for byte in length.iter().chain(data) {
        push_hex(text, *byte);
    }
}

/// RFC 4514, section 2.4.
fn push_escaped(text: &mut String, value: &str) {
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b'#' | b' ' if at == 0 => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b' ' if at == last => text.push_str("\\ "),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                text.push('\\');
                push_hex(text, byte);
            }
        }
    }
}

fn push_hex(text: &mut String, byte: u8) {
    // Writing into a String cannot fail.
    let _ = write!(text, "{byte:02x}");
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    use super::*;

    fn check(parts: Vec<(DnType, DnValue)>, expected: &str) {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind, value);
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let client = ClientCertificate::read(certificate.der()).unwrap();
        assert_eq!(client.subject, expected);
        assert_eq!(client.fingerprint.len(), 64);
    }

    fn utf8(text: &str) -> DnValue {
        DnValue::Utf8String(text.to_owned())
    }

    #[test]
    fn a_subject_is_rfc_4514_text() {
        check(
            vec![
                (DnType::CountryName, utf8("SE")),
                (DnType::OrganizationName, utf8("Example, Inc.")),
                (DnType::CommonName, utf8("Ann")),
            ],
            r"CN=Ann,O=Example\, Inc.,C=SE",
        );
        check(vec![], "");
        check(vec![(DnType::CommonName, utf8(" #a "))], r"CN=\ #a\ ");
        check(vec![(DnType::CommonName, utf8("#a"))], r"CN=\#a");
        check(vec![(DnType::CommonName, utf8(r#"a"+;<>\b"#))], r#"CN=a\"\+\;\<\>\\b"#);
    }

    #[test]
    fn nothing_in_a_subject_can_break_a_header_field() {
        check(
            vec![(DnType::CommonName, utf8("a\r\nX-Admin: yes\0"))],
            r"CN=a\0d\0aX-Admin: yes\00",
        );
        check(vec![(DnType::CommonName, utf8("Zoë"))], r"CN=Zo\c3\ab");
    }

    #[test]
    fn an_unknown_attribute_is_its_identifier_and_its_encoding() {
        check(vec![(DnType::CustomDnType(vec![2, 5, 4, 5]), utf8("7"))], "2.5.4.5=#0c0137");
        let long = "x".repeat(200);
        let expected = format!("2.5.4.5=#0c81c8{}", "78".repeat(200));
        check(vec![(DnType::CustomDnType(vec![2, 5, 4, 5]), utf8(&long))], &expected);
    }
}
