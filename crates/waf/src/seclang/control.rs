//! `ctl`: settings changed for one transaction.

use std::ops::RangeInclusive;

use super::rule::Target;
use super::setting::{AuditMode, AuditPartsChange, EngineMode, Switch};
use super::support::Support;

/// A setting changed for one transaction, from here on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// `auditEngine`.
    AuditEngine(AuditMode),
    /// `auditLogParts`.
    AuditLogParts(AuditPartsChange),
    /// `debugLogLevel`, 0 to 9.
    DebugLogLevel(u8),
    /// `forceRequestBodyVariable`.
    ForceRequestBodyVariable(Switch),
    /// `requestBodyAccess`.
    RequestBodyAccess(Switch),
    /// `requestBodyLimit`, in bytes.
    RequestBodyLimit(u64),
    /// `requestBodyProcessor`.
    RequestBodyProcessor(BodyProcessor),
    /// `responseBodyAccess`.
    ResponseBodyAccess(Switch),
    /// `responseBodyLimit`, in bytes.
    ResponseBodyLimit(u64),
    /// `ruleEngine`.
    RuleEngine(EngineMode),
    /// `ruleRemoveById`.
    RuleRemoveById(RangeInclusive<u64>),
    /// `ruleRemoveByMsg`, with its pattern.
    RuleRemoveByMsg(Box<[u8]>),
    /// `ruleRemoveByTag`, with its pattern.
    RuleRemoveByTag(Box<[u8]>),
    /// `ruleRemoveTargetById`.
    RuleRemoveTargetById {
        /// The rules meant.
        ids: RangeInclusive<u64>,
        /// What they no longer look at; its kind is `Exclude`.
        target: Target,
    },
    /// `ruleRemoveTargetByMsg`.
    RuleRemoveTargetByMsg {
        /// The message's pattern.
        msg: Box<[u8]>,
        /// What the rules no longer look at; its kind is `Exclude`.
        target: Target,
    },
    /// `ruleRemoveTargetByTag`.
    RuleRemoveTargetByTag {
        /// The tag's pattern.
        tag: Box<[u8]>,
        /// What the rules no longer look at; its kind is `Exclude`.
        target: Target,
    },
}

/// How a request's body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyProcessor {
    /// `URLENCODED`.
    UrlEncoded,
    /// `MULTIPART`.
    Multipart,
    /// `JSON`.
    Json,
    /// `XML`.
    Xml,
    /// `RAW`: as `REQUEST_BODY` only.
    Raw,
}

impl BodyProcessor {
    /// All processors.
    pub const ALL: [Self; 5] =
        [Self::UrlEncoded, Self::Multipart, Self::Json, Self::Xml, Self::Raw];

    /// The name, in capitals.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UrlEncoded => "URLENCODED",
            Self::Multipart => "MULTIPART",
            Self::Json => "JSON",
            Self::Xml => "XML",
            Self::Raw => "RAW",
        }
    }

    /// Reads a name in any case.
    pub fn named(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name().as_bytes().eq_ignore_ascii_case(word))
    }
}

/// What the table says about an option of `ctl`.
#[derive(Debug)]
pub struct Description {
    /// The name.
    pub name: &'static str,
    /// What its value must be.
    pub expected: &'static str,
    /// Whether the engine has it.
    pub support: Support,
    /// A sentence for the reference.
    pub doc: &'static str,
}

macro_rules! controls {
    ($($variant:ident $name:literal $expected:literal $doc:literal $(refused $reason:literal)?;)*) => {
        /// An option of `ctl`, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum ControlName {
            $(#[doc = concat!("`", $name, "`. ", $doc)] $variant,)*
        }

        impl ControlName {
            /// Every option, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        static TABLE: &[Description] = &[
            $(Description {
                name: $name,
                expected: $expected,
                support: controls!(@support $($reason)?),
                doc: $doc,
            },)*
        ];
    };
    (@support) => { Support::Full };
    (@support $reason:literal) => { Support::Refused($reason) };
}

controls! {
    AuditEngine "auditEngine" "`On`, `Off` or `RelevantOnly`" "Whether the transaction is written to the audit log.";
    AuditLogParts "auditLogParts" "letters from A to K and Z, with `+` or `-` before them" "Which parts the audit log shows.";
    DebugLogLevel "debugLogLevel" "a level from 0 to 9" "How much of the transaction's way is traced.";
    ForceRequestBodyVariable "forceRequestBodyVariable" "`On` or `Off`" "Whether `REQUEST_BODY` is there whatever the body's type.";
    ForceResponseBodyVariable "forceResponseBodyVariable" "`On` or `Off`" "Whether `RESPONSE_BODY` is there whatever the body's type." refused "`SecResponseBodyMimeType` chooses the responses that are inspected";
    HashEnforcement "hashEnforcement" "`On` or `Off`" "Whether signatures of links are enforced." refused "links are not signed here";
    HashEngine "hashEngine" "`On` or `Off`" "Whether links are signed." refused "links are not signed here";
    RequestBodyAccess "requestBodyAccess" "`On` or `Off`" "Whether the request's body is inspected.";
    RequestBodyLimit "requestBodyLimit" "a number of bytes" "How much of the request's body is accepted.";
    RequestBodyProcessor "requestBodyProcessor" "`URLENCODED`, `MULTIPART`, `JSON`, `XML` or `RAW`" "How the request's body is read.";
    ResponseBodyAccess "responseBodyAccess" "`On` or `Off`" "Whether the response's body is inspected.";
    ResponseBodyLimit "responseBodyLimit" "a number of bytes" "How much of the response's body is inspected.";
    ResponseBodyProcessor "responseBodyProcessor" "a processor's name" "How the response's body is read." refused "responses are inspected as text, in `RESPONSE_BODY`";
    RuleEngine "ruleEngine" "`On`, `Off` or `DetectionOnly`" "Whether rules run, and whether they can stop the transaction.";
    RuleRemoveById "ruleRemoveById" "a rule's number or a range of them" "Rules that no longer run.";
    RuleRemoveByMsg "ruleRemoveByMsg" "a message" "Rules that no longer run, by their `msg`.";
    RuleRemoveByTag "ruleRemoveByTag" "a tag" "Rules that no longer run, by their `tag`.";
    RuleRemoveTargetById "ruleRemoveTargetById" "`id;target`" "Values at which these rules no longer look.";
    RuleRemoveTargetByMsg "ruleRemoveTargetByMsg" "`msg;target`" "Values at which rules of this `msg` no longer look.";
    RuleRemoveTargetByTag "ruleRemoveTargetByTag" "`tag;target`" "Values at which rules of this `tag` no longer look.";
}

impl ControlName {
    /// The option of this name, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        let is = |it: &Self| it.description().name.as_bytes().eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(is)
    }

    /// What the table says.
    pub fn description(self) -> &'static Description {
        &TABLE[self as usize]
    }
}
