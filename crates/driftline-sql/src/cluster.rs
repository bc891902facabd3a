//! Queries and drift on a Ballista cluster: what is sent, and what comes back. The nodes are in `nodes.rs`.

mod codec;
pub(crate) mod jobs;
pub mod net;
pub mod nodes;

use std::sync::Arc;

use ballista_core::extension::{SessionConfigExt, SessionStateExt};
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::error::SqlError;
use crate::query::{Limits, config, state};

/// The largest message between nodes: a plan with the rows of `findings` in it is one.
const MESSAGE: u32 = 256 << 20;
/// Into how many parts work is cut; a small cluster has fewer processors, and a large one not many more streams.
const PARTS: usize = 8;

/// What a session of a cluster knows, on every node: how our tables are written down.
fn shared(config: SessionConfig) -> SessionConfig {
    config
        .with_target_partitions(PARTS)
        .upgrade_for_ballista()
        .with_ballista_grpc_client_max_message_size(MESSAGE as usize)
        // With it, a job that loses an executor at the wrong moment never ends (Ballista 55.0).
        .with_ballista_adaptive_query_planner(false)
        .with_ballista_logical_extension_codec(Arc::new(codec::Tables::default()))
        .with_option_extension(jobs::Wanted::default())
}

/// A session whose plans are run by a cluster.
pub(crate) async fn context(
    address: &str,
    environment: Arc<RuntimeEnv>,
    limits: &Limits,
) -> Result<SessionContext, SqlError> {
    reach(address).await?;
    let made = || {
        // A little more than is waited for here: what is taken back is told of in time.
        let wanted = jobs::Wanted { seconds: limits.time.as_secs().saturating_add(5) };
        let config = shared(config()).with_option_extension(wanted);
        let state = state(config, environment, limits.memory)?.upgrade_for_ballista(format!("http://{address}"))?;
        // Ballista brings a list of functions of its own.
        let mut state = state;
        crate::functions::register(&mut state, limits.memory)?;
        Ok(SessionContext::new_with_state(state))
    };
    made().map_err(|error| SqlError::of(error, limits))
}

/// Ballista tries for long before it says that nobody is there.
async fn reach(address: &str) -> Result<(), SqlError> {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
    let away = |what: String| SqlError::Away { address: address.to_owned(), what };
    match tokio::time::timeout(PATIENCE, tokio::net::TcpStream::connect(address)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(away(format!("cannot be reached: {error}"))),
        Err(_) => Err(away("does not answer".into())),
    }
}

/// An error of the cluster, in which that of one of its parts is only text, and often that of a Rust type.
pub(crate) fn told(error: DataFusionError, address: &str, limits: &Limits) -> SqlError {
    let text = error.to_string();
    if text.contains("Resources exhausted") || text.contains("ResourcesExhausted") {
        return SqlError::Cluster {
            address: address.to_owned(),
            what: "could not do it: an executor needs more memory than it may use".into(),
            hints: vec!["ask for fewer columns or rows, or start executors with a larger --memory".into()],
        };
    }
    if text.contains("serializing custom table") {
        return SqlError::Cluster {
            address: address.to_owned(),
            what: "cannot be asked for rows that a function makes, such as generate_series".into(),
            hints: vec!["without --engine this machine answers".into()],
        };
    }
    match SqlError::of(error, limits) {
        SqlError::Query { message, .. } => {
            // The job's name is of no use to whoever asked.
            let what = message.rsplit_once("failed: ").map_or(message.as_str(), |(_, what)| what);
            let what = format!("could not do it: {}", unwrapped(what));
            SqlError::Cluster { address: address.to_owned(), what, hints: Vec::new() }
        }
        other => other,
    }
}

/// What is inside of `A(B(C("text")))`, or of `A(B(SomeWord))` as words. Anything else is as it was.
fn unwrapped(text: &str) -> String {
    // What was going on comes first, and what went wrong after that.
    let begin = text.find('(').map_or(0, |open| {
        text[..open].rfind(|char: char| !char.is_ascii_alphanumeric()).map_or(0, |before| before + 1)
    });
    let is_name = |name: &str| name.starts_with(|char: char| char.is_ascii_uppercase());
    let mut inside = text[begin..].trim();
    let mut found = false;
    while let Some((name, rest)) = inside.split_once('(')
        && is_name(name)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        let end = rest.rfind(')').unwrap_or(rest.len());
        (inside, found) = (rest[..end].trim(), true);
    }
    if !found {
        return text.to_owned();
    }
    // A text in quotes, as Rust writes it: most of it is also JSON.
    if let Some(Ok(told)) = serde_json::Deserializer::from_str(inside).into_iter::<String>().next() {
        return told;
    }
    match is_name(inside) && inside.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        true => inside.chars().fold(String::new(), |mut words, char| {
            if char.is_ascii_uppercase() && !words.is_empty() {
                words.push(' ');
            }
            words.push(char.to_ascii_lowercase());
            words
        }),
        false => inside.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_taken_out_of_the_types_around_it() {
        for (text, told) in [
            ("Task failed: DataFusionError(Shared(External(ArrowError(DivideByZero))))", "divide by zero"),
            (
                r#"DataFusionError(ArrowError(CastError("Cannot cast string 'x\"(y)' to value of Int32 type"), None))"#,
                "Cannot cast string 'x\"(y)' to value of Int32 type",
            ),
            (r#"DataFusionError(Execution("no such file"))"#, "no such file"),
            ("the stage was lost (twice)", "the stage was lost (twice)"),
            ("lost", "lost"),
        ] {
            assert_eq!(unwrapped(text), told);
        }
    }

    #[test]
    fn memory_of_an_executor_is_not_that_of_who_asks() {
        let limits = Limits {
            time: std::time::Duration::from_secs(1),
            memory: 1,
            spill: 0,
            folder: std::path::PathBuf::new(),
            rows: None,
        };
        let error = DataFusionError::Execution("Job a failed: DataFusionError(ResourcesExhausted(\"x\"))".into());
        let told = told(error, "here:1", &limits);
        assert!(told.to_string().contains("an executor needs more memory"), "{told}");
        assert!(told.hints(crate::Allowing::default())[0].contains("start executors with a larger --memory"));
    }
}
