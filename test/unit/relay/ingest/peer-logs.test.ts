import { VirtualTimeScheduler } from 'rxjs'
import { expect, it } from 'vitest'
import { PeerLogs } from '../../../../src/relay/ingest/peer-logs.ts'
import { transfer } from './token-logs.ts'

const logs = Array.from({ length: 600 }, (_, index) => transfer({ block: 1, index }, BigInt(index)))
const bytesOf = (some: typeof logs): number => JSON.stringify({ logs: some, via: 'poll' }).length

it.each([
  ['one message', bytesOf(logs), 600],
  ['as many messages as it takes', bytesOf(logs.slice(0, 10)), 600],
  ['no message where each log is too long for one', 100, 0],
])('an ingester sends the logs of one event to the leader in %s', (_, limitBytes, count) => {
  const sent: string[] = []
  const send = (bytes: Uint8Array): boolean => {
    if (bytes.length > limitBytes) return false
    sent.push(Buffer.from(bytes).toString())
    return true
  }
  const peers = new PeerLogs({ send, listen: async () => () => {} }, new VirtualTimeScheduler())
  peers.share({ type: 'logs', logs, via: 'poll', receivedAt: 0 })
  expect(sent.flatMap((text) => JSON.parse(text).logs)).toEqual(JSON.parse(JSON.stringify(logs.slice(0, count))))
})
