// What the drivers of Node's clients share: the lines, and the records and events of a consumer.
'use strict'

const readline = require('node:readline')

// The client has no such call.
class Cannot extends Error {}

// Answer the lines of stdin until it ends; the calls are the methods of `driver`, each with one object.
async function serve(driver) {
  console.log = console.info = console.debug = console.error // stdout is for answers only
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { do: name, ...given } = JSON.parse(line)
    process.stdout.write(JSON.stringify(await answer(driver, name, given)) + '\n')
  }
  process.exit(0)
}

async function answer(driver, name, given) {
  if (typeof driver[name] !== 'function') return { cannot: `no ${name}` }
  try {
    return { is: (await driver[name](given)) ?? null }
  } catch (error) {
    if (error instanceof Cannot) return { cannot: error.message }
    return { error: error.name, message: [error.message, ...causes(error)].join('; ') }
  }
}

function causes(error) {
  return (error.errors ?? (error.cause ? [error.cause] : [])).flatMap((each) => [each.message, ...causes(each)])
}

const text = (value) => (value === null || value === undefined ? null : value.toString())

const data = (value) => (value === null || value === undefined ? value : Buffer.from(value))

const keyOf = (topic, partition) => `${topic} ${partition}`

const byName = ([topic, partition], [otherTopic, otherPartition]) =>
  topic < otherTopic ? -1 : topic > otherTopic ? 1 : partition - otherPartition

// The messages in parts of no more bytes than that: some clients make one batch of all that a call sends.
function* parts(messages, mostBytes = 500_000) {
  let part = []
  let bytes = 0
  for (const message of messages) {
    const size = (message.key?.length ?? 0) + (message.value?.length ?? 0)
    if (part.length && bytes + size > mostBytes) {
      yield part
      part = []
      bytes = 0
    }
    part.push(message)
    bytes += size
  }
  if (part.length) yield part
}

// The partition and offset of each message of a batch. `first` has the first offset by partition, if it was told.
function placesOf(messages, partitionOf, first) {
  const next = new Map(first)
  return messages.map((message) => {
    const partition = partitionOf(message)
    const offset = next.get(partition) ?? -1
    if (offset !== -1) next.set(partition, offset + 1)
    return [partition, offset]
  })
}

function byTopic(partitions) {
  const found = new Map()
  for (const [topic, partition] of partitions) found.set(topic, [...(found.get(topic) ?? []), partition])
  return [...found].map(([topic, numbers]) => ({ topic, partitions: numbers }))
}

// Do nothing else in this process for that long, as an application that computes: no heartbeats either.
function block(ms) {
  setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms))
}

// What a consumer has given to the application so far: records, events, and the next offsets to commit.
class Received {
  next = new Map()
  assignment = []
  #records = []
  #events = []
  #failure = null
  #wake = () => {}

  add(record) {
    this.next.set(keyOf(record.topic, record.partition), [record.topic, record.partition, record.offset + 1, ''])
    this.#records.push(record)
    this.#wake()
  }

  // `take` will raise this.
  fail(error) {
    this.#failure = error
    this.#wake()
  }

  assigned(partitions) {
    this.assignment = [...partitions].sort(byName)
    this.#events.push(['assigned', this.assignment])
    const owned = new Set(this.assignment.map(([topic, partition]) => keyOf(topic, partition)))
    for (const key of this.next.keys()) if (!owned.has(key)) this.next.delete(key)
  }

  revoked() {
    this.#events.push(['revoked', this.assignment])
    this.assignment = []
  }

  events() {
    return this.#events.splice(0)
  }

  async take(count, timeoutMs) {
    const deadline = Date.now() + timeoutMs
    const found = []
    for (;;) {
      found.push(...this.#records.splice(0, count - found.length))
      const leftMs = deadline - Date.now()
      if (found.length === count || leftMs <= 0) return found
      if (this.#failure) {
        const failure = this.#failure
        this.#failure = null
        throw failure
      }
      await this.#more(leftMs)
    }
  }

  #more(timeoutMs) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

module.exports = { Cannot, Received, block, byTopic, data, keyOf, parts, placesOf, serve, text }
