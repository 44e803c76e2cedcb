// A driver of kafkajs.
'use strict'

const { readFileSync } = require('node:fs')
const {
  CompressionCodecs,
  CompressionTypes,
  ConfigResourceTypes,
  Kafka,
  PartitionAssigners,
  Partitioners,
  logLevel,
} = require('kafkajs')
const { version } = require('kafkajs/package.json')
const { Cannot, Received, block, byTopic, data, keyOf, parts, placesOf, serve, text } = require('../lines.js')

const ASSIGNORS = { RoundRobinAssigner: PartitionAssigners.roundRobin }

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.ZSTD] = () => {
  const zstd = require('@bokuweb/zstd-wasm')
  const ready = zstd.init()
  return {
    compress: async ({ buffer }) => (await ready, Buffer.from(zstd.compress(buffer))),
    decompress: async (buffer) => (await ready, Buffer.from(zstd.decompress(buffer))),
  }
}
let lz4Missing = null
try {
  CompressionCodecs[CompressionTypes.LZ4] = new (require('kafkajs-lz4'))().codec
} catch (error) {
  lz4Missing = error
}

const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

// How the client authenticates: KSHIM_SECURITY, as secured.py has it.
function security() {
  const { protocol, mechanism, user, password, token, ca, certificate, key } = JSON.parse(
    process.env.KSHIM_SECURITY ?? '{}',
  )
  const read = (path) => path && readFileSync(path)
  const oauthBearerProvider = token && (async () => ({ value: token }))
  return {
    ssl: protocol?.endsWith('SSL') && { ca: [read(ca)], cert: read(certificate), key: read(key) },
    sasl: mechanism && { mechanism: mechanism.toLowerCase(), username: user, password, oauthBearerProvider },
  }
}

function headersOf(pairs) {
  const found = {}
  for (const [name, value] of pairs ?? []) (found[name] ??= []).push(data(value))
  return found
}

function messageOf({ key, value, partition, headers, timestamp }) {
  return {
    key: data(key),
    value: data(value),
    partition: partition ?? undefined,
    headers: headersOf(headers),
    timestamp: timestamp === undefined || timestamp === null ? undefined : String(timestamp),
  }
}

const recordOf = ({ topic, partition, message }) => ({
  topic,
  partition,
  offset: Number(message.offset),
  key: text(message.key),
  value: text(message.value),
  headers: Object.entries(message.headers).flatMap(([name, values]) =>
    [values].flat().map((value) => [name, text(value)]),
  ),
  timestamp: Number(message.timestamp),
})

const offsetsOf = (offsets) =>
  offsets.map(([topic, partition, offset, metadata]) => ({ topic, partition, offset: String(offset), metadata }))

class Driver {
  #kafka
  #consumers = new Map()
  #groups = 0

