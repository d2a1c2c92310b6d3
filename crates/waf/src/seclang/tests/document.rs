//! What rule sets are read as.

use std::fmt::Write;

use super::read;
use crate::seclang::action::{Action, Allowance, Change, Sanitise, SetVar, Severity, Transform};
use crate::seclang::control::{BodyProcessor, Control};
use crate::seclang::setting::{
    AuditFormat, AuditMode, AuditParts, AuditPartsChange, CookieFormat, EngineMode, LimitAction,
    Setting, Switch, XmlArgs,
};
use crate::seclang::{
    Directive, Document, Entry, Located, Memory, Rule, Selector, Target, TargetKind, Test, Text,
    parse,
};
use crate::transformation::Transformation;
use crate::variable::{Phase, Variable};

fn document(text: &[u8]) -> Document {
    match read(text) {
        Ok((document, notes)) => {
            assert_eq!(notes, [""; 0], "{}", text.escape_ascii());
            document
        }
        Err(mistakes) => panic!("{}: {mistakes:#?}", text.escape_ascii()),
    }
}

fn directives(text: &[u8]) -> Vec<Directive> {
    document(text).directives.into_iter().map(|directive| directive.value).collect()
}

fn rule(text: &[u8]) -> Rule {
    match directives(text).pop() {
        Some(Directive::Rule(rule)) => rule,
        other => panic!("{}: {other:?}", text.escape_ascii()),
    }
}

fn values<T>(located: Vec<Located<T>>) -> Vec<T> {
    located.into_iter().map(|it| it.value).collect()
}

fn text(bytes: &str) -> Text {
    Text::plain(bytes.as_bytes())
}

