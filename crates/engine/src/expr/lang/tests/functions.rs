//! The functions of the language itself.

use super::{gives, refuses};

#[test]
fn functions_with_closures() {
    gives(&[
        ("all([1, 2], # > 0)", "true"),
        ("all([], # > 0)", "true"),
        ("any([1, 2], # > 1)", "true"),
        ("any([], true)", "false"),
        ("one([1, 2, 2], # == 2)", "false"),
        ("one([1, 2], # == 2)", "true"),
        ("none([1, 2], # == 3)", "true"),
        ("map(1..3, # * #)", "[1,4,9]"),
        ("filter(1..6, # % 2 == 0)", "[2,4,6]"),
        ("find([1, 2, 3], # > 1)", "2"),
        ("find([1], # > 1)", "null"),
        ("findIndex([1, 2, 3], # > 1)", "1"),
        ("findIndex([1], # > 1)", "null"),
        ("findLast([1, 2, 3], # > 1)", "3"),
        ("findLastIndex([1, 2, 3], # < 3)", "1"),
        ("count([1, 2, 3], # > 1)", "2"),
        ("count([true, false, true])", "2"),
        ("sum([1, 2, 3])", "6"),
        ("sum([1, 2.5])", "3.5"),
        ("sum(users, .age)", "80"),
        ("sum([])", "0"),
        ("keys(groupBy(users, .age))", "[\"20\",\"30\"]"),
        ("map(groupBy(users, .age)['30'], .name)", "[\"ann\",\"cid\"]"),
        ("map(sortBy(users, .age), .name)", "[\"bob\",\"ann\",\"cid\"]"),
        ("map(sortBy(users, .name, 'desc'), .name)", "[\"cid\",\"bob\",\"ann\"]"),
        ("reduce(['a', 'b'], #acc + #, '-')", "\"-ab\""),
    ]);
}

#[test]
fn functions_on_text() {
    gives(&[
        ("trim('  a ')", "\"a\""),
        ("trim('__a_', '_')", "\"a\""),
        ("trimPrefix('HelloWorld', 'Hello')", "\"World\""),
        ("trimSuffix('HelloWorld', 'World')", "\"Hello\""),
        ("upper('aä')", "\"AÄ\""),
        ("lower('AÄ')", "\"aä\""),
        ("split('a,b,c', ',')", "[\"a\",\"b\",\"c\"]"),
        ("split('a,b,c', ',', 2)", "[\"a\",\"b,c\"]"),
        ("split('abc', '')", "[\"a\",\"b\",\"c\"]"),
        ("split('', ',')", "[\"\"]"),
        ("splitAfter('a,b', ',')", "[\"a,\",\"b\"]"),
        ("replace('aaa', 'a', 'b')", "\"bbb\""),
        ("replace('aaa', 'a', 'b', 2)", "\"bba\""),
        ("repeat('ab', 3)", "\"ababab\""),
        ("join(['a', 'b'], '-')", "\"a-b\""),
        ("join(['a', 'b'])", "\"ab\""),
        ("indexOf('apple pie', 'pie')", "6"),
        ("indexOf('a', 'b')", "-1"),
        ("lastIndexOf('a-b-c', '-')", "3"),
        ("hasPrefix('abc', 'a')", "true"),
        ("hasSuffix('abc', 'c')", "true"),
    ]);
}

