//! The table of actions, and actions as the compiler takes them.

use super::control::Control;
use super::support::Support;
use super::text::Text;
use crate::transformation::Transformation;
use crate::variable::Variable;

/// Something that a rule says or does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `msg`.
    Msg(Text),
    /// `logdata`.
    LogData(Text),
    /// `tag`.
    Tag(Text),
    /// `severity`.
    Severity(Severity),
    /// `rev`.
    Rev(Box<[u8]>),
    /// `ver`.
    Ver(Box<[u8]>),
    /// `maturity`, 1 to 9.
    Maturity(u8),
    /// `accuracy`, 1 to 9.
    Accuracy(u8),

    /// `allow`.
    Allow(Allowance),
    /// `block`: what `SecDefaultAction` says.
    Block,
    /// `deny`.
    Deny,
    /// `drop`: the connection is closed without a response.
    Drop,
    /// `pass`.
    Pass,
    /// `redirect`, to this URL.
    Redirect(Text),
    /// `status`, 100 to 599: for `deny` and `redirect`.
    Status(u16),

    /// `capture`.
    Capture,
    /// `multiMatch`.
    MultiMatch,
    /// `t`.
    Transform(Transform),
    /// `log`.
    Log,
    /// `nolog`.
    NoLog,
    /// `auditlog`.
    AuditLog,
    /// `noauditlog`.
    NoAuditLog,
    /// `sanitiseArg` and its kin.
    Sanitise(Sanitise),

    /// `setvar`.
    SetVar(SetVar),
    /// `expirevar`: the value vanishes this many seconds from now.
    ExpireVar {
        /// A kept collection, or `TX`, where it has no effect.
        collection: Variable,
        /// The value's name.
        name: Text,
        /// Seconds.
        seconds: Text,
    },
    /// `deprecatevar`: the value falls by `amount` every `period_s` seconds, never below 0.
    DeprecateVar {
        /// A kept collection.
        collection: Variable,
        /// The value's name.
        name: Text,
        /// By how much.
        amount: u64,
        /// In how many seconds; never 0.
        period_s: u64,
    },
    /// `initcol`: opens a kept collection under a key.
    InitCol {
        /// A kept collection.
        collection: Variable,
        /// Its key.
        key: Text,
    },
    /// `setsid`: opens `SESSION` under this key.
    SetSid(Text),
    /// `setuid`: opens `USER` under this key.
    SetUid(Text),
    /// `setrsc`: opens `RESOURCE` under this key.
    SetRsc(Text),
    /// `setenv`: sets a value of `ENV`.
    SetEnv {
        /// The value's name.
        name: Text,
        /// The value; none removes it.
        value: Option<Text>,
    },
    /// `ctl`.
    Control(Control),

    /// `skip`: this many rules of the same phase.
    Skip(u32),
    /// `skipAfter`: to the marker or rule of this name.
    SkipAfter(Box<[u8]>),
}

/// What `t:` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transform {
    /// `t:none`: those before it, inherited ones too, are dropped.
    Reset,
    /// A transformation.
    Apply(Transformation),
}

/// How severe a match is; 0 is the severest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Severity {
    /// 0.
    Emergency,
    /// 1.
    Alert,
    /// 2.
    Critical,
    /// 3.
    Error,
    /// 4.
    Warning,
    /// 5.
    Notice,
    /// 6.
    Info,
    /// 7.
    Debug,
}

impl Severity {
    /// All severities by number.
    pub const ALL: [Self; 8] = [
        Self::Emergency,
        Self::Alert,
        Self::Critical,
        Self::Error,
        Self::Warning,
        Self::Notice,
        Self::Info,
        Self::Debug,
    ];

    /// 0 to 7.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name, in capitals.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emergency => "EMERGENCY",
            Self::Alert => "ALERT",
            Self::Critical => "CRITICAL",
            Self::Error => "ERROR",
            Self::Warning => "WARNING",
            Self::Notice => "NOTICE",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
        }
    }

    /// Reads a name in any case, or a number.
    pub fn named(word: &[u8]) -> Option<Self> {
        match word {
            [digit @ b'0'..=b'7'] => Some(Self::ALL[usize::from(digit - b'0')]),
            _ => Self::ALL.into_iter().find(|it| it.name().as_bytes().eq_ignore_ascii_case(word)),
        }
    }
}

/// How far `allow` reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// `allow`: no rule but those of the logging phase runs any more.
    Transaction,
    /// `allow:phase`: no further rule of this phase.
    Phase,
    /// `allow:request`: no further rule of the request's phases.
    Request,
}

