import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { Update } from '../../../../src/protocol/updates.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import type { Entry } from '../../../../src/relay/tape/tape.ts'
import { txHash } from '../chain/node-json.ts'
import { openTestTape } from '../tape/test-tape.ts'
import { apple } from '../tokens/stock-records.ts'
import { listEvent, openReducer, sealedEventOfLogs, statusEvent, subscribedEvent, transactionEvent } from './reducer-fixture.ts'
import { announcement, endAnnouncement, memo, paused, seizedLog, transfer, uiMultiplierUpdated, ZERO } from './token-logs.ts'

const text: Hex = `0x${'4d'.repeat(32)}`
const tx = txHash(10, 0)
const at = (index: number) => ({ block: 10, index, tx })

const shortKey = (key: string): string => key.replace(/^\d+-0x[0-9a-f]+-/, '')
/** Checks an update against the contract and summarises it. */
const summarise = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  switch (update.type) {
    case 'retract':
      return `retract ${update.fact_type} ${shortKey(update.key)} ${update.reason}`
    case 'amend':
      return `amend ${update.fact_type} ${shortKey(update.key)} ${update.changed.join()}: ${describeUpdate(update.update)}`
    case 'seal':
      return `seal ${update.keys.map(shortKey).join()} as ${update.types.join()}`
    default:
      return describeUpdate(update)
  }
}
const describeUpdate = (update: object): string => {
  const { type, key, memo, keys, stage } = update as Record<string, unknown>
  const suffix = memo ? ' with memo' : keys ? ` of ${(keys as string[]).map(shortKey).join()}` : ''
  return `${stage} ${type} ${shortKey(String(key))}${suffix}`
}

const openListed = async () => {
  const openedTape = await openTestTape()
  onTestFinished(() => openedTape.close())
  const fixture = await openReducer(openedTape.tape)
  await fixture.publish(listEvent(apple()), subscribedEvent, statusEvent('pendingLogs'))
  const publish = async (...batch: IngestEvent[]) => (await fixture.publish(...batch)).map(summarise)
  return { openedTape, ...fixture, publish }
}

