import { EventSource } from 'eventsource'
import { expect, it, onTestFinished } from 'vitest'
import type { Message } from '../../src/protocol/notices.ts'
import { createTempFolder } from '../support/child-program.ts'
import { openDevnet, openRelayFor, transfer } from '../support/test-stack.ts'

it('an EventSource reconnects after a restart of the relay, without gaps or repetitions', async () => {
  const devnet = await openDevnet()
  const DATA_DIR = await createTempFolder({ onTestFinished })
  const first = await openRelayFor(devnet, { DATA_DIR })
  const { port } = new URL(first.url)
  const received: Message[] = []
  const watchers = new Set<() => void>()
  const reader = new EventSource(`${first.url}/v1/stream?symbols=AAPLc`)
  onTestFinished(() => reader.close())
  reader.onmessage = ({ data }) => {
    received.push(JSON.parse(data))
    for (const check of watchers) check()
  }
  const until = (holds: () => boolean) =>
    new Promise<void>((resolve) => {
      const check = () => holds() && resolve()
      watchers.add(check)
      check()
    })
  const raws = () => received.flatMap((message) => (message.type === 'transfer' ? [message.raw] : []))

  await until(() => received.some(({ type }) => type === 'live'))
  transfer({ devnet }, 'AAPLc', 2, 10n)
  await until(() => raws().length === 2)
  await first.stop()
  transfer({ devnet }, 'AAPLc', 2, 20n)
  await openRelayFor(devnet, { DATA_DIR, PORT: port })
  await until(() => raws().length === 4)
  transfer({ devnet }, 'AAPLc', 1, 30n)
  await until(() => raws().length === 5)
  expect(raws()).toEqual(['10', '11', '20', '21', '30'])
  expect(received.filter(({ type }) => type === 'subscribed')).toMatchObject([{ resume: 'none' }, { resume: 'full' }])
})
