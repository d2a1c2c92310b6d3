//! Session tickets: how a client resumes without the server remembering it (RFC 5077; RFC 8446,
//! section 4.6.1).
//!
//! One set of keys serves the whole process. It outlives reloads, and [`TicketKeys::export`] hands it
//! to the process that replaces this one at an upgrade. A key makes tickets for [`TicketKeys::ROTATION_SECONDS`],
//! then opens them for as long again, and is then erased with what it protected: whoever steals the
//! memory can read no session that ended before.
//!
//! Tickets are sealed with AES-256-GCM-SIV (RFC 8452): random nonces are safe there for more tickets
//! than any server issues in six hours, also when two processes hold the same key. Each is bound to
//! a [`Scope`]: a session begun where no client certificate is asked for cannot be resumed where one
//! is required, nor one whose authority is no longer trusted.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use tidegate_telemetry::clock;
use zeroize::Zeroizing;

use super::error::TlsError;

/// What clients are told; no ticket is opened after this time.
const LIFETIME_SECONDS: u32 = 12 * 60 * 60;

/// Bytes of a ticket that is worth opening. Those with a client's certificate chain are the longest.
const TICKET_BYTES_MAX: usize = 16 * 1024;

const NAME_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
/// The first byte of an export, so that a later layout can be told from this one.
const EXPORT_LAYOUT: u8 = 1;

/// What a ticket is bound to: a digest of the authorities that verify client certificates.
pub(super) type Scope = [u8; 32];

/// The process's ticket keys.
pub struct TicketKeys {
    ring: RwLock<Ring>,
    /// Seconds since 1970.
    now: Box<dyn Fn() -> u64 + Send + Sync>,
}

struct Ring {
    current: TicketKey,
    previous: Option<TicketKey>,
    /// When `current` became it.
    since: u64,
}

struct TicketKey {
    /// Tells which key a ticket was sealed with; not secret.
    name: [u8; NAME_BYTES],
    secret: Zeroizing<[u8; KEY_BYTES]>,
    aead: RandomizedNonceKey,
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys").finish_non_exhaustive()
    }
}

impl TicketKeys {
    /// How long a key makes tickets: six hours.
    pub const ROTATION_SECONDS: u64 = 6 * 60 * 60;

    /// New random keys.
    pub fn new() -> Result<TicketKeys, TlsError> {
        TicketKeys::with_clock(clock::unix_seconds)
    }

    /// New random keys that are rotated by `now`, seconds since 1970.
    pub fn with_clock(
        now: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<TicketKeys, TlsError> {
        let ring = Ring { current: TicketKey::random()?, previous: None, since: now() };
        Ok(TicketKeys { ring: RwLock::new(ring), now: Box::new(now) })
    }

    /// The keys as bytes, for the process that takes over. They open every session of the last twelve
    /// hours: they belong in a pipe or a sealed memory file, never on a disk.
    pub fn export(&self) -> Zeroizing<Vec<u8>> {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Zeroizing::new(Vec::with_capacity(1 + 8 + 2 * (NAME_BYTES + KEY_BYTES)));
        bytes.push(EXPORT_LAYOUT);
        bytes.extend_from_slice(&ring.since.to_be_bytes());
        for key in std::iter::once(&ring.current).chain(&ring.previous) {
            bytes.extend_from_slice(&key.name);
            bytes.extend_from_slice(&*key.secret);
        }
        bytes
    }

    /// Replaces the keys by those of [`TicketKeys::export`].
    pub fn import(&self, bytes: &[u8]) -> Result<(), TlsError> {
        let imported = Ring::parse(bytes)?;
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = imported;
        Ok(())
    }

    /// Rotates if it is time. Using the keys does this too; calling it now and then erases old keys
    /// in time on a server that nobody visits.
    pub fn rotate_if_due(&self) {
        let now = (self.now)();
        if !self.ring.read().unwrap_or_else(PoisonError::into_inner).is_due(now) {
            return;
        }
        // Without randomness there is no new key; the old one then stays until there is.
        let Ok(next) = TicketKey::random() else { return };
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been faster.
        if ring.is_due(now) {
            ring.rotate(next, now);
        }
    }

    fn seal(&self, scope: &Scope, plain: &[u8]) -> Option<Vec<u8>> {
        self.rotate_if_due();
        self.ring.read().unwrap_or_else(PoisonError::into_inner).current.seal(scope, plain)
    }

    fn open(&self, scope: &Scope, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_BYTES_MAX {
            return None;
        }
        self.rotate_if_due();
        let (name, sealed) = ticket.split_at_checked(NAME_BYTES)?;
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(&ring.current)
            .chain(&ring.previous)
            .find(|key| key.name == *name)?
            .open(scope, sealed)
    }
}

impl Ring {
    fn is_due(&self, now: u64) -> bool {
        now >= self.since.saturating_add(TicketKeys::ROTATION_SECONDS)
    }

