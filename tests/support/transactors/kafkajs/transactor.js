// A transactional producer, and readers: what programs.py says of all of them. It cannot ask for "end".
const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const settings = Object.fromEntries(process.argv.slice(2).map((word) => word.split(/=(.*)/s).slice(0, 2)))
const kafka = new Kafka({
  brokers: settings['bootstrap.servers'].split(','),
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 60 },
})
let producer = null
let transaction = null

async function start() {
  producer = kafka.producer({
    transactionalId: settings['transactional.id'],
    transactionTimeout: Number(settings['transaction.timeout.ms']),
    maxInFlightRequests: 1,
    idempotent: true,
  })
  await producer.connect()
}

async function read(topic, isolation) {
  const consumer = kafka.consumer({
    groupId: `reader-${process.pid}-${Date.now()}`,
    readUncommitted: isolation !== 'committed',
    maxWaitTimeInMs: 200,
  })
  const found = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await new Promise((resolve) => {
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        if (partition === 0) found.push(message.value.toString())
        if (found.includes('last')) resolve()
      },
    })
  })
  await consumer.disconnect()
  return found.join(',')
}

async function obey([command, ...words]) {
  switch (command) {
    case 'init':
      await start()
      return 'done'
    case 'begin':
      transaction = await producer.transaction()
      return 'done'
    case 'send': {
      const [topic, partition, value] = words
      await transaction.send({ topic, messages: [{ partition: Number(partition), value }] })
      return 'done'
    }
    case 'offsets': {
      const [consumerGroupId, topic, partition, offset] = words
      const topics = [{ topic, partitions: [{ partition: Number(partition), offset }] }]
      await transaction.sendOffsets({ consumerGroupId, topics })
      return 'done'
    }
    case 'commit':
      await transaction.commit()
      return 'done'
    case 'abort':
      await transaction.abort()
      return 'done'
    case 'read':
      return 'found ' + (await read(...words))
  }
  throw new Error('unknown command ' + command)
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let answer
    try {
      answer = await obey(line.split(' '))
    } catch (error) {
      answer = 'refused ' + String(error.type || error.name || error).replace(/\s+/g, ' ')
    }
    process.stdout.write(answer + '\n')
  }
  process.exit(0)
}

main()
