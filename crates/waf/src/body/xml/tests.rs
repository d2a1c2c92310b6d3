//! Bodies and what becomes of them.

use super::super::testing::{self, Read};
use super::super::{End, Fault as BodyFault, Kind, Limits, Options, XmlText};
use super::{Fault, Reason};

fn read(body: &[u8], options: &Options) -> Read {
    testing::read(Kind::Xml, "application/xml", options, body)
}

fn with(xml_text: XmlText) -> Options {
    Options { xml_text, ..Options::default() }
}

#[track_caller]
fn check_bytes(body: &[u8], xml_text: XmlText, expected: &[&str]) {
    let read = read(body, &with(xml_text));
    assert_eq!(read.fault, None, "{}", body.escape_ascii());
    assert_eq!(read.told, expected, "{}", body.escape_ascii());
}

#[track_caller]
fn check(body: &str, expected: &[&str]) {
    check_bytes(body.as_bytes(), XmlText::Whole, expected);
}

#[track_caller]
fn check_fault(body: &[u8], reason: Reason, at: u64) {
    let read = read(body, &Options::default());
    let expected = Some(BodyFault::Xml(Fault { reason, at }));
    assert_eq!(read.fault, expected, "{}", body.escape_ascii());
}

#[test]
fn text_is_one_value() {
    check("", &[]);
    check("<a/>", &[]);
    check("<a></a>", &[]);
    check("<a>b</a>", &["text b"]);
    check("<a>b<c>d</c> e </a>", &["text bd e "]);
    check("<a>\n <b>1</b>\r\n</a>\n", &["text \\n 1\\r\\n"]);
    check("<a>1<!-- 2 -->3<?pi 4?>5<![CDATA[<6>&amp;]]>7</a>", &["text 135<6>&amp;7"]);
    check("<a>&lt;b&gt; &amp;&quot;&apos;&#65;&#x42;</a>", &["text <b> &\\\"\\'AB"]);
    check("<a>]]b]<![CDATA[]]]><![CDATA[]]]]><![CDATA[]a]b]]]]></a>", &["text ]]b]]]]]a]b]]"]);
    check(
        "<a>\u{e9}\u{20ac}\u{1f600}</a>",
        &["text \\xc3\\xa9\\xe2\\x82\\xac\\xf0\\x9f\\x98\\x80"],
    );
}

#[test]
fn attributes() {
    check("<a b=\"1\" c = '2'/>", &["attribute 1", "attribute 2"]);
    check("<a\nb='\"'\tc=\"'\"\r></a  >", &["attribute \\\"", "attribute \\'"]);
    check("<a b='1\n2\t3&#10;4&lt;&amp;lt;>'/>", &["attribute 1 2 3\\n4<&lt;>"]);
    check("<a b=''><c d='x'>y</c></a>", &["attribute ", "attribute x", "text y"]);
    check("<a xmlns='u' xmlns:b='v' xmlnsx='w' b:c='x'/>", &["attribute w", "attribute x"]);
    check("<a b='\u{e9}'/>", &["attribute \\xc3\\xa9"]);
}

#[test]
fn around_the_root() {
    check(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE a>\n<!-- x --><?y?><a>1</a><!-- z -->\n<?y??>",
        &["text 1"],
    );
    check("\u{feff}<?xml version='1.0' encoding='utf-8'?><a>1</a>", &["text 1"]);
    check(" <a>1</a>", &["text 1"]);
    check("<?xml-stylesheet href='x'?><a>1</a>", &["text 1"]);
    let plist = "<!DOCTYPE plist PUBLIC \"-//x//DTD\" \"http://x/y[>.dtd\"><plist>1</plist>";
    check(plist, &["text 1"]);
}

#[test]
fn arguments() {
    let body = b"<?xml version='1.0'?>\n<root>\n <level1>\n  <level2>foo</level2>\n  <level2>bar</level2>\n </level1>\n</root>";
    let arguments = ["xml.root.level1.level2=foo", "xml.root.level1.level2=bar"];
    check_bytes(body, XmlText::Arguments, &arguments);
    let text = "text \\n \\n  foo";
    let read = read(body, &with(XmlText::WholeAndArguments));
    assert_eq!(read.told[..2], [text, arguments[0]]);

    check_bytes(
        b"<s:a xmlns:s='u'><s:b c='1'/><d> </d></s:a>",
        XmlText::Arguments,
        &["attribute 1", "xml.a.b=", "xml.a.d= "],
    );
    // Text beside elements.
    check_bytes(
        b"<a>1<b>2</b>3<c/>4</a>",
        XmlText::Arguments,
        &["xml.a=1", "xml.a.b=2", "xml.a=3", "xml.a.c=", "xml.a=4"],
    );
    check_bytes(b"<a>&lt;<![CDATA[x]]>y</a>", XmlText::Arguments, &["xml.a=<xy"]);
}

