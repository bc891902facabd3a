//! Makes an expression safe to run, once, before it runs: what is not allowed is refused, regular expressions are
//! compiled, and a check is put in wherever a text or a value could grow without end.
//!
//! The engine looks at the time between steps, and knows no other bound on memory. A single step can be endless
//! (`$pad("", 1e300)`), and a few dozen doublings are over before any clock is looked at. So the checks come before the
//! step: `$pad(x, n)` becomes `$pad(x, width(n))`, where `width` hands on `n` or ends the evaluation.

use std::collections::BTreeSet;

use jsonata_core::ast::{AstNode, BinaryOp, Stage};
use jsonata_core::value::with_stack;

use crate::host::{Helper, Patterns};
use crate::limits::Functions;
use crate::{Error, Limits};

/// An expression that is ready to run, and what it needs for that.
pub(crate) struct Rewritten {
    pub node: AstNode,
    pub helpers: Vec<Helper>,
    pub patterns: Patterns,
}

pub(crate) fn rewrite(mut node: AstNode, limits: &Limits) -> Result<Rewritten, Error> {
    let mut size = Size::default();
    size.add(&mut node);
    // Nothing grows much in an expression that names nothing and puts few things together: what goes in is bounded, and
    // so is the number of times that it is copied.
    let grows = size.names || size.compositions > 4;
    let (helpers, patterns) = checked(&mut node, limits, grows, size.bound)?;
    Ok(Rewritten { node, helpers, patterns })
}

/// Whether an expression needs no check wherever it stands. What `$eval` runs is not rewritten, so it must be such.
pub(crate) fn is_tame(mut node: AstNode, limits: &Limits) -> bool {
    checked(&mut node, limits, true, BTreeSet::new()).is_ok_and(|(helpers, _)| helpers.is_empty())
}

fn checked(
    node: &mut AstNode,
    limits: &Limits,
    grows: bool,
    bound: BTreeSet<String>,
) -> Result<(Vec<Helper>, Patterns), Error> {
    let helpers = BTreeSet::new();
    let mut rewriter = Rewriter { functions: limits.functions, grows, bound, helpers, patterns: Patterns::default() };
    rewriter.visit(node)?;
    Ok((rewriter.helpers.into_iter().collect(), rewriter.patterns))
}

/// How often an expression could multiply what it is given, and the variables that it sets itself.
#[derive(Default)]
struct Size {
    bound: BTreeSet<String>,
    /// A function or a variable can be used any number of times.
    names: bool,
    compositions: usize,
}

impl Size {
    fn add(&mut self, node: &mut AstNode) {
        match node {
            AstNode::Lambda { params, .. } => {
                self.names = true;
                self.bound.extend(params.iter().cloned());
            }
            AstNode::Binary { op: BinaryOp::ColonEqual, lhs, .. } => {
                self.names = true;
                if let AstNode::Variable(name) = &**lhs {
                    self.bound.insert(name.clone());
                }
            }
            AstNode::Transform { .. } => self.names = true,
            AstNode::Binary { op: BinaryOp::Concatenate, lhs, rhs } if !is_constant(lhs) && !is_constant(rhs) => {
                self.compositions += 1;
            }
            AstNode::Array(items) | AstNode::ArrayGroup(items) => {
                self.compositions += items.iter().filter(|item| !is_constant(item)).count().saturating_sub(1);
            }
            AstNode::Object(members) | AstNode::ObjectTransform { pattern: members, .. } => {
                self.compositions += members.iter().filter(|(_, value)| !is_constant(value)).count().saturating_sub(1);
            }
            AstNode::Function { name, .. } if GROWING.contains(&name.as_str()) => self.compositions += 1,
            // Passed on as a value it may be called by anyone.
            AstNode::Variable(name) if arity(name).is_some() => self.names = true,
            AstNode::Path { steps } => {
                for step in steps {
                    let stages = step.stages.iter().filter_map(|stage| match stage {
                        Stage::Index(name) => Some(name),
                        Stage::Filter(_) | Stage::KeepArray => None,
                    });
                    let before = self.bound.len();
                    self.bound.extend(step.focus.iter().chain(&step.index_var).chain(stages).cloned());
                    self.names |= self.bound.len() > before;
                }
            }
            _ => {}
        }
        let done = each_child(node, &mut |child| {
            self.add(child);
            Ok(())
        });
        debug_assert!(done.is_ok(), "adding up cannot fail");
    }
}

