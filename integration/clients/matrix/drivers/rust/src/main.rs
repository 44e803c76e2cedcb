//! A driver of rdkafka, with the librdkafka that its crate brings.

mod admin;
mod consuming;
mod lines;
mod producing;

use std::collections::HashMap;

use rdkafka::ClientConfig;
use serde_json::{json, Value};

use crate::admin::Admin;
use crate::consuming::Polling;
use crate::lines::{arguments, Answer, Failure};

const LOCK: &str = include_str!("../Cargo.lock");

struct Driver {
    config: ClientConfig,
    admin: Admin,
    consumers: HashMap<String, Polling>,
}

impl Driver {
    fn new(bootstrap: &str) -> Answer<Driver> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", bootstrap);
        Ok(Driver { admin: Admin::new(&config)?, config, consumers: HashMap::new() })
    }

    fn answer(&mut self, call: &str, line: &Value) -> Answer {
        match call {
            "hello" => Ok(json!(["rdkafka", version()])),
            "produce" => producing::produce(&self.config, arguments(line)?),
            "transact" => producing::transact(&self.config, arguments(line)?),
            "create_topic" => self.admin.create_topic(arguments(line)?),
            "delete_topic" => self.admin.delete_topic(arguments(line)?),
            "grow_topic" => self.admin.grow_topic(arguments(line)?),
            "topics" => self.admin.topics(),
            "ends" => self.admin.ends(arguments(line)?),
            "configs" => self.admin.configs(arguments(line)?),
            "alter_configs" => self.admin.alter_configs(arguments(line)?),
            "groups" => self.admin.groups(),
            "group" => self.admin.group(arguments(line)?),
            "delete_group" => self.admin.delete_group(arguments(line)?),
            "delete_records" => self.admin.delete_records(arguments(line)?),
            _ => self.consume(call, line),
        }
    }

    /// The calls of a consumer, which has a name.
    fn consume(&mut self, call: &str, line: &Value) -> Answer {
        let name = line["name"].as_str().unwrap_or_default();
        let unknown = || Failure::new("Name", format!("no consumer {name}"));
        match call {
            "open" => {
                self.consumers.insert(name.to_string(), Polling::open(&self.config, arguments(line)?)?);
                return Ok(Value::Null);
            }
            "close" => return self.consumers.remove(name).ok_or_else(unknown)?.close(),
            _ => (),
        }
        let consumer = self.consumers.get(name).ok_or_else(unknown)?;
        match call {
            "take" => consumer.take(arguments(line)?),
            "events" => consumer.events(),
            "assignment" => consumer.assignment(),
            "commit" => consumer.commit(arguments(line)?),
            "committed" => consumer.committed(arguments(line)?),
            "position" => consumer.position(arguments(line)?),
            "seek" => consumer.seek(arguments(line)?),
            "seek_to_time" => consumer.seek_to_time(arguments(line)?),
            "pause" => consumer.pause(arguments(line)?),
            "resume" => consumer.resume(arguments(line)?),
            "stall" => consumer.stall(arguments(line)?),
            _ => Err(Failure::Cannot(format!("no {call}"))),
        }
    }
}

/// The version of rdkafka that this was built with.
fn version() -> &'static str {
    let rest = LOCK.split("name = \"rdkafka\"\nversion = \"").nth(1).expect("it is in the lock");
    rest.split('"').next().expect("a version")
}

fn main() {
    let bootstrap = std::env::args().nth(1).expect("the bootstrap address");
    let Ok(mut driver) = Driver::new(&bootstrap) else { panic!("no client for {bootstrap}") };
    lines::serve(|call, line| driver.answer(call, line)).expect("lines of JSON");
}
