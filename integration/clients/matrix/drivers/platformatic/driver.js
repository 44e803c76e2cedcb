// A driver of @platformatic/kafka.
'use strict'

const path = require('node:path')
const zlib = require('node:zlib')
const {
  Admin,
  ConfigResourceTypes,
  Consumer,
  FetchIsolationLevels,
  IncrementalAlterConfigOperationTypes,
  ListOffsetTimestamps,
  MessagesStreamFallbackModes,
  MessagesStreamModes,
  Producer,
  defaultPartitioner,
} = require('@platformatic/kafka')
const { Cannot, Received, block, byTopic, data, keyOf, parts, placesOf, serve, text } = require('../lines.js')
const { version } = require(path.join(require.resolve('@platformatic/kafka'), '..', '..', 'package.json'))

// The version of the subscriptions, by assignor: owned partitions come with version 1, generations with 2.
const ASSIGNORS = { roundrobin: 1, 'cooperative-sticky': 3 }
const NO_EPOCH = -1
// Without, the client says that it is producer 0, and is fenced when another one has had its transactional id.
const NEW_PRODUCER = { producerId: -1n, producerEpoch: -1 }

const messageOf = (topic, { key, value, partition, headers, timestamp }) => ({
  topic,
  key: data(key),
  value: data(value),
  partition: partition ?? undefined,
  headers: new Map((headers ?? []).map(([name, each]) => [data(name), data(each)])),
  timestamp: timestamp === undefined || timestamp === null ? undefined : BigInt(timestamp),
})

const recordOf = (message) => ({
  topic: message.topic,
  partition: message.partition,
  offset: Number(message.offset),
  key: text(message.key),
  value: text(message.value),
  headers: [...message.headers].map(([name, value]) => [text(name), text(value)]),
  timestamp: Number(message.timestamp),
})

const pairsOf = (assignments) =>
  (assignments ?? []).flatMap(({ topic, partitions }) => partitions.map((number) => [topic, number]))

class Driver {
  #options
  #consumers = new Map()
  #groups = 0

  constructor(bootstrap) {
    this.#options = { clientId: 'matrix', bootstrapBrokers: [bootstrap] }
  }

  hello() {
    return ['@platformatic/kafka', version]
  }

  // ---- records

  async produce({ topic, records, acks = -1, compression = 'none', idempotent = false }) {
    if (compression === 'zstd' && !zlib.zstdCompressSync) throw new Cannot('no zstd with this version of Node')
    const producer = new Producer({ ...this.#options, idempotent })
    try {
      const found = []
      for (const messages of parts(records.map((record) => messageOf(topic, record)))) {
        const chosen = new Map() // the partition of each message without one, which the client does not tell
        const partitioner = (message, key) => {
          const partition = defaultPartitioner(message, key)
          chosen.set(message, partition)
          return partition
        }
        const { offsets = [] } = await producer.send({ messages, acks, compression, partitioner })
        const first = offsets.map(({ partition, offset }) => [partition, Number(offset)])
        const count = (await producer.metadata({ topics: [topic] })).topics.get(topic).partitionsCount
        found.push(...placesOf(messages, (message) => message.partition ?? chosen.get(message) % count, first))
      }
      return found
    } finally {
      await producer.close()
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
    auto_commit: autocommit = false,
    commit_on_revoke: commitOnRevoke = false,
    session_timeout_ms: sessionTimeout = 10_000,
    max_poll_interval_ms: rebalanceTimeout = 300_000,
    isolation = 'read_uncommitted',
  }) {
    if (partitions) throw new Cannot('no consumers without a group')
    if (pattern) throw new Cannot('no patterns')
    if (commitOnRevoke) throw new Cannot('no callback before partitions are given up')
    const unknown = (assignors ?? []).filter((each) => !(each in ASSIGNORS))
    if (unknown.length) throw new Cannot(`no assignor ${unknown}`)
    const client = new Consumer({
      ...this.#options,
      groupId: group ?? `alone-${process.pid}-${++this.#groups}`,
      ...(assignors ? { protocols: assignors.map((name) => ({ name, version: ASSIGNORS[name] })) } : {}),
      ...(instance ? { groupInstanceId: instance } : {}),
      sessionTimeout,
      rebalanceTimeout,
      heartbeatInterval: Math.floor(sessionTimeout / 4),
      metadataMaxAge: 500,
      maxWaitTime: 500,
      isolationLevel: FetchIsolationLevels[isolation.toUpperCase()],
    })
    const received = new Received()
    client.on('consumer:group:join', ({ assignments }) => received.assigned(pairsOf(assignments)))
    client.on('consumer:group:rebalance', () => received.revoked())
    client.on('error', (error) => received.fail(error))
    const how = { topics, autocommit, fallbackMode: MessagesStreamFallbackModes[reset.toUpperCase()] }
    const consumer = { client, how, received, stream: null, started: null }
    this.#consumers.set(name, consumer)
    this.#consume(consumer, { mode: MessagesStreamModes.COMMITTED })
  }

  #consume(consumer, where) {
    const { client, how, received } = consumer
    consumer.started = client.consume({ ...how, ...where }).then((stream) => {
      stream.on('data', (message) => received.add(recordOf(message)))
      stream.on('error', (error) => received.fail(error))
      consumer.stream = stream
    })
    consumer.started.catch((error) => received.fail(error))
  }

  // A consumer that has joined its group.
  async #running(name) {
    const consumer = this.#consumers.get(name)
    await consumer.started
    return consumer
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
    const { client, received } = await this.#running(name)
    const named = offsets ?? [...received.next.values()]
    if (named.some(([, , , metadata]) => metadata)) throw new Cannot('no metadata of offsets')
    if (!named.length) return
    const done = client.commit({
      offsets: named.map(([topic, partition, offset]) => ({
        topic,
        partition,
        offset: BigInt(offset),
        leaderEpoch: NO_EPOCH,
      })),
    })
    if (wait) await done
    else done.catch((error) => received.fail(error))
  }