  constructor(bootstrap) {
    this.#kafka = new Kafka({
      ...security(),
      brokers: [bootstrap],
      logLevel: logLevel.WARN,
      logCreator: () => ({ namespace, log }) => console.error(namespace, JSON.stringify(log)),
    })
  }

  hello() {
    return ['kafkajs', version]
  }

  // ---- records

  async produce({ topic, records, acks = -1, compression = 'none', idempotent = false }) {
    if (compression === 'lz4' && lz4Missing) throw new Cannot(`no lz4: ${lz4Missing.message}`)
    const chosen = new Map() // the partition of each message, which the client does not tell
    const createPartitioner = () => {
      const partitioner = Partitioners.DefaultPartitioner()
      return (given) => {
        const partition = partitioner(given)
        chosen.set(given.message, partition)
        return partition
      }
    }
    const producer = this.#kafka.producer({ createPartitioner, idempotent, maxInFlightRequests: 1 })
    await producer.connect()
    try {
      const found = []
      for (const messages of parts(records.map(messageOf))) {
        const answered = await producer.send({ topic, messages, acks, compression: TYPES[compression] })
        const first = answered.map(({ partition, baseOffset }) => [partition, Number(baseOffset)])
        found.push(...placesOf(messages, (message) => chosen.get(message), first))
      }
      return found
    } finally {
      await producer.disconnect()
    }
  }

  // ---- consumers

  async open({
    name,
    topics,
    pattern,
    partitions,
    group,
    reset = 'earliest',
    assignors,
    instance,
    auto_commit: autoCommit = false,
    commit_on_revoke: commitOnRevoke = false,
    session_timeout_ms: sessionTimeout = 10_000,
    max_poll_interval_ms: rebalanceTimeout = 300_000,
    isolation = 'read_uncommitted',
  }) {
    if (partitions) throw new Cannot('no consumers without a group')
    if (pattern) throw new Cannot('a pattern is matched only once')
    if (instance) throw new Cannot('no static members')
    if (commitOnRevoke) throw new Cannot('no callback before partitions are given up')
    const unknown = (assignors ?? []).filter((each) => !(each in ASSIGNORS))
    if (unknown.length) throw new Cannot(`no assignor ${unknown}`)
    const groupId = group ?? `alone-${process.pid}-${++this.#groups}`
    const client = this.#kafka.consumer({
      groupId,
      partitionAssigners: (assignors ?? Object.keys(ASSIGNORS)).map((each) => ASSIGNORS[each]),
      sessionTimeout,
      rebalanceTimeout,
      heartbeatInterval: Math.floor(sessionTimeout / 4),
      metadataMaxAge: 500,
      maxWaitTimeInMs: 500,
      readUncommitted: isolation === 'read_uncommitted',
    })
    const received = new Received()
    const { GROUP_JOIN, REBALANCING, CRASH } = client.events
    client.on(GROUP_JOIN, ({ payload: { memberAssignment } }) =>
      received.assigned(
        Object.entries(memberAssignment).flatMap(([topic, numbers]) => numbers.map((number) => [topic, number])),
      ),
    )
    client.on(REBALANCING, () => received.revoked())
    client.on(CRASH, ({ payload: { error } }) => received.fail(error))
    await client.connect()
    await client.subscribe({ topics, fromBeginning: reset === 'earliest' })
    const started = client.run({ autoCommit, eachMessage: async (given) => received.add(recordOf(given)) })
    started.catch((error) => received.fail(error))
    this.#consumers.set(name, { client, groupId, received, started })
  }

  // The client of a consumer that has joined its group.
  async #running(name) {
    const { client, started } = this.#consumers.get(name)
    await started
    return client
  }

  take({ name, count, timeout_ms: timeoutMs }) {
    return this.#consumers.get(name).received.take(count, timeoutMs)
  }

  events({ name }) {
    return this.#consumers.get(name).received.events()
  }

  assignment({ name }) {
    return this.#consumers.get(name).received.assignment
  }

  async commit({ name, offsets = null, wait = true }) {
    const client = await this.#running(name)
    const { received } = this.#consumers.get(name)
    const done = client.commitOffsets(offsetsOf(offsets ?? [...received.next.values()]))
    if (wait) await done
    else done.catch((error) => received.fail(error))
  }

  async committed({ name, partitions }) {
    const { groupId } = this.#consumers.get(name)
    const topics = byTopic(partitions).map(({ topic }) => topic)
    const answered = await this.#admin((admin) => admin.fetchOffsets({ groupId, topics }))
    const found = new Map(
      answered.flatMap(({ topic, partitions: numbers }) =>
        numbers.map((each) => [keyOf(topic, each.partition), [Number(each.offset), each.metadata]]),
      ),
    )
    return partitions.map(([topic, partition]) => {
      const [offset, metadata] = found.get(keyOf(topic, partition))
      return offset < 0 ? null : [offset, metadata]
    })
  }

  async seek({ name, topic, partition, offset }) {
    const client = await this.#running(name)
    const { [offset]: place } = { beginning: 'low', end: 'high' }
    if (place) {
      const ends = await this.#admin((admin) => admin.fetchTopicOffsets(topic))
      offset = ends.find((each) => each.partition === partition)[place]
    }
    client.seek({ topic, partition, offset: String(offset) })
  }

  async seek_to_time({ name, topic, partition, timestamp_ms: timestampMs }) {
    const client = await this.#running(name)
    const found = await this.#admin((admin) => admin.fetchTopicOffsetsByTimestamp(topic, timestampMs))
    const { offset } = found.find((each) => each.partition === partition)
    client.seek({ topic, partition, offset })
  }

  async pause({ name, partitions }) {
    const client = await this.#running(name)
    client.pause(byTopic(partitions))
  }

  async resume({ name, partitions }) {
    const client = await this.#running(name)
    client.resume(byTopic(partitions))
  }

  stall({ ms }) {
    block(ms)
  }

  async close({ name }) {
    const client = await this.#running(name)
    this.#consumers.delete(name)
    await client.disconnect()
  }

  // ---- transactions

  async transact({ id, records, end, group, offsets }) {
    const producer = this.#kafka.producer({
      transactionalId: id,
      idempotent: true,
      maxInFlightRequests: 1,
      createPartitioner: Partitioners.DefaultPartitioner,
    })
    await producer.connect()
    try {
      const transaction = await producer.transaction()
      for (const [topic, record] of records) await transaction.send({ topic, messages: [messageOf(record)] })
      if (offsets) {
        const topics = offsetsOf(offsets).map(({ topic, ...each }) => ({ topic, partitions: [each] }))
        await transaction.sendOffsets({ consumerGroupId: group, topics })
      }
      await transaction[end]()
    } finally {
      await producer.disconnect()
    }
  }

  // ---- admin

  // `call(admin)` of a new client, which knows nothing of topics as they were.
  async #admin(call) {
    const admin = this.#kafka.admin()
    await admin.connect()
    try {
      return await call(admin)
    } finally {
      await admin.disconnect()
    }
  }

  async create_topic({ topic, partitions = 1, configs = {} }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const created = await this.#admin((admin) =>
      admin.createTopics({
        topics: [{ topic, numPartitions: partitions, configEntries }],
        waitForLeaders: false, // it fails if Apache Kafka does not know them yet; the scenarios wait themselves
      }),
    )
    if (!created) throw new Error(`${topic} exists`) // the client answers false
  }

  async delete_topic({ topic }) {
    await this.#admin((admin) => admin.deleteTopics({ topics: [topic] }))
  }

  async grow_topic({ topic, partitions }) {
    await this.#admin((admin) => admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] }))
  }

  async topics() {
    return (await this.#admin((admin) => admin.listTopics())).sort()
  }

  async ends({ topic }) {
    const found = await this.#admin((admin) => admin.fetchTopicOffsets(topic))
    found.sort((one, other) => one.partition - other.partition)
    return found.map(({ low, high }) => [Number(low), Number(high)])
  }

  async configs({ topic }) {
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }]
    const answered = await this.#admin((admin) => admin.describeConfigs({ resources, includeSynonyms: false }))
    return Object.fromEntries(answered.resources[0].configEntries.map((each) => [each.configName, each.configValue]))
  }

  async alter_configs({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }]
    await this.#admin((admin) => admin.alterConfigs({ resources }))
  }

  async groups() {
    const { groups } = await this.#admin((admin) => admin.listGroups())
    return groups.map(({ groupId }) => groupId).sort()
  }

  async group({ name }) {
    const { groups } = await this.#admin((admin) => admin.describeGroups([name]))
    return { state: groups[0].state, members: groups[0].members.length }
  }

  async delete_group({ name }) {
    await this.#admin((admin) => admin.deleteGroups([name]))
  }

  async delete_records({ topic, partition, offset }) {
    await this.#admin(async (admin) => {
      await admin.fetchTopicOffsets(topic) // the next call needs the topic's metadata, and does not fetch it
      await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] })
    })
  }
}

serve(new Driver(process.argv[2]))