/// Functions whose result may be longer than what they are given, by a factor.
const GROWING: [&str; 9] =
    ["append", "base64encode", "encodeUrl", "encodeUrlComponent", "eval", "merge", "spread", "string", "zip"];

/// How many parameters a function has that is looked at here, when it is passed on as a value.
fn arity(name: &str) -> Option<usize> {
    Some(match name {
        "base64encode" | "distinct" | "encodeUrl" | "encodeUrlComponent" | "merge" | "string" => 1,
        "append" | "eval" | "formatInteger" | "join" => 2,
        "pad" | "split" => 3,
        "replace" => 4,
        _ => return None,
    })
}

struct Rewriter {
    functions: Functions,
    grows: bool,
    /// A name of the language that the expression gives to something else may mean either, depending on where it stands.
    bound: BTreeSet<String>,
    helpers: BTreeSet<Helper>,
    patterns: Patterns,
}

impl Rewriter {
    fn visit(&mut self, node: &mut AstNode) -> Result<(), Error> {
        with_stack(|| self.visit_here(node))
    }

    fn visit_here(&mut self, node: &mut AstNode) -> Result<(), Error> {
        match node {
            AstNode::Variable(name) => {
                self.functions.allow(name)?;
                if name == "zip" && !self.bound.contains(name) {
                    // It takes any number of arguments, so nothing can stand in for it.
                    return Err(Error::coded("U1104", "$zip cannot be passed on as a value"));
                }
                match arity(name) {
                    Some(_) if self.bound.contains(name) => {
                        let inner = take(node);
                        *node = self.call(Helper::Own, vec![inner]);
                    }
                    Some(parameters) => {
                        *node = as_function(name, parameters);
                        return self.visit(node);
                    }
                    None => {}
                }
                return Ok(());
            }
            AstNode::Function { name, args, .. } => {
                self.functions.allow(name)?;
                if (arity(name).is_some() || name == "reduce")
                    && !self.bound.contains(name)
                    && args.iter().any(|arg| matches!(arg, AstNode::Placeholder))
                {
                    *node = partly_applied(name, std::mem::take(args));
                    return self.visit(node);
                }
            }
            AstNode::Binary { op: BinaryOp::ChainPipe, lhs, rhs } => {
                // `a ~> $f(b)` is `$f(a, b)`.
                if let AstNode::Function { name, args, .. } = &mut **rhs
                    && (arity(name).is_some() || is_called(name))
                    && !args.iter().any(|arg| matches!(arg, AstNode::Placeholder))
                {
                    args.insert(0, take(lhs));
                    *node = take(rhs);
                    return self.visit(node);
                }
            }
            AstNode::Regex { pattern, flags } => {
                *pattern = self.patterns.add(pattern, flags)?;
                return Ok(());
            }
            _ => {}
        }
        each_child(node, &mut |child| self.visit(child))?;
        self.check(node);
        Ok(())
    }

    /// Puts the checks into one node whose children have theirs.
    fn check(&mut self, node: &mut AstNode) {
        match node {
            AstNode::Binary { op: BinaryOp::Concatenate, lhs, rhs } if self.grows => {
                self.wrap(Helper::Text, lhs);
                self.wrap(Helper::Text, rhs);
            }
            AstNode::Array(items) | AstNode::ArrayGroup(items) if self.grows => {
                // A list within a list stays one, and what is in it has its own check.
                for item in items.iter_mut().filter(|item| !matches!(item, AstNode::Array(_))) {
                    self.wrap(Helper::Part, item);
                }
            }
            AstNode::Object(members) | AstNode::ObjectTransform { pattern: members, .. } if self.grows => {
                for (_, value) in members {
                    self.wrap(Helper::Part, value);
                }
            }
            AstNode::Lambda { body, .. } if self.grows => self.check_result(body),
            AstNode::Function { .. } => self.check_call(node),
            _ => {}
        }
    }

