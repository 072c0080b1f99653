//! The whole list of functions the dialect's users know: each is there, or is refused with a reason; and each that is
//! there has an example among these tests.

use super::super::{builtin, parse, predicate::Predicate, sprig};
use super::{gives, refuses, run};

/// The functions of the expression language itself.
const LANGUAGE: &str = "all any one none map filter find findIndex findLast findLastIndex count sum groupBy sortBy reduce \
    concat flatten uniq join first last take get keys values toPairs fromPairs sort reverse min max mean median \
    abs ceil floor round len type int float string toJSON fromJSON toBase64 fromBase64 \
    trim trimPrefix trimSuffix upper lower split splitAfter replace repeat indexOf lastIndexOf hasPrefix hasSuffix \
    now duration date timezone bitand bitor bitxor bitnand bitnot bitshl bitshr bitushr \
    asInt asFloat jsonpath toJson";

/// The functions of `sprig.*`.
const SPRIG: &str = "ago date date_in_zone date_modify dateInZone dateModify duration durationRound htmlDate htmlDateInZone \
    must_date_modify mustDateModify mustToDate now toDate unixEpoch \
    abbrev abbrevboth trunc trim upper lower title untitle substr repeat trimall trimAll trimSuffix trimPrefix nospace \
    initials randAlphaNum randAlpha randAscii randNumeric swapcase shuffle snakecase camelcase kebabcase wrap wrapWith \
    contains hasPrefix hasSuffix quote squote cat indent nindent replace plural \
    sha1sum sha256sum sha512sum adler32sum toString \
    atoi int64 int float64 seq toDecimal split splitList splitn toStrings until untilStep \
    add1 add sub div mod mul randInt add1f addf subf divf mulf biggest max min maxf minf ceil floor round \
    join sortAlpha default empty coalesce all any compact mustCompact fromJson toJson toPrettyJson toRawJson \
    mustFromJson mustToJson mustToPrettyJson mustToRawJson ternary deepCopy mustDeepCopy \
    typeOf typeIs typeIsLike kindOf kindIs deepEqual env expandenv getHostByName \
    base dir clean ext isAbs osBase osClean osDir osExt osIsAbs b64enc b64dec b32enc b32dec \
    tuple list dict get set unset hasKey pluck keys pick omit merge mergeOverwrite mustMerge mustMergeOverwrite values \
    append push mustAppend mustPush prepend mustPrepend first mustFirst rest mustRest last mustLast initial mustInitial \
    reverse mustReverse uniq mustUniq without mustWithout has mustHas slice mustSlice concat dig chunk mustChunk \
    bcrypt htpasswd genPrivateKey derivePassword buildCustomCert genCA genCAWithKey genSelfSignedCert \
    genSelfSignedCertWithKey genSignedCert genSignedCertWithKey encryptAES decryptAES randBytes \
    uuidv4 semver semverCompare fail hello regexMatch mustRegexMatch regexFindAll mustRegexFindAll regexFind \
    mustRegexFind regexReplaceAll mustRegexReplaceAll regexReplaceAllLiteral mustRegexReplaceAllLiteral regexSplit \
    mustRegexSplit regexQuoteMeta mustRegexQuoteMeta urlParse urlJoin";

/// Every test of functions, to see that none was forgotten.
const EXAMPLES: [&str; 6] = [
    include_str!("random.rs"),
    include_str!("functions.rs"),
    include_str!("operators.rs"),
    include_str!("sprig.rs"),
    include_str!("manual.rs"),
    include_str!("environment.rs"),
];

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split_whitespace()
}

#[test]
fn every_function_of_the_language_is_there() {
    for name in words(LANGUAGE) {
        assert!(builtin::find(name).is_some() || Predicate::named(name).is_some(), "{name}");
    }
}

