//! A consumer on a thread of its own, which polls it and carries out calls in between.

use std::collections::HashSet;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers};
use rdkafka::{ClientConfig, ClientContext, Message, Offset, TopicPartitionList};
use serde_json::{json, Value};

use crate::lines::{self, Answer, Failure, Open, Partition};
use crate::producing::TIMEOUT;

const POLL: Duration = Duration::from_millis(50);
const ASSIGNORS: [&str; 3] = ["range", "roundrobin", "cooperative-sticky"];

/// What the client tells its application about partitions.
#[derive(Default)]
struct Told {
    events: Vec<(&'static str, Vec<Partition>)>,
    /// Partitions read to the end. The client does not say of which topic.
    ends: HashSet<i32>,
}

#[derive(Clone, Default)]
struct Listener {
    told: Arc<(Mutex<Told>, Condvar)>,
    commit_on_revoke: bool,
}

impl Listener {
    fn note<T>(&self, note: impl FnOnce(&mut Told) -> T) {
        note(&mut self.told.0.lock().unwrap());
        self.told.1.notify_all();
    }

    fn wait_for_end(&self, partition: i32) -> Answer<()> {
        let (told, changed) = &*self.told;
        let unread = |told: &mut Told| !told.ends.contains(&partition);
        match changed.wait_timeout_while(told.lock().unwrap(), TIMEOUT, unread).unwrap().1.timed_out() {
            true => Err(Failure::new("Timeout", format!("the end of {partition} was not reached"))),
            false => Ok(()),
        }
    }
}

impl ClientContext for Listener {}

impl ConsumerContext for Listener {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let (kind, partitions) = match rebalance {
            Rebalance::Assign(found) => ("assigned", found),
            Rebalance::Revoke(found) if consumer.assignment_lost() => ("lost", found),
            Rebalance::Revoke(found) => ("revoked", found),
            Rebalance::Error(_) => return,
        };
        if kind == "revoked" && self.commit_on_revoke {
            if let Err(error) = commit_polled(consumer, CommitMode::Sync) {
                eprintln!("commit: {error}"); // the scenario finds it out
            }
        }
        self.note(|told| told.events.push((kind, pairs(partitions))));
    }
}

/// Commit what was polled.
fn commit_polled(client: &BaseConsumer<Listener>, mode: CommitMode) -> Result<(), KafkaError> {
    match client.commit_consumer_state(mode) {
        // All is committed already.
        Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset)) => Ok(()),
        result => result,
    }
}

type Client = BaseConsumer<Listener>;
type Call = Box<dyn FnOnce(&Client) + Send>;

pub struct Polling {
    listener: Listener,
    /// The consumer closes when this is gone.
    calls: Sender<Call>,
    records: Receiver<Answer>,
    thread: JoinHandle<()>,
}

impl Polling {
    pub fn open(config: &ClientConfig, a: Open) -> Answer<Polling> {
        let unknown = a.assignors.iter().find(|name| !ASSIGNORS.contains(&name.as_str()));
        if let Some(name) = unknown {
            return Err(Failure::Cannot(format!("no assignor {name}")));
        }
        let listener = Listener { commit_on_revoke: a.commit_on_revoke, ..Listener::default() };
        let client: Client = configured(config, &a).create_with_context(listener.clone())?;
        match (&a.partitions, &a.pattern) {
            (Some(partitions), _) => client.assign(&partitions_of(partitions))?,
            (None, Some(pattern)) => client.subscribe(&[pattern])?,
            (None, None) => client.subscribe(&a.topics.iter().map(String::as_str).collect::<Vec<_>>())?,
        }
        let (calls, received) = channel();
        let (sender, records) = channel();
        let told = listener.clone();
        let thread = thread::spawn(move || poll(client, received, sender, told));
        Ok(Polling { listener, calls, records, thread })
    }