#[test]
fn encodings() {
    let latin1 = b"<?xml version='1.0' encoding='ISO-8859-1'?><a b='\xe9'>x\xe9\xff\x80</a>";
    check_bytes(
        latin1,
        XmlText::Whole,
        &["attribute \\xc3\\xa9", "text x\\xc3\\xa9\\xc3\\xbf\\xc2\\x80"],
    );
    check_fault(b"<?xml version='1.0' encoding='UTF-16'?><a/>", Reason::Encoding, 38);
    check_fault(b"\xff\xfe<\0a\0", Reason::Encoding, 0);
    check_fault(b"\xfe\xff\0<\0a", Reason::Encoding, 0);
    check_fault(b"\0<\0a", Reason::Encoding, 0);
    check_fault(b"\xef\xbb<a/>", Reason::Encoding, 2);
    check_fault(b"<\0a\0", Reason::Character, 1);

    for bad in [&b"\xff"[..], b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\x80", b"\xe2\x82"] {
        check_fault(&[b"<a>\xc3\xa9", bad, b"x</a>"].concat(), Reason::Utf8, 5);
        check_fault(&[b"<a>", bad, b"</a>"].concat(), Reason::Utf8, 3);
        check_fault(&[b"<a>", bad, b"&amp;</a>"].concat(), Reason::Utf8, 3);
        check_fault(&[b"<a><![CDATA[", bad, b"]]></a>"].concat(), Reason::Utf8, 12);
        let end = 6 + bad.len() as u64;
        check_fault(&[b"<a b='", bad, b"'/>"].concat(), Reason::Utf8, end);
        check_fault(&[b"<a b='", bad, b"&lt;'/>"].concat(), Reason::Utf8, end);
    }
}

#[test]
fn what_is_not_well_formed() {
    for (body, reason, at) in [
        ("x", Reason::OutsideRoot, 0),
        ("<a/>x", Reason::OutsideRoot, 4),
        ("<a/>&#32;", Reason::OutsideRoot, 4),
        ("<a/><b/>", Reason::OutsideRoot, 6),
        ("<![CDATA[x]]><a/>", Reason::OutsideRoot, 8),
        ("<a/><![CDATA[x]]>", Reason::OutsideRoot, 12),
        ("</a>", Reason::EndTag, 3),
        ("<a></b>", Reason::EndTag, 6),
        ("<a><b></a></b>", Reason::EndTag, 9),
        ("<a></A>", Reason::EndTag, 6),
        ("<a:b></b>", Reason::EndTag, 8),
        ("< a/>", Reason::Character, 1),
        ("<1/>", Reason::Character, 2),
        ("<>", Reason::Character, 1),
        ("<a></>", Reason::Character, 5),
        ("<a></ a>", Reason::Character, 5),
        ("<a/ >", Reason::Character, 3),
        ("<a b>", Reason::Character, 4),
        ("<a b=c>", Reason::Character, 5),
        ("<a b='c'd='e'>", Reason::Character, 8),
        ("<a b='<'>", Reason::Character, 6),
        ("<a =''>", Reason::Character, 3),
        ("<a></a b='c'>", Reason::Character, 7),
        ("<a b='1' c='2' b='3'>", Reason::AttributeRepeated, 20),
        ("<a b='1' b='3'/>", Reason::AttributeRepeated, 15),
        ("<a><!-- -- --></a>", Reason::Character, 10),
        ("<a><!-x--></a>", Reason::Character, 6),
        ("<a><!ELEMENT></a>", Reason::Character, 5),
        ("<a>\u{1}</a>", Reason::Control, 3),
        ("<a>x\u{0}</a>", Reason::Control, 4),
        ("<a b='\u{8}'/>", Reason::Control, 7),
        (" <?xml version='1.0'?><a/>", Reason::Declaration, 21),
        ("<a><?XML?></a>", Reason::Declaration, 9),
        ("<?Xml version='1.0'?><a/>", Reason::Declaration, 20),
    ] {
        check_fault(body.as_bytes(), reason, at);
    }
    let long = format!("<?xml version='1.0'{}?><a/>", " ".repeat(300));
    check_fault(long.as_bytes(), Reason::Declaration, 320);
}

