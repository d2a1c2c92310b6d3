//! Changes as the stream and the hashes hold them: fields with text for numbers and words, and bytes
//! as they are for keys, names and values.

use tidegate_waf::context::{Change, Collection, Lifetime, Record, Stamp, Update, Value};

use crate::context::lines;

/// A change that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wire {
    pub(super) at_ms: u64,
    pub(super) collection: Collection,
    pub(super) key: Vec<u8>,
    pub(super) name: Vec<u8>,
    pub(super) what: What,
}

/// What was done, with the bytes of values owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Set {
        value: Vec<u8>,
        stamp: Stamp,
        lifetime: Lifetime,
        given: Stamp,
    },
    Add {
        delta: i64,
        sum: i64,
        onto: Stamp,
    },
    Keep {
        lifetime: Lifetime,
        of: Stamp,
        given: Stamp,
    },
    Remove {
        stamp: Stamp,
    },
    /// Forgotten without being removed: of interest to the hashes alone.
    Gone,
}

impl What {
    pub(super) fn of(update: &Update<'_>) -> What {
        match *update {
            Update::Set { value, stamp, lifetime, lifetime_stamp: given } => {
                let mut bytes = Vec::new();
                value.append_to(&mut bytes);
                What::Set { value: bytes, stamp, lifetime, given }
            }
            Update::Add { delta, sum, onto } => What::Add { delta, sum, onto },
            Update::Keep { lifetime, of, stamp: given } => What::Keep { lifetime, of, given },
            Update::Remove { stamp } => What::Remove { stamp },
        }
    }

    /// What another gate has to apply; `None` for what it finds out by itself.
    pub(super) fn update(&self) -> Option<Update<'_>> {
        Some(match self {
            What::Set { value, stamp, lifetime, given } => Update::Set {
                value: Value::of(value),
                stamp: *stamp,
                lifetime: *lifetime,
                lifetime_stamp: *given,
            },
            What::Add { delta, sum, onto } => Update::Add { delta: *delta, sum: *sum, onto: *onto },
            What::Keep { lifetime, of, given } => {
                Update::Keep { lifetime: *lifetime, of: *of, stamp: *given }
            }
            What::Remove { stamp } => Update::Remove { stamp: *stamp },
            What::Gone => return None,
        })
    }
}

impl Wire {
    pub(super) fn of(change: &Change) -> Wire {
        let what = change.update().map_or(What::Gone, |update| What::of(&update));
        Wire::new(change.record(), change.name(), change.at_ms, what)
    }

    pub(super) fn new(record: Record<'_>, name: &[u8], at_ms: u64, what: What) -> Wire {
        let (collection, key, name) = (record.collection, record.key.to_vec(), name.to_vec());
        Wire { at_ms, collection, key, name, what }
    }

    pub(super) fn record(&self) -> Record<'_> {
        Record::new(self.collection, &self.key)
    }

    /// Where the hashes have it: `ip:11:203.0.113.7:blocked`.
    pub(super) fn place(&self) -> Vec<u8> {
        let mut place = format!("{}:{}:", self.collection, self.key.len()).into_bytes();
        place.extend_from_slice(&self.key);
        place.push(b':');
        place.extend_from_slice(&self.name);
        place
    }

    /// What follows the place among the script's arguments.
    pub(super) fn arguments(&self) -> [Vec<u8>; 9] {
        let none = || (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (change, (stamp, value, lifetime, given, sum)) = match &self.what {
            What::Set { value, stamp, lifetime, given } => (
                "set",
                (digits(*stamp), value.clone(), shown(*lifetime), digits(*given), Vec::new()),
            ),
            What::Add { delta, sum, onto } => {
                ("add", (digits(*onto), number(*delta), Vec::new(), Vec::new(), number(*sum)))
            }
            What::Keep { lifetime, of, given } => {
                ("keep", (digits(*of), Vec::new(), shown(*lifetime), digits(*given), Vec::new()))
            }
            What::Remove { stamp } => {
                ("del", (digits(*stamp), Vec::new(), Vec::new(), Vec::new(), Vec::new()))
            }
            What::Gone => ("gone", none()),
        };
        let collection = self.collection.name().into();
        let (key, name) = (self.key.clone(), self.name.clone());
        [collection, key, name, change.into(), stamp, value, lifetime, given, sum]
    }

    /// An entry of the stream: `None` if it is not understood. What a feed has put there without a
    /// stamp counts as given when the server took it, which all gates see alike.
    pub(super) fn parse(id: &str, fields: &[Vec<u8>]) -> Option<Wire> {
        let (at_ms, sequence) = id.split_once('-')?;
        let (at_ms, sequence): (u64, u64) = (at_ms.parse().ok()?, sequence.parse().ok()?);
        let find = |name: &str| {
            let mut pairs = fields.chunks_exact(2);
            pairs.find(|pair| pair[0] == name.as_bytes()).map(|pair| pair[1].as_slice())
        };
        let own = Stamp::from_bits(at_ms << 16 | (sequence & 0xFFFF));
        let stamp = |name: &str| match find(name) {
            None | Some(b"") => Some(own),
            Some(digits) => stamp(digits),
        };
        let lifetime = || match (find("lifetime"), find("ttl")) {
            (Some(lifetime), _) if !lifetime.is_empty() => read(lifetime),
            (_, Some(ttl)) if !ttl.is_empty() => lines::lifetime(ttl, at_ms).ok(),
            _ => Some(Lifetime::Record),
        };
        let integer = |name: &str| str::from_utf8(find(name)?).ok()?.parse().ok();
        let what = match find("change")? {
            b"set" => What::Set {
                value: find("value")?.to_vec(),
                stamp: stamp("stamp")?,
                lifetime: lifetime()?,
                given: stamp("given")?,
            },
            // Gates alone add: an increment says what it was made on.
            b"add" if find("stamp").is_some() => {
                What::Add { delta: integer("value")?, sum: integer("sum")?, onto: stamp("stamp")? }
            }
            b"keep" => {
                What::Keep { lifetime: lifetime()?, of: stamp("stamp")?, given: stamp("given")? }
            }
            b"del" => What::Remove { stamp: stamp("stamp")? },
            _ => return None,
        };
        let collection = Collection::named(find("collection")?)?;
        let (key, name) = (find("key")?.to_vec(), find("name")?.to_ascii_lowercase());
        (!key.is_empty() && !name.is_empty()).then_some(Wire { at_ms, collection, key, name, what })
    }

    /// A variable as the hashes hold it.
    pub(super) fn kept(place: &[u8], about: &[u8], value: Vec<u8>) -> Option<Wire> {
        let mut parts = place.splitn(3, |byte| *byte == b':');
        let collection = Collection::named(parts.next()?)?;
        let length: usize = str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let (key, name) = parts.next()?.split_at_checked(length)?;
        let name = name.strip_prefix(b":")?;
        let mut words = about.split(|byte| *byte == b' ');
        let stamp_given = stamp(words.next()?)?;
        let lifetime = read(words.next()?)?;
        let given = stamp(words.next()?)?;
        let at_ms = str::from_utf8(words.next()?).ok()?.parse().ok()?;
        let what = What::Set { value, stamp: stamp_given, lifetime, given };
        Some(Wire { at_ms, collection, key: key.to_vec(), name: name.to_vec(), what })
    }
}

