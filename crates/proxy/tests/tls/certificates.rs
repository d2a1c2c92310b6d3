//! Authorities and certificates for one test.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber, date_time_ymd,
};
use tidegate_proxy::tls::{CertificateSettings, Pem};
use tidegate_telemetry::clock::unix_seconds;

/// An authority that certifies servers and clients.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, both in PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// A server's certificate for these names.
    pub(crate) fn server(&self, names: &[&str]) -> Identity {
        self.issue(names, |_| ())
    }

    /// A server's certificate with an Ed25519 key.
    pub(crate) fn server_ed25519(&self, names: &[&str]) -> Identity {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        self.issue_with_key(&key, names, |_| ())
    }

    /// A server's certificate that ended long ago.
    pub(crate) fn expired(&self, names: &[&str]) -> Identity {
        self.issue(names, |params| {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        })
    }

    /// A client's certificate with this common name and serial number.
    pub(crate) fn client(&self, name: &str, serial: u64) -> Identity {
        self.issue(&[], |params| {
            params.distinguished_name.push(DnType::CommonName, name);
            params.serial_number = Some(SerialNumber::from(serial));
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        })
    }

    /// A client's certificate that is valid for so long from now on.
    pub(crate) fn client_for(&self, valid: Duration) -> Identity {
        let ends = Duration::from_secs(unix_seconds()) + valid;
        self.issue(&[], |params| {
            params.not_after = date_time_ymd(1970, 1, 1) + ends;
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        })
    }

    /// A revocation list with this serial number.
    pub(crate) fn revoke(&self, serial: u64) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(2099, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    fn issue(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        self.issue_with_key(&KeyPair::generate().unwrap(), names, change)
    }

    fn issue_with_key(
        &self,
        key: &KeyPair,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let certificate = params.signed_by(key, &self.issuer).unwrap();
        Identity { chain: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Identity {
    /// A certificate that certifies itself, as `openssl req -x509` makes it.
    pub(crate) fn self_signed(name: &str) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Identity { chain: certificate.pem(), key: key.serialize_pem() }
    }

    pub(crate) fn settings(&self) -> CertificateSettings {
        CertificateSettings { chain: text(&self.chain), key: text(&self.key) }
    }

    /// Writes chain and key to files that OpenSSL reads.
    pub(crate) fn write(&self, dir: &Path, name: &str) -> (PathBuf, PathBuf) {
        let chain = write(dir, &format!("{name}.pem"), &self.chain);
        (chain, write(dir, &format!("{name}.key"), &self.key))
    }
}

pub(crate) fn text(pem: &str) -> Pem {
    Pem::Text { name: "test".into(), bytes: pem.as_bytes().to_vec() }
}

pub(crate) fn write(dir: &Path, name: &str, content: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path
}
