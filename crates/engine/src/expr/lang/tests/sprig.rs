//! The functions of `sprig.*`.

use super::{gives, refuses};

#[test]
fn text() {
    gives(&[
        ("sprig.trim(' a ')", "\"a\""),
        ("sprig.trimAll('$', '$5.00$')", "\"5.00\""),
        ("sprig.trimSuffix('-', 'a-')", "\"a\""),
        ("sprig.trimPrefix('-', '-a')", "\"a\""),
        ("sprig.upper('a')", "\"A\""),
        ("sprig.lower('A')", "\"a\""),
        ("sprig.title('hello world')", "\"Hello World\""),
        ("sprig.untitle('Hello World')", "\"hello world\""),
        ("sprig.repeat(3, 'ab')", "\"ababab\""),
        ("sprig.substr(1, 3, 'hello')", "\"el\""),
        ("sprig.substr(-1, 3, 'hello')", "\"hel\""),
        ("sprig.substr(2, -1, 'hello')", "\"llo\""),
        ("sprig.nospace('a b c')", "\"abc\""),
        ("sprig.trunc(3, 'hello')", "\"hel\""),
        ("sprig.trunc(-3, 'hello')", "\"llo\""),
        ("sprig.abbrev(5, 'hello world')", "\"he...\""),
        ("sprig.initials('First Try')", "\"FT\""),
        ("sprig.contains('b', 'abc')", "true"),
        ("sprig.hasPrefix('a', 'abc')", "true"),
        ("sprig.hasSuffix('c', 'abc')", "true"),
        ("sprig.quote('a', 1)", "\"\\\"a\\\" \\\"1\\\"\""),
        ("sprig.squote('a')", "\"'a'\""),
        ("sprig.cat('a', 1, nil, true)", "\"a 1 true\""),
        ("sprig.indent(2, 'a\\nb')", "\"  a\\n  b\""),
        ("sprig.nindent(2, 'a')", "\"\\n  a\""),
        ("sprig.replace(' ', '-', 'a b c')", "\"a-b-c\""),
        ("sprig.plural('one', 'many', 1)", "\"one\""),
        ("sprig.plural('one', 'many', 2)", "\"many\""),
        ("sprig.snakecase('FirstName')", "\"first_name\""),
        ("sprig.camelcase('http_server')", "\"HttpServer\""),
        ("sprig.kebabcase('FirstName')", "\"first-name\""),
        ("sprig.split('/', 'a/b')._1", "\"b\""),
        ("sprig.splitn('/', 2, 'a/b/c')", "{\"_0\":\"a\",\"_1\":\"b/c\"}"),
        ("sprig.splitList('/', 'a/b')", "[\"a\",\"b\"]"),
        ("sprig.join('-', ['a', 1])", "\"a-1\""),
        ("sprig.sortAlpha(['b', 'a'])", "[\"a\",\"b\"]"),
        ("sprig.base('/a/b.tar.gz')", "\"b.tar.gz\""),
        ("sprig.ext('/a/b.txt')", "\".txt\""),
    ]);
}

#[test]
fn arithmetic() {
    gives(&[
        ("sprig.add(1, '2', 3)", "6"),
        ("sprig.add1(1)", "2"),
        ("sprig.sub(5, 2)", "3"),
        ("sprig.mul(2, 3, 4)", "24"),
        ("sprig.div(7, 2)", "3"),
        ("sprig.mod(7, 2)", "1"),
        ("sprig.max(1, 3, 2)", "3"),
        ("sprig.min(1, 3, 2)", "1"),
        ("sprig.floor('1.9')", "1"),
        ("sprig.ceil(1.1)", "2"),
        ("sprig.round(123.5555, 2)", "123.56"),
        ("sprig.addf(0.1, 0.2)", "0.3"),
        ("sprig.subf(1, 0.9)", "0.1"),
        ("sprig.mulf(1.1, 1.1)", "1.21"),
        ("sprig.divf(1, 4)", "0.25"),
        ("sprig.maxf(1.5, 2.5)", "2.5"),
        ("sprig.minf(1.5, 2.5)", "1.5"),
    ]);
    refuses(&[
        ("sprig.div(1, 0)", 7, "division by zero"),
        ("sprig.mul(9223372036854775807, 2)", 7, "does not fit 64 bits"),
    ]);
}

