import { describe, expect, it } from 'vitest'
import { readLogs } from '../../../src/chain/logs/log-schema.ts'
import { apple, pendingLog, sealedLog, tesla, txHash, ZERO_WORD } from '../chain/node-json.ts'
import { hashOf, headed, logOf, openWire, preconfirmed, sealed } from './log-feed-fixture.ts'

const one = logOf({ block: 11, index: 0, raw: 1n })
const two = logOf({ block: 11, index: 1, raw: 2n })

/** A wire that has heard of the head 10. */
function begun() {
  const world = openWire()
  world.hear(headed(10))
  return world
}

describe('what is pre-confirmed', () => {
  it('is told as the node sends it, field by field, whatever it says of the hash of a block that has none', () => {
    const { hear, listen } = begun()
    const ear = listen()
    const sent = pendingLog({ block: 11 })
    for (const [index, blockHash] of [ZERO_WORD, null, undefined].entries())
      hear(preconfirmed(logOf({ block: 11, index }, { blockHash })))
    expect(ear.results[0]).toEqual(sent)
    expect(ear.results.map((result) => (result as typeof sent).blockHash)).toEqual([ZERO_WORD, ZERO_WORD, ZERO_WORD])
  })

  it('keeps what a node says more of a log, and adds no time where there is none', () => {
    const { hear, listen } = begun()
    const ear = listen()
    hear(preconfirmed(logOf({ block: 11 }, { blockTimestampMs: '0x18', blockTimestamp: undefined })))
    const { blockTimestamp: _, ...rest } = pendingLog({ block: 11 })
    expect(ear.results).toEqual([{ ...rest, blockTimestampMs: '0x18' }])
  })

  it('is told once, however often and in whichever shape the node repeats it', () => {
    const { hear, listen } = begun()
    const ear = listen()
    const all = readLogs([pendingLog({ block: 11, raw: 1n }), pendingLog({ block: 11, index: 1, raw: 2n })]).logs
    hear(preconfirmed(one), preconfirmed(one), ...all.map(preconfirmed), preconfirmed(two))
    expect(ear.told).toEqual(['+11.0=1 pending', '+11.1=2 pending'])
  })

  it('is nobody’s news of a contract that is not listed, of a settled block, or of one that no chain reaches', () => {
    const { hear, listen } = begun()
    const ear = listen()
    hear(preconfirmed(logOf({ block: 11, address: `0x${'99'.repeat(20)}` })))
    hear(sealed({ number: 11 }), preconfirmed(one), preconfirmed(logOf({ block: 11 + 100_001 })))
    expect(ear.told).toEqual([])
    hear(preconfirmed(logOf({ block: 11 + 100_000, raw: 5n })))
    expect(ear.told).toEqual(['+100011.0=5 pending'])
  })

  it('is not told to who subscribes to sealed logs, until it is', () => {
    const { hear, listen } = begun()
    const ear = listen('logs')
    hear(preconfirmed(one))
    expect(ear.told).toEqual([])
    hear(sealed({ number: 11, logs: [one] }))
    expect(ear.results).toEqual([{ ...sealedLog({ block: 11 }), blockHash: hashOf(11) }])
  })
})

