//! Settings of the engine, as a rule set chooses them.

/// A setting that the engine honours. Those it cannot honour never get here: the table of
/// [directives](super::directive) refuses or notes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `SecArgumentSeparator`: the byte between arguments, `&` if not given.
    ArgumentSeparator(u8),
    /// `SecArgumentsLimit`: how many arguments are read.
    ArgumentsLimit(u64),
    /// `SecAuditEngine`.
    AuditEngine(AuditMode),
    /// `SecAuditLogFormat`.
    AuditLogFormat(AuditFormat),
    /// `SecAuditLogParts`.
    AuditLogParts(AuditParts),
    /// `SecAuditLogRelevantStatus`: a regular expression.
    AuditLogRelevantStatus(Box<[u8]>),
    /// `SecCollectionTimeout`: seconds without a change after which a kept collection is forgotten.
    CollectionTimeout(u64),
    /// `SecCookieFormat`.
    CookieFormat(CookieFormat),
    /// `SecGeoLookupDb`: a path.
    GeoLookupDb(Box<str>),
    /// `SecHttpBlKey`: for `@rbl` with `dnsbl.httpbl.org`.
    HttpBlKey(Box<str>),
    /// `SecParseXmlIntoArgs`.
    ParseXmlIntoArgs(XmlArgs),
    /// `SecPcreMatchLimit`: steps of a pattern that needs back-references or look-around; all others
    /// take linear time and need no limit.
    PcreMatchLimit(u64),
    /// `SecRequestBodyAccess`.
    RequestBodyAccess(Switch),
    /// `SecRequestBodyJsonDepthLimit`.
    RequestBodyJsonDepthLimit(u64),
    /// `SecRequestBodyLimit`, in bytes.
    RequestBodyLimit(u64),
    /// `SecRequestBodyLimitAction`.
    RequestBodyLimitAction(LimitAction),
    /// `SecRequestBodyNoFilesLimit`: bytes, uploaded files not counted.
    RequestBodyNoFilesLimit(u64),
    /// `SecResponseBodyAccess`.
    ResponseBodyAccess(Switch),
    /// `SecResponseBodyLimit`, in bytes.
    ResponseBodyLimit(u64),
    /// `SecResponseBodyLimitAction`.
    ResponseBodyLimitAction(LimitAction),
    /// `SecResponseBodyMimeType`: media types added to those inspected.
    ResponseBodyMimeTypes(Vec<Box<str>>),
    /// `SecResponseBodyMimeTypesClear`: no media type is inspected but those that follow.
    ResponseBodyMimeTypesClear,
    /// `SecRuleEngine`.
    RuleEngine(EngineMode),
    /// `SecSensorId`: shown in the audit log.
    SensorId(Box<str>),
    /// `SecTmpDir`: where bodies are spooled; a path.
    TmpDir(Box<str>),
    /// `SecUnicodeMapFile`: the code page whose best fits `t:urlDecodeUni` is to know.
    UnicodeMapFile(u32),
    /// `SecUploadFileLimit`: files of one body.
    UploadFileLimit(u64),
    /// `SecWebAppId`: part of the collections' keys, shown in the audit log.
    WebAppId(Box<str>),
}

/// A choice among words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident $word:literal $(| $alias:literal)*,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// The words that choose, as the reference spells them.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// Reads a word in any case.
            pub fn named(word: &[u8]) -> Option<Self> {
                let is = |other: &str| other.as_bytes().eq_ignore_ascii_case(word);
                $(if is($word) $(|| is($alias))* { return Some(Self::$variant); })*
                None
            }
        }
    };
}

words! {
    /// On or off.
    Switch {
        /// `On`.
        On "On",
        /// `Off`.
        Off "Off",
    }
}

words! {
    /// Whether rules run.
    EngineMode {
        /// They run and stop transactions.
        On "On",
        /// They do not run.
        Off "Off",
        /// They run and stop nothing.
        DetectionOnly "DetectionOnly",
    }
}

words! {
    /// What happens to a body beyond its limit.
    LimitAction {
        /// The transaction is refused.
        Reject "Reject",
        /// What lies within the limit is inspected, and the whole body passes.
        ProcessPartial "ProcessPartial",
    }
}

words! {
    /// Which transactions are written to the audit log.
    AuditMode {
        /// All.
        On "On",
        /// None.
        Off "Off",
        /// Those that a rule marks, or whose status is relevant.
        RelevantOnly "RelevantOnly",
    }
}

words! {
    /// How a transaction is written to the audit log.
    AuditFormat {
        /// A JSON object on a line.
        Json "JSON",
        /// Sections with boundaries.
        Native "Native",
    }
}

words! {
    /// How cookies are read.
    CookieFormat {
        /// Netscape's, which everyone sends.
        Netscape "0",
        /// Version 1 of RFC 2109, with quotes and attributes.
        Version1 "1",
    }
}

words! {
    /// Whether the text of an XML body becomes arguments.
    XmlArgs {
        /// It does, and `XML` has values too.
        On "On",
        /// It does not.
        Off "Off",
        /// It does, and `XML` has none.
        OnlyArgs "OnlyArgs",
    }
}

/// A set of the audit log's parts: the letters A to K, and Z.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AuditParts(u32);

impl AuditParts {
    /// Reads letters in capitals; none if there is another byte among them, or no letter at all.
    pub fn lettered(letters: &[u8]) -> Option<Self> {
        if letters.is_empty() {
            return None;
        }
        letters.iter().try_fold(Self::default(), |Self(parts), letter| match letter {
            b'A'..=b'K' | b'Z' => Some(Self(parts | 1 << (letter - b'A'))),
            _ => None,
        })
    }

    /// Whether this part, a letter in capitals, is in the set.
    pub const fn contains(self, letter: u8) -> bool {
        letter.is_ascii_uppercase() && self.0 & (1 << (letter - b'A')) != 0
    }

    /// The parts of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The parts that are not in `other`. A (the head) and Z (the end) always stay.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        let bound = 1 | 1 << (b'Z' - b'A');
        Self(self.0 & (!other.0 | bound))
    }

    /// The letters in their order.
    pub fn letters(self) -> impl Iterator<Item = char> {
        (b'A'..=b'Z').filter(move |&letter| self.contains(letter)).map(char::from)
    }
}

impl std::fmt::Debug for AuditParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.letters().collect::<String>())
    }
}

/// A change of the audit log's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditPartsChange {
    /// These and no others.
    Set(AuditParts),
    /// `+`: these too.
    Add(AuditParts),
    /// `-`: no longer these.
    Remove(AuditParts),
}