    /// Makes `next` the current key, as if that had been done when it was due: the life of tickets
    /// does not grow because nobody came. The key before goes too if even its last ticket is too old.
    fn rotate(&mut self, next: TicketKey, now: u64) {
        let rotations = now.saturating_sub(self.since) / TicketKeys::ROTATION_SECONDS;
        let former = std::mem::replace(&mut self.current, next);
        self.previous = if rotations > 1 { None } else { Some(former) };
        self.since += rotations * TicketKeys::ROTATION_SECONDS;
    }

    fn parse(bytes: &[u8]) -> Result<Ring, TlsError> {
        Ring::try_parse(bytes).ok_or_else(|| TlsError::Refused {
            place: "ticket keys".to_owned(),
            reason: "they are not an export of this version".to_owned(),
        })
    }

    fn try_parse(bytes: &[u8]) -> Option<Ring> {
        let (&layout, rest) = bytes.split_first()?;
        let (since, keys) = rest.split_first_chunk::<8>()?;
        let (keys, remainder) = keys.as_chunks::<{ NAME_BYTES + KEY_BYTES }>();
        if layout != EXPORT_LAYOUT || !remainder.is_empty() || keys.len() > 2 {
            return None;
        }
        let mut keys = keys.iter().map(|key| {
            let (name, secret) = key.split_first_chunk::<NAME_BYTES>()?;
            TicketKey::new(*name, Zeroizing::new(secret.try_into().ok()?)).ok()
        });
        let current = keys.next()??;
        let previous = match keys.next() {
            Some(key) => Some(key?),
            None => None,
        };
        Some(Ring { current, previous, since: u64::from_be_bytes(*since) })
    }
}

impl TicketKey {
    fn random() -> Result<TicketKey, TlsError> {
        let mut name = [0; NAME_BYTES];
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        rand::fill(&mut name).and_then(|()| rand::fill(&mut *secret)).map_err(|_| {
            TlsError::Refused {
                place: "ticket keys".to_owned(),
                reason: "the system gives no randomness".to_owned(),
            }
        })?;
        TicketKey::new(name, secret)
    }

    fn new(
        name: [u8; NAME_BYTES],
        secret: Zeroizing<[u8; KEY_BYTES]>,
    ) -> Result<TicketKey, TlsError> {
        let aead =
            RandomizedNonceKey::new(&AES_256_GCM_SIV, &*secret).map_err(|_| TlsError::Refused {
                place: "ticket keys".to_owned(),
                reason: "AES-256-GCM-SIV is not to be had".to_owned(),
            })?;
        Ok(TicketKey { name, secret, aead })
    }

    /// Key name, nonce, ciphertext, tag.
    fn seal(&self, scope: &Scope, plain: &[u8]) -> Option<Vec<u8>> {
        let mut body = plain.to_vec();
        let nonce = self.aead.seal_in_place_append_tag(Aad::from(scope), &mut body).ok()?;
        let mut ticket = Vec::with_capacity(NAME_BYTES + NONCE_LEN + body.len());
        ticket.extend_from_slice(&self.name);
        ticket.extend_from_slice(nonce.as_ref());
        ticket.extend_from_slice(&body);
        Some(ticket)
    }

