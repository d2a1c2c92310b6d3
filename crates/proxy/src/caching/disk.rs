//! Responses as they lie in the disk tier: what is kept beside a body, and how it comes back.
//!
//! Under a key lies the response, or what its responses vary by; under the key of a variant lies
//! that variant. What comes back is put into memory, and served from there. All reading waits for the
//! disk and is for threads that may.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_cache::store::Key;
use tidegate_cache::store::disk::{Content, Disk, Put};
use tidegate_cache::store::purge::{Mark, Sequence};
use tidegate_cache::stored::Stored;
use tidegate_cache::tags::Tag;
use tidegate_cache::time::Time;
use tidegate_cache::vary::VarySet;
use tidegate_http::Headers;

use super::{Kept, Named, Object};

/// What stands in front of what is kept beside a body.
const RESPONSE: u8 = b'R';
const VARIES: u8 = b'V';

/// Has a response written. That it may not be is the tier's to count.
pub(super) fn put_object(disk: &Disk, key: &Key<'_>, object: &Object, expires: Time, now: Time) {
    let put = Put {
        key: *key,
        metadata: encode(object).into(),
        content: Content::Whole(object.body.to_vec()),
        expires,
        sequence: object.mark.sequence(),
    };
    let _ = disk.put(put, now);
}

/// Has it written what the responses of a key vary by.
pub(super) fn put_varies(disk: &Disk, key: &Key<'_>, set: &VarySet, expires: Time, now: Time) {
    let mut metadata = vec![VARIES];
    set.encode(&mut metadata);
    let content = Content::Whole(Vec::new());
    let (metadata, sequence) = (metadata.into(), Sequence::default());
    let _ = disk.put(Put { key: *key, metadata, content, expires, sequence }, now);
}

/// Reads what lies under a key; `None` if it is not there, or not as it was written.
pub(super) fn read(disk: &Disk, key: &Key<'_>, now: Time) -> Option<Kept> {
    let place = disk.look_up(key, now)?;
    let mut found = disk.read(key, &place).ok()?;
    match found.metadata().split_first()? {
        (&VARIES, encoded) => Some(Kept::Varies(Arc::new(VarySet::decode(encoded)?))),
        (&RESPONSE, _) => {
            disk.check(&mut found).ok()?;
            let length = found.body_bytes();
            let mut body = Vec::with_capacity(usize::try_from(length).ok()?);
            disk.read_body(&found, 0..length, &mut body).ok()?;
            let body: Arc<[Bytes]> =
                if body.is_empty() { Arc::new([]) } else { Arc::new([body.into()]) };
            let (_, encoded) = found.metadata().split_first()?;
            let object = decode(encoded, body, length, found.sequence())?;
            Some(Kept::Object(Arc::new(object)))
        }
        _ => None,
    }
}

fn encode(object: &Object) -> Vec<u8> {
    let mut out = vec![RESPONSE];
    let mut stored = Vec::new();
    object.stored.encode(&mut stored);
    out.extend_from_slice(&object.status.to_le_bytes());
    push(&mut out, &stored);
    out.extend_from_slice(&object.named.site.to_le_bytes());
    out.extend_from_slice(&object.named.url.to_le_bytes());
    push(&mut out, &object.named.path);
    push_len(&mut out, object.named.tags.len());
    for tag in &object.named.tags {
        out.extend_from_slice(&tag.hash().to_le_bytes());
    }
    push_len(&mut out, object.headers.len());
    for field in object.headers.iter() {
        push(&mut out, field.name);
        push(&mut out, field.value);
    }
    out
}

fn push(out: &mut Vec<u8>, text: &[u8]) {
    push_len(out, text.len());
    out.extend_from_slice(text);
}

/// Lengths here are those of message heads, far below the largest number.
fn push_len(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
}

fn decode(encoded: &[u8], body: Arc<[Bytes]>, length: u64, since: Sequence) -> Option<Object> {
    let mut rest = encoded;
    let status = u16::from_le_bytes(take(&mut rest)?);
    let stored = Stored::decode(take_text(&mut rest)?)?;
    let site = u64::from_le_bytes(take(&mut rest)?);
    let url = u64::from_le_bytes(take(&mut rest)?);
    let path = take_text(&mut rest)?.into();
    let count = u32::from_le_bytes(take(&mut rest)?);
    let tags = (0..count).map(|_| Some(Tag::from_hash(u64::from_le_bytes(take(&mut rest)?))));
    let tags = tags.collect::<Option<Box<[Tag]>>>()?;
    let mut headers = Headers::new();
    for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
        let name = take_text(&mut rest)?;
        headers.push(name, take_text(&mut rest)?);
    }
    let named = Arc::new(Named { site, url, path, tags });
    Some(Object { status, headers, stored, body, length, named, mark: Mark::new(since) })
}

fn take<const LEN: usize>(rest: &mut &[u8]) -> Option<[u8; LEN]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(u32::from_le_bytes(take(rest)?)).ok()?;
    let (text, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(text)
}

#[cfg(test)]
mod tests {
    use tidegate_cache::freshness;
    use tidegate_cache::policy::Lifetimes;
    use tidegate_cache::stored::Arrival;
    use tidegate_cache::targeted::Control;
    use tidegate_http::Response;

    use super::*;

    #[test]
    fn what_is_kept_comes_back_whole_or_not_at_all() {
        let now = Time::from_millis(1_790_000_000_000);
        let mut response = Response::new();
        response.status = 200;
        for (name, value) in [("Cache-Control", "max-age=9"), ("ETag", "\"a\""), ("X-B", "")] {
            response.headers.push(name.as_bytes(), value.as_bytes());
        }
        let control = Control::of(&response.headers);
        let lifetime = freshness::lifetime(&response, &control, &Lifetimes::default(), now);
        let arrival = Arrival { asked: now, received: now };
        let stored = Stored::new(&response, &control, lifetime, arrival);
        let tags = [Tag::from_hash(7), Tag::from_hash(9)].into();
        let named = Named { site: 1, url: 2, path: b"/a"[..].into(), tags };
        let body: Arc<[Bytes]> = Arc::new([Bytes::from_static(b"abc")]);
        let object = Object {
            status: 200,
            headers: response.headers,
            stored,
            body: Arc::clone(&body),
            length: 3,
            named: Arc::new(named),
            mark: Mark::new(Sequence::from_number(5)),
        };
        let encoded = encode(&object);
        let encoded = encoded.strip_prefix(&[RESPONSE]).unwrap();
        let again = decode(encoded, Arc::clone(&body), 3, Sequence::from_number(5)).unwrap();
        assert_eq!(
            again.headers.iter().collect::<Vec<_>>(),
            object.headers.iter().collect::<Vec<_>>()
        );
        assert_eq!((again.status, &again.stored), (200, &object.stored));
        assert_eq!(
            (&again.named.path, &again.named.tags),
            (&object.named.path, &object.named.tags)
        );
        for len in 0..encoded.len() {
            assert!(decode(&encoded[..len], Arc::clone(&body), 3, Sequence::default()).is_none());
        }
    }
}
