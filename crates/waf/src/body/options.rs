//! How bodies are read, as the rule set chooses, and every limit of the processors.

/// How bodies are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What separates pairs of an urlencoded body (`SecArgumentSeparator`, `&`).
    pub argument_separator: u8,
    /// What becomes of the text of an XML document (`SecParseXmlIntoArgs`, off).
    pub xml_text: XmlText,
    /// What a body may hold.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self { argument_separator: b'&', xml_text: XmlText::Whole, limits: Limits::default() }
    }
}

/// What becomes of the text of an XML document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlText {
    /// It is the one value of `XML:/*` (`SecParseXmlIntoArgs Off`).
    Whole,
    /// Besides, each element's own text is an argument (`On`).
    WholeAndArguments,
    /// It is only in arguments (`OnlyArgs`).
    Arguments,
}

/// What a body may hold before its processor gives up with a fault.
///
/// All of them bound memory or work per request; none of them depends on how the body is cut into
/// pieces. Where ModSecurity has a directive for a limit, the directive's name and default stand
/// beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Arguments that one body may give (`SecArgumentsLimit`, 1,000). The next one is a fault.
    pub arguments_max: u32,
    /// Bytes of a body without the contents of its files (`SecRequestBodyNoFilesLimit`, 1 MiB; the
    /// recommended configuration says 128 KiB). For all kinds but multipart that is the whole body;
    /// so this bounds what a processor ever holds of a value, too.
    pub fields_bytes_max: usize,
    /// Bytes of a decoded argument's full name, which in JSON and XML grows with the depth:
    /// without it, a body could ask for its own length squared in names. Ours; 8 KiB.
    pub name_bytes_max: usize,
    /// Arrays and objects open at once (`SecRequestBodyJsonDepthLimit`; ModSecurity defaults to
    /// 10,000, its recommended configuration to 512, Coraza's to 1,024). 512.
    pub json_depth_max: u32,
    /// Elements open at once (libxml2's own limit: 256).
    pub xml_depth_max: u32,
    /// Attributes of one element, namespace declarations included. Ours; 256.
    pub xml_attributes_max: u32,
    /// Elements of one document. Ours; 100,000.
    pub xml_elements_max: u32,
    /// Parts of a multipart body, fields and files together. Ours; 1,000.
    pub parts_max: u32,
    /// Lines of one part's header. Ours; 32.
    pub part_headers_max: u32,
    /// Bytes of one line of a part's header without its line end, and of a folded field in all
    /// (ModSecurity: 4,096).
    pub part_header_bytes_max: usize,
    /// Files whose contents are handed out (`SecUploadFileLimit`, 100). Further ones are named and
    /// counted without their contents, and `MULTIPART_FILE_LIMIT_EXCEEDED` is raised.
    pub files_max: u32,
    /// Content codings of one body. Ours; 3.
    pub codings_max: u32,
    /// Bytes that any one coding of a body may decode to (`SecRequestBodyLimit` of the recommended
    /// configuration, 12.5 MiB).
    pub decoded_bytes_max: u64,
    /// Bytes that each byte of a coding may decode to on average, once there are more than
    /// [`decoded_free_bytes`](Self::decoded_free_bytes). Text compresses to a tenth, zeros to a
    /// thousandth. Ours; 200.
    pub decoded_ratio_max: u32,
    /// Decoded bytes below which the ratio does not matter. Ours; 256 KiB.
    pub decoded_free_bytes: u64,
    /// Members of a gzip stream, each of which costs a new decoder. Ours; 16.
    pub gzip_members_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            arguments_max: 1000,
            fields_bytes_max: 1 << 20,
            name_bytes_max: 8 << 10,
            json_depth_max: 512,
            xml_depth_max: 256,
            xml_attributes_max: 256,
            xml_elements_max: 100_000,
            parts_max: 1000,
            part_headers_max: 32,
            part_header_bytes_max: 4096,
            files_max: 100,
            codings_max: 3,
            decoded_bytes_max: 13_107_200,
            decoded_ratio_max: 200,
            decoded_free_bytes: 256 << 10,
            gzip_members_max: 16,
        }
    }
}
