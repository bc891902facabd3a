//! How long and how deep a question may be. What plans it calls itself for every step down, goes over all of it many
//! times, and cannot be stopped once it has begun: what is too large is refused before.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as Planned;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast::{Expr, Query, Select, TableFactor, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::SqlError;

/// Bytes of a question.
pub const LONGEST: usize = 1 << 20;
/// Words and signs, values and commas apart: a list of many values is long, and not deep.
const WORDS: usize = 50_000;
/// Words and signs by which types, lists and explanations nest; nobody counts them while they are read.
const NESTS: usize = 2_000;
/// Steps from an expression down to its innermost part; `a OR b OR c` has two.
const DEPTH: usize = 1_000;
/// `SELECT`s, and tables after `FROM`.
const PARTS: usize = 400;
/// The same, with what `WITH` names counted as often as it is used: a plan has it there as often.
const COPIES: usize = 1_000;
/// Steps of a plan.
const STEPS: usize = 10_000;

/// The words of SQL as it is read here.
pub(crate) const DIALECT: &dyn Dialect = &GenericDialect {};

/// Refuses what is too long or too deep to be planned. What is not SQL passes: who plans says what is wrong with it.
pub(crate) fn check(sql: &str) -> Result<(), SqlError> {
    if sql.len() > LONGEST {
        return Err(too_large(format!("it is longer than {}", crate::error::size(LONGEST as u64))));
    }
    let Ok(tokens) = Tokenizer::new(DIALECT, sql).tokenize() else { return Ok(()) };
    let words = tokens.iter().filter(|token| !is_flat(token)).count();
    if words > WORDS {
        return Err(too_large(format!("it has {words} words and signs, and {WORDS} are the most")));
    }
    let nests = tokens.iter().filter(|token| nests(token)).count();
    if nests > NESTS {
        return Err(too_large(format!("it has {nests} types, lists and EXPLAINs, and {NESTS} are the most")));
    }
    let Ok(statements) = DFParser::parse_sql_with_dialect(sql, DIALECT) else { return Ok(()) };
    let mut measure = Measure::default();
    for statement in &statements {
        if let ControlFlow::Break(reason) = measured(statement, &mut measure) {
            return Err(too_large(reason));
        }
    }
    Ok(())
}