  async committed({ name, partitions }) {
    const { groupId } = this.#consumers.get(name).client
    const topics = byTopic(partitions).map((each) => ({ name: each.topic, partitionIndexes: each.partitions }))
    const [answered] = await this.#admin((admin) => admin.listConsumerGroupOffsets({ groups: [{ groupId, topics }] }))
    const found = new Map(
      answered.topics.flatMap(({ name: topic, partitions: numbers }) =>
        numbers.map((each) => [keyOf(topic, each.partitionIndex), [Number(each.committedOffset), each.metadata]]),
      ),
    )
    return partitions.map(([topic, partition]) => {
      const [offset, metadata] = found.get(keyOf(topic, partition)) ?? [-1]
      return offset < 0 ? null : [offset, metadata]
    })
  }

  async position({ name, topic, partition }) {
    const { stream } = await this.#running(name)
    return Number(stream.offsetsToFetch.get(`${topic}:${partition}`))
  }

  // The client has no seek: the application ends the stream, and begins another one at offsets that it names.
  async seek({ name, topic, partition, offset }) {
    const consumer = await this.#running(name)
    if (offset === 'beginning') offset = await this.#offsetAt(topic, partition, ListOffsetTimestamps.EARLIEST)
    if (offset === 'end') offset = await this.#offsetAt(topic, partition, ListOffsetTimestamps.LATEST)
    const next = new Map(consumer.received.next)
    next.set(keyOf(topic, partition), [topic, partition, offset])
    await consumer.stream.close()
    this.#consume(consumer, {
      mode: MessagesStreamModes.MANUAL,
      offsets: [...next.values()].map(([at, number, each]) => ({ topic: at, partition: number, offset: BigInt(each) })),
    })
    await consumer.started
  }

  async seek_to_time({ name, topic, partition, timestamp_ms: timestampMs }) {
    const found = await this.#offsetAt(topic, partition, BigInt(timestampMs))
    await this.seek({ name, topic, partition, offset: found < 0 ? 'end' : found })
  }

  async #offsetAt(topic, partition, timestamp) {
    const [found] = await this.#admin((admin) => this.#offsetsAt(admin, topic, [partition], timestamp))
    return found
  }

  pause() {
    throw new Cannot('pauses all partitions or none')
  }

  resume() {
    throw new Cannot('pauses all partitions or none')
  }

  stall({ ms }) {
    block(ms)
  }

  async close({ name }) {
    const { client } = await this.#running(name)
    this.#consumers.delete(name)
    await client.close(true)
  }

  // ---- transactions

  async transact({ id, records, end, group, offsets }) {
    const producer = new Producer({ ...this.#options, ...NEW_PRODUCER, transactionalId: id, idempotent: true })
    try {
      const transaction = await producer.beginTransaction()
      for (const [topic, record] of records) await transaction.send({ messages: [messageOf(topic, record)] })
      for (const offset of offsets ?? []) await this.#addOffset(transaction, group, offset)
      await transaction[end]()
    } finally {
      await producer.close()
    }
  }

  // The client commits, in a transaction, only messages that a member of the group has consumed.
  async #addOffset(transaction, groupId, [topic, partition, offset]) {
    const client = new Consumer({ ...this.#options, groupId, maxWaitTime: 500 })
    try {
      const stream = await client.consume({
        topics: [topic],
        autocommit: false,
        mode: MessagesStreamModes.MANUAL,
        offsets: [{ topic, partition, offset: BigInt(offset - 1) }],
      })
      await transaction.addConsumer(client)
      for await (const message of stream) {
        if (message.partition !== partition) continue
        await transaction.addOffset(message)
        break
      }
    } finally {
      await client.close(true)
    }
  }

  // ---- admin

  // `call(admin)` of a new client, which knows nothing of topics as they were.
  async #admin(call) {
    const admin = new Admin(this.#options)
    try {
      return await call(admin)
    } finally {
      await admin.close()
    }
  }

  async create_topic({ topic, partitions = 1, configs = {} }) {
    const named = Object.entries(configs).map(([name, value]) => ({ name, value }))
    await this.#admin((admin) => admin.createTopics({ topics: [topic], partitions, replicas: 1, configs: named }))
  }

  async delete_topic({ topic }) {
    await this.#admin((admin) => admin.deleteTopics({ topics: [topic] }))
  }

  async grow_topic({ topic, partitions }) {
    await this.#admin((admin) => admin.createPartitions({ topics: [{ name: topic, count: partitions }] }))
  }

  async topics() {
    return (await this.#admin((admin) => admin.listTopics())).sort()
  }

  async ends({ topic }) {
    return this.#admin(async (admin) => {
      const { partitionsCount } = (await admin.metadata({ topics: [topic] })).topics.get(topic)
      const numbers = [...Array(partitionsCount).keys()]
      const first = await this.#offsetsAt(admin, topic, numbers, ListOffsetTimestamps.EARLIEST)
      const end = await this.#offsetsAt(admin, topic, numbers, ListOffsetTimestamps.LATEST)
      return numbers.map((number) => [first[number], end[number]])
    })
  }

  async #offsetsAt(admin, topic, numbers, timestamp) {
    const partitions = numbers.map((partitionIndex) => ({ partitionIndex, timestamp }))
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions }] })
    const offsets = new Map(found.partitions.map((each) => [each.partitionIndex, Number(each.offset)]))
    return numbers.map((number) => offsets.get(number))
  }

  async configs({ topic }) {
    const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }]
    const [{ configs }] = await this.#admin((admin) => admin.describeConfigs({ resources }))
    return Object.fromEntries(configs.map(({ name, value }) => [name, value]))
  }

  async alter_configs({ topic, configs }) {
    const set = Object.entries(configs).map(([name, value]) => ({
      name,
      value,
      configOperation: IncrementalAlterConfigOperationTypes.SET,
    }))
    const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs: set }]
    await this.#admin((admin) => admin.incrementalAlterConfigs({ resources }))
  }

  async groups() {
    return [...(await this.#admin((admin) => admin.listGroups())).keys()].sort()
  }

  async group({ name }) {
    const found = (await this.#admin((admin) => admin.describeGroups({ groups: [name] }))).get(name)
    const state = found.state.toLowerCase()
    return { state: state[0].toUpperCase() + state.slice(1), members: found.members.size }
  }

  async delete_group({ name }) {
    await this.#admin((admin) => admin.deleteGroups({ groups: [name] }))
  }

  async delete_records({ topic, partition, offset }) {
    const partitions = [{ partition, offset: BigInt(offset) }]
    await this.#admin((admin) => admin.deleteRecords({ topics: [{ name: topic, partitions }] }))
  }
}

serve(new Driver(process.argv[2]))
