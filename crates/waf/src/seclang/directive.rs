//! The table of directives.

use super::support::Support;

/// What the table says about a directive.
#[derive(Debug)]
pub struct Description {
    /// The name.
    pub name: &'static str,
    /// What follows the name, as the reference writes it.
    pub syntax: &'static str,
    /// Whether the engine has it.
    pub support: Support,
    /// A sentence for the reference.
    pub doc: &'static str,
}

macro_rules! directives {
    ($($variant:ident $name:literal $syntax:literal $doc:literal $($support:ident $reason:literal)?;)*) => {
        /// A directive of the language, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DirectiveName {
            $(#[doc = concat!("`", $name, "`. ", $doc)] $variant,)*
        }

        impl DirectiveName {
            /// Every directive, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        static TABLE: &[Description] = &[
            $(Description {
                name: $name,
                syntax: $syntax,
                support: directives!(@support $($support $reason)?),
                doc: $doc,
            },)*
        ];
    };
    (@support) => { Support::Full };
    (@support off $reason:literal) => { Support::OffOnly($reason) };
    (@support noted $reason:literal) => { Support::Noted($reason) };
    (@support refused $reason:literal) => { Support::Refused($reason) };
}

directives! {
    Include "Include" "PATH|PATTERN" "Reads other files in place of this line. A relative path begins at the directory of this file; a pattern's files are read in the order of their names.";
    IncludeOptional "IncludeOptional" "PATH|PATTERN" "As `Include`, and it is no mistake if there is no such file.";
    Action "SecAction" "\"ACTIONS\"" "A rule that always matches.";
    ArgumentSeparator "SecArgumentSeparator" "CHARACTER" "The character between arguments, `&` if not given.";
    ArgumentsLimit "SecArgumentsLimit" "NUMBER" "How many arguments are read.";
    AuditEngine "SecAuditEngine" "On|Off|RelevantOnly" "Which transactions are written to the audit log.";
    AuditLog "SecAuditLog" "PATH" "The audit log's file." noted "a `[[log]]` with `format = \"audit\"` says where it goes";
    AuditLog2 "SecAuditLog2" "PATH" "A second audit log." refused "one audit log is written; copy it with the log shipper";
    AuditLogDirMode "SecAuditLogDirMode" "OCTAL|default" "Permissions of the audit log's new directories." noted "a `[[log]]` with `format = \"audit\"` says where it goes";
    AuditLogFileMode "SecAuditLogFileMode" "OCTAL|default" "Permissions of the audit log's new files." noted "logs are made with mode 0640";
    AuditLogFormat "SecAuditLogFormat" "JSON|Native" "How a transaction is written to the audit log.";
    AuditLogParts "SecAuditLogParts" "LETTERS" "Which parts the audit log shows, A to K and Z.";
    AuditLogRelevantStatus "SecAuditLogRelevantStatus" "PATTERN" "The status codes with which `RelevantOnly` writes a transaction.";
    AuditLogStorageDir "SecAuditLogStorageDir" "PATH" "The directory of a concurrent audit log." noted "the audit log is one file";
    AuditLogType "SecAuditLogType" "Serial|Concurrent" "One file for all transactions, or a file for each." noted "the audit log is one file";
    CacheTransformations "SecCacheTransformations" "On|Off" "Whether transformed values are kept." noted "each chain of transformations is computed once per value in any case";
    ChrootDir "SecChrootDir" "PATH" "Confines the web server." refused "the service manager confines the gate";
    CollectionTimeout "SecCollectionTimeout" "SECONDS" "After how many seconds without a change a kept collection is forgotten.";
    ComponentSignature "SecComponentSignature" "\"NAME\"" "Names a part of the rule set in the audit log.";
    ConnEngine "SecConnEngine" "Off" "Limits of connections." off "the listeners' limits guard connections";
    ConnReadStateLimit "SecConnReadStateLimit" "NUMBER" "Limits slow readers." noted "the listeners' limits guard connections";
    ConnWriteStateLimit "SecConnWriteStateLimit" "NUMBER" "Limits slow writers." noted "the listeners' limits guard connections";
    ContentInjection "SecContentInjection" "On|Off" "Whether `append` and `prepend` work." noted "bodies are inspected here, never rewritten";
    CookieFormat "SecCookieFormat" "0|1" "Netscape's cookies, or those of version 1, which no browser sends: they are read alike, and that is noted.";
    CookieV0Separator "SecCookieV0Separator" "CHARACTER" "The character between cookies." refused "cookies are parted by semicolons, as every browser writes them";
    DataDir "SecDataDir" "PATH" "Where kept collections are stored." noted "`[context]` says where, with `path`";
    Dataset "SecDataset" "NAME `WORDS`" "Coraza's lists of words in the rule file." refused "write the words in a file, one a line, and use `@pmFromFile` or `@ipMatchFromFile`";
    DebugLog "SecDebugLog" "PATH" "A log of the engine's steps." noted "the gate's own log tells what happens, and `tidegate waf test` how rules decide";
    DebugLogLevel "SecDebugLogLevel" "0 to 9" "How much that log tells." noted "the gate's own log tells what happens, and `tidegate waf test` how rules decide";
    DefaultAction "SecDefaultAction" "\"ACTIONS\"" "What the rules of a phase that follow do unless they say otherwise; it names the phase and one disruptive action.";
    DisableBackendCompression "SecDisableBackendCompression" "On|Off" "Whether the server behind is asked for plain bodies." noted "compressed bodies are decompressed for inspection";
    GeoLookupDb "SecGeoLookupDb" "PATH" "The database of `@geoLookup`.";
    GsbLookupDb "SecGsbLookupDb" "PATH" "The database of `@gsbLookup`." refused "Google ended the service that it used";
    GuardianLog "SecGuardianLog" "PATH" "Feeds a program with requests." refused "the gate's log and metrics feed other programs";
    HashEngine "SecHashEngine" "Off" "Signs links." off "links are not signed here";
    HashKey "SecHashKey" "..." "The key of signed links." noted "links are not signed here";
    HashMethodPm "SecHashMethodPm" "..." "Which links are signed." noted "links are not signed here";
    HashMethodRx "SecHashMethodRx" "..." "Which links are signed." noted "links are not signed here";
    HashParam "SecHashParam" "..." "The name of a link's signature." noted "links are not signed here";
    HttpBlKey "SecHttpBlKey" "KEY" "The key of `@rbl dnsbl.httpbl.org`.";
    IgnoreRuleCompilationErrors "SecIgnoreRuleCompilationErrors" "Off" "Coraza's leave to drop bad rules." off "a rule set with a mistake is not loaded";
    InterceptOnError "SecInterceptOnError" "On|Off" "What happens if a rule fails." noted "rules cannot fail while they run";
    Marker "SecMarker" "NAME" "A place for `skipAfter`.";
    ParseXmlIntoArgs "SecParseXmlIntoArgs" "On|Off|OnlyArgs" "Whether the text of XML bodies becomes arguments.";
    PcreMatchLimit "SecPcreMatchLimit" "NUMBER" "The steps of a pattern that needs look-around or back-references; all others take linear time.";
    PcreMatchLimitRecursion "SecPcreMatchLimitRecursion" "NUMBER" "The depth of a pattern." noted "patterns do not recurse here";
    RemoteRules "SecRemoteRules" "KEY URL" "Loads rules from the network." refused "rules come from files: fetch them with a tool of your own, and reload";
    RemoteRulesFailAction "SecRemoteRulesFailAction" "Abort|Warn" "What happens if that fails." noted "rules come from files";
    RequestBodyAccess "SecRequestBodyAccess" "On|Off" "Whether request bodies are inspected.";
    RequestBodyInMemoryLimit "SecRequestBodyInMemoryLimit" "BYTES" "How much of a request body is held in memory before it is spooled." noted "`[waf]` says it, with `body_memory_max`";
    RequestBodyJsonDepthLimit "SecRequestBodyJsonDepthLimit" "NUMBER" "How deep JSON may be nested.";
    RequestBodyLimit "SecRequestBodyLimit" "BYTES" "How much of a request body is accepted.";
    RequestBodyLimitAction "SecRequestBodyLimitAction" "Reject|ProcessPartial" "What happens to a longer one.";
    RequestBodyNoFilesLimit "SecRequestBodyNoFilesLimit" "BYTES" "How much is accepted without counting uploaded files.";
    ResponseBodyAccess "SecResponseBodyAccess" "On|Off" "Whether response bodies are inspected.";
    ResponseBodyLimit "SecResponseBodyLimit" "BYTES" "How much of a response body is inspected.";
    ResponseBodyLimitAction "SecResponseBodyLimitAction" "Reject|ProcessPartial" "What happens to a longer one.";
    ResponseBodyMimeType "SecResponseBodyMimeType" "TYPE ..." "Media types whose bodies are inspected, added to those named before.";
    ResponseBodyMimeTypesClear "SecResponseBodyMimeTypesClear" "" "Forgets the media types named before.";
    Rule "SecRule" "TARGETS \"OPERATOR\" \"ACTIONS\"" "A rule.";
    RuleEngine "SecRuleEngine" "On|Off|DetectionOnly" "Whether rules run, and whether they can stop a transaction.";
    RuleInheritance "SecRuleInheritance" "On|Off" "Whether rules of an outer section hold in an inner one." noted "there are no sections; each site or route names its rule set";
    RulePerfTime "SecRulePerfTime" "MICROSECONDS" "Which rules are slow enough for the log." noted "the gate's metrics tell the time per rule";
    RuleRemoveById "SecRuleRemoveById" "ID|RANGE ..." "Removes rules by their numbers.";
    RuleRemoveByMsg "SecRuleRemoveByMsg" "\"PATTERN\"" "Removes rules by their `msg`.";
    RuleRemoveByTag "SecRuleRemoveByTag" "\"PATTERN\"" "Removes rules by a `tag`.";
    RuleScript "SecRuleScript" "PATH \"ACTIONS\"" "A rule written in Lua." refused "scripts are never run; write it as rules, or decide in the application";
    RuleUpdateActionById "SecRuleUpdateActionById" "ID[:LINK] \"ACTIONS\"" "Changes a rule's actions.";
    RuleUpdateTargetById "SecRuleUpdateTargetById" "ID|RANGE \"TARGETS\" [\"REPLACED\"]" "Adds targets and exclusions to rules.";
    RuleUpdateTargetByMsg "SecRuleUpdateTargetByMsg" "\"PATTERN\" \"TARGETS\" [\"REPLACED\"]" "As `SecRuleUpdateTargetById`, by `msg`.";
    RuleUpdateTargetByTag "SecRuleUpdateTargetByTag" "\"PATTERN\" \"TARGETS\" [\"REPLACED\"]" "As `SecRuleUpdateTargetById`, by `tag`.";
    RxPreFilter "SecRxPreFilter" "On|Off" "Coraza's prefilter." noted "patterns are prefiltered in any case";
    SensorId "SecSensorId" "NAME" "Names this gate in the audit log.";
    ServerSignature "SecServerSignature" "\"TEXT\"" "The `Server` field of responses." noted "the gate does not name itself, and `response_headers` sets fields";
    StatusEngine "SecStatusEngine" "On|Off" "Whether the engine reports its version to its makers." noted "nothing is ever reported to anybody";
    StreamInBodyInspection "SecStreamInBodyInspection" "On|Off" "Whether `STREAM_INPUT_BODY` is filled." noted "bodies are inspected as `REQUEST_BODY`";
    StreamOutBodyInspection "SecStreamOutBodyInspection" "On|Off" "Whether `STREAM_OUTPUT_BODY` is filled." noted "bodies are inspected as `RESPONSE_BODY`";
    TmpDir "SecTmpDir" "PATH" "Where bodies are spooled.";
    TmpSaveUploadedFiles "SecTmpSaveUploadedFiles" "On|Off" "Whether uploaded files are spooled." noted "they are spooled where a rule asks for them, and gone with their request";
    UnicodeMapFile "SecUnicodeMapFile" "PATH CODEPAGE" "The best-fit table of `t:urlDecodeUni`. That of code page 20127 is built in and always used; another one is noted.";
    UploadDir "SecUploadDir" "PATH" "Where uploaded files are kept." noted "uploaded files are not kept";
    UploadFileLimit "SecUploadFileLimit" "NUMBER" "How many files of a body are read.";
    UploadFileMode "SecUploadFileMode" "OCTAL|default" "Permissions of kept files." noted "uploaded files are not kept";
    UploadKeepFiles "SecUploadKeepFiles" "Off" "Whether uploaded files are kept." off "uploaded files are gone with their request";
    WebAppId "SecWebAppId" "NAME" "Parts the kept collections of one application from those of others.";
    XmlExternalEntity "SecXmlExternalEntity" "Off" "Whether XML may name other files." off "external entities are never followed";
}

impl DirectiveName {
    /// The directive of this name, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        let is = |it: &Self| it.name().as_bytes().eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(is)
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