#[test]
fn nothing_is_expanded() {
    for (body, reason, at) in [
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", Reason::DocumentType, 12),
        ("<!DOCTYPE a SYSTEM 'x' [ ]><a/>", Reason::DocumentType, 23),
        ("<!DOCTYPE a <!ENTITY>><a/>", Reason::DocumentType, 12),
        ("<!DOCTYPE a><!DOCTYPE a><a/>", Reason::DocumentType, 20),
        ("<a/><!DOCTYPE a>", Reason::DocumentType, 12),
        ("<a><!DOCTYPE a></a>", Reason::DocumentType, 11),
        ("<a>&b;</a>", Reason::Reference, 5),
        ("<a>&nbsp;</a>", Reason::Reference, 8),
        ("<a>&#0;</a>", Reason::Reference, 6),
        ("<a>&#xd800;</a>", Reason::Reference, 10),
        ("<a>&lt</a>;", Reason::Reference, 10),
        ("<a>& b</a>0123456789012", Reason::Reference, 20),
        ("<a b='&c;'/>", Reason::Reference, 8),
    ] {
        check_fault(body.as_bytes(), reason, at);
    }
}

#[test]
fn bodies_that_end_early() {
    for body in [
        " ",
        "<",
        "<a",
        "<a ",
        "<a b",
        "<a b=",
        "<a b='",
        "<a b='c'",
        "<a/",
        "<a>",
        "<a>b",
        "<a>&",
        "<a>&lt",
        "<a></",
        "<a></a",
        "<a></a ",
        "<a/><",
        "<a/><!-",
        "<a/><!--x-",
        "<a><![CDATA[x]]",
        "<?xml",
        "<?xml version='1.0'?>",
        "<!DOCTYPE a",
        "\u{feff}",
    ] {
        check_fault(body.as_bytes(), Reason::Unfinished, body.len() as u64);
    }
}

#[test]
fn truncated_bodies_give_what_came() {
    for (body, expected) in [
        ("<a>b", &["text b", "xml.a=b"][..]),
        ("<a>b<c>d</c>e", &["text b", "xml.a=b", "text d", "xml.a.c=d", "text e", "xml.a=e"]),
        ("<a b='c", &["attribute c"]),
        ("<a b='c&l", &["attribute c"]),
        ("<a xmlns='c", &[]),
        ("<a>b</", &["text b", "xml.a=b"]),
        ("", &[]),
    ] {
        let options = with(XmlText::WholeAndArguments);
        let read = testing::read_to(End::Truncated, Kind::Xml, "", &options, body.as_bytes());
        assert_eq!(read.fault, None, "{body}");
        assert_eq!(read.told, expected, "{body}");
    }
}

#[test]
fn limits() {
    #[track_caller]
    fn check(limits: Limits, fits: &str, over: &str, reason: Reason) {
        let options = Options { xml_text: XmlText::Arguments, limits, ..Options::default() };
        assert_eq!(read(fits.as_bytes(), &options).fault, None, "{fits}");
        let fault = read(over.as_bytes(), &options).fault;
        assert!(
            matches!(fault, Some(BodyFault::Xml(fault)) if fault.reason == reason),
            "{over}: {fault:?}"
        );
    }
    let limits = Limits::default;
    check(
        Limits { xml_depth_max: 2, ..limits() },
        "<a><b/><c/></a>",
        "<a><b><c/></b></a>",
        Reason::Depth,
    );
    check(
        Limits { xml_elements_max: 2, ..limits() },
        "<a><b/></a>",
        "<a><b/><c/></a>",
        Reason::Elements,
    );
    check(
        Limits { xml_attributes_max: 1, ..limits() },
        "<a b=''><c d=''/></a>",
        "<a b='' c=''/>",
        Reason::Attributes,
    );
    check(
        Limits { name_bytes_max: 7, ..limits() },
        "<a><b/></a>",
        "<a><bc/></a>",
        Reason::NameLength,
    );

    let limits = Limits { arguments_max: 1, ..limits() };
    let options = Options { xml_text: XmlText::Arguments, limits, ..Options::default() };
    assert_eq!(read(b"<a><b/></a>", &options).fault, None);
    assert_eq!(read(b"<a><b/><b/></a>", &options).fault, Some(BodyFault::Arguments));
}

#[test]
fn faults_say_where() {
    let fault = read(b"<a></b>", &Options::default()).fault.map(|fault| fault.to_string());
    let expected = "XML parsing error: XML: Failed parsing document: \
                    end tag without its start tag, at byte 6";
    assert_eq!(fault.as_deref(), Some(expected));
}
