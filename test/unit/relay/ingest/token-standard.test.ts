import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { Log } from '../../../../src/relay/chain/logs/log-parser.ts'
import { decodedEvents } from '../chain/logs/standard-events.ts'
import { alice, bob, keyOf, txHash } from '../chain/node-json.ts'
import { APPLE } from '../tokens/stock-records.ts'
import { logAt, openIngest, push, sealedEventOfLogs } from './reducer-fixture.ts'

const tx = txHash(0, 7)
const location = { block: 0, index: 7, address: APPLE as Hex }
const expectedPosition = {
  block: { number: 0, hash: null, timestamp: expect.any(String) },
  tx: { hash: tx, index: 7, log_index: 7 },
}
const expectedFact = { key: keyOf(location), stage: 'preconfirmed', late: false }
const memo: Hex = `0x${'4d'.repeat(32)}`

/** The update of each event of the token standard that is alone in its transaction. */
const expectedUpdates: Readonly<Record<string, object>> = {
  Transfer: { type: 'transfer', from: alice, to: bob, raw: '150000000', amount: '1.5', shares: '1.5', memo: null },
  Approval: { type: 'approval', owner: alice, spender: bob, raw: '9', amount: '0.00000009' },
  // These explain a movement or an announcement, and here there is none.
  Memo: { type: 'log' },
  Seized: { type: 'log' },
  EndAnnouncement: { type: 'log' },
  Paused: {
    type: 'pause',
    change: 'paused',
    features: ['TRANSFER', 'MINT'],
    feature_ids: [0, 1],
    paused: ['TRANSFER', 'MINT'],
    source: 'log',
  },
  Unpaused: { type: 'pause', change: 'unpaused', features: ['UNKNOWN_255'], feature_ids: [255], paused: [], source: 'log' },
  MultiplierUpdated: { type: 'multiplier', phase: 'effective', previous: '1', multiplier: '2', source: 'log' },
  UIMultiplierUpdated: {
    type: 'multiplier',
    phase: 'scheduled',
    previous: '1',
    multiplier: '2',
    effective_at: '2026-11-23T14:30:00.000Z',
    source: 'log',
  },
  UIMultiplierUpdateCancelled: {
    type: 'multiplier',
    phase: 'cancelled',
    previous: '1',
    multiplier: '2',
    effective_at: '2026-11-23T14:30:00.000Z',
    source: 'log',
  },
  Announcement: { type: 'action', action_id: 'spt-001', description: '2-1 split', uri: '', keys: [], late: true },
  ExtraMetadataUpdated: { type: 'token', change: 'changed', changed: ['extra_metadata'], before: {}, source: 'log' },
  NameUpdated: { type: 'token', changed: ['name'], token: { name: 'Äpfel <b>🍏' }, before: { name: 'Apple' }, source: 'log' },
  SymbolUpdated: { type: 'token', changed: ['symbol'], before: { symbol: 'AAPLc' }, source: 'log' },
  ContractURIUpdated: { type: 'token', changed: ['contract_uri'], before: {}, source: 'log' },
  SupplyCapUpdated: { type: 'token', changed: ['supply_cap'], source: 'log' },
}

const openListed = () => openIngest((update) => update)
const logOf = (name: Hex, indexed: readonly Hex[], data: Hex): Log => ({ ...logAt(location), topics: [name, ...indexed], data })

describe('an event of the token standard', () => {
  it.each(decodedEvents.filter(([event]) => event !== 'AnswerUpdated'))('is published: %s', async (event, name, indexed, data) => {
    const { publish } = await openListed()
    const log = logOf(name, indexed, data)
    const expected = expectedUpdates[event]
    if (event === 'Announcement') {
      // Without its end it waits for its block.
      expect(await publish(push(log))).toEqual([])
      expect((await publish(sealedEventOfLogs(0, [log])))[0]).toMatchObject({ ...expected, key: expectedFact.key, stage: 'sealed' })
      return
    }
    const [update, ...more] = await publish(push(log))
    expect(more).toEqual([])
    expect(update).toMatchObject({ symbol: 'AAPLc', address: APPLE, ...expectedFact, ...expectedPosition, ...expected })
    if (update?.type === 'log') expect(update).toMatchObject({ topics: log.topics, data })
  })

  it('without a meaning here is published as a raw log', async () => {
    const { publish } = await openListed()
    const log = logOf(memo, [memo], memo)
    expect(await publish(push(log))).toMatchObject([
      { type: 'log', topics: [memo, memo], data: memo, ...expectedFact, ...expectedPosition },
    ])
  })
})
