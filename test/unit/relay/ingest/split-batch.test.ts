import { expect, it } from 'vitest'
import type { FoldedEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { splitFolded } from '../../../../src/relay/ingest/split-batch.ts'

type PendingLogs = Extract<FoldedEvent, { type: 'pendingLogs' }>

it('a batch that is split counts its repeated logs once', () => {
  const pendingLogs = Array.from({ length: 1_001 }) as unknown as PendingLogs['pendingLogs']
  const parts = splitFolded({ events: [{ type: 'pendingLogs', pendingLogs, repeated: 7 }], at: 0, wallTime: 0 })
  const events = parts.flatMap((part) => part.events) as PendingLogs[]
  expect(events.map((event) => [event.pendingLogs.length, event.repeated])).toEqual([
    [500, 7],
    [500, 0],
    [1, 0],
  ])
})
