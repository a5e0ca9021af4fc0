import { describe, expect, it, onTestFinished } from 'vitest'
import type { Arrival } from '../../../src/ingest/reducer.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import { txHash } from '../chain/node-json.ts'
import { openEmbedded } from '../tape/test-tape.ts'
import { apple } from '../tokens/stock-records.ts'
import { hearing, listed, restore, sealedWith, status, transaction } from './reducer-fixture.ts'
import { announced, announcementEnded, memo, multiplied, paused, seized, transfer, ZERO } from './token-logs.ts'

const text: Hex = `0x${'4d'.repeat(32)}`
const tx = txHash(10, 0)
const at = (index: number) => ({ block: 10, index, tx })

const place = (key: string): string => key.replace(/^\d+-0x[0-9a-f]+-/, '')
/** What is told, in few words; everything that is told is checked against the contract first. */
const short = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  switch (update.type) {
    case 'retract':
      return `retract ${update.of} ${place(update.key)} ${update.reason}`
    case 'amend':
      return `amend ${update.of} ${place(update.key)} ${update.changed.join()}: ${saidBy(update.update)}`
    case 'seal':
      return `seal ${update.keys.map(place).join()} as ${update.types.join()}`
    default:
      return saidBy(update)
  }
}
const saidBy = (update: object): string => {
  const { type, key, memo, keys, stage } = update as Record<string, unknown>
  const more = memo ? ' with memo' : keys ? ` of ${(keys as string[]).map(place).join()}` : ''
  return `${stage} ${type} ${place(String(key))}${more}`
}

const begin = async () => {
  const embedded = await openEmbedded()
  onTestFinished(() => embedded.close())
  const house = await restore(embedded.tape)
  await house.tell(listed(apple()), hearing, status('pendingLogs'))
  const tell = async (...turn: Arrival[]) => (await house.tell(...turn)).map(short)
  return { embedded, ...house, tell }
}

describe('a movement', () => {
  const [moved, noted] = [transfer(at(0), 5n), memo(at(1), text)]

  it('is told once with the memo that came with it', async () => {
    const { tell, counted } = await begin()
    expect(await tell(transaction([moved, noted]))).toEqual(['preconfirmed transfer 0 with memo'])
    expect(await tell(transaction([moved]), transaction([noted]), transaction([noted, moved], 'poll'))).toEqual([])
    expect(counted.repeated).toBe(4)
    expect(await tell(sealedWith(10, [moved, noted]))).toEqual(['seal 0,1 as transfer,part'])
  })

  it.each(['pendingLogs', 'poll'] as const)('is amended by a memo that comes later: %s', async (via) => {
    const { tell } = await begin()
    expect(await tell(transaction([moved], via))).toEqual(['preconfirmed transfer 0'])
    expect(await tell(transaction([noted], via))).toEqual(['amend transfer 0 memo: preconfirmed transfer 0 with memo'])
    expect(await tell(sealedWith(10, [moved, noted]))).toEqual(['seal 0,1 as transfer,part'])
  })

  it('is amended by a memo that only its block shows', async () => {
    const { tell } = await begin()
    await tell(transaction([moved]))
    expect(await tell(sealedWith(10, [moved, noted]))).toEqual([
      'amend transfer 0 memo: sealed transfer 0 with memo',
      'seal 0,1 as transfer,part',
    ])
  })

  it('that a seizure made is told as one', async () => {
    const { tell } = await begin()
    const logs = [moved, noted, seized(at(2), 5n)]
    expect(await tell(transaction(logs))).toEqual(['preconfirmed seize 0 with memo'])
    expect(await tell(sealedWith(10, logs))).toEqual(['seal 0,1,2 as seize,part,part'])
  })

  it('changes its type where it turns out later to be a seizure', async () => {
    const { tell } = await begin()
    await tell(transaction([moved]))
    expect(await tell(transaction([noted, seized(at(2), 5n)]))).toEqual([
      'amend transfer 0 type,memo: preconfirmed seize 0 with memo',
    ])
  })

  it('that is minted or burned is not said twice', async () => {
    const { tell } = await begin()
    const logs = [transfer(at(0), 5n, { from: ZERO }), transfer(at(1), 6n, { to: ZERO }), memo(at(2), text)]
    expect(await tell(transaction(logs))).toEqual(['preconfirmed mint 0', 'preconfirmed burn 1 with memo'])
  })

  it('loses its memo with a sealed block that has none', async () => {
    const { tell } = await begin()
    await tell(transaction([moved, noted]))
    expect(await tell(sealedWith(10, [moved]))).toEqual([
      'amend transfer 0 memo: sealed transfer 0',
      'seal 0 as transfer',
    ])
  })

  it('whose memo came before it is told with it, and the memo that was told alone is taken back by its block', async () => {
    const { tell } = await begin()
    expect(await tell(transaction([noted]))).toEqual(['preconfirmed log 1'])
    expect(await tell(transaction([moved]))).toEqual(['preconfirmed transfer 0 with memo'])
    expect(await tell(sealedWith(10, [moved, noted]))).toEqual([
      'retract log 1 not_sealed',
      'seal 0,1 as transfer,part',
    ])
  })

  it('is not taken for two after a restart', async () => {
    const { tell, embedded } = await begin()
    await tell(transaction([moved, noted]))
    const again = await restore(embedded.tape)
    expect((await again.tell(transaction([noted]))).map(short)).toEqual([])
    expect((await again.tell(transaction([moved, noted]))).map(short)).toEqual([])
    expect((await again.tell(sealedWith(10, [moved, noted]))).map(short)).toEqual(['seal 0,1 as transfer,part'])
  })

  it('is told anew with its parts after a reorganisation', async () => {
    const { tell } = await begin()
    const logs = [moved, noted, seized(at(2), 5n)]
    await tell(transaction(logs), sealedWith(10, logs))
    const shifted = [transfer(at(4), 5n), memo(at(5), text), seized(at(6), 5n)]
    expect(await tell(sealedWith(10, shifted, { hash: txHash(99) }))).toEqual([
      'retract seize 0 replaced',
      'sealed seize 4 with memo',
      'seal 4,5,6 as seize,part,part',
    ])
  })
})