    /// Checks what a function gives. One that calls another function of the expression last must go on doing so, or
    /// recursion would take up the stack; the other function has its own check.
    fn check_result(&mut self, node: &mut AstNode) {
        match node {
            AstNode::Conditional { then_branch, else_branch, .. } => {
                self.check_result(then_branch);
                if let Some(node) = else_branch {
                    self.check_result(node);
                }
            }
            AstNode::Block(nodes) => {
                if let Some(node) = nodes.last_mut() {
                    self.check_result(node);
                }
            }
            AstNode::Function { name, .. } if self.bound.contains(name) || gives_a_scalar(name) => {}
            AstNode::Binary { op, .. } if !hands_on(*op) => {}
            // What is in a list or an object was checked when it was put there.
            AstNode::Call { .. }
            | AstNode::Unary { .. }
            | AstNode::Array(_)
            | AstNode::Object(_)
            | AstNode::Lambda { .. }
            | AstNode::Transform { .. }
            | AstNode::Regex { .. } => {}
            _ => self.wrap(Helper::Part, node),
        }
    }

    fn check_call(&mut self, node: &mut AstNode) {
        let AstNode::Function { name, args, .. } = node else { return };
        if self.bound.contains(name) {
            self.check_either(node);
            return;
        }
        if args.iter().any(|arg| matches!(arg, AstNode::Placeholder)) {
            return;
        }
        match name.as_str() {
            "eval" if !args.is_empty() => {
                let code = take(&mut args[0]);
                args[0] = self.call(Helper::Code, vec![code]);
            }
            "append" | "merge" | "zip" if self.grows => args.iter_mut().for_each(|arg| self.wrap(Helper::Part, arg)),
            "string" | "base64encode" | "encodeUrl" | "encodeUrlComponent" if self.grows => {
                if args.is_empty() {
                    args.push(context());
                }
                self.wrap(Helper::Text, &mut args[0]);
            }
            "pad" => args.iter_mut().for_each(|arg| self.wrap_number(Helper::Width, arg, 100_000.0)),
            "formatInteger" => {
                let roman = !matches!(args.last(), Some(AstNode::String(it)) if !it.contains(['i', 'I']));
                if roman && args.len() < 2 {
                    args.insert(0, context());
                }
                if roman {
                    for arg in args {
                        self.wrap_number(Helper::Numeral, arg, 100_000.0);
                    }
                }
            }
            "join" => {
                if self.grows && !args.is_empty() {
                    self.wrap(Helper::Part, &mut args[0]);
                }
                let bounded = match args.get(1) {
                    None => !self.grows,
                    Some(AstNode::String(it)) => !self.grows && it.len() < 16,
                    Some(_) => false,
                };
                if !bounded && !args.is_empty() {
                    let separator = args.get(1).cloned();
                    let list = take(&mut args[0]);
                    let given = std::iter::once(list).chain(separator).collect();
                    args[0] = self.call(Helper::Joined, given);
                }
            }
            "reduce" if args.len() == 2 => self.wrap(Helper::Items, &mut args[0]),
            "distinct" if args.len() == 1 => *node = self.call(Helper::Distinct, std::mem::take(args)),
            "split" if self.grows && !args.iter().any(|arg| matches!(arg, AstNode::Regex { .. })) => {
                if let Some(first) = args.first_mut() {
                    self.wrap(Helper::Cut, first);
                }
            }
            "match" => self.search(Helper::Match, node),
            "replace" => self.search(Helper::Replace, node),
            "contains" | "split" if args.iter().any(|arg| matches!(arg, AstNode::Regex { .. })) => {
                let helper = if name == "split" { Helper::Split } else { Helper::Contains };
                self.search(helper, node);
            }
            _ => {}
        }
    }

    /// A call of what may be a function of the language, or one of the expression's own: it is left to the engine, and
    /// each argument is held to what the worst of those functions could make of it.
    fn check_either(&mut self, node: &mut AstNode) {
        let AstNode::Function { name, args, .. } = node else { return };
        if arity(name).is_none() && !is_called(name) {
            return;
        }
        for arg in args.iter_mut().filter(|arg| !matches!(arg, AstNode::Placeholder | AstNode::Regex { .. })) {
            let inner = take(arg);
            *arg = self.call(Helper::Small, vec![inner]);
        }
    }

