//! The calls of an administrator.

use std::collections::BTreeMap;

use futures_executor::block_on;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::{json, Value};

use crate::lines::{Answer, DeleteRecords, Failure, Group, Topic};
use crate::producing::TIMEOUT;

pub struct Admin {
    client: AdminClient<DefaultClientContext>,
    /// Some questions only consumers can ask; this one joins no group.
    asking: BaseConsumer,
    options: AdminOptions,
}

impl Admin {
    pub fn new(config: &ClientConfig) -> Answer<Admin> {
        Ok(Admin {
            client: config.create()?,
            asking: config.clone().set("group.id", "asks-only").create()?,
            options: AdminOptions::new().request_timeout(Some(TIMEOUT)).operation_timeout(Some(TIMEOUT)),
        })
    }

    pub fn create_topic(&self, a: Topic) -> Answer {
        let mut topic = NewTopic::new(&a.topic, a.partitions, TopicReplication::Fixed(1));
        topic.config = a.configs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        done(block_on(self.client.create_topics([&topic], &self.options))?)
    }

    pub fn delete_topic(&self, a: Topic) -> Answer {
        done(block_on(self.client.delete_topics(&[&a.topic], &self.options))?)
    }

    pub fn grow_topic(&self, a: Topic) -> Answer {
        let grown = NewPartitions::new(&a.topic, a.partitions as usize);
        done(block_on(self.client.create_partitions([&grown], &self.options))?)
    }

    pub fn topics(&self) -> Answer {
        let metadata = self.asking.fetch_metadata(None, TIMEOUT)?;
        Ok(metadata.topics().iter().map(|topic| topic.name()).collect())
    }

    pub fn ends(&self, a: Topic) -> Answer {
        let metadata = self.asking.fetch_metadata(Some(&a.topic), TIMEOUT)?;
        let count = metadata.topics().iter().map(|topic| topic.partitions().len() as i32).sum();
        let mut found = vec![];
        for partition in 0..count {
            found.push(json!(self.asking.fetch_watermarks(&a.topic, partition, TIMEOUT)?));
        }
        Ok(Value::Array(found))
    }

    pub fn configs(&self, a: Topic) -> Answer {
        let asked = [&ResourceSpecifier::Topic(&a.topic)];
        let mut configs = BTreeMap::new();
        for found in block_on(self.client.describe_configs(asked, &self.options))? {
            let entries = found.map_err(KafkaError::AdminOp)?.entries;
            configs.extend(entries.into_iter().map(|entry| (entry.name, entry.value)));
        }
        Ok(json!(configs))
    }

    /// The client has no incremental call: what is not named goes back to its default.
    pub fn alter_configs(&self, a: Topic) -> Answer {
        let mut altered = AlterConfig::new(ResourceSpecifier::Topic(&a.topic));
        altered.entries = a.configs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        done(block_on(self.client.alter_configs([&altered], &self.options))?)
    }

    pub fn groups(&self) -> Answer {
        let found = self.asking.fetch_group_list(None, TIMEOUT)?;
        Ok(found.groups().iter().map(|group| group.name()).collect())
    }

    pub fn group(&self, a: Group) -> Answer {
        let found = self.asking.fetch_group_list(Some(&a.name), TIMEOUT)?;
        match found.groups() {
            [group] => Ok(json!({ "state": group.state(), "members": group.members().len() })),
            _ => Err(Failure::new("Group", format!("no group {}", a.name))),
        }
    }

    pub fn delete_group(&self, a: Group) -> Answer {
        done(block_on(self.client.delete_groups(&[&a.name], &self.options))?)
    }

    pub fn delete_records(&self, a: DeleteRecords) -> Answer {
        let mut before = TopicPartitionList::new();
        before.add_partition_offset(&a.topic, a.partition, Offset::Offset(a.offset))?;
        for deleted in block_on(self.client.delete_records(&before, &self.options))?.elements() {
            deleted.error()?;
        }
        Ok(Value::Null)
    }
}

/// Null, or the first error.
fn done<T, N>(results: Vec<Result<T, (N, RDKafkaErrorCode)>>) -> Answer {
    match results.into_iter().find_map(Result::err) {
        Some((_, code)) => Err(KafkaError::AdminOp(code).into()),
        None => Ok(Value::Null),
    }
}
