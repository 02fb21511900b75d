// A member of a consumer group: reads, commits, and says so. Settings come as name=value, the topic is "topic".
const { Kafka, logLevel } = require('kafkajs')

const settings = Object.fromEntries(process.argv.slice(2).map((word) => word.split(/=(.*)/s).slice(0, 2)))
const topic = settings.topic
const say = (line) => process.stdout.write(line + '\n')

const kafka = new Kafka({
  brokers: settings['bootstrap.servers'].split(','),
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 60 },
})
const consumer = kafka.consumer({
  groupId: settings['group.id'],
  sessionTimeout: Number(settings['session.timeout.ms']),
  heartbeatInterval: Number(settings['heartbeat.interval.ms']),
  rebalanceTimeout: Number(settings['max.poll.interval.ms']),
  maxWaitTimeInMs: 200,
})

const named = (partitions) => (partitions.length ? partitions.join(',') : '-')
let mine = []
consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  say('revoked ' + named(mine))
  mine = payload.memberAssignment[topic] || []
  say('assigned ' + named(mine))
})
consumer.on(consumer.events.CRASH, ({ payload }) => {
  if (!payload.restart) say('failed ' + payload.error)
})

async function eachBatch({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
  let next = null
  for (const message of batch.messages) {
    if (!isRunning() || isStale()) break
    say(`record ${batch.partition} ${message.offset} ${message.value}`)
    resolveOffset(message.offset)
    next = (BigInt(message.offset) + 1n).toString()
  }
  if (next === null) return
  try {
    await consumer.commitOffsets([{ topic, partition: batch.partition, offset: next }])
    say(`committed ${batch.partition} ${next}`)
  } catch (error) {
    say('uncommitted ' + (error.type || error.name))
  }
  await heartbeat()
}

process.on('SIGTERM', async () => {
  await consumer.disconnect()
  say('left')
  process.exit(0)
})

async function main() {
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch })
}

main().catch((error) => {
  say('failed ' + error)
  process.exit(1)
})
