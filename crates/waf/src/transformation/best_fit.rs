//! The best fit in ASCII of the characters beyond it: code page 20127, as Windows converts to it.
//!
//! IIS decodes `%uXXXX` that way, so a full-width `＜` or a typographic quote becomes what an attack
//! needs. The pairs are those that ModSecurity's `unicode.mapping` lists for this code page.

/// The first character of [`LATIN`].
const LATIN_FIRST: u16 = 0x00a0;

/// What stands where there is no fit: Windows' default character, which nothing is mapped to.
const NO_FIT: u8 = b'?';

/// The best fits of the Latin letters and signs beyond ASCII, a row for 16 characters.
const LATIN: [&[u8; 16]; 22] = [
    b" !c?$Y|??Ca<?-R?", // U+00A0
    b"??23???.,1o>????", // U+00B0
    b"AAAAAAACEEEEIIII", // U+00C0
    b"DNOOOOO?OUUUUY??", // U+00D0
    b"aaaaaaaceeeeiiii", // U+00E0
    b"?nooooo?ouuuuy?y", // U+00F0
    b"AaAaAaCcCcCcCcDd", // U+0100
    b"DdEeEeEeEeEeGgGg", // U+0110
    b"GgGgHhHhIiIiIiIi", // U+0120
    b"Ii??JjKk?LlLlLl?", // U+0130
    b"?LlNnNnNn???OoOo", // U+0140
    b"OoOoRrRrRrSsSsSs", // U+0150
    b"SsTtTtTtUuUuUuUu", // U+0160
    b"UuUuWwYyYZ?ZzZz?", // U+0170
    b"b????????D??????", // U+0180
    b"?Ff????I??l????O", // U+0190
    b"Oo?????????t??TU", // U+01A0
    b"u?????z?????????", // U+01B0
    b"?????????????AaI", // U+01C0
    b"iOoUuUuUuUuUu?Aa", // U+01D0
    b"????GgGgKkOoOo??", // U+01E0
    b"j???????????????", // U+01F0
];

/// The byte that stands for the character `code`: its best fit, or its lower byte if it has none.
pub(super) fn ascii(code: u16) -> u8 {
    let [_, low] = code.to_be_bytes();
    match code {
        0..LATIN_FIRST => low,
        // The full-width forms lie in the order of ASCII, beginning with `!`.
        0xff01..=0xff5e => low + 0x20,
        _ => {
            let row = usize::from((code - LATIN_FIRST) / 16);
            let fit = match LATIN.get(row) {
                Some(row) => row[usize::from(code % 16)],
                None => beyond_latin(code),
            };
            if fit == NO_FIT { low } else { fit }
        }
    }
}

/// The best fit of the scattered rest: modifiers, accents, typographic signs.
fn beyond_latin(code: u16) -> u8 {
    match code {
        0x0261 => b'g',
        0x02b9 | 0x02bc | 0x02c8 | 0x2018 | 0x2019 | 0x2032 => b'\'',
        0x02ba | 0x030e | 0x201c..=0x201e => b'"',
        0x02c4 | 0x02c6 | 0x0302 => b'^',
        0x02cb | 0x0300 | 0x2035 => b'`',
        0x02cd | 0x0331 | 0x0332 => b'_',
        0x02dc | 0x0303 => b'~',
        0x2000..=0x2006 => b' ',
        0x2010 | 0x2011 | 0x2013 | 0x2014 => b'-',
        0x201a => b',',
        0x2022 | 0x2026 => b'.',
        0x2039 => b'<',
        0x203a => b'>',
        0x2122 => b'T',
        _ => NO_FIT,
    }
}

#[cfg(test)]
mod tests {
    use super::ascii;

    #[test]
    fn finds_the_best_fit() {
        let fits = [
            ('A', b'A'),
            ('\u{a0}', b' '),
            ('«', b'<'),
            ('ä', b'a'),
            ('ÿ', b'y'),
            ('Ł', b'L'),
            ('ǰ', b'j'),
            ('ɡ', b'g'),
            ('‘', b'\''),
            ('“', b'"'),
            ('‹', b'<'),
            ('™', b'T'),
            ('！', b'!'),
            ('？', b'?'),
            ('～', b'~'),
        ];
        for (character, expected) in fits {
            let code = u16::try_from(u32::from(character)).expect("in the basic plane");
            assert_eq!(ascii(code), expected, "{character:?}");
        }
    }

    #[test]
    fn falls_back_to_the_lower_byte() {
        for (code, expected) in [
            (0x00a3, 0xa3),
            (0x009f, 0x9f),
            (0x01ff, 0xff),
            (0x0441, b'A'),
            (0xff00, 0x00),
            (0xff5f, 0x5f),
            (0xffff, 0xff),
        ] {
            assert_eq!(ascii(code), expected, "U+{code:04X}");
        }
    }
}