    /// Calls our own function instead of the engine's, with the context as its first argument. A function of the
    /// expression's own, as a matcher or a replacement, is something that only the engine can call.
    fn search(&mut self, helper: Helper, node: &mut AstNode) {
        let AstNode::Function { args, .. } = node else { return };
        if args.iter().any(|arg| matches!(arg, AstNode::Lambda { .. } | AstNode::Placeholder)) {
            return;
        }
        // What a call gives may be a function. It is called once, and what it gave gets a name.
        let is_call = |arg: &AstNode| {
            matches!(
                arg,
                AstNode::Function { .. } | AstNode::Call { .. } | AstNode::Conditional { .. } | AstNode::Block(_)
            )
        };
        if args.iter().skip(1).any(is_call) {
            let given = std::mem::take(args);
            *args = (0..given.len()).map(|at| AstNode::Variable(parameter(at))).collect();
            self.search(helper, node);
            let params = (0..given.len()).map(parameter).collect();
            let body = Box::new(take(node));
            let procedure = Box::new(AstNode::Lambda { params, body, signature: None, thunk: false });
            *node = AstNode::Call { procedure, args: given };
            return;
        }
        let variables: Vec<_> =
            args.iter().skip(1).filter(|arg| matches!(arg, AstNode::Variable(_))).cloned().collect();
        let given = std::iter::once(context()).chain(args.iter().cloned()).collect();
        let ours = self.call(helper, given);
        *node = if variables.is_empty() {
            ours
        } else {
            AstNode::Conditional {
                condition: Box::new(self.call(Helper::Plain, variables)),
                then_branch: Box::new(ours),
                else_branch: Some(Box::new(take(node))),
            }
        };
    }

    fn call(&mut self, helper: Helper, args: Vec<AstNode>) -> AstNode {
        self.helpers.insert(helper);
        AstNode::Function { name: helper.name().to_owned(), args, is_builtin: true }
    }

    fn wrap(&mut self, helper: Helper, node: &mut AstNode) {
        if !is_constant(node) {
            let inner = take(node);
            *node = self.call(helper, vec![inner]);
        }
    }

    /// The same for a number, which as a literal is known to be small.
    fn wrap_number(&mut self, helper: Helper, node: &mut AstNode, small: f64) {
        let number = match node {
            AstNode::Unary { operand, .. } => operand,
            _ => &*node,
        };
        match number {
            AstNode::Number(it) if it.abs() < small => {}
            AstNode::String(_) => {}
            _ => {
                let inner = take(node);
                *node = self.call(helper, vec![inner]);
            }
        }
    }
}

/// Functions that are looked at where they are called, but harmless as a value.
fn is_called(name: &str) -> bool {
    matches!(name, "contains" | "match" | "reduce" | "zip")
}

/// An operator whose result may be one of its sides.
fn hands_on(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::ChainPipe | BinaryOp::Coalesce | BinaryOp::ColonEqual | BinaryOp::Default)
}

/// A function whose result is a number, a text or a truth value. Our own count as such: they have bounds.
fn gives_a_scalar(name: &str) -> bool {
    name.contains(' ')
        || matches!(
            name,
            "abs"
                | "average"
                | "base64decode"
                | "base64encode"
                | "boolean"
                | "ceil"
                | "contains"
                | "count"
                | "decodeUrl"
        )
        || matches!(
            name,
            "decodeUrlComponent"
                | "encodeUrl"
                | "encodeUrlComponent"
                | "exists"
                | "floor"
                | "formatBase"
                | "formatInteger"
        )
        || matches!(
            name,
            "formatNumber" | "fromMillis" | "join" | "length" | "lowercase" | "max" | "min" | "not" | "number"
        )
        || matches!(
            name,
            "pad" | "parseInteger" | "power" | "replace" | "round" | "sqrt" | "string" | "substring" | "sum"
        )
        || matches!(name, "substringAfter" | "substringBefore" | "toMillis" | "trim" | "type" | "uppercase")
}

/// A literal, or a call with nothing but literals.
fn is_constant(node: &AstNode) -> bool {
    let literal = |node: &AstNode| {
        matches!(
            node,
            AstNode::String(_) | AstNode::Number(_) | AstNode::Boolean(_) | AstNode::Null | AstNode::Undefined
        )
    };
    match node {
        AstNode::Function { args, .. } => !args.is_empty() && args.iter().all(literal),
        _ => literal(node),
    }
}

