//! Expressions that mean harm. Each ends in an error that names the limit it ran into; none is stopped by luck.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::time::Duration;

use jsonata::{Error, Expression, Functions, Input, Limits, Outcome};
use serde_json::{Value, json};

/// With so much time the clock stops nothing here: what stops it is the limit under test.
fn patient() -> Limits {
    Limits { time: Duration::from_mins(1), ..Limits::default() }
}

fn run(text: &str, data: &Value, limits: &Limits) -> Result<Outcome, Error> {
    Expression::parse(text, limits)?.evaluate(&Input::new(data, limits)?, &[], limits)
}

#[track_caller]
fn ends_in(code: &str, text: &str, limits: &Limits) {
    let shown: String = text.chars().take(120).collect();
    match run(text, &json!({"a": "x", "list": [1, 2, 3]}), limits) {
        Err(error) => assert!(error.is(code), "`{shown}` ended in {error}, not in {code}"),
        Ok(_) => panic!("`{shown}` had a result"),
    }
}

#[test]
fn a_text_cannot_grow_beyond_the_limit() {
    for text in [
        r#"$reduce([1..40], function($a, $b){$a & $a}, "x")"#,
        r#"($f := function($s){$f($s & $s)}; $f("x"))"#,
        r#"$reduce([1..40], function($a, $b){$join([$a, $a])}, "x")"#,
        r#"$reduce([1..40], function($a, $b){$join([$a, "-", $a], ",")}, "x")"#,
        r#"($j := $join; $reduce([1..40], function($a, $b){$j([$a, $a])}, "x"))"#,
        r#"($j := $join(?, "-"); $reduce([1..40], function($a, $b){$j([$a, $a])}, "x"))"#,
        r#"$reduce([1..40], function($a, $b){[$a, $a] ~> $join()}, "x")"#,
        r#"$reduce([1..40], function($a, $b){$replace($a, "x", "xx")}, "x")"#,
        r#"($r := $replace; $reduce([1..40], function($a, $b){$r($a, "x", "xx")}, "x"))"#,
        r#"$reduce([1..60], function($a, $b){$string([$a])}, "\"")"#,
        r#"$reduce([1..90], function($a, $b){$base64encode($a)}, "x")"#,
        r#"$reduce([1..40], function($a, $b){$string($a & $a)}, "x")"#,
        r#"$join($split($pad("", 20000), ""), $pad("", 20000))"#,
        r#"$replace($pad("", 20000), " ", $pad("", 20000))"#,
        r#"$replace($pad("", 20000), / /, $pad("", 20000))"#,
        r#"$pad("", 1e300)"#,
        r#"$pad("", -1e10, "ab")"#,
        r#"$pad("", 1e9)"#,
        "a.$pad(1e12)",
        r#"$map([1e9], $pad("", ?))"#,
        r#"("" ~> $pad(1e9))"#,
        r#"($p := $pad; $p("", 1e9))"#,
        r#"$formatInteger(1e20, "I")"#,
        r#"$formatInteger(1e20, a = "x" ? "i" : "1")"#,
        r#"[1e20].$formatInteger("I")"#,
        r#"1e20 ~> $formatInteger("I")"#,
        r#"($f := $formatInteger; $f(1e20, "i"))"#,
    ] {
        ends_in("U1101", text, &patient());
    }
    let steps = r#".{"a": a & a}"#.repeat(60);
    ends_in("U1101", &format!("${steps}"), &patient());
    let lines: String = (1..60).map(|at| format!("$v{at} := $v{} & $v{};", at - 1, at - 1)).collect();
    ends_in("U1101", &format!(r#"($v0 := "x"; {lines} 1)"#), &patient());
}

#[test]
fn a_value_cannot_grow_beyond_the_limit() {
    for text in [
        "$reduce([1..60], function($a, $b){[[$a], [$a]]}, [1])",
        "$reduce([1..60], function($a, $b){{'l': $a, 'r': $a}}, 1)",
        "$reduce([1..60], function($a, $b){$map([1, 2], function($x){$a})}, [1])",
        "$reduce([1..60], function($a, $b){$zip($a, $a)}, [1])",
        "$reduce([1..60], function($a, $b){$map([1, 2], function($x){$reverse($a)})}, [1])",
        "$reduce([1..60], function($a, $b){$map([1, 2], function($x){$x > 0 ? ($y := $a; $y) : 1})}, [1])",
        "$reduce([1..60], function($a, $b){$merge([{'l': $a}, {'r': $a}])}, 1)",
        "($f := function($v){$f({'l': $v, 'r': $v})}; $f(1))",
        "($f := function($v, $n){$n = 0 ? $v : $f([[$v], [$v]], $n - 1)}; $f([1], 60) = $f([1], 60))",
    ] {
        ends_in("U1102", text, &patient());
    }
    let steps = r#".{"a": [[a], [a]]}"#.repeat(60);
    ends_in("U1102", &format!("${steps}"), &patient());
}

#[test]
fn an_evaluation_cannot_put_together_more_than_the_limit() {
    for text in [
        "$reduce([1..60], function($a, $b){[$a, $a]}, [1])",
        r#"$reduce([1..40], function($a, $b){$replace($a, /x/, "$0$0")}, "x")"#,
        r#"$map([1..10000], function($i){$pad("", 100000)})"#,
        r#"($s := $pad("", 200000); $map([1..10000], function($i){$s & $i}))"#,
        r#"($s := $pad("", 200000); $map([1..10000], function($i){$split($s, "")}))"#,
        r#"($s := $pad("", 200000); $map([1..10000], function($i){$split($s, / /)}))"#,
        r#"($s := $pad("", 200000); $map([1..10000], function($i){$replace($s, / /, "-")}))"#,
    ] {
        ends_in("U1103", text, &patient());
    }
    ends_in("D2015", "$reduce([1..60], function($a, $b){$append($a, $a)}, [1])", &patient());
    ends_in("D2015", "[1..1e7]", &patient());
    ends_in("D2015", r#"$match($pad("", 100000), / /)"#, &patient());
}

#[test]
fn what_never_ends_is_ended() {
    for text in [
        "($f := function(){$f()}; $f())",
        "($f := function($n){$g($n + 1)}; $g := function($n){$f($n + 1)}; $f(0))",
        "($fib := function($n){$n < 2 ? $n : $fib($n - 1) + $fib($n - 2)}; $fib(40))",
        "$map([1..9999], function($a){$map([1..9999], function($b){$map([1..9999], function($c){$a + $b + $c})})})",
        "$sort([1..9999], function($a, $b){$count($filter([1..9999], function($c){$c < $a})) > $b})",
    ] {
        ends_in("D1012", text, &Limits::default());
    }
    for text in [
        "($f := function(){1 + $f()}; $f())",
        "($f := function($x){$map([1, 2], function($y){$f($y)})}; $f(1))",
        "($f := function($x){[$f($x)]}; $f(1))",
        "($y := function($f){$f($f) + 1}; $y($y))",
    ] {
        ends_in("D1011", text, &patient());
    }
    let all = Limits { functions: Functions::All, ..Limits::default() };
    let error = run(r#"($f := function(){$eval("$f()")}; $f())"#, &Value::Null, &all).unwrap_err();
    assert!(error.is("D1011") || error.is("D1012") || error.is("U1001"), "{error}");
}

#[test]
fn an_expression_cannot_nest_deeper_than_the_parser_goes() {
    let nested = |open: &str, inner: &str, close: &str| open.repeat(15_000) + inner + &close.repeat(15_000);
    for text in [
        nested("(", "1", ")"),
        nested("[", "1", "]"),
        nested("-", "1", ""),
        nested("1?", "1", ""),
        nested("1+(", "1", ")"),
    ] {
        ends_in("U1002", &text, &patient());
    }
    for text in [
        "$f(".repeat(8_000) + &")".repeat(8_000),
        "function(){".repeat(4_000) + &"}".repeat(4_000),
        r#"{"a":"#.repeat(8_000) + "1" + &"}".repeat(8_000),
        "a[".repeat(15_000) + "1" + &"]".repeat(15_000),
    ] {
        assert!(run(&text, &Value::Null, &patient()).is_err());
    }
    ends_in("U1105", &" ".repeat(70_000), &patient());
}

#[test]
fn a_regular_expression_takes_no_longer_than_the_text_is_long() {
    let text = json!({ "a": "a".repeat(60) + "!" });
    for regex in ["(a+)+$", "(a|aa)+$", "(a*)*b", "(.*a){20}$", "([a-z]+)*$"] {
        for function in ["$contains(a, /#/)", "$match(a, /#/)[0].index", "$split(a, /#/)[0]", "$replace(a, /#/, '')"] {
            let _ = run(&function.replace('#', regex), &text, &Limits::default());
        }
    }
    for text in ["$match(a, /((a{1000}){1000}){1000}/)", "/(x{9999}){9999}/", "a ~> /(?=((a{999}){999}){999})/"] {
        ends_in("U1108", text, &patient());
    }
    let backtracking = r"$contains(a, /(?=(a+))(?:a|aa)+\1$b/)";
    assert!(run(backtracking, &text, &patient()).unwrap_err().is("U1108"));
}

#[test]
fn a_large_list_is_not_compared_with_itself() {
    let limits = Limits { sequence: 200_000, ..patient() };
    let list: Vec<Value> = (0..100_000).map(|at| json!(at % 60_000)).collect();
    for text in ["$count($distinct(list))", "list ~> $distinct ~> $count", "$count($map([list], $distinct))"] {
        let outcome = run(text, &json!({ "list": list }), &limits);
        assert!(matches!(outcome, Ok(Outcome::Value(_))), "{outcome:?}");
    }
}

#[test]
fn what_differs_from_day_to_day_is_refused_unless_it_is_asked_for() {
    for name in ["now", "millis", "random", "shuffle", "eval"] {
        for text in [
            format!("${name}()"),
            format!("$map([1], ${name})"),
            format!("(1 ~> ${name})"),
            format!("($f := ${name}; $f([1]))"),
            format!("a[$count([${name}()]) = 1]"),
            format!("function($x){{${name}()}}"),
            format!("list^(${name}())"),
            format!("|$|{{'x': ${name}()}}|"),
        ] {
            let error = Expression::parse(&text, &Limits::default()).unwrap_err();
            assert!(error.is("U1104") && error.message.contains(&format!("${name}")), "`{text}`: {error}");
        }
    }
    let all = Limits { functions: Functions::All, ..patient() };
    for (text, expected) in
        [("$millis() > 0", json!(true)), ("$eval('1 + 1')", json!(2)), ("$count($shuffle([1]))", json!(1))]
    {
        assert_eq!(run(text, &Value::Null, &all).unwrap(), Outcome::Value(expected), "{text}");
    }
}

#[test]
fn what_is_run_by_eval_is_looked_at_as_well() {
    let all = Limits { functions: Functions::All, ..patient() };
    for text in [
        r#"$eval("$pad('', 1e300)")"#,
        r#"$eval("$p" & "ad('', 1e300)")"#,
        r#"$reduce([1..40], function($a, $b){$eval("$a & $a")}, "x")"#,
        r#"$reduce([1..40], function($a, $b){$eval("[[$a], [$a]]")}, "x")"#,
        r#"$eval("$eval('1')")"#,
        r#"$map(["$pad('', 1e300)"], $eval)"#,
        r#"("$pad('', 1e300)" ~> $eval())"#,
    ] {
        ends_in("U1104", text, &all);
    }
}

#[test]
fn a_variable_may_have_the_name_of_a_function_and_hides_no_attack() {
    let data = json!({"a": "x/y"});
    for (text, expected) in [
        ("($split := $split(a, '/'); $split[1])", json!("y")),
        ("($join := 'b'; $join & a)", json!("bx/y")),
        ("($match := function($s){$s & '!'}; $match(a))", json!("x/y!")),
        ("($distinct := function($s){1}; $distinct([a, a]))", json!(1)),
        ("$map([1, 2], function($pad){$pad + 1})", json!([2, 3])),
        ("$map(['b'], function($v, $string){$v & $string})", json!("b0")),
        ("($replace := $replace(a, '/', '-'); $replace)", json!("x-y")),
    ] {
        assert_eq!(run(text, &data, &patient()).unwrap(), Outcome::Value(expected), "{text}");
    }
    for (text, code) in [
        ("($x := $pad('', 1e300); $pad := 1)", "U1102"),
        ("($p := $pad; $pad := 1; $p('', 1e9))", "U1104"),
        ("($z := $zip; $z([1], [1]))", "U1104"),
        (
            "($x := function($r){$replace($r, 'x', $r)}; $s := $string(1); $replace := 1; $x($join($split([1..9999] & '', ''))))",
            "U1102",
        ),
    ] {
        ends_in(code, text, &patient());
    }
}

#[test]
fn a_panic_of_the_engine_is_an_error_of_the_expression() {
    ends_in("U1109", "$parseInteger(' x ', '###０')", &patient());
    assert_eq!(run("1 + 1", &Value::Null, &patient()).unwrap(), Outcome::Value(json!(2)));
}

#[test]
fn what_goes_in_and_what_comes_out_is_bounded() {
    let limits = patient();
    let large = json!("x".repeat(limits.input_bytes));
    assert!(Input::new(&large, &limits).unwrap_err().is("U1106"));
    let large = json!("x".repeat(limits.input_bytes - 100));
    assert!(run("[$, $]", &large, &limits).unwrap_err().is("U1107"));
}

#[test]
fn an_expression_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Expression>();
    let limits = patient();
    let expression = Expression::parse(r"$replace(a, /(x)(?!y)/, '$1$1') & '.'", &limits).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let input = Input::new(&json!({"a": "xyx"}), &limits).unwrap();
                assert_eq!(expression.evaluate(&input, &[], &limits).unwrap(), Outcome::Value(json!("xyxx.")));
            });
        }
    });
}
