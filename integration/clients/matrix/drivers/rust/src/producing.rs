//! Producers: each call makes one, and ends when all records are delivered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext, Message};
use serde_json::{json, Value};

use crate::consuming::offsets_of;
use crate::lines::{Answer, Failure, Produce, Record, Transact};

pub const TIMEOUT: Duration = Duration::from_secs(20);
const NO_OFFSET: i64 = -1;

type Delivered = Option<Result<(i32, i64), KafkaError>>;

/// What the client has told of each record, by the number that was sent with it.
#[derive(Clone, Default)]
struct Deliveries(Arc<Mutex<Vec<Delivered>>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        self.0.lock().unwrap()[number] = Some(match result {
            Ok(message) => Ok((message.partition(), message.offset().max(NO_OFFSET))),
            Err((error, _)) => Err(error.clone()),
        });
    }
}

/// A producer and what it has delivered.
struct Sender {
    producer: ThreadedProducer<Deliveries>,
    deliveries: Deliveries,
}

impl Sender {
    fn new(config: &ClientConfig) -> Answer<Sender> {
        let deliveries = Deliveries::default();
        Ok(Sender { producer: config.create_with_context(deliveries.clone())?, deliveries })
    }

    /// Send the records, and wait until all are delivered. The result: [[partition, offset], …]
    fn send(&self, records: &[(&str, &Record)]) -> Answer {
        self.deliveries.0.lock().unwrap().resize(records.len(), None);
        for (number, (topic, record)) in records.iter().enumerate() {
            self.producer.send(made(topic, record, number)).map_err(|(error, _)| error)?;
        }
        self.producer.flush(TIMEOUT)?;
        let mut found = vec![];
        for delivered in self.deliveries.0.lock().unwrap().drain(..) {
            match delivered {
                Some(Ok(place)) => found.push(json!(place)),
                Some(Err(error)) => return Err(error.into()),
                None => return Err(Failure::new("Timeout", "not all records were delivered")),
            }
        }
        Ok(Value::Array(found))
    }
}

fn made<'a>(topic: &'a str, record: &'a Record, number: usize) -> BaseRecord<'a, str, str, usize> {
    let mut made = BaseRecord::with_opaque_to(topic, number);
    made.key = record.key.as_deref();
    made.payload = record.value.as_deref();
    made.partition = record.partition;
    made.timestamp = record.timestamp;
    if !record.headers.is_empty() {
        made = made.headers(record.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
            headers.insert(Header { key, value: value.as_deref() })
        }));
    }
    made
}

pub fn produce(config: &ClientConfig, a: Produce) -> Answer {
    let mut config = config.clone();
    config
        .set("acks", a.acks.to_string())
        .set("compression.type", a.compression)
        .set("enable.idempotence", a.idempotent.to_string());
    let records: Vec<_> = a.records.iter().map(|record| (a.topic.as_str(), record)).collect();
    Sender::new(&config)?.send(&records)
}

pub fn transact(config: &ClientConfig, a: Transact) -> Answer {
    let sender = Sender::new(config.clone().set("transactional.id", &a.id))?;
    let producer = &sender.producer;
    producer.init_transactions(TIMEOUT)?;
    producer.begin_transaction()?;
    let records: Vec<_> = a.records.iter().map(|(topic, record)| (topic.as_str(), record)).collect();
    sender.send(&records)?;
    if let Some(group) = a.group {
        let member: BaseConsumer = config.clone().set("group.id", group).create()?;
        let metadata = member.group_metadata().ok_or(Failure::new("Group", "no metadata of it"))?;
        producer.send_offsets_to_transaction(&offsets_of(&a.offsets)?, &metadata, TIMEOUT)?;
    }
    match a.end.as_str() {
        "commit" => producer.commit_transaction(TIMEOUT)?,
        _ => producer.abort_transaction(TIMEOUT)?,
    }
    Ok(Value::Null)
}
