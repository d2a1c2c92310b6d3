//! The table of operators: names and what each takes as its argument.

use super::support::Support;

/// What an operator takes as its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Nothing; an argument is noted and ignored, as other engines do.
    None,
    /// A regular expression. Macros in it are expanded for each transaction.
    Pattern,
    /// A regular expression without macros.
    PlainPattern,
    /// Phrases, parted by white space.
    Phrases,
    /// The path of a data file, relative to the file of the rule.
    File,
    /// Text, with macros.
    Text,
    /// A whole number, or macros that yield one.
    Number,
    /// Addresses and networks, parted by commas.
    Addresses,
    /// Byte values and ranges of them, parted by commas.
    ByteRanges,
    /// A domain.
    Domain,
    /// The path of a program or script.
    Script,
}

impl ArgumentKind {
    /// Whether macros in the argument are expanded.
    pub const fn expands(self) -> bool {
        matches!(self, Self::Pattern | Self::Text | Self::Number)
    }

    /// Whether the rule is wrong without an argument. An empty pattern and an empty text are fine:
    /// they match everything and nothing.
    pub const fn required(self) -> bool {
        !matches!(self, Self::None | Self::Pattern | Self::Text)
    }

    /// What a diagnostic says was expected.
    pub const fn expected(self) -> &'static str {
        match self {
            Self::None => "no argument",
            Self::Pattern | Self::PlainPattern => "a regular expression",
            Self::Phrases => "phrases parted by spaces",
            Self::File => "the path of a file",
            Self::Text => "text",
            Self::Number => "a number",
            Self::Addresses => "addresses or networks parted by commas",
            Self::ByteRanges => "byte values or ranges parted by commas",
            Self::Domain => "a domain",
            Self::Script => "the path of a script",
        }
    }
}

/// What the table says about an operator.
#[derive(Debug)]
pub struct Description {
    /// The name, without `@`.
    pub name: &'static str,
    /// Other spellings that mean the same.
    pub aliases: &'static [&'static str],
    /// What it takes.
    pub argument: ArgumentKind,
    /// Whether the engine has it.
    pub support: Support,
    /// A sentence for the reference.
    pub doc: &'static str,
}

macro_rules! operators {
    ($($variant:ident $name:literal $(| $alias:literal)* $argument:ident $doc:literal $(refused $reason:literal)?;)*) => {
        /// An operator of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum OperatorName {
            $(#[doc = concat!("`@", $name, "`. ", $doc)] $variant,)*
        }

        impl OperatorName {
            /// Every operator, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        static TABLE: &[Description] = &[
            $(Description {
                name: $name,
                aliases: &[$($alias,)*],
                argument: ArgumentKind::$argument,
                support: operators!(@support $($reason)?),
                doc: $doc,
            },)*
        ];
    };
    (@support) => { Support::Full };
    (@support $reason:literal) => { Support::Refused($reason) };
}

operators! {
    BeginsWith "beginsWith" Text "The value begins with the text.";
    Contains "contains" Text "The text occurs in the value.";
    ContainsWord "containsWord" Text "The text occurs in the value with no word character beside it.";
    DetectSqli "detectSQLi" None "The value is an SQL injection, as libinjection judges.";
    DetectXss "detectXSS" None "The value is a script injection, as libinjection judges.";
    EndsWith "endsWith" Text "The value ends with the text.";
    Eq "eq" Number "The value, as a number, equals the argument.";
    FuzzyHash "fuzzyHash" Text "The value resembles a known file." refused "there is no ssdeep here; `@inspectFile` can pass uploads to a scanner";
    Ge "ge" Number "The value, as a number, is at least the argument.";
    GeoLookup "geoLookup" None "The value's address is in the database of `SecGeoLookupDb`; fills `GEO`.";
    GsbLookup "gsbLookup" Text "The value holds a URL listed by Google." refused "Google ended the service that it used";
    Gt "gt" Number "The value, as a number, is greater than the argument.";
    InspectFile "inspectFile" Script "The program finds something in the uploaded file.";
    IpMatch "ipMatch" Addresses "The value's address is one of these or in one of these networks.";
    IpMatchFromDataset "ipMatchFromDataset" Text "As `ipMatch`, from a data set." refused "data sets are Coraza's own; use `@ipMatchFromFile`";
    IpMatchFromFile "ipMatchFromFile" | "ipMatchF" File "As `ipMatch`, from a file with one address or network a line.";
    Le "le" Number "The value, as a number, is at most the argument.";
    Lt "lt" Number "The value, as a number, is less than the argument.";
    NoMatch "noMatch" None "Never matches.";
    Pm "pm" Phrases "One of the phrases occurs in the value, in any case.";
    PmFromDataset "pmFromDataset" Text "As `pm`, from a data set." refused "data sets are Coraza's own; use `@pmFromFile`";
    PmFromFile "pmFromFile" | "pmf" File "As `pm`, from a file with one phrase a line.";
    Rbl "rbl" Domain "The value's address is listed under this DNS block list.";
    RestPath "restpath" Text "The path matches a template such as `/users/{id}`." refused "it is Coraza's own; use `@rx`";
    Rsub "rsub" Text "Replaces text in a body." refused "bodies are inspected here, never rewritten";
    Rx "rx" Pattern "The regular expression matches in the value.";
    RxGlobal "rxGlobal" Pattern "As `rx`, and `capture` keeps the groups of every match.";
    StrEq "streq" Text "The value equals the text.";
    StrMatch "strmatch" Text "The text occurs in the value; the same as `contains`.";
    UnconditionalMatch "unconditionalMatch" None "Always matches.";
    ValidateByteRange "validateByteRange" ByteRanges "The value holds a byte outside of these.";
    ValidateDtd "validateDTD" File "The XML body does not follow the DTD." refused "DTDs are never loaded";
    ValidateHash "validateHash" Pattern "A link lacks its signature." refused "links are not signed here";
    ValidateNid "validateNid" Text "The value is a national identity number." refused "it is Coraza's own; use `@verifyCPF`, `@verifySSN` or `@verifySVNR`";
    ValidateSchema "validateSchema" File "The XML body does not follow the schema." refused "XML schemas are not evaluated";
    ValidateUrlEncoding "validateUrlEncoding" None "The value holds `%` without two hexadecimal digits behind it.";
    ValidateUtf8Encoding "validateUtf8Encoding" None "The value is not well-formed UTF-8.";
    VerifyCc "verifyCC" PlainPattern "The pattern finds a number that is a valid payment card number.";
    VerifyCpf "verifyCPF" PlainPattern "The pattern finds a valid Brazilian CPF number.";
    VerifySsn "verifySSN" PlainPattern "The pattern finds a valid US social security number.";
    VerifySvnr "verifySVNR" PlainPattern "The pattern finds a valid Austrian social insurance number.";
    Within "within" Text "The value occurs in the text.";
}

impl OperatorName {
    /// The operator of this name or alias, without `@`, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        let is = |other: &str| other.as_bytes().eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(|operator| {
            let Description { name, aliases, .. } = operator.description();
            is(name) || aliases.iter().any(|alias| is(alias))
        })
    }

    /// What the table says.
    pub fn description(self) -> &'static Description {
        &TABLE[self as usize]
    }

    /// The name, without `@`.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// What it takes as its argument.
    pub fn argument(self) -> ArgumentKind {
        self.description().argument
    }
}