/// What is masked in the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sanitise {
    /// The argument of this name.
    Arg(Box<[u8]>),
    /// The values that matched.
    Matched,
    /// The bytes that matched, but for so many at either end.
    MatchedBytes {
        /// Bytes shown at the beginning.
        head: u32,
        /// Bytes shown at the end.
        tail: u32,
    },
    /// The request's field of this name.
    RequestHeader(Box<[u8]>),
    /// The response's field of this name.
    ResponseHeader(Box<[u8]>),
}

/// `setvar`: a change of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetVar {
    /// `TX` or a kept collection.
    pub collection: Variable,
    /// The value's name.
    pub name: Text,
    /// What happens to it.
    pub change: Change,
}

/// What happens to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `=`; without a value, `1`.
    Set(Text),
    /// `=+`: adds a number.
    Add(Text),
    /// `=-`: subtracts a number.
    Subtract(Text),
    /// `!`: removes the value.
    Unset,
}

/// What an action is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Tells about the rule.
    Metadata,
    /// Decides about the transaction; the last one of a rule counts.
    Disruptive,
    /// Serves a disruptive action.
    Data,
    /// Does something and lets the rules go on.
    NonDisruptive,
    /// Decides which rule is next.
    Flow,
}

impl Group {
    /// The word of the reference.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Disruptive => "disruptive",
            Self::Data => "data",
            Self::NonDisruptive => "non-disruptive",
            Self::Flow => "flow",
        }
    }
}

/// Whether an action takes a value after a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// It takes none.
    None,
    /// It may have one.
    Optional,
    /// It must have one; what is expected.
    Required(&'static str),
}

/// What the table says about an action.
#[derive(Debug)]
pub struct Description {
    /// The name.
    pub name: &'static str,
    /// Other spellings that mean the same.
    pub aliases: &'static [&'static str],
    /// What it is for.
    pub group: Group,
    /// Whether it takes a value.
    pub value: Value,
    /// Whether the engine has it.
    pub support: Support,
    /// A sentence for the reference.
    pub doc: &'static str,
}

macro_rules! actions {
    ($($variant:ident $name:literal $(| $alias:literal)* $group:ident ($($value:tt)*) $doc:literal $($support:ident $reason:literal)?;)*) => {
        /// An action of the language, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum ActionName {
            $(#[doc = concat!("`", $name, "`. ", $doc)] $variant,)*
        }

        impl ActionName {
            /// Every action, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        static TABLE: &[Description] = &[
            $(Description {
                name: $name,
                aliases: &[$($alias,)*],
                group: Group::$group,
                value: actions!(@value $($value)*),
                support: actions!(@support $($support $reason)?),
                doc: $doc,
            },)*
        ];
    };
    (@value) => { Value::None };
    (@value optional) => { Value::Optional };
    (@value $expected:literal) => { Value::Required($expected) };
    (@support) => { Support::Full };
    (@support noted $reason:literal) => { Support::Noted($reason) };
    (@support refused $reason:literal) => { Support::Refused($reason) };
}

