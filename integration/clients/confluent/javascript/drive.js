// Makes every call of Confluent's JavaScript client to a broker, and prints each answer as a line of JSON:
// {"step": …, "result": …}. Usage: node drive.js HOST:PORT PREFIX, which begins the names of all topics and groups.

const { KafkaJS } = require("@confluentinc/kafka-javascript");

const [bootstrap, prefix] = process.argv.slice(2);
const topic = `${prefix}-topic`;
const target = `${prefix}-target`;
const groupId = `${prefix}-group`;
const partitions = [0, 1, 2, 3];
const patienceMs = 20_000;
const kafka = new KafkaJS.Kafka({
  kafkaJS: { brokers: [bootstrap], logLevel: KafkaJS.logLevel.NOTHING },
});

function tell(step, result) {
  const plain = (_, value) => (typeof value === "bigint" ? String(value) : value);
  console.log(JSON.stringify({ step, result: result ?? null }, plain));
}

// The errors of a call that must fail: a code for each thing that it named, or the name of one error.
async function errorsOf(call) {
  try {
    return { answered: await call() };
  } catch (error) {
    const named = error.groups ?? error.partitions;
    return named ? named.map((each) => each.error.code) : [error.type ?? error.name];
  }
}

async function until(condition, what) {
  const deadlineMs = Date.now() + patienceMs;
  while (!(await condition())) {
    if (Date.now() > deadlineMs) throw new Error(`not within ${patienceMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function topics(admin) {
  tell("createTopics", await admin.createTopics({
    topics: [
      { topic, numPartitions: 4, configEntries: [{ name: "retention.ms", value: "-1" }] },
      { topic: target, numPartitions: 1, replicationFactor: 1 },
    ],
  }));
  tell("createTopics again", await admin.createTopics({ topics: [{ topic, numPartitions: 4 }] }));
  await until(async () => {
    const listed = await admin.listTopics();
    return listed.includes(topic) && listed.includes(target);
  }, "both topics are listed");
  const [described] = await admin.fetchTopicMetadata({ topics: [topic], includeAuthorizedOperations: true });
  tell("fetchTopicMetadata", described);
  tell("fetchTopicMetadata of all", (await admin.fetchTopicMetadata()).map((each) => each.name));
  tell("fetchTopicMetadata of none", await errorsOf(
    () => admin.fetchTopicMetadata({ topics: [`${prefix}-unknown`] })));
}

async function produce() {
  const producer = kafka.producer({
    kafkaJS: { idempotent: true, compression: KafkaJS.CompressionTypes.GZIP },
  });
  await producer.connect();
  // new ones for each call, because send() changes its headers
  const messages = () => partitions.map((partition) => ({
    partition,
    key: `key ${partition}`,
    value: `value ${partition}`,
    timestamp: String(1_000_000 + partition),
    headers: { origin: "drive.js" },
  }));
  tell("send", await producer.send({ topic, messages: messages() }));
  tell("sendBatch", await producer.sendBatch({ topicMessages: [{ topic, messages: messages() }] }));
  await producer.flush({ timeout: patienceMs });
  await producer.disconnect();
}

function newConsumer(clientId, config = {}) {
  return kafka.consumer({
    kafkaJS: { groupId, clientId, fromBeginning: true, autoCommit: false },
    "topic.metadata.refresh.interval.ms": 200,
    ...config,
  });
}

// Two members find the topic by a pattern, share its partitions and read all of it.
async function consume(admin) {
  const received = [];
  const consumers = ["first", "second"].map((name) => newConsumer(name));
  for (const consumer of consumers) {
    await consumer.connect();
    await consumer.subscribe({ topics: [new RegExp(`^${prefix}-top.*`)] });
    await consumer.run({
      eachMessage: async ({ topic: from, partition, message }) => {
        received.push({
          topic: from,
          partition,
          offset: message.offset,
          key: String(message.key),
          value: String(message.value),
          timestamp: message.timestamp,
          origin: String(message.headers.origin),
        });
      },
    });
  }
  const owned = () => consumers.map((consumer) => consumer.assignment().map((each) => each.partition).sort());
  await until(() => owned().every((each) => each.length === 2), "two members own two partitions each");
  tell("assignment", owned());
  const [group] = (await admin.describeGroups([groupId])).groups;
  tell("describeGroups", group);
  tell("deleteGroups that live", await errorsOf(() => admin.deleteGroups([groupId])));
  const seen = () => new Set(received.map(({ partition, offset }) => `${partition}-${offset}`)).size;
  await until(() => seen() === 8, "all eight messages");
  tell("received", received);
  const offsets = partitions.map((partition) => ({ topic, partition, offset: "2", metadata: "noted" }));
  for (const [index, consumer] of consumers.entries()) {
    await consumer.commitOffsets(offsets.filter(({ partition }) => owned()[index].includes(partition)));
  }
  tell("committed", await consumers[0].committed(undefined, patienceMs));
  tell("fetchOffsets", await admin.fetchOffsets({ groupId, topics: [topic], requireStableOffsets: true }));
  tell("fetchOffsets of all", await admin.fetchOffsets({ groupId }));
  tell("listGroups", (await admin.listGroups({
    matchConsumerGroupStates: [KafkaJS.ConsumerGroupStates.STABLE],
    matchConsumerGroupTypes: [KafkaJS.ConsumerGroupTypes.CLASSIC],
  })).groups.filter((each) => each.groupId === groupId));
  for (const consumer of consumers) await consumer.disconnect();
}

async function transact() {
  const producer = kafka.producer({ kafkaJS: { transactionalId: `${prefix}-tx` } });
  await producer.connect();
  const consumer = newConsumer("copies");
  await consumer.connect();
  await consumer.subscribe({ topics: [topic] });
  await consumer.run({ eachMessage: async () => {} });
  await until(() => consumer.assignment().length === 4, "one member owns all");
  for (const [value, end] of [["aborted", "abort"], ["committed", "commit"]]) {
    const transaction = await producer.transaction();
    await transaction.send({ topic: target, messages: [{ value }] });
    const offset = end === "commit" ? "1" : "0";
    await transaction.sendOffsets({
      consumer,
      topics: [{ topic, partitions: [{ partition: 0, offset }] }],
    });
    await transaction[end]();
  }
  await consumer.disconnect();
  await producer.disconnect();
  const reader = newConsumer("reads", { "group.id": `${prefix}-readers` });
  const values = [];
  await reader.connect();
  await reader.subscribe({ topics: [target] });
  await reader.run({ eachMessage: async ({ message }) => values.push(String(message.value)) });
  await until(() => values.includes("committed"), "what was committed");
  await reader.disconnect();
  tell("read committed", values);
}

async function clean(admin) {
  tell("fetchOffsets after the transaction", await admin.fetchOffsets({ groupId, topics: [topic] }));
  tell("fetchTopicOffsets", await admin.fetchTopicOffsets(topic));
  tell("fetchTopicOffsetsByTimestamp", await admin.fetchTopicOffsetsByTimestamp(topic, 1_000_002));
  tell("deleteTopicRecords", await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "1" }] }));
  tell("deleteTopicRecords beyond the end", await errorsOf(
    () => admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "9" }] })));
  tell("deleteGroups", (await admin.deleteGroups([groupId])).map(({ groupId: id, errorCode }) => [id, errorCode]));
  tell("deleteTopics", await admin.deleteTopics({ topics: [topic, target] }));
  await until(async () => !(await admin.listTopics()).includes(topic), "the topic is gone");
}

async function main() {
  const admin = kafka.admin();
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(admin));
  tell("methods", methods.filter((name) => name !== "constructor"));
  await admin.connect();
  await topics(admin);
  await produce();
  await consume(admin);
  await transact();
  await clean(admin);
  await admin.disconnect();
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