#[test]
fn every_sprig_function_is_there_or_refused_with_a_reason() {
    for name in words(SPRIG) {
        let refusal = sprig::unknown(name);
        assert!(sprig::find(name).is_some() || refusal.contains("is not available: "), "{name}: {refusal}");
    }
    for name in words(SPRIG).filter(|name| sprig::find(name).is_none()) {
        let text = format!("sprig.{name}('a')");
        let error = parse(&text).expect_err("refused when it is read, not when it runs");
        assert!(error.message.contains("is not available"), "{error}");
    }
}

#[test]
fn every_function_that_is_there_has_an_example() {
    let builtins = builtin::names().chain(Predicate::NAMES.iter().map(|(name, _)| *name));
    let missing: Vec<&str> =
        builtins.filter(|name| !EXAMPLES.iter().any(|text| text.contains(&format!("{name}(")))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let missing: Vec<&str> =
        sprig::names().filter(|name| !EXAMPLES.iter().any(|text| text.contains(&format!("sprig.{name}(")))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for list in [SPRIG, LANGUAGE] {
        assert!(words(list).all(|name| !name.is_empty()));
    }
    for name in sprig::names() {
        assert!(words(SPRIG).any(|known| known == name), "sprig.{name} is nobody's function");
    }
}

#[test]
fn the_documentation_lists_every_function_that_is_there() {
    let page = include_str!("../../../../../../docs/dialects/argo.md");
    let builtins = builtin::names().chain(Predicate::NAMES.iter().map(|(name, _)| *name));
    let missing: Vec<&str> =
        builtins.chain(sprig::names()).filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn paths_and_addresses() {
    gives(&[
        ("sprig.base('/')", "\"/\""),
        ("sprig.base('')", "\".\""),
        ("sprig.dir('/a/b/c.txt')", "\"/a/b\""),
        ("sprig.dir('c.txt')", "\".\""),
        ("sprig.clean('a//b/../c/.')", "\"a/c\""),
        ("sprig.clean('/../a')", "\"/a\""),
        ("sprig.clean('../a/../..')", "\"../..\""),
        ("sprig.clean('')", "\".\""),
        ("sprig.isAbs('/a')", "true"),
        ("sprig.isAbs('a')", "false"),
        ("sprig.urlParse('http://admin:secret@server.com:8080/api?list=false#anchor').hostname", "\"server.com\""),
        ("sprig.urlParse('http://admin:secret@server.com:8080/api?list=false#anchor').userinfo", "\"admin:secret\""),
        ("sprig.urlParse('http://[::1]:80/x').hostname", "\"::1\""),
        ("sprig.urlParse('mailto:a@b').opaque", "\"a@b\""),
        ("sprig.urlParse('/a/b?c').path", "\"/a/b\""),
        ("sprig.urlJoin(sprig.urlParse('http://u@h:1/p?q=1#f'))", "\"http://u@h:1/p?q=1#f\""),
        ("sprig.urlJoin({scheme: 'http', host: 'host', path: 'path'})", "\"http://host/path\""),
        ("sprig.urlJoin(sprig.urlParse('mailto:a@b'))", "\"mailto:a@b\""),
    ]);
    refuses(&[("sprig.urlJoin({host: 1})", 7, "must be a string")]);
}

#[test]
fn what_a_value_is() {
    gives(&[
        ("sprig.kindOf([1])", "\"slice\""),
        ("sprig.kindOf(nil)", "\"invalid\""),
        ("sprig.kindIs('map', {})", "true"),
        ("sprig.typeOf(1.5)", "\"float64\""),
        ("sprig.typeOf([])", "\"[]interface {}\""),
        ("sprig.typeIs('string', 'a')", "true"),
        ("sprig.typeIsLike('string', 1)", "false"),
        ("sprig.deepEqual([1, {a: 2}], [1, {a: 2}])", "true"),
        ("sprig.deepCopy({a: 1})", "{\"a\":1}"),
    ]);
}

#[test]
fn long_texts() {
    gives(&[
        ("sprig.wrap(6, 'some long words here')", "\"some\\nlong\\nwords\\nhere\""),
        ("sprig.wrap(3, 'unbreakable')", "\"unbreakable\""),
        ("sprig.wrap(80, 'short')", "\"short\""),
        ("sprig.wrapWith(3, '|', 'unbreakable')", "\"unb|rea|kab|le\""),
        ("sprig.abbrevboth(5, 10, '1234 5678 9123')", "\"...5678...\""),
        ("sprig.abbrevboth(0, 8, 'a longer text')", "\"a lon...\""),
        ("sprig.abbrevboth(5, 6, 'a longer text')", "\"a longer text\""),
        ("sprig.trimall('$', '$5$')", "\"5\""),
        ("sprig.swapcase('aBc')", "\"AbC\""),
        (r#"sprig.quote("a\"b\\c\n\u001b'ü")"#, r#""\"a\\\"b\\\\c\\n\\x1b'ü\"""#),
        ("sprig.hello()", "\"Hello!\""),
        ("sprig.chunk(2, [1, 2, 3])", "[[1,2],[3]]"),
        ("sprig.tuple(1, 2)", "[1,2]"),
        ("sprig.push([1], 2)", "[1,2]"),
        ("sprig.biggest(1, 2)", "2"),
        ("sprig.add1f(1.5)", "2.5"),
        ("sprig.all(1, '')", "false"),
        ("sprig.any(1, '')", "true"),
        ("sprig.mustUniq([1, 1])", "[1]"),
        ("sprig.mustRegexFind('b+', 'abbc')", "\"bb\""),
        ("sprig.mustToJson([1])", "\"[1]\""),
        ("sprig.must_date_modify('24h', date('2024-02-28')).Day()", "29"),
        ("sprig.date_modify('-24h', date('2024-03-01')).Day()", "29"),
        ("sprig.htmlDate(0)", "\"1970-01-01\""),
        ("sprig.htmlDateInZone(0, 'UTC')", "\"1970-01-01\""),
        ("sprig.date_in_zone('15:04', 60, 'UTC')", "\"00:01\""),
        ("sprig.dateInZone('15:04', 60, 'UTC')", "\"00:01\""),
        ("sprig.durationRound('2h10m5s')", "\"2h\""),
        ("sprig.durationRound('2400h10m5s')", "\"3mo\""),
        ("sprig.durationRound('1ms')", "\"0s\""),
        (
            "sprig.sha512sum('abc')",
            "\"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f\"",
        ),
    ]);
    refuses(&[
        ("sprig.chunk(0, [1])", 7, "at least one element"),
        ("sprig.fail('enough')", 7, "enough"),
        ("sprig.mustSomething(1)", 7, "unknown function"),
    ]);
}

#[test]
fn functions_that_could_grow_without_end_are_stopped() {
    for text in [
        "sprig.repeat(1000000000, 'x')",
        "repeat('x', 1000000000)",
        "sprig.indent(1000000000, 'x')",
        "sprig.until(1000000000)",
        "sprig.untilStep(0, 1000000000, 1)",
        "sprig.seq(1000000000)",
        "len(1..1000000000)",
        "sprig.wrapWith(1, repeat('x', 100000), repeat('y', 100000))",
        "sprig.replace('', repeat('x', 100000), repeat('y', 100000))",
        "sprig.regexReplaceAll('', repeat('y', 10000), repeat('x', 100000))",
        "join(map(1..100000, repeat('x', 100000)), ',')",
        "reduce(1..64, #acc + #acc, 'xx')",
        "map(1..2000, map(1..2000, #))",
        "sprig.toJson(map(1..10000, repeat('x', 100000)))",
        "repeat('a', 50000) matches '(a*)*b'",
    ] {
        match run(text) {
            Ok(value) => assert!(text.contains("matches"), "{text} gives {} bytes", value.to_json().len()),
            Err(error) => {
                let message = &error.message;
                assert!(message.contains("too large") || message.contains("too many"), "{text}: {message}");
            }
        }
    }
}