describe('a movement', () => {
  const [moved, noted] = [transfer(at(0), 5n), memo(at(1), text)]

  it('is published once with the memo that arrives with it', async () => {
    const { publish, counts } = await openListed()
    expect(await publish(transactionEvent([moved, noted]))).toEqual(['preconfirmed transfer 0 with memo'])
    expect(await publish(transactionEvent([moved]), transactionEvent([noted]), transactionEvent([noted, moved], 'poll'))).toEqual(
      [],
    )
    expect(counts.repeated).toBe(4)
    expect(await publish(sealedEventOfLogs(10, [moved, noted]))).toEqual(['seal 0,1 as transfer,part'])
  })

  it.each(['pendingLogs', 'poll'] as const)('is amended by a memo that arrives later: %s', async (via) => {
    const { publish } = await openListed()
    expect(await publish(transactionEvent([moved], via))).toEqual(['preconfirmed transfer 0'])
    expect(await publish(transactionEvent([noted], via))).toEqual(['amend transfer 0 memo: preconfirmed transfer 0 with memo'])
    expect(await publish(sealedEventOfLogs(10, [moved, noted]))).toEqual(['seal 0,1 as transfer,part'])
  })

  it('is amended by a memo that only the sealed block contains', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([moved]))
    expect(await publish(sealedEventOfLogs(10, [moved, noted]))).toEqual([
      'amend transfer 0 memo: sealed transfer 0 with memo',
      'seal 0,1 as transfer,part',
    ])
  })

  it('of a seizure is published as a seizure', async () => {
    const { publish } = await openListed()
    const logs = [moved, noted, seizedLog(at(2), 5n)]
    expect(await publish(transactionEvent(logs))).toEqual(['preconfirmed seize 0 with memo'])
    expect(await publish(sealedEventOfLogs(10, logs))).toEqual(['seal 0,1,2 as seize,part,part'])
  })

  it('changes its type if the Seized log arrives later', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([moved]))
    expect(await publish(transactionEvent([noted, seizedLog(at(2), 5n)]))).toEqual([
      'amend transfer 0 type,memo: preconfirmed seize 0 with memo',
    ])
  })

  it('of a mint or burn is published once', async () => {
    const { publish } = await openListed()
    const logs = [transfer(at(0), 5n, { from: ZERO }), transfer(at(1), 6n, { to: ZERO }), memo(at(2), text)]
    expect(await publish(transactionEvent(logs))).toEqual(['preconfirmed mint 0', 'preconfirmed burn 1 with memo'])
  })

  it('loses its memo if the sealed block has none', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([moved, noted]))
    expect(await publish(sealedEventOfLogs(10, [moved]))).toEqual([
      'amend transfer 0 memo: sealed transfer 0',
      'seal 0 as transfer',
    ])
  })

  it('takes the memo that arrived before it, and the sealed block retracts the separate memo', async () => {
    const { publish } = await openListed()
    expect(await publish(transactionEvent([noted]))).toEqual(['preconfirmed log 1'])
    expect(await publish(transactionEvent([moved]))).toEqual(['preconfirmed transfer 0 with memo'])
    expect(await publish(sealedEventOfLogs(10, [moved, noted]))).toEqual(['retract log 1 not_sealed', 'seal 0,1 as transfer,part'])
  })

  it('is not published twice after a restart', async () => {
    const { publish, openedTape } = await openListed()
    await publish(transactionEvent([moved, noted]))
    const again = await openReducer(openedTape.tape)
    expect((await again.publish(transactionEvent([noted]))).map(summarise)).toEqual([])
    expect((await again.publish(transactionEvent([moved, noted]))).map(summarise)).toEqual([])
    expect((await again.publish(sealedEventOfLogs(10, [moved, noted]))).map(summarise)).toEqual(['seal 0,1 as transfer,part'])
  })

  it('is published again with its parts after a reorganisation', async () => {
    const { publish } = await openListed()
    const logs = [moved, noted, seizedLog(at(2), 5n)]
    await publish(transactionEvent(logs), sealedEventOfLogs(10, logs))
    const shifted = [transfer(at(4), 5n), memo(at(5), text), seizedLog(at(6), 5n)]
    expect(await publish(sealedEventOfLogs(10, shifted, { hash: txHash(99) }))).toEqual([
      'retract seize 0 replaced',
      'sealed seize 4 with memo',
      'seal 4,5,6 as seize,part,part',
    ])
  })
})

describe('an announcement', () => {
  const split = [
    announcement(at(0), 'split'),
    uiMultiplierUpdated(at(1), '1', '2', 1_795_000_000),
    paused(at(2), [1, 2]),
    endAnnouncement(at(3), 'split'),
  ] as const

  it('is published with the keys inside it, all in log order', async () => {
    const { publish } = await openListed()
    expect(await publish(transactionEvent(split))).toEqual([
      'preconfirmed action 0 of 1,2',
      'preconfirmed multiplier 1',
      'preconfirmed pause 2',
    ])
    expect(await publish(sealedEventOfLogs(10, split))).toEqual(['seal 0,1,2,3 as action,multiplier,pause,part'])
  })

  it('waits for its end, but the logs inside it do not', async () => {
    const { publish } = await openListed()
    const [start, ...rest] = split
    expect(await publish(transactionEvent([start]))).toEqual([])
    expect(await publish(transactionEvent(rest.slice(0, 2)))).toEqual(['preconfirmed multiplier 1', 'preconfirmed pause 2'])
    expect(await publish(transactionEvent(rest.slice(2)))).toEqual(['preconfirmed action 0 of 1,2'])
  })

  it('is published with its sealed block if the end was never pushed', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent(split.slice(0, 3)))
    expect(await publish(sealedEventOfLogs(10, split))).toEqual([
      'sealed action 0 of 1,2',
      'seal 0,1,2,3 as action,multiplier,pause,part',
    ])
  })

  it('is amended if a log inside it was never pushed', async () => {
    const { publish } = await openListed()
    const [start, change, , end] = split
    expect(await publish(transactionEvent([start, change, end]))).toEqual([
      'preconfirmed action 0 of 1',
      'preconfirmed multiplier 1',
    ])
    expect(await publish(sealedEventOfLogs(10, split))).toEqual([
      'amend action 0 keys: sealed action 0 of 1,2',
      'sealed pause 2',
      'seal 0,1,2,3 as action,multiplier,pause,part',
    ])
  })
})
