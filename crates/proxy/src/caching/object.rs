//! Stored responses, and what of them is in memory.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_cache::store::purge::{Mark, Names, Purges, Sequence, Standing};
use tidegate_cache::stored::Stored;
use tidegate_cache::storing::NotStored;
use tidegate_cache::tags::Tag;
use tidegate_cache::time::Time;
use tidegate_cache::vary::{Vary, VarySet};
use tidegate_http::framing::Body;
use tidegate_http::{Headers, Response};

/// What the memory tier holds under a key.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// The response.
    Object(Arc<Object>),
    /// What the key's responses vary by; each lies under a key of its own.
    Varies(Arc<VarySet>),
    /// No response, as it is not to be stored: requests go past each other until then.
    Pass(Time),
    /// No response yet; so often it was asked for.
    Asked(u32),
}

/// A response head as a fill tells it.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// What is stored of its fields, or all of them.
    pub(crate) headers: Headers,
    /// What it says of its body.
    pub(crate) body: Body,
    /// What deciding needs, if it is being stored.
    pub(crate) storing: Result<Stored, NotStored>,
    /// What it varies by, and the fields of the request that it answers; `None` if it does not vary.
    pub(crate) varies: Option<(Vary, Headers)>,
    /// All fields, for the one whose request began the fill; `None` if all are stored.
    pub(crate) first: Option<Headers>,
    /// What purges will know it by, if it is being stored.
    pub(crate) named: Option<Arc<Named>>,
    /// How far purges had come before it was asked for.
    pub(crate) since: Sequence,
}

/// A stored response.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) stored: Stored,
    pub(crate) body: Arc<[Bytes]>,
    /// Bytes of the body.
    pub(crate) length: u64,
    pub(crate) named: Arc<Named>,
    pub(crate) mark: Mark,
}

/// What purges know an object by.
#[derive(Debug)]
pub(crate) struct Named {
    /// The hash of its site's name.
    pub(crate) site: u64,
    /// The hash of its URL: of its key without the variant, fields and cookies.
    pub(crate) url: u64,
    /// Its path.
    pub(crate) path: Box<[u8]>,
    /// Its tags.
    pub(crate) tags: Box<[Tag]>,
}

/// What came of a fill's fetch.
#[derive(Clone, Debug)]
pub(crate) enum Arrived {
    /// An interim response; what is asked for is yet to come.
    Interim(Arc<Response>),
    /// What was asked for.
    Final(Final),
}

/// How the server answered.
#[derive(Clone, Debug)]
pub(crate) enum Final {
    /// With a response, whose body follows.
    Response(Arc<Head>),
    /// With word that the stored one still holds.
    Confirmed(Arc<Object>),
}

impl Named {
    /// The same as purges take it.
    pub(crate) fn names(&self) -> Names<'_> {
        Names { site: self.site, url: self.url, path: &self.path, tags: &self.tags }
    }
}

impl Final {
    /// Whether something that names it was purged since its fetch began.
    pub(crate) fn is_purged(&self, purges: &Purges) -> bool {
        let (named, since) = match self {
            Final::Response(head) => (head.named.as_ref(), head.since),
            Final::Confirmed(object) => (Some(&object.named), object.mark.sequence()),
        };
        named.is_some_and(|named| {
            purges.standing(&named.names(), &Mark::new(since)) != Standing::Current
        })
    }
}

impl Object {
    /// What purges know it by.
    pub(crate) fn names(&self) -> Names<'_> {
        self.named.names()
    }

    /// What it costs to keep.
    pub(crate) fn weight(&self) -> u64 {
        let named = self.named.path.len() + self.named.tags.len() * size_of::<Tag>();
        let head = size_of::<Self>() + size_of::<Named>() + self.headers.capacity_bytes() + named;
        head as u64 + self.length
    }

    /// The same response with another head.
    pub(crate) fn freshened(&self, headers: Headers, stored: Stored, since: Sequence) -> Self {
        Self {
            status: self.status,
            headers,
            stored,
            body: Arc::clone(&self.body),
            length: self.length,
            named: Arc::clone(&self.named),
            mark: Mark::new(since),
        }
    }
}
