import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { Update } from '../../../../src/protocol/updates.ts'
import { txHash } from '../chain/node-json.ts'
import { openIngest, play, type Step, sealedEventOfLogs as sealed, transactionEvent } from './reducer-fixture.ts'
import { announcement, endAnnouncement, memo, paused, seizedLog, transfer, uiMultiplierUpdated, ZERO } from './token-logs.ts'

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
    case 'retract':
      return `retract ${update.fact_type} ${indexOf(update.key)} ${update.reason}`
    case 'amend':
      return `amend ${update.changed.join()} to ${tellFact(update.update)}`
    case 'seal':
      return `seal ${update.keys.map(indexOf).join()} as ${update.types.join()}`
    default:
      return tellFact(update)
  }
}
const push = (...logs: Parameters<typeof transactionEvent>[0]) => transactionEvent(logs)

describe('a movement', () => {
  const [moved, noted, seized] = [transfer(at(0), 5n), memo(at(1), text), seizedLog(at(2), 5n)]
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

  it.each<[string, ...Step[]]>([
    ...(['pendingLogs', 'poll'] as const).map((via): [string, ...Step[]] => [
      `is amended by a memo that arrives later: ${via}`,
      [transactionEvent([moved], via), 'preconfirmed transfer 0'],
      [transactionEvent([noted], via), 'amend memo to preconfirmed transfer 0 with memo'],
      sealedWhole,
    ]),
    [
      'is amended by a memo that only the sealed block contains',
      [push(moved), 'preconfirmed transfer 0'],
      [sealed(10, [moved, noted]), 'amend memo to sealed transfer 0 with memo, seal 0,1 as transfer,part'],
    ],
    [
      'of a seizure is published as a seizure, and again with its parts after a reorganisation',
      [push(moved, noted, seized), 'preconfirmed seize 0 with memo'],
      [sealed(10, [moved, noted, seized]), 'seal 0,1,2 as seize,part,part'],
      [
        sealed(10, [transfer(at(4), 5n), memo(at(5), text), seizedLog(at(6), 5n)], { hash: txHash(99) }),
        'retract seize 0 replaced, sealed seize 4 with memo, seal 4,5,6 as seize,part,part',
      ],
    ],
    [
      'changes its type if the Seized log arrives later',
      [push(moved), 'preconfirmed transfer 0'],
      [push(noted, seized), 'amend type,memo to preconfirmed seize 0 with memo'],
    ],
    [
      'of a mint or burn is published once',
      [
        push(transfer(at(0), 5n, { from: ZERO }), transfer(at(1), 6n, { to: ZERO }), memo(at(2), text)),
        'preconfirmed mint 0, preconfirmed burn 1 with memo',
      ],
    ],
    [
      'loses its memo if the sealed block has none',
      [push(moved, noted), 'preconfirmed transfer 0 with memo'],
      [sealed(10, [moved]), 'amend memo to sealed transfer 0, seal 0 as transfer'],
    ],
    [
      'takes the memo that arrived before it, and the sealed block retracts the separate memo',
      [push(noted), 'preconfirmed log 1'],
      [push(moved), 'preconfirmed transfer 0 with memo'],
      [sealed(10, [moved, noted]), 'retract log 1 not_sealed, seal 0,1 as transfer,part'],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openIngest(tell), steps)
  })
})

describe('an announcement', () => {
  const split = [
    announcement(at(0), 'split'),
    uiMultiplierUpdated(at(1), '1', '2', 1_795_000_000),
    paused(at(2), [1, 2]),
    endAnnouncement(at(3), 'split'),
  ] as const
  const [start, change, pause, end] = split

  it.each<[string, ...Step[]]>([
    [
      'is published with the keys inside it, all in log order',
      [push(...split), 'preconfirmed action 0 of 1,2, preconfirmed multiplier 1, preconfirmed pause 2'],
      [sealed(10, split), 'seal 0,1,2,3 as action,multiplier,pause,part'],
    ],
    [
      'waits for its end, but the logs inside it do not',
      [push(start), ''],
      [push(change, pause), 'preconfirmed multiplier 1, preconfirmed pause 2'],
      [push(end), 'preconfirmed action 0 of 1,2'],
    ],
    [
      'is published with its sealed block if the end was never pushed',
      [push(start, change, pause), 'preconfirmed multiplier 1, preconfirmed pause 2'],
      [sealed(10, split), 'sealed action 0 of 1,2, seal 0,1,2,3 as action,multiplier,pause,part'],
    ],
    [
      'is amended if a log inside it was never pushed',
      [push(start, change, end), 'preconfirmed action 0 of 1, preconfirmed multiplier 1'],
      [sealed(10, split), 'amend keys to sealed action 0 of 1,2, sealed pause 2, seal 0,1,2,3 as action,multiplier,pause,part'],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openIngest(tell), steps)
  })
})