    fn open(&self, scope: &Scope, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut body = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.aead.open_in_place(nonce, Aad::from(scope), &mut body).ok()?.len();
        body.truncate(plain);
        Some(body)
    }
}

/// The process's keys, for one [`Scope`]: what a server configuration of rustls is given.
#[derive(Debug)]
pub(super) struct ScopedTickets {
    pub(super) keys: Arc<TicketKeys>,
    pub(super) scope: Scope,
}

impl ProducesTickets for ScopedTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_SECONDS
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys.seal(&self.scope, plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.keys.open(&self.scope, ticket)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const ROTATION_SECONDS: u64 = TicketKeys::ROTATION_SECONDS;
    const HERE: Scope = [1; 32];

    /// Keys whose clock stands at what the counter says.
    fn keys() -> (TicketKeys, Arc<AtomicU64>) {
        let time = Arc::new(AtomicU64::new(1_000_000));
        let read = Arc::clone(&time);
        (TicketKeys::with_clock(move || read.load(Ordering::Relaxed)).unwrap(), time)
    }

    #[test]
    fn a_ticket_is_opened_where_it_was_made_and_nowhere_else() {
        let (keys, _) = keys();
        let ticket = keys.seal(&HERE, b"session").unwrap();
        assert_eq!(keys.open(&HERE, &ticket).unwrap(), b"session");
        assert_eq!(keys.open(&[2; 32], &ticket), None);
        assert_eq!(keys_of_another_process().open(&HERE, &ticket), None);
    }

    fn keys_of_another_process() -> TicketKeys {
        TicketKeys::new().unwrap()
    }

    #[test]
    fn any_changed_or_missing_byte_spoils_a_ticket() {
        let (keys, _) = keys();
        let ticket = keys.seal(&HERE, b"session").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(keys.open(&HERE, &changed), None, "byte {at}");
            assert_eq!(keys.open(&HERE, &ticket[..at]), None, "cut at {at}");
        }
        assert_eq!(keys.open(&HERE, &vec![0; TICKET_BYTES_MAX + 1]), None);
    }

    #[test]
    fn a_ticket_lives_for_one_rotation_and_no_longer_than_two() {
        fn check(made: u64, opened: u64, alive: bool) {
            let (keys, time) = keys();
            time.fetch_add(made, Ordering::Relaxed);
            let ticket = keys.seal(&HERE, b"session").unwrap();
            time.fetch_add(opened - made, Ordering::Relaxed);
            assert_eq!(keys.open(&HERE, &ticket).is_some(), alive, "made {made}, opened {opened}");
        }
        check(0, ROTATION_SECONDS - 1, true);
        check(0, ROTATION_SECONDS, true);
        check(0, 2 * ROTATION_SECONDS - 1, true);
        // Nobody came for two rotations: the key goes at the first use.
        check(0, 2 * ROTATION_SECONDS, false);
        check(ROTATION_SECONDS - 1, 2 * ROTATION_SECONDS - 1, true);
    }

    #[test]
    fn two_rotations_in_turn_erase_a_key_even_if_the_first_was_late() {
        let (keys, time) = keys();
        let ticket = keys.seal(&HERE, b"session").unwrap();
        time.fetch_add(ROTATION_SECONDS + 100, Ordering::Relaxed);
        keys.rotate_if_due();
        assert!(keys.open(&HERE, &ticket).is_some());
        time.fetch_add(ROTATION_SECONDS - 100, Ordering::Relaxed);
        keys.rotate_if_due();
        assert!(keys.open(&HERE, &ticket).is_none());
    }

    #[test]
    fn an_export_opens_current_and_previous_tickets_in_another_process() {
        let (old, time) = keys();
        let previous = old.seal(&HERE, b"previous").unwrap();
        time.fetch_add(ROTATION_SECONDS, Ordering::Relaxed);
        let current = old.seal(&HERE, b"current").unwrap();

        let new = TicketKeys::with_clock(move || time.load(Ordering::Relaxed)).unwrap();
        new.import(&old.export()).unwrap();
        assert_eq!(new.open(&HERE, &previous).unwrap(), b"previous");
        assert_eq!(new.open(&HERE, &current).unwrap(), b"current");
        assert_eq!(old.open(&HERE, &new.seal(&HERE, b"back").unwrap()).unwrap(), b"back");
    }

    #[test]
    fn a_damaged_export_changes_nothing() {
        let (keys, _) = keys();
        let ticket = keys.seal(&HERE, b"session").unwrap();
        let export = keys.export();
        for cut in 0..export.len() {
            assert!(keys.import(&export[..cut]).is_err(), "cut at {cut}");
        }
        let mut other_layout = export.to_vec();
        other_layout[0] = 9;
        assert!(keys.import(&other_layout).is_err());
        assert!(keys.open(&HERE, &ticket).is_some());
    }
}
