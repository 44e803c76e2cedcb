//! The lines of the protocol, which the package `integration.clients.matrix` describes.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use rdkafka::error::KafkaError;
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{json, Value};

/// Why a call has no result.
pub enum Failure {
    /// The client has no such call.
    Cannot(String),
    Error {
        name: String,
        message: String,
    },
}

pub type Answer<T = Value> = Result<T, Failure>;

impl Failure {
    pub fn new(name: &str, message: impl ToString) -> Failure {
        Failure::Error { name: name.to_string(), message: message.to_string() }
    }
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Failure {
        let name = error.rdkafka_error_code().map_or("KafkaError".into(), |code| format!("{code:?}"));
        Failure::new(&name, error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::new("Arguments", error)
    }
}

/// [topic, number]
pub type Partition = (String, i32);
/// [topic, partition, offset, metadata]
pub type Offset = (String, i32, i64, String);

/// A record that is sent.
#[derive(Deserialize)]
pub struct Record {
    pub key: Option<String>,
    pub value: Option<String>,
    pub partition: Option<i32>,
    #[serde(default)]
    pub headers: Vec<(String, Option<String>)>,
    pub timestamp: Option<i64>,
}

#[derive(Deserialize)]
pub struct Produce {
    pub topic: String,
    pub records: Vec<Record>,
    #[serde(default = "all_acks")]
    pub acks: i16,
    #[serde(default = "no_compression")]
    pub compression: String,
    #[serde(default)]
    pub idempotent: bool,
}

fn all_acks() -> i16 {
    -1
}

fn no_compression() -> String {
    "none".into()
}

#[derive(Deserialize)]
#[serde(default)]
pub struct Open {
    pub topics: Vec<String>,
    pub pattern: Option<String>,
    pub partitions: Option<Vec<Partition>>,
    pub group: Option<String>,
    pub reset: String,
    pub assignors: Vec<String>,
    pub instance: Option<String>,
    pub auto_commit: bool,
    pub commit_on_revoke: bool,
    pub session_timeout_ms: u32,
    pub max_poll_interval_ms: u32,
    pub isolation: String,
}

impl Default for Open {
    fn default() -> Open {
        Open {
            topics: vec![],
            pattern: None,
            partitions: None,
            group: None,
            reset: "earliest".into(),
            assignors: vec!["range".into()],
            instance: None,
            auto_commit: false,
            commit_on_revoke: false,
            session_timeout_ms: 10_000,
            max_poll_interval_ms: 300_000,
            isolation: "read_uncommitted".into(),
        }
    }
}

#[derive(Deserialize)]
pub struct Transact {
    pub id: String,
    pub records: Vec<(String, Record)>,
    pub end: String,
    pub group: Option<String>,
    #[serde(default)]
    pub offsets: Vec<Offset>,
}

#[derive(Deserialize)]
pub struct Topic {
    pub topic: String,
    #[serde(default = "one")]
    pub partitions: i32,
    #[serde(default)]
    pub configs: BTreeMap<String, String>,
}

fn one() -> i32 {
    1
}

#[derive(Deserialize)]
pub struct Group {
    pub name: String,
}

#[derive(Deserialize)]
pub struct DeleteRecords {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
}

#[derive(Deserialize)]
pub struct Take {
    pub count: usize,
    pub timeout_ms: u64,
}

#[derive(Deserialize)]
pub struct Commit {
    pub offsets: Option<Vec<Offset>>,
    #[serde(default = "yes")]
    pub wait: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
pub struct Partitions {
    pub partitions: Vec<Partition>,
}

#[derive(Deserialize)]
pub struct Position {
    pub topic: String,
    pub partition: i32,
}

#[derive(Deserialize)]
pub struct Seek {
    pub topic: String,
    pub partition: i32,
    pub offset: Where,
}

/// An offset to seek to: a number, "beginning" or "end".
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Where {
    At(i64),
    Named(Side),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Beginning,
    End,
}

#[derive(Deserialize)]
pub struct SeekToTime {
    pub topic: String,
    pub partition: i32,
    pub timestamp_ms: i64,
}

#[derive(Deserialize)]
pub struct Stall {
    pub ms: u64,
}

/// The arguments of a call.
pub fn arguments<T: DeserializeOwned>(line: &Value) -> Answer<T> {
    Ok(T::deserialize(line)?)
}

/// Answer the lines of stdin until it ends.
pub fn serve(mut answer: impl FnMut(&str, &Value) -> Answer) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let reply = match answer(request["do"].as_str().unwrap_or_default(), &request) {
            Ok(is) => json!({ "is": is }),
            Err(Failure::Cannot(why)) => json!({ "cannot": why }),
            Err(Failure::Error { name, message }) => json!({ "error": name, "message": message }),
        };
        writeln!(output, "{reply}")?;
        output.flush()?;
    }
    Ok(())
}