    /// Carry out a call on the consumer's thread.
    fn call<T: Send + 'static>(&self, call: impl FnOnce(&Client) -> Answer<T> + Send + 'static) -> Answer<T> {
        let (sender, answer) = channel();
        let carried_out = move |client: &Client| drop(sender.send(call(client)));
        self.calls.send(Box::new(carried_out)).expect("the thread ends last");
        answer.recv().expect("every call is answered")
    }

    pub fn take(&self, a: lines::Take) -> Answer {
        let deadline = Instant::now() + Duration::from_millis(a.timeout_ms);
        let mut found = vec![];
        while found.len() < a.count {
            match self.records.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(record) => found.push(record?),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => panic!("the thread ends last"),
            }
        }
        Ok(Value::Array(found))
    }

    pub fn events(&self) -> Answer {
        Ok(json!(std::mem::take(&mut self.listener.told.0.lock().unwrap().events)))
    }

    pub fn assignment(&self) -> Answer {
        self.call(|client| Ok(json!(pairs(&client.assignment()?))))
    }

    pub fn commit(&self, a: lines::Commit) -> Answer {
        let mode = if a.wait { CommitMode::Sync } else { CommitMode::Async };
        self.call(move |client| {
            match a.offsets {
                Some(offsets) => client.commit(&offsets_of(&offsets)?, mode)?,
                None => commit_polled(client, mode)?,
            }
            Ok(Value::Null)
        })
    }

    pub fn committed(&self, a: lines::Partitions) -> Answer {
        self.call(move |client| {
            let found = client.committed_offsets(partitions_of(&a.partitions), TIMEOUT)?;
            let mut committed = vec![];
            for each in found.elements() {
                each.error()?;
                committed.push(match each.offset() {
                    Offset::Offset(offset) => json!([offset, each.metadata()]),
                    _ => Value::Null,
                });
            }
            Ok(Value::Array(committed))
        })
    }

    /// The client knows none before the first record: then it is the end, once that is reached.
    pub fn position(&self, a: lines::Position) -> Answer {
        let (topic, partition) = (a.topic.clone(), a.partition);
        let known = self.call(move |client| {
            let positions = client.position()?;
            Ok(positions.find_partition(&topic, partition).map(|found| found.offset()))
        })?;
        if let Some(Offset::Offset(offset)) = known {
            return Ok(json!(offset));
        }
        self.listener.wait_for_end(partition)?;
        self.call(move |client| Ok(json!(client.fetch_watermarks(&a.topic, a.partition, TIMEOUT)?.1)))
    }

    pub fn seek(&self, a: lines::Seek) -> Answer {
        let (partition, listener) = (a.partition, self.listener.clone());
        let offset = match a.offset {
            lines::Where::At(offset) => Offset::Offset(offset),
            lines::Where::Named(lines::Side::Beginning) => Offset::Beginning,
            lines::Where::Named(lines::Side::End) => Offset::End,
        };
        self.call(move |client| {
            listener.note(|told| told.ends.remove(&partition));
            Ok(client.seek(&a.topic, partition, offset, TIMEOUT)?)
        })?;
        if offset == Offset::End {
            self.listener.wait_for_end(partition)?; // The client asks for the end only afterwards.
        }
        Ok(Value::Null)
    }

    pub fn seek_to_time(&self, a: lines::SeekToTime) -> Answer {
        self.call(move |client| {
            let mut times = TopicPartitionList::new();
            times.add_partition_offset(&a.topic, a.partition, Offset::Offset(a.timestamp_ms))?;
            for found in client.offsets_for_times(times, TIMEOUT)?.elements() {
                found.error()?;
                client.seek(&a.topic, a.partition, found.offset(), TIMEOUT)?;
            }
            Ok(Value::Null)
        })
    }

    pub fn pause(&self, a: lines::Partitions) -> Answer {
        self.call(move |client| Ok(json!(client.pause(&partitions_of(&a.partitions))?)))
    }

    pub fn resume(&self, a: lines::Partitions) -> Answer {
        self.call(move |client| Ok(json!(client.resume(&partitions_of(&a.partitions))?)))
    }

    pub fn stall(&self, a: lines::Stall) -> Answer {
        let stalled = move |_: &Client| thread::sleep(Duration::from_millis(a.ms));
        self.calls.send(Box::new(stalled)).expect("the thread ends last");
        Ok(Value::Null)
    }

    pub fn close(self) -> Answer {
        drop(self.calls);
        match self.thread.join() {
            Ok(()) => Ok(Value::Null),
            Err(_) => Err(Failure::new("Panic", "the consumer's thread panicked")),
        }
    }
}

fn configured(config: &ClientConfig, a: &Open) -> ClientConfig {
    let mut config = config.clone();
    config
        .set("group.id", a.group.clone().unwrap_or_else(alone))
        .set("auto.offset.reset", &a.reset)
        .set("enable.auto.commit", a.auto_commit.to_string())
        .set("enable.partition.eof", "true")
        .set("session.timeout.ms", a.session_timeout_ms.to_string())
        .set("heartbeat.interval.ms", (a.session_timeout_ms / 4).to_string())
        .set("max.poll.interval.ms", a.max_poll_interval_ms.to_string())
        .set("topic.metadata.refresh.interval.ms", "500")
        .set("partition.assignment.strategy", a.assignors.join(","))
        .set("isolation.level", &a.isolation);
    if let Some(instance) = &a.instance {
        config.set("group.instance.id", instance);
    }
    config
}

/// A group of one: the client consumes only in a group.
fn alone() -> String {
    format!(
        "alone-{}-{}",
        std::process::id(),
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
    )
}

/// Poll until nobody can call any more; then the client closes.
fn poll(client: Client, calls: Receiver<Call>, records: Sender<Answer>, listener: Listener) {
    loop {
        match calls.try_recv() {
            Ok(call) => call(&client),
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => {
                if let Some(found) = polled(&client, &listener) {
                    let _ = records.send(found); // Nobody takes records of a consumer that closes.
                }
            }
        }
    }
}

fn polled(client: &Client, listener: &Listener) -> Option<Answer> {
    match client.poll(POLL)? {
        Ok(message) => Some(Ok(record_of(&message))),
        Err(KafkaError::PartitionEOF(partition)) => {
            listener.note(|told| told.ends.insert(partition));
            None
        }
        // The listener has been told; the next poll joins the group again.
        Err(KafkaError::MessageConsumption(RDKafkaErrorCode::PollExceeded)) => None,
        Err(error) => Some(Err(error.into())),
    }
}

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

fn record_of(message: &BorrowedMessage<'_>) -> Value {
    let headers: Vec<_> = message.headers().map_or(vec![], |headers| {
        headers.iter().map(|header| (header.key.to_string(), header.value.map(text))).collect()
    });
    json!({
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "key": message.key().map(text),
        "value": message.payload().map(text),
        "headers": headers,
        "timestamp": message.timestamp().to_millis(),
    })
}

fn pairs(partitions: &TopicPartitionList) -> Vec<Partition> {
    let mut found: Vec<_> =
        partitions.elements().iter().map(|each| (each.topic().to_string(), each.partition())).collect();
    found.sort();
    found
}

fn partitions_of(partitions: &[Partition]) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    for (topic, number) in partitions {
        list.add_partition(topic, *number);
    }
    list
}

pub fn offsets_of(offsets: &[lines::Offset]) -> Answer<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (topic, partition, offset, metadata) in offsets {
        let mut each = list.add_partition(topic, *partition);
        each.set_offset(Offset::Offset(*offset))?;
        each.set_metadata(metadata);
    }
    Ok(list)
}