describe('a block that is sealed', () => {
  it('says nothing of what was told of it, and takes back, as it was sent, what it lacks', () => {
    const { hear, listen } = begun()
    const ear = listen()
    hear(preconfirmed(one), preconfirmed(two), sealed({ number: 11, logs: [one] }))
    expect(ear.told).toEqual(['+11.0=1 pending', '+11.1=2 pending', '-11.1=2 pending'])
    expect(ear.results[2]).toEqual({ ...(ear.results[1] as object), removed: true })
    hear(sealed({ number: 11, logs: [one] }))
    expect(ear.told).toHaveLength(3)
  })

  it('takes a log back only from those who were told it', () => {
    const { hear, listen } = begun()
    const early = listen()
    hear(preconfirmed(one))
    const late = listen()
    const other = listen('pendingLogs', { address: tesla })
    hear(preconfirmed(two), sealed({ number: 11 }))
    expect(early.told).toEqual(['+11.0=1 pending', '+11.1=2 pending', '-11.0=1 pending', '-11.1=2 pending'])
    expect(late.told).toEqual(['+11.1=2 pending', '-11.1=2 pending'])
    expect(other.told).toEqual([])
  })

  it('replaces what has other content under the same key', () => {
    const { hear, listen } = begun()
    const ear = listen()
    hear(preconfirmed(one), sealed({ number: 11, logs: [logOf({ block: 11, raw: 7n })] }))
    expect(ear.told).toEqual(['+11.0=1 pending', '-11.0=1 pending', '+11.0=7 a'])
  })

  it('takes back what it holds at another index, and tells it where it is', () => {
    const { hear, listen } = begun()
    const ear = listen()
    const moved = logOf({ block: 11, raw: 2n }, { transactionHash: txHash(11, 1) })
    hear(preconfirmed(one), preconfirmed(two), sealed({ number: 11, logs: [moved] }))
    expect(ear.told.slice(2)).toEqual(['-11.0=1 pending', '-11.1=2 pending', '+11.0=2 a'])
  })

  it('tells once what nobody pre-confirmed, with its real hash, in the order of the block', () => {
    const { hear, listen } = begun()
    const [ear, sealedEar] = [listen(), listen('logs')]
    const three = logOf({ block: 11, index: 2, raw: 3n })
    const settled = sealed({ number: 11, logs: [one, two, three] })
    hear(preconfirmed(two), settled, settled, preconfirmed(three))
    expect(ear.told).toEqual(['+11.1=2 pending', '+11.0=1 a', '+11.2=3 a'])
    expect(sealedEar.told).toEqual(['+11.0=1 a', '+11.1=2 a', '+11.2=3 a'])
  })

  it('says nothing of a token whose logs it was not asked for', () => {
    const { hear, listen } = begun()
    const ear = listen()
    hear(preconfirmed(one), sealed({ number: 11, asked: [tesla] }))
    expect(ear.told).toEqual(['+11.0=1 pending'])
    hear(sealed({ number: 11, asked: [apple] }))
    expect(ear.told).toEqual(['+11.0=1 pending', '-11.0=1 pending'])
  })

  it('takes nothing back that it holds because the token is no longer listed by then', () => {
    const { hear, listen, lists } = begun()
    const ear = listen()
    hear(preconfirmed(one), preconfirmed(two))
    lists.delete(apple)
    hear(sealed({ number: 11, logs: [one] }))
    expect(ear.told).toEqual(['+11.0=1 pending', '+11.1=2 pending', '-11.1=2 pending'])
    hear(preconfirmed(logOf({ block: 12 })), sealed({ number: 12, logs: [logOf({ block: 12 })] }))
    expect(ear.told).toHaveLength(3)
  })

  it.each(['pendingLogs', 'logs'] as const)('before a subscription to %s began is none of its news', (kind) => {
    const world = openWire()
    const first = world.listen(kind)
    world.hear(headed(10), sealed({ number: 10, logs: [logOf({ block: 10 })] }), headed(11))
    const second = world.listen(kind)
    world.hear(sealed({ number: 11, logs: [one] }), headed(12))
    world.hear(sealed({ number: 12, logs: [logOf({ block: 12 })] }))
    expect(first.told).toEqual(['+11.0=1 a', '+12.0=1 a'])
    expect(second.told).toEqual(['+12.0=1 a'])
  })

  it('is told in order with others that were sealed while nobody looked, each log once', () => {
    const { hear, listen } = begun()
    const [pending, logs] = [listen(), listen('logs')]
    hear(preconfirmed(one), headed(14))
    for (const number of [11, 12, 13, 14]) {
      const held = number === 11 ? [one, two] : [logOf({ block: number, raw: BigInt(number) })]
      hear(sealed({ number, logs: held }))
    }
    expect(pending.told).toEqual(['+11.0=1 pending', '+11.1=2 a', '+12.0=12 a', '+13.0=13 a', '+14.0=14 a'])
    expect(logs.told).toEqual(['+11.0=1 a', '+11.1=2 a', '+12.0=12 a', '+13.0=13 a', '+14.0=14 a'])
  })
})

describe('what the wire owes', () => {
  it('is what it told of a block, by key, and of which blocks', () => {
    const { wire, hear } = begun()
    hear(preconfirmed(logOf({ block: 12 })), preconfirmed(one), preconfirmed(two))
    expect(wire.at(11)).toEqual([one, two].map((log) => ({ key: log.key, address: apple, tx: log.transactionHash })))
    expect(wire.at(13)).toEqual([])
    expect(wire.toldBetween(0, 11)).toEqual([11])
    expect(wire.toldBetween(11, 20)).toEqual([11, 12])
    hear(sealed({ number: 11 }))
    expect(wire.toldBetween(11, 20)).toEqual([12])
  })
})
