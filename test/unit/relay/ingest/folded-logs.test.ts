import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { Update } from '../../../../src/protocol/updates.ts'
import { txHash } from '../chain/node-json.ts'
import { openIngest, play, push, type Step, sealedEventOfLogs as sealed, transactionEvent } from './reducer-fixture.ts'
import { announcement, endAnnouncement, memo, paused, transfer, uiMultiplierUpdated } from './token-logs.ts'

const text: Hex = `0x${'4d'.repeat(32)}`
const tx = txHash(10, 0)
const at = (index: number) => ({ block: 10, index, tx })

const indexOf = (key: string): string => key.replace(/^\d+-0x[0-9a-f]+-/, '')
const tellFact = (fact: object): string => {
  const { type, key, memo, keys, stage } = fact as Record<string, unknown>
  const suffix = memo ? ' with memo' : keys ? ` of ${(keys as string[]).map(indexOf).join()}` : ''
  return `${stage} ${type} ${indexOf(String(key))}${suffix}`
}
const tell = (update: Update): string => {
  switch (update.type) {
    case 'amend':
      return `amend ${update.changed.join()} to ${tellFact(update.update)}`
    case 'seal':
      return `seal ${update.keys.map(indexOf).join()} as ${update.types.join()}`
    default:
      return tellFact(update)
  }
}

describe('a movement', () => {
  const [moved, noted] = [transfer(at(0), 5n), memo(at(1), text)]
  const sealedWhole: Step = [sealed(10, [moved, noted]), 'seal 0,1 as transfer,part']

  it('is published once with the memo that arrives with it', async () => {
    const ingest = await openIngest(tell)
    await play(ingest, [
      [push(moved, noted), 'preconfirmed transfer 0 with memo'],
      [[push(moved), push(noted), transactionEvent([noted, moved], 'poll')], ''],
    ])
    expect(ingest.counts.repeated).toBe(4)
    await play(ingest, ['restart', [[push(noted), push(moved, noted)], ''], sealedWhole])
  })

  it.each(['pendingLogs', 'poll'] as const)('is amended by a memo that arrives later: %s', async (via) => {
    await play(await openIngest(tell), [
      [transactionEvent([moved], via), 'preconfirmed transfer 0'],
      [transactionEvent([noted], via), 'amend memo to preconfirmed transfer 0 with memo'],
      sealedWhole,
    ])
  })
})

it('an announcement waits for its end, the logs inside it do not, and it is amended by one that was never pushed', async () => {
  const [start, change, pause, end] = [
    announcement(at(0), 'split'),
    uiMultiplierUpdated(at(1), '1', '2', 1_795_000_000),
    paused(at(2), [1, 2]),
    endAnnouncement(at(3), 'split'),
  ]
  await play(await openIngest(tell), [
    [push(start), ''],
    [push(change), 'preconfirmed multiplier 1'],
    [push(end), 'preconfirmed action 0 of 1'],
    [
      sealed(10, [start, change, pause, end]),
      'amend keys to sealed action 0 of 1,2, sealed pause 2, seal 0,1,2,3 as action,multiplier,pause,part',
    ],
  ])
})