fn take(node: &mut AstNode) -> AstNode {
    std::mem::replace(node, AstNode::Null)
}

/// `$`
fn context() -> AstNode {
    AstNode::Variable(String::new())
}

fn parameter(at: usize) -> String {
    format!("parameter {at}")
}

fn lambda(parameters: usize, name: &str, args: Vec<AstNode>) -> AstNode {
    let call = AstNode::Function { name: name.to_owned(), args, is_builtin: true };
    AstNode::Lambda {
        params: (0..parameters).map(parameter).collect(),
        body: Box::new(call),
        signature: None,
        thunk: true,
    }
}

/// `$pad`, passed on as a value, is `function($s, $n, $c) { $pad($s, $n, $c) }`, where the checks have their place.
fn as_function(name: &str, parameters: usize) -> AstNode {
    lambda(parameters, name, (0..parameters).map(|at| AstNode::Variable(parameter(at))).collect())
}

/// `$pad(?, 8)` is `function($s) { $pad($s, 8) }`.
fn partly_applied(name: &str, mut args: Vec<AstNode>) -> AstNode {
    let mut open = 0;
    for arg in args.iter_mut().filter(|arg| matches!(arg, AstNode::Placeholder)) {
        *arg = AstNode::Variable(parameter(open));
        open += 1;
    }
    lambda(open, name, args)
}

type Visit<'v> = dyn FnMut(&mut AstNode) -> Result<(), Error> + 'v;

/// Every node beneath a node. No variant is left to chance: a new one must be added here to compile.
fn each_child(node: &mut AstNode, visit: &mut Visit<'_>) -> Result<(), Error> {
    match node {
        AstNode::String(_)
        | AstNode::Name(_)
        | AstNode::Number(_)
        | AstNode::Boolean(_)
        | AstNode::Null
        | AstNode::Undefined
        | AstNode::Placeholder
        | AstNode::Regex { .. }
        | AstNode::Variable(_)
        | AstNode::ParentVariable(_)
        | AstNode::Wildcard
        | AstNode::Descendant
        | AstNode::Parent(_) => Ok(()),
        AstNode::Path { steps } => steps.iter_mut().try_for_each(|step| {
            visit(&mut step.node)?;
            step.stages.iter_mut().try_for_each(|stage| match stage {
                Stage::Filter(node) => visit(node),
                Stage::KeepArray | Stage::Index(_) => Ok(()),
            })
        }),
        AstNode::Binary { op, lhs, rhs } => {
            // The left side of `:=` and the like is a name, not a use of it.
            if !matches!(op, BinaryOp::ColonEqual | BinaryOp::FocusBind | BinaryOp::IndexBind) {
                visit(lhs)?;
            }
            visit(rhs)
        }
        AstNode::Unary { operand, .. } => visit(operand),
        AstNode::Function { args, .. } => args.iter_mut().try_for_each(visit),
        AstNode::Call { procedure, args } => {
            visit(procedure)?;
            args.iter_mut().try_for_each(visit)
        }
        AstNode::Lambda { body, .. } => visit(body),
        AstNode::Array(items) | AstNode::ArrayGroup(items) | AstNode::Block(items) => {
            items.iter_mut().try_for_each(visit)
        }
        AstNode::Object(members) => each_member(members, visit),
        AstNode::ObjectTransform { input, pattern } => {
            visit(input)?;
            each_member(pattern, visit)
        }
        AstNode::Conditional { condition, then_branch, else_branch } => {
            visit(condition)?;
            visit(then_branch)?;
            else_branch.iter_mut().try_for_each(|node| visit(node))
        }
        AstNode::FunctionApplication(inner) => visit(inner),
        AstNode::Sort { input, terms } => {
            visit(input)?;
            terms.iter_mut().try_for_each(|(term, _)| visit(term))
        }
        AstNode::Transform { location, update, delete } => {
            visit(location)?;
            visit(update)?;
            delete.iter_mut().try_for_each(|node| visit(node))
        }
    }
}

fn each_member(members: &mut [(AstNode, AstNode)], visit: &mut Visit<'_>) -> Result<(), Error> {
    members.iter_mut().try_for_each(|(name, value)| {
        visit(name)?;
        visit(value)
    })
}