fn bytes(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

/// `%{variable.selector}`.
fn expansion(variable: Variable, selector: &str) -> Text {
    let mut text = Text::default();
    text.push_macro(variable, Some(selector.as_bytes()));
    text
}

#[test]
fn a_rule_has_its_parts_and_their_places() {
    let rule =
        rule(b"\n  SecRule ARGS|!ARGS:a \\\n    \"!@within a b\" \\\n    \"id:5,phase:1,deny\"");
    assert_eq!((rule.id, rule.phase), (5, Phase::RequestHeaders));
    assert_eq!(rule.location.to_string(), "/etc/waf/main.conf:2:3");
    assert_eq!(rule.location.directory(), "/etc/waf");
    let [link] = &rule.links[..] else { panic!("{rule:?}") };
    let Test::Match { targets, operator } = &link.test else { panic!("{rule:?}") };
    let places = [&targets[0].location, &targets[1].location, &operator.location];
    assert_eq!(places.map(|it| (it.line, it.column)), [(2, 11), (2, 16), (3, 15)]);
    assert_eq!((targets[0].kind, targets[1].kind), (TargetKind::Value, TargetKind::Exclude));
    assert_eq!(operator.argument, text("a b"));
    assert_eq!((link.actions[0].location.line, link.actions[0].location.column), (4, 19));
}

#[test]
fn a_quote_that_begins_a_line_begins_a_word() {
    let same = rule(b"SecRule ARGS \\\n  \"@rx a|b\" \\\n  \"id:1,pass\"");
    let found = rule(b"SecRule ARGS\\\n  \"@rx a|\\\n  b\"\\\n  \"id:1,\\\n  pass\"");
    let words =
        |rule: &Rule| format!("{:?}", rule.links).replace(|it: char| it.is_ascii_digit(), "");
    assert_eq!(words(&found), words(&same));
}

#[test]
fn rules_without_a_phase_run_in_the_second() {
    assert_eq!(rule(b"SecAction id:1").phase, Phase::RequestBody);
    for (name, phase) in [
        ("1", Phase::RequestHeaders),
        ("2", Phase::RequestBody),
        ("3", Phase::ResponseHeaders),
        ("'4'", Phase::ResponseBody),
        ("5", Phase::Logging),
        ("REQUEST", Phase::RequestBody),
        ("response", Phase::ResponseBody),
        ("logging", Phase::Logging),
    ] {
        assert_eq!(rule(format!("SecAction id:1,phase:{name}").as_bytes()).phase, phase, "{name}");
    }
}

#[test]
fn chains_are_one_rule() {
    let found = directives(
        b"SecRule ARGS a \"id:1,phase:3,deny,chain\"\n# between\n\nSecRule ARGS b \"chain,t:none\"\n\
          SecAction setvar:tx.a=1\nSecRule ARGS c id:2",
    );
    let [Directive::Rule(first), Directive::Rule(second)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((first.links.len(), first.phase), (3, Phase::ResponseHeaders));
    assert!(matches!(first.links[2].test, Test::Always));
    assert_eq!(first.links[2].location.line, 5);
    assert_eq!((second.id, second.links.len()), (2, 1));
}

#[test]
fn includes_take_the_place_of_their_line() {
    let found =
        document(b"SecMarker START\nInclude rules/*.conf\nIncludeOptional no.conf\nSecMarker END");
    let mut markers = String::new();
    for directive in &found.directives {
        let Directive::Marker(name) = &directive.value else { panic!("{directive:?}") };
        let name = String::from_utf8_lossy(name);
        writeln!(markers, "{name} {}:{}", directive.location.file, directive.location.line)
            .unwrap();
    }
    assert_eq!(
        markers,
        "START /etc/waf/main.conf:1\n\
         A /etc/waf/rules/a.conf:1\n\
         ONE-BELOW /etc/waf/rules/one.conf:1\n\
         B /etc/waf/rules/b.conf:1\n\
         C /etc/waf/rules/b.d/c.conf:1\n\
         ONE-BELOW /etc/waf/rules/one.conf:1\n\
         END /etc/waf/main.conf:4\n"
    );
    assert_eq!(found.files.len(), 6);
    assert_eq!(directives(b"Include /etc/waf/one.conf"), [Directive::Marker(bytes("ONE"))]);
    let files: Memory = [("/[a]/b.conf", "SecMarker B"), ("/a/b.conf", "")].into_iter().collect();
    let entry = Entry::Text { path: "/[a]/main.conf", text: b"Include b.con?" };
    let (found, _) = parse(&files, entry).unwrap();
    assert_eq!(found.directives[0].value, Directive::Marker(bytes("B")));
}

#[test]
fn bytes_that_are_no_text_arrive_as_written() {
    let rule =
        rule(b"\xef\xbb\xbfSecRule ARGS:\xe4 \"@rx \xe4\\xE4\\\\\\\"\\s\" \"id:1,msg:'\xfc'\"\r\n");
    let Test::Match { targets, operator } = &rule.links[0].test else { panic!("{rule:?}") };
    assert_eq!(targets[0].selector, Selector::Name([0xe4].into()));
    assert_eq!(operator.argument, Text::plain(b"\xe4\\xE4\\\\\"\\s"));
    assert_eq!(rule.links[0].actions[0].value, Action::Msg(Text::plain(b"\xfc")));
}

fn check_actions(source: &str, expected: &[Action]) {
    let link = rule(format!("SecAction \"id:1,phase:1,{source}\"").as_bytes()).links.remove(0);
    assert_eq!(values(link.actions), expected, "{source}");
}

#[test]
fn actions_are_read() {
    let check = check_actions;
    check("msg:'a, b'", &[Action::Msg(text("a, b"))]);
    check("logdata:%{TX.0}", &[Action::LogData(expansion(Variable::Tx, "0"))]);
    check(
        "tag:attack-sqli,tag:'a/b'",
        &[Action::Tag(text("attack-sqli")), Action::Tag(text("a/b"))],
    );
    check(
        "severity:CRITICAL,severity:'5'",
        &[Action::Severity(Severity::Critical), Action::Severity(Severity::Notice)],
    );
    check(
        "rev:'2',ver:'OWASP_CRS/4'",
        &[Action::Rev(bytes("2")), Action::Ver(bytes("OWASP_CRS/4"))],
    );
    check("maturity:9,accuracy:'1'", &[Action::Maturity(9), Action::Accuracy(1)]);
    check("block", &[Action::Block]);
    check("DENY,Status:403", &[Action::Deny, Action::Status(403)]);
    check("drop", &[Action::Drop]);
    check("pass", &[Action::Pass]);
    check("allow", &[Action::Allow(Allowance::Transaction)]);
    check("allow:PHASE", &[Action::Allow(Allowance::Phase)]);
    check("allow:request", &[Action::Allow(Allowance::Request)]);
    check("redirect:'http://a/?b,c'", &[Action::Redirect(text("http://a/?b,c"))]);
    check("capture,multimatch", &[Action::Capture, Action::MultiMatch]);
    check(
        "t:none,t:LOWERCASE,t:normalisePath",
        &[
            Action::Transform(Transform::Reset),
            Action::Transform(Transform::Apply(Transformation::Lowercase)),
            Action::Transform(Transform::Apply(Transformation::NormalizePath)),
        ],
    );
    check(
        "log,nolog,auditlog,noauditlog",
        &[Action::Log, Action::NoLog, Action::AuditLog, Action::NoAuditLog],
    );
    check("sanitiseArg:password", &[Action::Sanitise(Sanitise::Arg(bytes("password")))]);
    check("sanitizeMatched", &[Action::Sanitise(Sanitise::Matched)]);
    check("sanitiseMatchedBytes", &[Action::Sanitise(Sanitise::MatchedBytes { head: 0, tail: 0 })]);
    check(
        "sanitiseMatchedBytes:1/4",
        &[Action::Sanitise(Sanitise::MatchedBytes { head: 1, tail: 4 })],
    );
    check(
        "sanitiseRequestHeader:Authorization",
        &[Action::Sanitise(Sanitise::RequestHeader(bytes("Authorization")))],
    );
    check(
        "sanitizeResponseHeader:'Set-Cookie'",
        &[Action::Sanitise(Sanitise::ResponseHeader(bytes("Set-Cookie")))],
    );
    check("skip:2", &[Action::Skip(2)]);
}

#[test]
fn values_are_set() {
    let check = |source, collection, name: Text, change| {
        check_actions(source, &[Action::SetVar(SetVar { collection, name, change })]);
    };
    check("setvar:tx.a=1", Variable::Tx, text("a"), Change::Set(text("1")));
    check("setvar:'TX.a=b c=d, e'", Variable::Tx, text("a"), Change::Set(text("b c=d, e")));
    check("setvar:tx.a", Variable::Tx, text("a"), Change::Set(text("1")));
    check("setvar:tx.a=", Variable::Tx, text("a"), Change::Set(text("")));
    check("setvar:!tx.a", Variable::Tx, text("a"), Change::Unset);
    check("setvar:ip.a=+5", Variable::Ip, text("a"), Change::Add(text("5")));
    check(
        "setvar:'session.a=-%{tx.b}'",
        Variable::Session,
        text("a"),
        Change::Subtract(expansion(Variable::Tx, "b")),
    );
    let mut name = text("a_");
    name.push_macro(Variable::Tx, Some(b"b=c"));
    check(
        "setvar:'tx.a_%{tx.b=c}=%{MATCHED_VARS.d}'",
        Variable::Tx,
        name,
        Change::Set(expansion(Variable::MatchedVars, "d")),
    );
    let one = |source, action| check_actions(source, &[action]);
    let (collection, name) = (Variable::Ip, text("a"));
    one(
        "expirevar:ip.a=60",
        Action::ExpireVar { collection, name: name.clone(), seconds: text("60") },
    );
    one(
        "deprecatevar:ip.a=60/300",
        Action::DeprecateVar { collection, name, amount: 60, period_s: 300 },
    );
    one(
        "initcol:ip=%{TX.addr}",
        Action::InitCol { collection, key: expansion(Variable::Tx, "addr") },
    );
    one("setsid:a", Action::SetSid(text("a")));
    one("setuid:%{ARGS.b}", Action::SetUid(expansion(Variable::Args, "b")));
    one("setrsc:'c'", Action::SetRsc(text("c")));
    one("setenv:a=b", Action::SetEnv { name: text("a"), value: Some(text("b")) });
    one("setenv:a", Action::SetEnv { name: text("a"), value: Some(text("1")) });
    one("setenv:!a", Action::SetEnv { name: text("a"), value: None });
}

#[test]
fn controls_are_read() {
    let check = |source: &str, expected: &[Control]| {
        let link =
            rule(format!("SecAction \"id:1,phase:1,ctl:{source}\"").as_bytes()).links.remove(0);
        let found = values(link.actions).into_iter().map(|action| match action {
            Action::Control(mut control) => {
                if let Control::RuleRemoveTargetById { target, .. }
                | Control::RuleRemoveTargetByMsg { target, .. }
                | Control::RuleRemoveTargetByTag { target, .. } = &mut control
                {
                    target.location = link.location.clone();
                }
                control
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{source}");
    };
    let location = rule(b"SecAction id:1").location;
    let excluded = |variable, selector| Target {
        location: location.clone(),
        kind: TargetKind::Exclude,
        variable,
        selector,
    };
    let parts = |letters: &str| AuditParts::lettered(letters.as_bytes()).unwrap();
    check("auditEngine=RelevantOnly", &[Control::AuditEngine(AuditMode::RelevantOnly)]);
    check("auditLogParts=+EF", &[Control::AuditLogParts(AuditPartsChange::Add(parts("FE")))]);
    check("auditLogParts=-E", &[Control::AuditLogParts(AuditPartsChange::Remove(parts("E")))]);
    check("auditLogParts=ABZ", &[Control::AuditLogParts(AuditPartsChange::Set(parts("ABZ")))]);
    check("debugLogLevel=9", &[Control::DebugLogLevel(9)]);
    check("forceRequestBodyVariable=on", &[Control::ForceRequestBodyVariable(Switch::On)]);
    check("requestBodyAccess=Off", &[Control::RequestBodyAccess(Switch::Off)]);
    check("requestBodyLimit=100", &[Control::RequestBodyLimit(100)]);
    check("requestBodyProcessor=xml", &[Control::RequestBodyProcessor(BodyProcessor::Xml)]);
    check("responseBodyAccess=On", &[Control::ResponseBodyAccess(Switch::On)]);
    check("responseBodyLimit=5", &[Control::ResponseBodyLimit(5)]);
    check("RULEENGINE=detectiononly", &[Control::RuleEngine(EngineMode::DetectionOnly)]);
    check("ruleRemoveById=1", &[Control::RuleRemoveById(1..=1)]);
    check("ruleRemoveById=1-5", &[Control::RuleRemoveById(1..=5)]);
    check("ruleRemoveByMsg=a b", &[Control::RuleRemoveByMsg(bytes("a b"))]);
    check("ruleRemoveByTag=OWASP_CRS", &[Control::RuleRemoveByTag(bytes("OWASP_CRS"))]);
    let target = excluded(Variable::Args, Selector::Name(bytes("a[0]")));
    check(
        "ruleRemoveTargetById=1-2;ARGS:a[0]",
        &[Control::RuleRemoveTargetById { ids: 1..=2, target }],
    );
    let target = excluded(Variable::Args, Selector::Pattern(bytes("a,b")));
    check(
        "ruleRemoveTargetByTag=t;ARGS:'/a,b/'",
        &[Control::RuleRemoveTargetByTag { tag: bytes("t"), target }],
    );
    let target = excluded(Variable::RequestHeaders, Selector::All);
    check(
        "ruleRemoveTargetByMsg=m;REQUEST_HEADERS",
        &[Control::RuleRemoveTargetByMsg { msg: bytes("m"), target }],
    );
}

#[test]
fn settings_are_read() {
    let check = |source: &str, expected: Setting| {
        assert_eq!(directives(source.as_bytes()), [Directive::Setting(expected)], "{source}");
    };
    check("SecArgumentSeparator ;", Setting::ArgumentSeparator(b';'));
    check("SecArgumentsLimit 1000", Setting::ArgumentsLimit(1000));
    check("SecAuditEngine RelevantOnly", Setting::AuditEngine(AuditMode::RelevantOnly));
    check("SecAuditLogFormat json", Setting::AuditLogFormat(AuditFormat::Json));
    let parts = AuditParts::lettered(b"ABIJDEFHZ").unwrap();
    check("SecAuditLogParts ABIJDEFHZ", Setting::AuditLogParts(parts));
    check("SecAuditLogRelevantStatus \"^5\"", Setting::AuditLogRelevantStatus(bytes("^5")));
    check("SecCollectionTimeout 600", Setting::CollectionTimeout(600));
    check("SecCookieFormat 1", Setting::CookieFormat(CookieFormat::Version1));
    check("SecGeoLookupDb a.mmdb", Setting::GeoLookupDb("a.mmdb".into()));
    check("SecHttpBlKey abcdefghijkl", Setting::HttpBlKey("abcdefghijkl".into()));
    check("SecParseXmlIntoArgs OnlyArgs", Setting::ParseXmlIntoArgs(XmlArgs::OnlyArgs));
    check("SecPcreMatchLimit 1500", Setting::PcreMatchLimit(1500));
    check("SecRequestBodyAccess on", Setting::RequestBodyAccess(Switch::On));
    check("SecRequestBodyJsonDepthLimit 2", Setting::RequestBodyJsonDepthLimit(2));
    check("SecRequestBodyLimit 3", Setting::RequestBodyLimit(3));
    check("SecRequestBodyLimitAction Reject", Setting::RequestBodyLimitAction(LimitAction::Reject));
    check("SecRequestBodyNoFilesLimit 4", Setting::RequestBodyNoFilesLimit(4));
    check("SecResponseBodyAccess Off", Setting::ResponseBodyAccess(Switch::Off));
    check("SecResponseBodyLimit 5", Setting::ResponseBodyLimit(5));
    let partial = LimitAction::ProcessPartial;
    check("SecResponseBodyLimitAction ProcessPartial", Setting::ResponseBodyLimitAction(partial));
    let types = ["text/html", "text/plain", "(null)"].map(Into::into).into();
    check(
        "SecResponseBodyMimeType Text/HTML \"text/plain (null)\"",
        Setting::ResponseBodyMimeTypes(types),
    );
    check("SecResponseBodyMimeTypesClear", Setting::ResponseBodyMimeTypesClear);
    check("SecRuleEngine DetectionOnly", Setting::RuleEngine(EngineMode::DetectionOnly));
    check("SecSensorId one", Setting::SensorId("one".into()));
    check("SecTmpDir /tmp", Setting::TmpDir("/tmp".into()));
    check("SecUnicodeMapFile unicode.mapping 20127", Setting::UnicodeMapFile(20127));
    check("SecUploadFileLimit 6", Setting::UploadFileLimit(6));
    check("SecWebAppId shop", Setting::WebAppId("shop".into()));
    for off in [
        "SecUploadKeepFiles Off",
        "SecConnEngine off",
        "SecHashEngine Off",
        "SecXmlExternalEntity \"Off\"",
    ] {
        assert_eq!(directives(off.as_bytes()), [], "{off}");
    }
}

#[test]
fn changes_of_rules_are_read() {
    let check = |source: &str, expected: Directive| {
        let rules = "SecRule ARGS x id:1\nSecAction id:9\n";
        let mut found = directives(format!("{rules}{source}").as_bytes()).split_off(2);
        for directive in &mut found {
            if let Directive::UpdateTargetById { targets, .. }
            | Directive::UpdateTargetByTag { targets, .. }
            | Directive::UpdateTargetByMsg { targets, .. } = directive
            {
                let all = targets.targets.iter_mut().chain(&mut targets.replaced);
                all.for_each(|target| target.location.column = 0);
            }
        }
        assert_eq!(found, [expected], "{source}");
    };
    check("SecRuleRemoveById 1 \"2-9 9\"", Directive::RemoveById(vec![1..=1, 2..=9, 9..=9]));
    check("SecRuleRemoveByTag a|b", Directive::RemoveByTag(bytes("a|b")));
    check("SecRuleRemoveByMsg \"a b\"", Directive::RemoveByMsg(bytes("a b")));
    check("SecComponentSignature \"OWASP CRS\"", Directive::ComponentSignature(bytes("OWASP CRS")));
    let mut location = rule(b"\n\nSecAction id:1").location;
    location.column = 0;
    let target = |kind, variable, name| {
        let selector = Selector::Name(bytes(name));
        Target { location: location.clone(), kind, variable, selector }
    };
    let (a, b) = (
        target(TargetKind::Exclude, Variable::Args, "a"),
        target(TargetKind::Exclude, Variable::Args, "b"),
    );
    let update = |targets, replaced| crate::seclang::TargetUpdate { targets, replaced };
    check(
        "SecRuleUpdateTargetById 1 9 \"!ARGS:a,!ARGS:b\"",
        Directive::UpdateTargetById {
            ids: vec![1..=1, 9..=9],
            targets: update(vec![a.clone(), b], None),
        },
    );
    let (new, old) = (
        target(TargetKind::Value, Variable::Tx, "new"),
        target(TargetKind::Value, Variable::Tx, "old"),
    );
    check(
        "SecRuleUpdateTargetByTag t TX:new TX:old",
        Directive::UpdateTargetByTag { tag: bytes("t"), targets: update(vec![new], Some(old)) },
    );
    check(
        "SecRuleUpdateTargetByMsg \"m n\" !ARGS:a",
        Directive::UpdateTargetByMsg { msg: bytes("m n"), targets: update(vec![a], None) },
    );
    let found = directives(b"SecAction id:1\nSecRuleUpdateActionById 1 \"pass,nolog\"").pop();
    let Some(Directive::UpdateActionById { id: 1, link: 0, actions }) = found else {
        panic!("{found:?}")
    };
    assert_eq!(values(actions), [Action::Pass, Action::NoLog]);
    let found = directives(b"SecDefaultAction \"phase:4,deny,status:404\"").pop();
    let Some(Directive::DefaultAction { phase: Phase::ResponseBody, actions }) = found else {
        panic!("{found:?}")
    };
    assert_eq!(values(actions), [Action::Deny, Action::Status(404)]);
}

#[test]
fn there_is_an_end_to_everything() {
    let check = |text: String, count: usize, last: &str| {
        let mistakes = read(text.as_bytes()).unwrap_err();
        let found = (mistakes.len(), mistakes.last().map(String::as_str));
        assert_eq!(found, (count, Some(last)));
    };
    check(
        "X\n".repeat(1_000),
        1_000,
        "1000:1: [unknown] there is no directive `X`; rule files hold SecLang's directives only, none of the web server's",
    );
    check(
        "SecX\n".repeat(5_000),
        1_001,
        "1001:1: [limit] there are more than 1000 mistakes; mend these, and the others will be listed",
    );
    let chain = |links: usize| {
        let link = "SecRule ARGS x chain\n".repeat(links - 2);
        format!("SecRule ARGS x id:1,chain\n{link}SecRule ARGS x t:none")
    };
    assert_eq!(rule(chain(256).as_bytes()).links.len(), 256);
    check(chain(257), 1, "256:16: [limit] a chain has at most 256 rules");
    let targets = vec!["ARGS:/a"; 4_097].join("|");
    check(
        format!("SecRule {targets} x id:1"),
        1,
        "1:32777: [limit] a list has at most 4096 targets",
    );
    let long = "a".repeat(1 << 20);
    check(format!("SecMarker {long}"), 1, "1:1: [limit] a directive has at most 1048576 bytes");
    let comment = format!("#{long}\n").repeat(64);
    check(comment, 1, "1:1: [limit] a rule set has at most 67108864 bytes");
    let many = "SecMarker A\n".repeat(200_001);
    check(many, 1, "200001:1: [limit] a rule set has at most 200000 directives");
}