actions! {
    Accuracy "accuracy" Metadata ("a number from 1 to 9") "How rarely the rule errs, 1 to 9.";
    Allow "allow" Disruptive (optional) "Lets the transaction through; `allow:phase` and `allow:request` reach less far.";
    Append "append" NonDisruptive ("text") "Adds text to the response's body." noted "bodies are inspected here, never rewritten";
    AuditLog "auditlog" NonDisruptive () "The transaction is written to the audit log.";
    Block "block" Disruptive () "Does what `SecDefaultAction` says for this phase.";
    Capture "capture" NonDisruptive () "Keeps what the pattern's groups matched as `TX:0` to `TX:9`.";
    Chain "chain" Flow () "The next rule must match too.";
    Ctl "ctl" NonDisruptive ("an option and its value, `ctl:option=value`") "Changes a setting for this transaction.";
    Deny "deny" Disruptive () "Answers with `status`, or 403.";
    DeprecateVar "deprecatevar" NonDisruptive ("`collection.name=amount/seconds`") "Lets a kept value fall with time.";
    Drop "drop" Disruptive () "Closes the connection without an answer.";
    Exec "exec" NonDisruptive ("the path of a program") "Runs a program." refused "programs and Lua scripts are never run; use the audit log or `setenv` to pass findings on";
    ExpireVar "expirevar" NonDisruptive ("`collection.name=seconds`") "Lets a kept value vanish after so many seconds.";
    Id "id" Metadata ("a number") "The rule's number, unique in the rule set; every rule must have one.";
    InitCol "initcol" NonDisruptive ("`collection=key`") "Opens a kept collection.";
    Log "log" NonDisruptive () "A match is written to the log.";
    LogData "logdata" NonDisruptive ("text") "What the log says about the match.";
    Maturity "maturity" Metadata ("a number from 1 to 9") "How well tried the rule is, 1 to 9.";
    Msg "msg" Metadata ("text") "What the rule found.";
    MultiMatch "multiMatch" NonDisruptive () "The operator is asked before the first and after each transformation that changed the value.";
    NoAuditLog "noauditlog" NonDisruptive () "The match does not bring the transaction into the audit log.";
    NoLog "nolog" NonDisruptive () "A match is not logged.";
    Pass "pass" Disruptive () "Goes on with the next rule.";
    Pause "pause" Disruptive ("milliseconds") "Waits before the transaction goes on." noted "a wait costs the gate more than the client; limits and challenges slow clients down";
    Phase "phase" Metadata ("1 to 5, `request`, `response` or `logging`") "When the rule runs; 2 if not given.";
    Prepend "prepend" NonDisruptive ("text") "Adds text in front of the response's body." noted "bodies are inspected here, never rewritten";
    Proxy "proxy" Disruptive ("a URL") "Sends the request elsewhere." refused "routes decide where requests go; use `redirect` or a route";
    Redirect "redirect" Disruptive ("a URL") "Answers with a redirection to this URL; `status` may choose 301, 303, 307 or 308 instead of 302.";
    Rev "rev" Metadata ("a revision") "The rule's revision.";
    SanitiseArg "sanitiseArg" | "sanitizeArg" NonDisruptive ("an argument's name") "Masks this argument in the audit log.";
    SanitiseMatched "sanitiseMatched" | "sanitizeMatched" NonDisruptive () "Masks the values that matched in the audit log.";
    SanitiseMatchedBytes "sanitiseMatchedBytes" | "sanitizeMatchedBytes" NonDisruptive (optional) "Masks the bytes that matched in the audit log; `1/4` shows one at the beginning and four at the end.";
    SanitiseRequestHeader "sanitiseRequestHeader" | "sanitizeRequestHeader" NonDisruptive ("a field's name") "Masks this field of the request in the audit log.";
    SanitiseResponseHeader "sanitiseResponseHeader" | "sanitizeResponseHeader" NonDisruptive ("a field's name") "Masks this field of the response in the audit log.";
    SetEnv "setenv" NonDisruptive ("`name=value`") "Sets a value of `ENV`; `!name` removes it.";
    SetRsc "setrsc" NonDisruptive ("a key") "Opens `RESOURCE` under this key.";
    SetSid "setsid" NonDisruptive ("a key") "Opens `SESSION` under this key.";
    SetUid "setuid" NonDisruptive ("a key") "Opens `USER` under this key.";
    SetVar "setvar" NonDisruptive ("`collection.name=value`") "Sets, with `=+` and `=-` adds to, and with `!` removes a value of `TX` or of a kept collection.";
    Severity "severity" Metadata ("a severity, 0 to 7 or `EMERGENCY` to `DEBUG`") "How severe a match is.";
    Skip "skip" Flow ("a number of rules") "Skips so many rules of this phase.";
    SkipAfter "skipAfter" Flow ("a marker's name or a rule's number") "Goes on behind the marker or the rule.";
    Status "status" Data ("a status code from 100 to 599") "The status code of `deny` and `redirect`.";
    Tag "tag" Metadata ("text") "A word by which rules are grouped.";
    Transform "t" NonDisruptive ("a transformation") "Applies a transformation to each value; `t:none` drops those before it.";
    Ver "ver" Metadata ("a version") "The rule set's version.";
    Xmlns "xmlns" Data ("`prefix=URI`") "Names a namespace for an XPath." noted "XPaths are compared with names as they stand in the document";
}

impl ActionName {
    /// The action of this name or alias, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        let is = |other: &str| other.as_bytes().eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(|action| {
            let Description { name, aliases, .. } = action.description();
            is(name) || aliases.iter().any(|alias| is(alias))
        })
    }

    /// What the table says.
    pub fn description(self) -> &'static Description {
        &TABLE[self as usize]
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.description().name
    }
}