#[test]
fn functions_on_arrays_and_maps() {
    gives(&[
        ("concat([1], [2, 3])", "[1,2,3]"),
        ("flatten([1, [2, [3, []]]])", "[1,2,3]"),
        ("uniq([1, 2, 1.0, 'a', 'a'])", "[1,2,\"a\"]"),
        ("reverse([1, 2])", "[2,1]"),
        ("first([1, 2])", "1"),
        ("first([])", "null"),
        ("last([1, 2])", "2"),
        ("take([1, 2, 3], 2)", "[1,2]"),
        ("take([1], 5)", "[1]"),
        ("sort([3, 1, 2])", "[1,2,3]"),
        ("sort(['b', 'a'], 'desc')", "[\"b\",\"a\"]"),
        ("mean([1, 2, 3, 6])", "3"),
        ("median([3, 1, 2])", "2"),
        ("median([1, 2, 3, 4])", "2.5"),
        ("min(3, 1, 2)", "1"),
        ("max([3, 1], 2.5)", "3"),
        ("keys({b: 1, a: 2})", "[\"a\",\"b\"]"),
        ("values({b: 1, a: 2})", "[2,1]"),
        ("toPairs({a: 1})", "[[\"a\",1]]"),
        ("fromPairs([['a', 1]])", "{\"a\":1}"),
        ("get({a: 1}, 'a')", "1"),
        ("get([1], 5)", "null"),
        ("get(nil, 'a')", "null"),
        ("len([1, 2])", "2"),
        ("len({a: 1})", "1"),
        ("len('äö')", "2"),
    ]);
}

