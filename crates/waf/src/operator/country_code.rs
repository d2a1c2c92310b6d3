//! The two and three letters of each country (ISO 3166-1), since databases have only the two and
//! rules may ask for the three.

/// Both codes of each country, in the order of the two letters; the user-assigned one of Kosovo too.
#[rustfmt::skip]
const CODES: [&str; 250] = [
    "ADAND", "AEARE", "AFAFG", "AGATG", "AIAIA", "ALALB", "AMARM", "AOAGO", "AQATA", "ARARG", "ASASM", "ATAUT",
    "AUAUS", "AWABW", "AXALA", "AZAZE", "BABIH", "BBBRB", "BDBGD", "BEBEL", "BFBFA", "BGBGR", "BHBHR", "BIBDI",
    "BJBEN", "BLBLM", "BMBMU", "BNBRN", "BOBOL", "BQBES", "BRBRA", "BSBHS", "BTBTN", "BVBVT", "BWBWA", "BYBLR",
    "BZBLZ", "CACAN", "CCCCK", "CDCOD", "CFCAF", "CGCOG", "CHCHE", "CICIV", "CKCOK", "CLCHL", "CMCMR", "CNCHN",
    "COCOL", "CRCRI", "CUCUB", "CVCPV", "CWCUW", "CXCXR", "CYCYP", "CZCZE", "DEDEU", "DJDJI", "DKDNK", "DMDMA",
    "DODOM", "DZDZA", "ECECU", "EEEST", "EGEGY", "EHESH", "ERERI", "ESESP", "ETETH", "FIFIN", "FJFJI", "FKFLK",
    "FMFSM", "FOFRO", "FRFRA", "GAGAB", "GBGBR", "GDGRD", "GEGEO", "GFGUF", "GGGGY", "GHGHA", "GIGIB", "GLGRL",
    "GMGMB", "GNGIN", "GPGLP", "GQGNQ", "GRGRC", "GSSGS", "GTGTM", "GUGUM", "GWGNB", "GYGUY", "HKHKG", "HMHMD",
    "HNHND", "HRHRV", "HTHTI", "HUHUN", "IDIDN", "IEIRL", "ILISR", "IMIMN", "ININD", "IOIOT", "IQIRQ", "IRIRN",
    "ISISL", "ITITA", "JEJEY", "JMJAM", "JOJOR", "JPJPN", "KEKEN", "KGKGZ", "KHKHM", "KIKIR", "KMCOM", "KNKNA",
    "KPPRK", "KRKOR", "KWKWT", "KYCYM", "KZKAZ", "LALAO", "LBLBN", "LCLCA", "LILIE", "LKLKA", "LRLBR", "LSLSO",
    "LTLTU", "LULUX", "LVLVA", "LYLBY", "MAMAR", "MCMCO", "MDMDA", "MEMNE", "MFMAF", "MGMDG", "MHMHL", "MKMKD",
    "MLMLI", "MMMMR", "MNMNG", "MOMAC", "MPMNP", "MQMTQ", "MRMRT", "MSMSR", "MTMLT", "MUMUS", "MVMDV", "MWMWI",
    "MXMEX", "MYMYS", "MZMOZ", "NANAM", "NCNCL", "NENER", "NFNFK", "NGNGA", "NINIC", "NLNLD", "NONOR", "NPNPL",
    "NRNRU", "NUNIU", "NZNZL", "OMOMN", "PAPAN", "PEPER", "PFPYF", "PGPNG", "PHPHL", "PKPAK", "PLPOL", "PMSPM",
    "PNPCN", "PRPRI", "PSPSE", "PTPRT", "PWPLW", "PYPRY", "QAQAT", "REREU", "ROROU", "RSSRB", "RURUS", "RWRWA",
    "SASAU", "SBSLB", "SCSYC", "SDSDN", "SESWE", "SGSGP", "SHSHN", "SISVN", "SJSJM", "SKSVK", "SLSLE", "SMSMR",
    "SNSEN", "SOSOM", "SRSUR", "SSSSD", "STSTP", "SVSLV", "SXSXM", "SYSYR", "SZSWZ", "TCTCA", "TDTCD", "TFATF",
    "TGTGO", "THTHA", "TJTJK", "TKTKL", "TLTLS", "TMTKM", "TNTUN", "TOTON", "TRTUR", "TTTTO", "TVTUV", "TWTWN",
    "TZTZA", "UAUKR", "UGUGA", "UMUMI", "USUSA", "UYURY", "UZUZB", "VAVAT", "VCVCT", "VEVEN", "VGVGB", "VIVIR",
    "VNVNM", "VUVUT", "WFWLF", "WSWSM", "XKXKX", "YEYEM", "YTMYT", "ZAZAF", "ZMZMB", "ZWZWE",
];

/// The three letters of the country with these two.
pub(super) fn three_letters(two_letters: &str) -> Option<&'static str> {
    let at = CODES.binary_search_by_key(&two_letters, |codes| &codes[..2]).ok()?;
    Some(&CODES[at][2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_of_their_lengths() {
        assert!(CODES.windows(2).all(|pair| pair[0][..2] < pair[1][..2]));
        assert!(CODES.iter().all(|codes| codes.len() == 5 && codes.is_ascii()));
    }

    #[test]
    fn finds_three_letters() {
        for (two, three) in [("AD", "AND"), ("CH", "CHE"), ("DE", "DEU"), ("ZW", "ZWE")] {
            assert_eq!(three_letters(two), Some(three));
        }
        assert_eq!(three_letters("ZZ"), None);
        assert_eq!(three_letters("de"), None);
        assert_eq!(three_letters(""), None);
    }
}
