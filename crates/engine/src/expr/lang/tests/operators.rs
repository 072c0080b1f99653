//! Literals, operators and statements.

use super::{gives, refuses};

#[test]
fn literals_give_themselves() {
    gives(&[
        ("nil", "null"),
        ("null", "null"),
        ("true", "true"),
        ("42", "42"),
        ("0x2A", "42"),
        ("0o52", "42"),
        ("0b101010", "42"),
        ("1_000_000", "1000000"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("1e3", "1000"),
        ("1.5e-3", "0.0015"),
        ("'a'", "\"a\""),
        ("\"a\"", "\"a\""),
        ("`a\\n`", "\"a\\\\n\""),
        (r"'a\n\t\\\''", r#""a\n\t\\'""#),
        (r"'\x41\u00e9\u4e16'", "\"Aé世\""),
        (r"'\ud83d\ude00'", "\"😀\""),
        ("[1, 'a', nil,]", "[1,\"a\",null]"),
        ("[]", "[]"),
        ("{}", "{}"),
        ("{a: 1, 'b-c': 2, 3: 4, ('d' + 'e'): 5,}", r#"{"3":4,"a":1,"b-c":2,"de":5}"#),
        ("1 // one\n + 2 /* two */", "3"),
    ]);
}

#[test]
fn arithmetic_keeps_whole_numbers_whole_but_for_division() {
    gives(&[
        ("1 + 2", "3"),
        ("5 - 7", "-2"),
        ("3 * 4", "12"),
        ("7 / 2", "3.5"),
        ("4 / 2", "2"),
        ("type(4 / 2)", "\"float\""),
        ("7 % 3", "1"),
        ("-7 % 3", "-1"),
        ("2 ** 10", "1024"),
        ("2 ^ 3", "8"),
        ("type(2 ** 3)", "\"float\""),
        ("2 ** 3 ** 2", "512"),
        ("-2 ** 2", "-4"),
        ("1 + 2.5", "3.5"),
        ("-(1 + 2)", "-3"),
        ("+5", "5"),
        ("1 + 2 * 3 - 4 / 2", "5"),
        ("(1 + 2) * 3", "9"),
        ("10 - 2 - 3", "5"),
        ("'a' + 'b' + 'c'", "\"abc\""),
    ]);
}

#[test]
fn comparison_and_logic() {
    gives(&[
        ("1 == 1.0", "true"),
        ("1 == '1'", "false"),
        ("'a' != 'b'", "true"),
        ("[1, 2] == [1, 2.0]", "true"),
        ("{a: 1} == {a: 1}", "true"),
        ("nil == nil", "true"),
        ("nil == 0", "false"),
        ("1 < 2", "true"),
        ("2 <= 1.5", "false"),
        ("'a' < 'b'", "true"),
        ("1 < 2 < 3", "true"),
        ("1 < 3 < 2", "false"),
        ("true && false", "false"),
        ("true and not false", "true"),
        ("false || true", "true"),
        ("false or false", "false"),
        ("!true", "false"),
        ("!false == true", "true"),
        ("not (1 == 2)", "true"),
        ("false && missing", "false"),
        ("true || missing.x.y", "true"),
    ]);
}

#[test]
fn membership_and_search() {
    gives(&[
        ("2 in [1, 2]", "true"),
        ("2 not in [1, 2]", "false"),
        ("'a' in {a: 1}", "true"),
        ("'a' in nil", "false"),
        ("'abc' contains 'b'", "true"),
        ("'abc' not contains 'b'", "false"),
        ("'abc' startsWith 'ab'", "true"),
        ("'abc' endsWith 'bc'", "true"),
        ("'abc' matches '^a.c$'", "true"),
        ("'abc' not matches '[0-9]'", "true"),
        ("nil contains 'a'", "false"),
        ("not ('a' in ['b'])", "true"),
    ]);
}

#[test]
fn members_positions_and_slices() {
    gives(&[
        ("item.n", "7"),
        ("item['name']", "\"seven\""),
        ("item.nope", "null"),
        ("[1, 2, 3][0]", "1"),
        ("[1, 2, 3][-1]", "3"),
        ("users[1].name", "\"bob\""),
        ("[1, 2, 3, 4][1:3]", "[2,3]"),
        ("[1, 2, 3, 4][:-1]", "[1,2,3]"),
        ("[1, 2, 3, 4][2:]", "[3,4]"),
        ("[1, 2][:]", "[1,2]"),
        ("[1, 2][5:9]", "[]"),
        ("'hällo'[1:3]", "\"äl\""),
        ("nothing?.a.b.c", "null"),
        ("nothing?.a[0].b ?? 'x'", "\"x\""),
        ("nothing?.['a']", "null"),
        ("item?.n", "7"),
        ("item?.nope?.deeper", "null"),
        ("{in: 1}.in", "1"),
        ("{not: 2, matches: 3}.not", "2"),
    ]);
}

#[test]
fn ranges_include_both_ends() {
    gives(&[("1..3", "[1,2,3]"), ("3..1", "[]"), ("1..2+1", "[1,2,3]"), ("-1..1", "[-1,0,1]"), ("5..5", "[5]")]);
}

#[test]
fn choices_and_defaults() {
    gives(&[
        ("true ? 1 : 2", "1"),
        ("false ? 1 : true ? 2 : 3", "2"),
        ("1 > 2 ? 'a' : 'b'", "\"b\""),
        ("nil ?? 'x'", "\"x\""),
        ("nil ?? nil ?? 3", "3"),
        ("false ?? 1", "false"),
        ("(nil ?? 1) + 1", "2"),
        ("if 1 > 2 { 'a' } else { 'b' }", "\"b\""),
        ("if false {1} else if true {2} else {3}", "2"),
        ("true ?: false", "true"),
    ]);
}

#[test]
fn bindings_sequences_and_pipes() {
    gives(&[
        ("let x = 2; x * x", "4"),
        ("let x = 2; let y = x + 1; x * y", "6"),
        ("let x = 1; (let x = 2; x) + x", "3"),
        ("let item = 5; item", "5"),
        ("1; 2; 3", "3"),
        ("1; 2;", "2"),
        ("'  A b ' | trim() | lower() | split(' ')", "[\"a\",\"b\"]"),
        ("[3, 1, 2] | sort() | map(# * 2) | first()", "2"),
        ("-1 | abs()", "1"),
        ("::len('abc')", "3"),
    ]);
}

#[test]
fn closures_in_all_their_forms() {
    gives(&[
        ("filter([1, 2, 3], {# > 1})", "[2,3]"),
        ("filter([1, 2, 3], # > 1)", "[2,3]"),
        ("filter(users, {.age > 20})", r#"[{"age":30,"name":"ann"},{"age":30,"name":"cid"}]"#),
        ("map(users, .name)", "[\"ann\",\"bob\",\"cid\"]"),
        ("map(users, #.name)", "[\"ann\",\"bob\",\"cid\"]"),
        ("map([5, 6], #index)", "[0,1]"),
        ("reduce([1, 2, 3], #acc + #)", "6"),
        ("reduce([1, 2, 3], #acc + #index, 10)", "13"),
        ("map([1, 2], map([10, 20], # + 1))", "[[11,21],[11,21]]"),
        ("map([1, 2], {let x = #; map([10], # + x)})", "[[11],[12]]"),
        ("filter(['a', 'b'], # in ['b'])", "[\"b\"]"),
        ("map([1], {{v: #}})", "[{\"v\":1}]"),
    ]);
}

#[test]
fn mixed_kinds_are_refused_with_a_hint() {
    refuses(&[
        ("'1' < 2", 5, "use asInt"),
        ("'a' + 1", 5, "string(…)"),
        ("retries > 1", 9, "'>' does not work on string '2' and int 1"),
        ("1 && true", 3, "'&&' needs a bool, not int 1"),
        ("true && 1", 6, "'&&' needs a bool"),
        ("!1", 1, "'!' needs a bool"),
        ("-'a'", 1, "'-' needs a number"),
        ("1 ? 2 : 3", 3, "a condition needs a bool"),
        ("5.5 % 2", 5, "'%' needs whole numbers"),
        ("5 % 0", 3, "division by zero"),
        ("'a' in 'abc'", 5, "use 'contains'"),
        ("1 in 2", 3, "'in' needs an array or a map"),
        ("9223372036854775807 + 1", 21, "does not fit 64 bits"),
        ("1 / 0", 3, "+Inf, which is not a number"),
        ("nothing.x", 1, "cannot fetch 'x' from nil"),
        ("[1, 2][2]", 1, "index 2 is out of range: the length is 2"),
        ("item[1.5:2]", 1, "only arrays and strings can be sliced"),
        ("'a' matches '('", 5, "the pattern '(' is not valid"),
    ]);
}

#[test]
fn wrong_texts_are_refused_with_their_place() {
    refuses(&[
        ("", 1, "expected a value before the end"),
        ("1 +", 4, "expected a value before the end"),
        ("1 2", 3, "'2' cannot follow"),
        ("(1", 1, "this '(' is not closed before the end"),
        ("1)", 2, "nothing was opened that ')' could close"),
        ("[1, 2", 6, "expected ',' or ']' before the end"),
        ("{a 1}", 4, "expected ':' before '1'"),
        ("'abc", 1, "this text is never closed with '"),
        (r"'\q'", 2, r"'\q' is not an escape"),
        ("1abc", 1, "'1abc' is not a number"),
        ("99999999999999999999", 1, "not a whole number of 64 bits"),
        ("a @ b", 3, "'@' has no meaning here"),
        ("# + 1", 1, "there is no closure around it"),
        (".x", 1, "there is no closure around it"),
        ("map([1], #acc)", 10, "'#acc' is known inside reduce() only"),
        ("map([1], #foo)", 10, "'#foo' is unknown"),
        ("let in = 1; 2", 5, "'in' is a word of the language"),
        ("a ?? b + c", 8, "'+' and '??' cannot be mixed"),
        ("x.", 3, "expected the name of a member before the end"),
        ("/* x", 1, "this comment is never closed"),
        ("if true {1}", 12, "expected 'else' before the end"),
        ("true ? 1", 9, "expected ':' before the end"),
        ("foo(1, 2", 1, "unknown function 'foo'"),
        ("len(1, 2", 4, "this '(' is never closed"),
    ]);
}