#[test]
fn lists() {
    gives(&[
        ("sprig.list(1, 'a')", "[1,\"a\"]"),
        ("sprig.first([1, 2])", "1"),
        ("sprig.rest([1, 2, 3])", "[2,3]"),
        ("sprig.last([1, 2])", "2"),
        ("sprig.initial([1, 2, 3])", "[1,2]"),
        ("sprig.append([1], 2)", "[1,2]"),
        ("sprig.prepend([1], 2)", "[2,1]"),
        ("sprig.concat([1], [2])", "[1,2]"),
        ("sprig.reverse([1, 2])", "[2,1]"),
        ("sprig.uniq([1, 1, 2])", "[1,2]"),
        ("sprig.without([1, 2, 3], 2)", "[1,3]"),
        ("sprig.has(2, [1, 2])", "true"),
        ("sprig.compact([0, 1, '', 'a', nil])", "[1,\"a\"]"),
        ("sprig.slice([1, 2, 3, 4], 1, 3)", "[2,3]"),
        ("sprig.until(3)", "[0,1,2]"),
        ("sprig.untilStep(3, 9, 3)", "[3,6]"),
        ("sprig.untilStep(3, 0, -1)", "[3,2,1]"),
        ("sprig.seq(5)", "\"1 2 3 4 5\""),
        ("sprig.seq(2, 4)", "\"2 3 4\""),
        ("sprig.seq(0, 5, 10)", "\"0 5 10\""),
        ("sprig.seq(-2)", "\"1 0 -1 -2\""),
        ("sprig.toStrings([1, 'a'])", "[\"1\",\"a\"]"),
    ]);
}

#[test]
fn dicts() {
    gives(&[
        ("sprig.dict('a', 1, 'b', 2)", "{\"a\":1,\"b\":2}"),
        ("sprig.get({a: 1}, 'a')", "1"),
        ("sprig.get({a: 1}, 'b')", "\"\""),
        ("sprig.set({a: 1}, 'b', 2)", "{\"a\":1,\"b\":2}"),
        ("sprig.unset({a: 1, b: 2}, 'a')", "{\"b\":2}"),
        ("sprig.hasKey({a: 1}, 'a')", "true"),
        ("sprig.pluck('a', {a: 1}, {b: 2}, {a: 3})", "[1,3]"),
        ("sprig.keys({b: 1, a: 2})", "[\"a\",\"b\"]"),
        ("sprig.values({b: 1, a: 2})", "[2,1]"),
        ("sprig.pick({a: 1, b: 2}, 'a')", "{\"a\":1}"),
        ("sprig.omit({a: 1, b: 2}, 'a')", "{\"b\":2}"),
        ("sprig.merge({a: 1, c: {x: 1}}, {a: 2, b: 3, c: {y: 2}})", "{\"a\":1,\"b\":3,\"c\":{\"x\":1,\"y\":2}}"),
        ("sprig.mergeOverwrite({a: 1}, {a: 2})", "{\"a\":2}"),
        ("sprig.dig('a', 'b', 'none', {a: {b: 1}})", "1"),
        ("sprig.dig('a', 'x', 'none', {a: {b: 1}})", "\"none\""),
    ]);
}