describe('an announcement', () => {
  const split = [
    announced(at(0), 'split'),
    multiplied(at(1), '1', '2', 1_795_000_000),
    paused(at(2), [1, 2]),
    announcementEnded(at(3), 'split'),
  ] as const

  it('is told with what happened inside it, all in log order', async () => {
    const { tell } = await begin()
    expect(await tell(transaction(split))).toEqual([
      'preconfirmed action 0 of 1,2',
      'preconfirmed multiplier 1',
      'preconfirmed pause 2',
    ])
    expect(await tell(sealedWith(10, split))).toEqual(['seal 0,1,2,3 as action,multiplier,pause,part'])
  })

  it('waits for its end, and what is inside does not', async () => {
    const { tell } = await begin()
    const [begun, ...rest] = split
    expect(await tell(transaction([begun]))).toEqual([])
    expect(await tell(transaction(rest.slice(0, 2)))).toEqual(['preconfirmed multiplier 1', 'preconfirmed pause 2'])
    expect(await tell(transaction(rest.slice(2)))).toEqual(['preconfirmed action 0 of 1,2'])
  })

  it('whose end was lost is told with its block', async () => {
    const { tell } = await begin()
    await tell(transaction(split.slice(0, 3)))
    expect(await tell(sealedWith(10, split))).toEqual([
      'sealed action 0 of 1,2',
      'seal 0,1,2,3 as action,multiplier,pause,part',
    ])
  })

  it('is amended where something inside it was lost', async () => {
    const { tell } = await begin()
    const [begun, change, , ended] = split
    expect(await tell(transaction([begun, change, ended]))).toEqual([
      'preconfirmed action 0 of 1',
      'preconfirmed multiplier 1',
    ])
    expect(await tell(sealedWith(10, split))).toEqual([
      'amend action 0 keys: sealed action 0 of 1,2',
      'sealed pause 2',
      'seal 0,1,2,3 as action,multiplier,pause,part',
    ])
  })
})
