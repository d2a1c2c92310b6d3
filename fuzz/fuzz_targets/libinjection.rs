//! SQL injection and cross-site scripting: what is found is possible, and any input repeated takes
//! time in proportion. Where LIBINJECTION names libinjection 4.0 as a shared library, it has the same
//! opinion of everything.
#![no_main]

use std::ffi::{c_char, c_int};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use libloading::Library;
use tidegate_waf::libinjection::{sqli, sqli_possible, xss, xss_possible};

fuzz_target!(|input: &[u8]| {
    let (print, script) = (sqli(input), xss(input));
    let print = print.as_ref().map(|print| print.as_bytes());
    assert!(print.is_none() || sqli_possible(input));
    assert!(print.is_none_or(|print| (1..=5).contains(&print.len())));
    assert!(script.is_none() || xss_possible(input));
    if let Some(reference) = REFERENCE.as_ref() {
        let mut buffer = [0; PRINT_BYTES];
        assert_eq!(print, reference.sqli(input, &mut buffer), "{}", input.escape_ascii());
        assert_eq!(script.is_some(), reference.xss(input), "{}", input.escape_ascii());
    }
    if input.iter().fold(1_u8, |sum, &byte| sum.wrapping_mul(5) ^ byte) == 0 {
        repeat(input);
    }
});

/// Repeated to this length, nothing takes longer than [`REPEATED_TIME_MAX`]: a hundred times what is
/// usual here, and a tenth of what it would be with the square of the length.
const REPEATED_BYTES: usize = 256 << 10;
const REPEATED_TIME_MAX: Duration = Duration::from_secs(4);

fn repeat(input: &[u8]) {
    let long: Vec<u8> = input.iter().copied().cycle().take(REPEATED_BYTES).collect();
    let start = Instant::now();
    sqli(&long);
    xss(&long);
    assert!(start.elapsed() < REPEATED_TIME_MAX, "{}", input.escape_ascii());
}

static REFERENCE: LazyLock<Option<Reference>> = LazyLock::new(|| {
    let path = std::env::var_os("LIBINJECTION")?;
    // SAFETY: whoever names a library vouches for what it does when loaded.
    let library = unsafe { Library::new(path) }.expect("LIBINJECTION names a shared library");
    // SAFETY: the functions have these types since libinjection 1.0; their result is an enum since 4.0.
    let (sqli, xss) = unsafe {
        let sqli = library.get::<Sqli>(b"libinjection_sqli").expect("a function");
        let xss = library.get::<Xss>(b"libinjection_xss").expect("a function");
        (*sqli, *xss)
    };
    std::mem::forget(library);
    Some(Reference { sqli, xss })
});

type Sqli = unsafe extern "C" fn(*const c_char, usize, *mut c_char) -> c_int;
type Xss = unsafe extern "C" fn(*const c_char, usize) -> c_int;

/// libinjection itself.
struct Reference {
    sqli: Sqli,
    xss: Xss,
}

/// What libinjection asks for a fingerprint: five kinds, an end, and some to spare.
const PRINT_BYTES: usize = 8;

impl Reference {
    fn sqli<'b>(&self, input: &[u8], print: &'b mut [u8; PRINT_BYTES]) -> Option<&'b [u8]> {
        // SAFETY: the input is as long as it says, and there is room for a fingerprint.
        let found =
            unsafe { (self.sqli)(input.as_ptr().cast(), input.len(), print.as_mut_ptr().cast()) };
        (found == 1).then(|| print.split(|&byte| byte == 0).next().expect("an end"))
    }

    fn xss(&self, input: &[u8]) -> bool {
        // SAFETY: the input is as long as it says.
        unsafe { (self.xss)(input.as_ptr().cast(), input.len()) == 1 }
    }
}