fn digits(stamp: Stamp) -> Vec<u8> {
    format!("{:020}", stamp.to_bits()).into_bytes()
}

fn stamp(digits: &[u8]) -> Option<Stamp> {
    str::from_utf8(digits).ok()?.parse().ok().map(Stamp::from_bits)
}

fn number(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn shown(lifetime: Lifetime) -> Vec<u8> {
    match lifetime {
        Lifetime::Record => b"record".to_vec(),
        Lifetime::Until(due_ms) => due_ms.to_string().into_bytes(),
        Lifetime::Forever => b"forever".to_vec(),
    }
}

fn read(lifetime: &[u8]) -> Option<Lifetime> {
    match lifetime {
        b"record" => Some(Lifetime::Record),
        b"forever" => Some(Lifetime::Forever),
        due => str::from_utf8(due).ok()?.parse().ok().map(Lifetime::Until),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 9] =
        ["collection", "key", "name", "change", "stamp", "value", "lifetime", "given", "sum"];

    #[test]
    fn what_is_sent_arrives() {
        let (stamp, given) = (Stamp::from_bits(77 << 16), Stamp::from_bits(88 << 16 | 3));
        let value = b"\xff: \0".to_vec();
        for what in [
            What::Set { value, stamp, lifetime: Lifetime::Until(9_000), given },
            What::Set { value: Vec::new(), stamp, lifetime: Lifetime::Record, given },
            What::Add { delta: -3, sum: 4, onto: Stamp::NONE },
            What::Keep { lifetime: Lifetime::Forever, of: stamp, given },
            What::Remove { stamp },
        ] {
            let record = Record::new(Collection::Ip, b"a:b\0c");
            let wire = Wire::new(record, b"n:1", 1_000, what);
            let names = NAMES.iter().map(|name| name.as_bytes().to_vec());
            let fields: Vec<Vec<u8>> =
                names.zip(wire.arguments()).flat_map(|(name, value)| [name, value]).collect();
            assert_eq!(Wire::parse("1000-5", &fields), Some(wire.clone()));
            let What::Set { value, .. } = &wire.what else { continue };
            let [.., stamp, _, lifetime, given, _] =
                wire.arguments().map(|it| String::from_utf8_lossy(&it).into_owned());
            let about = format!("{stamp} {lifetime} {given} 1000");
            let kept = Wire::kept(&wire.place(), about.as_bytes(), value.clone());
            assert_eq!(kept, Some(wire));
        }
    }

    #[test]
    fn a_feed_may_leave_out_what_gates_need() {
        let fields = |text: &str| -> Vec<Vec<u8>> {
            text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
        };
        let parse = |text: &str| Wire::parse("5000-2", &fields(text)).map(|wire| wire.what);
        let own = Stamp::from_bits(5_000 << 16 | 2);
        let place = "collection IP key k name N";
        let set = |lifetime| What::Set { value: b"v".to_vec(), stamp: own, lifetime, given: own };
        assert_eq!(parse(&format!("{place} change set value v")), Some(set(Lifetime::Record)));
        let until = Lifetime::Until(65_000);
        assert_eq!(parse(&format!("{place} change set value v ttl 60")), Some(set(until)));
        assert_eq!(parse(&format!("{place} change del")), Some(What::Remove { stamp: own }));
        for wrong in [
            format!("{place} change set"),
            format!("{place} change set value v ttl soon"),
            format!("{place} change add value 1"),
            format!("{place} change explode"),
            "collection tx key k name n change del".to_owned(),
            "key k name n change del".to_owned(),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
        assert_eq!(Wire::parse("x", &fields(&format!("{place} change del"))), None);
        assert_eq!(Wire::kept(b"ip:99:k:n", b"1 record 1 1", Vec::new()), None);
    }
}
