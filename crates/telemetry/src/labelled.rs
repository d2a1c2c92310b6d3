//! Enums whose variants are named in logs, metrics and the reference: declared once.

/// Declares an enum with, for each variant, its text and its documentation, which is one
/// line because it also stands in a table of the reference.
///
/// Beside the enum come `ALL` in order of declaration, `index` into it, `as_str` and `doc`.
macro_rules! labelled {
    (
        $(#[doc = $about:literal])+
        $(#[derive($derive:ident)])?
        $vis:vis enum $name:ident {
            $(#[doc = $doc:literal] $(#[$default:ident])? $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash $(, $derive)?)]
        $vis enum $name {
            $(#[doc = $doc] $(#[$default])? $variant,)+
        }

        impl $name {
            /// All of them, in order.
            $vis const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];

            /// As in logs and metrics.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }

            /// What it means, for the reference.
            $vis const fn doc(self) -> &'static str {
                match self {
                    $($name::$variant => $doc.trim_ascii(),)+
                }
            }

            /// The position in `ALL`.
            #[inline]
            $vis const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

pub(crate) use labelled;

#[cfg(test)]
mod tests {
    labelled! {
        /// Tides.
        #[derive(Default)]
        enum Tide {
            /// It comes.
            Flood = "flood",
            /// It goes.
            #[default]
            Ebb = "ebb",
        }
    }

    #[test]
    fn variants_know_their_text_and_place() {
        assert_eq!(Tide::ALL, [Tide::Flood, Tide::Ebb]);
        assert_eq!(Tide::ALL.map(Tide::index), [0, 1]);
        assert_eq!(Tide::ALL.map(Tide::as_str), ["flood", "ebb"]);
        assert_eq!(Tide::ALL.map(Tide::doc), ["It comes.", "It goes."]);
        assert_eq!(Tide::default(), Tide::Ebb);
    }
}
