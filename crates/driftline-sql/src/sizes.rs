//! Functions that make much of little. Nobody counts what a function makes while it makes it, so how much that will
//! be is worked out before.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

const NAMES: [(&str, Makes); 9] = [
    ("repeat", Makes::Repeated),
    ("lpad", Makes::Padded),
    ("rpad", Makes::Padded),
    ("range", Makes::Range),
    ("generate_series", Makes::Range),
    ("array_repeat", Makes::List),
    ("array_resize", Makes::List),
    ("replace", Makes::Replaced),
    ("regexp_replace", Makes::Matched),
];

/// Puts a bound on what one call of each of them may make: half of the memory that there is.
pub(crate) fn bound(registry: &mut dyn FunctionRegistry, memory: u64) -> Result<()> {
    for (name, makes) in NAMES {
        if let Ok(inner) = registry.udf(name) {
            registry.register_udf(Arc::new(ScalarUDF::from(Bounded { inner, makes, most: memory / 2 })))?;
        }
    }
    Ok(())
}

/// How large a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Makes {
    /// A text, so many times.
    Repeated,
    /// A text of so many characters.
    Padded,
    /// Every number or time from one to another.
    Range,
    /// A list of so many items.
    List,
    /// A text with each of its parts that is another text replaced.
    Replaced,
    /// The same, of whatever a pattern finds.
    Matched,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    makes: Makes,
    most: u64,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.inner.return_type(kinds)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(kinds)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = size(self.makes, &args)?;
        if bytes > u128::from(self.most) {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} would make {bytes} bytes, and {} are the most",
                self.name(),
                self.most
            )));
        }
        self.inner.invoke_with_args(args)
    }
}

/// Words as short as this, in the place of what a pattern finds, make nothing large.
const SHORT: u128 = 64;

/// How many bytes a call will make, or a little more.
fn size(makes: Makes, args: &ScalarFunctionArgs) -> Result<u128> {
    // One value for all rows is made once.
    let all_one = args.args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
    let rows = if all_one { 1 } else { args.number_rows };
    let array = |at: usize| args.args.get(at).map(|one| one.to_array(rows)).transpose();
    let (Some(first), second) = (array(0)?, array(1)?) else { return Ok(0) };
    match (makes, second) {
        (Makes::Repeated, Some(times)) => {
            let (texts, times) = (texts(&first)?, numbers(&times)?);
            Ok(sum(rows, |row| length(&texts, row) * number(&times, row)))
        }
        (Makes::Padded, Some(wanted)) => {
            let (texts, wanted) = (texts(&first)?, numbers(&wanted)?);
            // No character has more bytes than four, and a blank has one.
            let wide = if args.args.len() > 2 { 4 } else { 1 };
            Ok(sum(rows, |row| length(&texts, row) + wide * number(&wanted, row)))
        }
        (Makes::List, Some(count)) => {
            let (values, count) = (array(2)?.unwrap_or(first), numbers(&count)?);
            let one = (values.get_array_memory_size() as u128 / rows.max(1) as u128).max(1);
            Ok(sum(rows, |row| one * number(&count, row)))
        }
        (Makes::Replaced, Some(from)) => {
            let Some(to) = array(2)? else { return Ok(0) };
            let (texts, from, to) = (texts(&first)?, self::texts(&from)?, self::texts(&to)?);
            Ok(sum(rows, |row| match texts.is_null(row) || from.is_null(row) {
                true => 0,
                false => {
                    let found = texts.value(row).matches(from.value(row)).count() as u128;
                    length(&texts, row) + found * length(&to, row)
                }
            }))
        }
        (Makes::Matched, Some(_)) => {
            let Some(to) = array(2)? else { return Ok(0) };
            let (texts, to) = (texts(&first)?, self::texts(&to)?);
            // What a pattern finds is not looked for twice.
            Ok(sum(rows, |row| match length(&to, row) {
                ..=SHORT => 0,
                long => (length(&texts, row) + 1) * long,
            }))
        }
        (Makes::Range, second) => range(&first, second.as_ref(), array(2)?.as_ref(), rows),
        _ => Ok(0),
    }
}

/// Items of eight bytes, from the first to the last.
fn range(first: &ArrayRef, second: Option<&ArrayRef>, step: Option<&ArrayRef>, rows: usize) -> Result<u128> {
    const ITEM: u128 = 8;
    let (from, to) = match second {
        Some(second) => (Some(points(first)?), points(second)?),
        None => (None, points(first)?),
    };
    let step = step.map(steps).transpose()?;
    Ok(sum(rows, |row| {
        let of =
            |points: &Points| points.values.is_valid(row).then(|| points.unit * i128::from(points.values.value(row)));
        let (Some(from), Some(to)) = (from.as_ref().map_or(Some(0), of), of(&to)) else { return 0 };
        let step = step.as_ref().map_or(1, |steps| steps[row]).unsigned_abs();
        match step {
            0 => 0,
            step => ((to - from).unsigned_abs() / step + 1) * ITEM,
        }
    }))
}

/// Numbers as they are, and times in nanoseconds.
struct Points {
    values: Int64Array,
    unit: i128,
}

const DAY: i128 = 86_400_000_000_000;

fn points(array: &ArrayRef) -> Result<Points> {
    let unit = match array.data_type() {
        DataType::Date32 => DAY,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    };
    Ok(Points { values: numbers(array)?, unit })
}

fn steps(array: &ArrayRef) -> Result<Vec<i128>> {
    if *array.data_type() == DataType::Interval(IntervalUnit::MonthDayNano) {
        // The shortest that each can be.
        let step = |step| {
            let (months, days, nanoseconds) = IntervalMonthDayNanoType::to_parts(step);
            (i128::from(months) * 28 + i128::from(days)) * DAY + i128::from(nanoseconds)
        };
        return Ok(array.as_primitive::<IntervalMonthDayNanoType>().values().iter().map(|one| step(*one)).collect());
    }
    Ok(numbers(array)?.values().iter().map(|one| i128::from(*one)).collect())
}

fn numbers(array: &ArrayRef) -> Result<Int64Array> {
    // Dates have no other way to a number of 64 bits.
    let array = match array.data_type() {
        DataType::Date32 => cast(array, &DataType::Int32)?,
        _ => array.clone(),
    };
    Ok(cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn texts(array: &ArrayRef) -> Result<StringViewArray> {
    Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
}

fn length(texts: &StringViewArray, row: usize) -> u128 {
    if texts.is_null(row) { 0 } else { texts.value(row).len() as u128 }
}

fn number(numbers: &Int64Array, row: usize) -> u128 {
    if numbers.is_null(row) { 0 } else { u128::try_from(numbers.value(row)).unwrap_or(0) }
}

fn sum(rows: usize, of: impl Fn(usize) -> u128) -> u128 {
    (0..rows).map(of).fold(0, u128::saturating_add)
}