#[test]
fn functions_on_numbers() {
    gives(&[
        ("abs(-5)", "5"),
        ("abs(-5.5)", "5.5"),
        ("ceil(1.2)", "2"),
        ("floor(1.8)", "1"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("bitand(6, 3)", "2"),
        ("bitor(6, 1)", "7"),
        ("bitxor(6, 3)", "5"),
        ("bitnand(6, 3)", "4"),
        ("bitnot(0)", "-1"),
        ("bitshl(1, 4)", "16"),
        ("bitshr(16, 2)", "4"),
        ("bitushr(-1, 63)", "1"),
        ("bitshl(1, 100)", "0"),
    ]);
}

#[test]
fn conversions() {
    gives(&[
        ("int('42')", "42"),
        ("int(4.9)", "4"),
        ("asInt('-7')", "-7"),
        ("asInt(inputs.parameters['my-count']) + 1", "4"),
        ("float('1.5')", "1.5"),
        ("asFloat('2')", "2"),
        ("string(1)", "\"1\""),
        ("string(1000000.0)", "\"1e+06\""),
        ("string(nil)", "\"\\u003cnil\\u003e\""),
        ("string([1, 'a'])", "\"[1 a]\""),
        ("string({a: 1})", "\"map[a:1]\""),
        ("type(nil)", "\"nil\""),
        ("type(1)", "\"int\""),
        ("type(1.0)", "\"float\""),
        ("type('')", "\"string\""),
        ("type([])", "\"array\""),
        ("type({})", "\"map\""),
        ("type(true)", "\"bool\""),
        ("toJSON({b: 1, a: [2]})", r#""{\n  \"a\": [\n    2\n  ],\n  \"b\": 1\n}""#),
        ("toJson({b: 1, a: '<'})", r#""{\"a\":\"\\u003c\",\"b\":1}""#),
        ("fromJSON('[1, {\"a\": null}]')", "[1,{\"a\":null}]"),
        ("fromJSON('9007199254740993')", "9007199254740993"),
        ("toBase64('hello')", "\"aGVsbG8=\""),
        ("fromBase64('aGVsbG8=')", "\"hello\""),
    ]);
}

#[test]
fn dates_and_durations() {
    gives(&[
        ("date('2024-02-29').Year()", "2024"),
        ("date('2024-02-29').Weekday()", "4"),
        ("date('2024-02-29') + duration('24h')", "\"2024-03-01T00:00:00Z\""),
        ("(date('2024-03-01') - date('2024-02-28')).Hours()", "48"),
        ("date('2024-02-29') < date('2024-03-01')", "true"),
        ("date('29/02/2024', '02/01/2006').Format('2006-01-02')", "\"2024-02-29\""),
        ("date('2024-02-29T10:00:00+02:00').Unix()", "1709193600"),
        ("string(duration('90m'))", "\"1h30m0s\""),
        ("duration('1h').Minutes()", "60"),
        ("duration('1h') > duration('30m')", "true"),
        ("duration('1h') * 2", "7200000000000"),
    ]);
    refuses(&[
        ("date('tomorrow')", 1, "'tomorrow' is not a date"),
        ("date('2024-01-01', '2006-01-02', 'Europe/Berlin')", 1, "zone tables differ"),
        ("duration('1x')", 1, "'1x' is not a duration"),
        ("date('2024-01-01').Yeer()", 1, "did you mean 'Year'?"),
    ]);
}

#[test]
fn json_paths() {
    gives(&[
        ("jsonpath('{\"a\":{\"b\":[1,2]}}', '$.a.b[0]')", "1"),
        ("jsonpath(inputs.parameters.json, '$.a[2].b')", "\"x\""),
        ("jsonpath(inputs.parameters.json, '$.a[-1]')", "{\"b\":\"x\"}"),
        ("jsonpath('{\"a\":[{\"x\":1},{\"x\":2}]}', '$..x')", "[1,2]"),
        ("jsonpath('{\"a\":[1,2,3]}', '$.a[*]')", "[1,2,3]"),
        ("jsonpath('{\"a\":[1,2,3]}', '$.a[0:2]')", "[1,2]"),
        ("jsonpath('{\"a b\":1}', \"$['a b']\")", "1"),
        ("jsonpath('{\"a\":1,\"b\":2}', \"$['a','b']\")", "[1,2]"),
        ("jsonpath('[{\"x\":1,\"n\":\"p\"},{\"x\":2,\"n\":\"q\"}]', '$[?(@.x==1)].n')", "[\"p\"]"),
        ("jsonpath('[{\"x\":1},{\"x\":5}]', '$[?(@.x > 1 && @.x < 9)]')", "[{\"x\":5}]"),
        ("jsonpath('[{\"x\":\"a\"},{\"y\":2}]', \"$[?(@.x == 'a' || @.y)]\")", "[{\"x\":\"a\"},{\"y\":2}]"),
        ("jsonpath('{\"a\":1}', '$')", "{\"a\":1}"),
        ("jsonpath('{\"a\":1}', 'a')", "1"),
        ("jsonpath('[]', '$[*]')", "[]"),
    ]);
    refuses(&[
        ("jsonpath('{}', '$.a')", 1, "'a' was not found"),
        ("jsonpath('{', '$.a')", 1, "is not JSON"),
        ("jsonpath('{}', '$.a[')", 1, "never closed"),
        ("jsonpath('[1]', '$[?(@ == x)]')", 1, "neither a path, a quoted text, nor a number"),
    ]);
}

#[test]
fn wrong_calls_are_refused_by_name() {
    refuses(&[
        ("lne('a')", 1, "unknown function 'lne'; did you mean 'len'?"),
        ("b64enc('a')", 1, "did you mean 'sprig.b64enc'?"),
        ("len()", 1, "len() takes 1 argument, not 0"),
        ("split('a')", 1, "split() takes 2 to 3 arguments, not 1"),
        ("upper(1)", 1, "upper() needs a string as argument 1, not int 1"),
        ("filter([1])", 1, "filter() needs a closure"),
        ("filter(1, true)", 1, "filter() needs an array as argument 1, not int 1"),
        ("filter([1], 5)", 1, "a closure that decides needs a bool"),
        ("join([1])", 1, "element 0 is int, not a string"),
        ("int('x')", 1, "'x' is not a whole number"),
        ("asInt('')", 1, "'' is not a whole number"),
        ("float(nil)", 1, "float() needs a number or a string as argument 1, not nil"),
        ("fromJSON('{')", 1, "'{' is not JSON (at line 1 column 1)"),
        ("fromBase64('*')", 1, "is not base64"),
        ("sort([1, 'a'])", 1, "have no order"),
        ("sort([1], 'up')", 1, "\"asc\" or \"desc\""),
        ("reduce([], #acc)", 1, "needs an initial value"),
        ("repeat('a', -1)", 1, "negative"),
        ("sum(['a'])", 1, "sum() adds numbers, but element 0 is string 'a'"),
        ("1 | 2", 5, "expected the name of a function after '|'"),
        ("'a'.upper()", 1, "string 'a' has no method 'upper'"),
        ("map([1], #, 3)", 1, "too many arguments"),
    ]);
}