/// The same of a plan, before anything is made of it.
pub(crate) fn check_plan(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut steps = 0;
    let counted: Planned<TreeNodeRecursion> = plan.apply_with_subqueries(|_| {
        steps += 1;
        Ok(if steps > STEPS { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    match counted {
        Ok(_) if steps > STEPS => {
            Err(too_large(format!("it needs more than {STEPS} steps, what WITH names counted as often as it is used")))
        }
        _ => Ok(()),
    }
}

fn too_large(reason: String) -> SqlError {
    SqlError::Large { reason }
}

/// What lies beside other things and never above them.
fn is_flat(token: &Token) -> bool {
    matches!(
        token,
        Token::Whitespace(_)
            | Token::Comma
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_)
    )
}

fn nests(token: &Token) -> bool {
    const WORDS: [&str; 8] = ["array", "struct", "map", "tuple", "nested", "nullable", "lowcardinality", "explain"];
    match token {
        Token::LBracket => true,
        Token::Word(word) => WORDS.iter().any(|name| word.value.eq_ignore_ascii_case(name)),
        _ => false,
    }
}

fn measured(statement: &Statement, measure: &mut Measure) -> ControlFlow<String> {
    match statement {
        Statement::Statement(statement) => statement.visit(measure),
        Statement::Explain(explain) => measured(&explain.statement, measure),
        // Everything else is no question.
        _ => ControlFlow::Continue(()),
    }
}

/// Goes through a question and stops where it is too deep or too wide.
#[derive(Default)]
struct Measure {
    depth: usize,
    parts: usize,
    /// The queries around the place, the innermost last.
    around: Vec<Inside>,
    /// What each name of a `WITH` stands for, counted; of several of one name, the most.
    named: BTreeMap<String, usize>,
}

/// What is known of a query while it is gone through.
#[derive(Default)]
struct Inside {
    copies: usize,
    /// The names of its `WITH`, by where each one's query is.
    names: Vec<(*const Query, String)>,
}

impl Measure {
    /// One more `SELECT` or table, which stands for so many.
    fn part(&mut self, stands_for: usize) -> ControlFlow<String> {
        self.parts += 1;
        if self.parts > PARTS {
            return ControlFlow::Break(format!("it has more than {PARTS} SELECTs and tables"));
        }
        self.copied(stands_for)
    }

    fn copied(&mut self, count: usize) -> ControlFlow<String> {
        let Some(inside) = self.around.last_mut() else { return ControlFlow::Continue(()) };
        inside.copies = inside.copies.saturating_add(count);
        match inside.copies > COPIES {
            true => ControlFlow::Break(format!(
                "it has more than {COPIES} SELECTs and tables, with what WITH names counted as often as it is used"
            )),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Measure {
    type Break = String;

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<String> {
        self.depth += 1;
        match self.depth > DEPTH {
            true => ControlFlow::Break(format!("an expression in it goes more than {DEPTH} steps down")),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<String> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        let named = query.with.iter().flat_map(|with| &with.cte_tables);
        let names = named.map(|one| (std::ptr::from_ref(one.query.as_ref()), one.alias.name.value.to_lowercase()));
        self.around.push(Inside { copies: 0, names: names.collect() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        let copies = self.around.pop().map_or(0, |inside| inside.copies);
        let names = self.around.last().map_or(&[][..], |inside| &inside.names);
        match names.iter().find(|(one, _)| std::ptr::eq(*one, query)) {
            Some((_, name)) => {
                let most = self.named.entry(name.clone()).or_default();
                *most = copies.max(*most);
                ControlFlow::Continue(())
            }
            None => self.copied(copies),
        }
    }

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<String> {
        self.part(1)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<String> {
        let name = match table {
            TableFactor::Table { name, .. } => name.0.last().and_then(|part| part.as_ident()),
            _ => None,
        };
        let named = name.and_then(|name| self.named.get(&name.value.to_lowercase()));
        self.part(named.map_or(1, |copies| copies.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(sql: &str) -> Option<String> {
        // As deep as the threads that queries run on.
        let sql = sql.to_owned();
        let run = move || check(&sql).err().map(|error| error.to_string());
        let thread = std::thread::Builder::new().stack_size(crate::query::STACK).spawn(run);
        thread.ok().and_then(|thread| thread.join().ok()).flatten()
    }

    #[test]
    fn what_is_deep_is_refused_and_what_is_only_long_is_not() {
        let many = |text: &str, between: &str, count: usize| vec![text; count].join(between);
        let doubled = |from: &str| {
            (1..30).fold("WITH c0 AS (SELECT 1 AS x)".to_owned(), |sql, at| {
                format!("{sql}, c{at} AS (SELECT {})", from.replace("{}", &(at - 1).to_string()))
            }) + " SELECT x FROM c29"
        };
        for (sql, refusal) in [
            (format!("SELECT {}", many("1", "+", 900)), None),
            (format!("SELECT {}", many("1", "+", 1_200)), Some("1000 steps down")),
            (format!("SELECT {}", many("1", "+", 30_000)), Some("1000 steps down")),
            (format!("SELECT {}", many("1", "+", 60_000)), Some("words and signs")),
            (format!("SELECT 1{}", "::int".repeat(20_000)), Some("1000 steps down")),
            (format!("SELECT a {} FROM t", "IS NULL ".repeat(20_000)), Some("1000 steps down")),
            (format!("SELECT 1 WHERE a IN ({})", many("'x'", ",", 100_000)), None),
            (many("SELECT 1", " UNION ALL ", 10_000), Some("400 SELECTs and tables")),
            (doubled("a.x FROM c{} a, c{} b"), Some("as often as it is used")),
            (
                doubled("x FROM (WITH c{} AS (SELECT 1 AS x) SELECT * FROM c{}) a, C{} b, c{} c"),
                Some("as often as it is used"),
            ),
            (doubled("x + 1 AS x FROM c{}"), None),
            (format!("SELECT 1 FROM {}", many("t", ",", 1_000)), Some("400 SELECTs and tables")),
            (format!("EXPLAIN SELECT {}", many("1", "+", 30_000)), Some("1000 steps down")),
            (format!("SELECT '{}'", "x".repeat(LONGEST)), Some("longer than 1 MiB")),
            (format!("{}SELECT 1", "EXPLAIN ".repeat(20_000)), Some("EXPLAINs")),
            (format!("SELECT CAST(1 AS {}", "ARRAY<".repeat(20_000)), Some("types, lists")),
            (format!("SELECT CAST(1 AS INT{})", "[]".repeat(20_000)), Some("types, lists")),
            (format!("SELECT CAST(1 AS INT{})", "[]".repeat(1_900)), None),
            (format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000)), None),
            ("SELECT 'open".to_owned(), None),
            ("SELECT FROM WHERE".to_owned(), None),
        ] {
            let said = checked(&sql);
            let begin: String = sql.chars().take(40).collect();
            match refusal {
                None => assert_eq!(said, None, "{begin}"),
                Some(words) => assert!(said.as_deref().is_some_and(|said| said.contains(words)), "{begin}: {said:?}"),
            }
        }
    }
}