#[test]
fn conversions_and_defaults() {
    gives(&[
        ("sprig.atoi('12')", "12"),
        ("sprig.atoi('x')", "0"),
        ("sprig.int64('12')", "12"),
        ("sprig.int('3.0')", "3"),
        ("sprig.float64('1.5')", "1.5"),
        ("sprig.toString(1)", "\"1\""),
        ("sprig.toDecimal('777')", "511"),
        ("sprig.default('d', '')", "\"d\""),
        ("sprig.default('d', inputs.parameters.empty)", "\"d\""),
        ("sprig.default('d', 'x')", "\"x\""),
        ("sprig.empty([])", "true"),
        ("sprig.coalesce('', 0, 'a')", "\"a\""),
        ("sprig.ternary('y', 'n', true)", "\"y\""),
        ("sprig.fromJson('[1]')", "[1]"),
        ("sprig.toJson({a: '<'})", r#""{\"a\":\"\\u003c\"}""#),
        ("sprig.toRawJson({a: '<'})", r#""{\"a\":\"<\"}""#.replace('<', "\\u003c").as_str()),
        ("len(sprig.toRawJson('<'))", "3"),
        ("sprig.toPrettyJson({a: 1})", r#""{\n  \"a\": 1\n}""#),
        ("sprig.b64enc('foo')", "\"Zm9v\""),
        ("sprig.b64dec('Zm9v')", "\"foo\""),
        ("sprig.b32enc('foo')", "\"MZXW6===\""),
        ("sprig.b32dec('MZXW6===')", "\"foo\""),
        ("sprig.sha1sum('abc')", "\"a9993e364706816aba3e25717850c26c9cd0d89d\""),
        ("sprig.sha256sum('abc')", "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\""),
        ("sprig.adler32sum('Wikipedia')", "\"300286872\""),
    ]);
}

#[test]
fn patterns() {
    gives(&[
        ("sprig.regexMatch('^[a-z]+$', 'abc')", "true"),
        ("sprig.regexFind('[0-9]+', 'a12b34')", "\"12\""),
        ("sprig.regexFind('x', 'a')", "\"\""),
        ("sprig.regexFindAll('[0-9]', 'a1b2c3', -1)", "[\"1\",\"2\",\"3\"]"),
        ("sprig.regexFindAll('[0-9]', 'a1b2c3', 2)", "[\"1\",\"2\"]"),
        ("sprig.regexReplaceAll('a(x*)b', '-ab-axxb-', '${1}W')", "\"-W-xxW-\""),
        ("sprig.regexReplaceAllLiteral('a(x*)b', '-ab-axxb-', '${1}')", "\"-${1}-${1}-\""),
        ("sprig.regexSplit('z+', 'pizza', -1)", "[\"pi\",\"a\"]"),
        ("sprig.regexSplit('z', 'pizza', 2)", "[\"pi\",\"za\"]"),
        ("sprig.regexQuoteMeta('1.2')", "\"1\\\\.2\""),
    ]);
}

#[test]
fn dates_and_versions() {
    gives(&[
        ("sprig.date('2006-01-02', 1709193600)", "\"2024-02-29\""),
        ("sprig.dateModify('24h', date('2024-02-29')).Format('2006-01-02')", "\"2024-03-01\""),
        ("sprig.toDate('2006-01-02', '2024-02-29') | sprig.unixEpoch()", "\"1709164800\""),
        ("sprig.duration(95)", "\"1m35s\""),
        ("sprig.semver('v1.2.3-rc.1+b').Minor", "2"),
        ("sprig.semver('v1.2.3-rc.1+b').Prerelease", "\"rc.1\""),
        ("sprig.semverCompare('1.2.3', '1.2.3')", "true"),
        ("sprig.semverCompare('>=1.2, <2', '1.9.9')", "true"),
        ("sprig.semverCompare('>= 1.2 < 2', '2.0.0')", "false"),
        ("sprig.semverCompare('^1.2.0', '1.9.0')", "true"),
        ("sprig.semverCompare('^0.2.3', '0.3.0')", "false"),
        ("sprig.semverCompare('~1.2.3', '1.2.9')", "true"),
        ("sprig.semverCompare('~1.2.3', '1.3.0')", "false"),
        ("sprig.semverCompare('1.x', '1.9.0')", "true"),
        ("sprig.semverCompare('<1 || >=3', '3.1.0')", "true"),
        ("sprig.semverCompare('1.2 - 1.4', '1.3.0')", "true"),
        ("sprig.semverCompare('>1.0.0', '1.1.0-beta')", "false"),
        ("sprig.semverCompare('>1.0.0-0', '1.1.0-beta')", "true"),
        ("sprig.semverCompare('!=1.2.3', '1.2.4')", "true"),
    ]);
}

#[test]
fn what_an_expression_must_not_ask_is_refused_by_name() {
    refuses(&[
        ("sprig.env('HOME')", 7, "the environment of the engine"),
        ("sprig.expandenv('$HOME')", 7, "the environment of the engine"),
        ("sprig.genPrivateKey('rsa')", 7, "keys and secrets"),
        ("sprig.trimm('a')", 7, "unknown function 'sprig.trimm'; did you mean 'sprig.trim'?"),
        ("sprig.trim(1)", 7, "trim() needs a string as argument 1"),
        ("sprig.trim()", 7, "trim() takes 1 argument, not 0"),
        ("sprig.dateInZone('2006', 0, 'Europe/Berlin')", 7, "zone tables differ"),
    ]);
}

#[test]
fn pipes_reach_sprig() {
    gives(&[("' a ' | sprig.trim() | sprig.upper()", "\"A\""), ("[1, 2] | sprig.append(3) | len()", "3")]);
}
