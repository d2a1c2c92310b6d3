use super::*;

fn masked(content_type: &str, body: &str) -> String {
    let own = ["pin".to_owned()];
    let mut body = body.as_bytes().to_vec();
    assert_eq!(Names::with(&own).mask_body(content_type.as_bytes(), &mut body), Masked::Done);
    String::from_utf8(body).expect("text stays text")
}

#[test]
fn values_keep_their_shape() {
    let check = |mask: fn(&mut [u8]), value: &str, expected: &str| {
        let mut masked = value.as_bytes().to_vec();
        mask(&mut masked);
        assert_eq!(String::from_utf8_lossy(&masked), expected, "{value}");
        assert_eq!(masked.len(), value.len());
    };
    check(shape::mask, "Hunter-22!", "Xxxxxx-99!");
    check(shape::mask, "pa\u{df}w\u{20ac}rd\u{1f511}", "xx\u{e9}x\u{4e2d}xx\u{1f600}");
    check(shape::mask, "' or 1=1--", "' xx 9=9--");
    check(shape::mask, "", "");
    check(shape::mask_escaped, "a%2Fb%41%c3%9f+%zz%", "x%2fx%58%c3%a9+%xx%");
    check(shape::mask_escaped, "%u0041%u4e2d%uq", "%u0058%u00e9%xx");
    check(shape::mask_json, "a\\\"b\\u0041\\n9", "x\\\"x\\u0058\\n9");
}

#[test]
fn fields_are_masked_by_their_names() {
    let own = ["X-Session".to_owned()];
    let check = |name: &str, value: &str, expected: &str| {
        let mut masked = value.as_bytes().to_vec();
        Names::with(&own).mask_field(name.as_bytes(), &mut masked);
        assert_eq!(String::from_utf8_lossy(&masked), expected, "{name}: {value}");
    };
    check("Authorization", "Basic Zm9vOmJhcg==", "Basic Xx9xXxXxxx==");
    check("Cookie", "a=b1; theme=dark%20x; bare", "a=x9; theme=xxxx%20x; xxxx");
    check("x-session", "abc", "xxx");
    check("X-Api-Key", "k-1", "x-9");
    check("Referer", "https://a.example/?token=ab1&q=c", "https://a.example/?token=xx9&q=c");
    check("User-Agent", "Mozilla/5.0", "Mozilla/5.0");
}

#[test]
fn bodies_are_masked_by_the_names_in_them() {
    let check = |content_type: &str, body: &str, expected: &str| {
        assert_eq!(masked(content_type, body), expected, "{content_type}");
    };
    check(
        "application/x-www-form-urlencoded",
        "user=ann&user_password=s%65cret&pin=4711&new%5fpassword=b&q",
        "user=ann&user_password=x%78xxxx&pin=9999&new%5fpassword=x&q",
    );
    check(
        "application/json; charset=utf-8",
        r#"{"user":"ann","password":"a\"b","deep":{"api_key":[1,"two",{"x":"y"}],"q":"z"},"pin":42,"n":7}"#,
        r#"{"user":"ann","password":"x\"x","deep":{"api_key":[9,"xxx",{"x":"x"}],"q":"z"},"pin":99,"n":7}"#,
    );
    check("application/vnd.api+json", r#"{"token":"abc"#, r#"{"token":"xxx"#);
    check(
        "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nann\r\n--b\r\n\
         Content-Disposition: form-data; filename=\"f\"; name=password\r\n\r\nA1b\r\n--b--\r\n",
        "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nann\r\n--b\r\n\
         Content-Disposition: form-data; filename=\"f\"; name=password\r\n\r\nX9x\r\n--b--\r\n",
    );
    check(
        "text/xml",
        "<a><wsse:Password Type='t' pin = \"12\">s3cret</wsse:Password><b>text</b></a>",
        "<a><wsse:Password Type='t' pin = \"99\">x9xxxx</wsse:Password><b>text</b></a>",
    );
}

#[test]
fn what_nobody_can_read_is_not_masked() {
    for content_type in ["", "text/plain", "multipart/form-data", "application/grpc"] {
        let mut body = b"password=x".to_vec();
        let masked = Names::default().mask_body(content_type.as_bytes(), &mut body);
        assert_eq!(masked, Masked::Unknown, "{content_type}");
    }
}

#[test]
fn any_bytes_keep_their_length_and_end() {
    let mut state = 7_u32;
    for round in 0..3_000_usize {
        let mut body: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"\"'{}[]<>=:;&%u\\\n -b0aA\xff\xc3\xa9password"[(state >> 24) as usize % 33]
        })
        .take(round % 61)
        .collect();
        let length = body.len();
        for content_type in [
            "application/json",
            "text/xml",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=b",
        ] {
            let before = body.clone();
            let _ = Names::default().mask_body(content_type.as_bytes(), &mut body);
            assert_eq!(body.len(), length);
            let masked = body.clone();
            let _ = Names::default().mask_body(content_type.as_bytes(), &mut body);
            assert_eq!(masked, body, "masked again: {}", before.escape_ascii());
        }
    }
}
