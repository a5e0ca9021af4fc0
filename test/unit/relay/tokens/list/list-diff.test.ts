import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { type Draft, Update } from '../../../../../src/protocol/updates.ts'
import { applyContractAnswer } from '../../../../../src/relay/tokens/apply-contract-answer.ts'
import { type ListTiming, markListed, refreshNavs } from '../../../../../src/relay/tokens/list/list-diff.ts'
import { addLogChange } from '../../../../../src/relay/tokens/multiplier-history.ts'
import { featureName } from '../../../../../src/relay/tokens/pause-history.ts'
import { type Token, withDerivedState } from '../../../../../src/relay/tokens/token.ts'
import type { ChangedToken } from '../../../../../src/relay/tokens/token-drafts.ts'
import {
  APPLE,
  apple,
  changesOfList,
  listTime,
  listTimeAfter,
  NOON,
  parsedList,
  type StockRecord,
  TESLA,
  tesla,
  tokenOf,
} from '../stock-records.ts'

const HOUR_MS = 3_600_000
const unpaused = { address: APPLE, scheduled: null, paused: null } as const

/** A token table, and the messages that it publishes as lists arrive. */
const openTokenTable = () => {
  const tokenTable = new Map<Hex, Token>()
  const applyChanges = (changes: readonly ChangedToken[]): readonly Draft[] => {
    for (const { after } of changes) tokenTable.set(after.address, after)
    const drafts = changes.flatMap((change) => change.drafts)
    for (const draft of drafts) {
      const update = Update.parse({ ...draft, id: 'a.1', prev: null })
      expect(update).toMatchObject(draft)
    }
    return drafts
  }
  return {
    tokenTable,
    list: (records: readonly (StockRecord | string)[], now: ListTiming = listTime) =>
      applyChanges(changesOfList(tokenTable, parsedList(...records), now)),
    subscribe: (addresses: readonly Hex[], now: ListTiming = listTime) => applyChanges(markListed(tokenTable, addresses, now)),
    report: (change: ChangedToken) => applyChanges([change]),
    advance: (now: ListTiming) => applyChanges(refreshNavs(tokenTable, [...tokenTable.keys()], now)),
    /** The messages about one list after another. */
    change: (before: StockRecord | string, after: StockRecord | string, now: ListTiming = listTime) => {
      applyChanges(changesOfList(tokenTable, parsedList(before), listTime))
      applyChanges(markListed(tokenTable, [APPLE], listTime))
      return applyChanges(changesOfList(tokenTable, parsedList(after), now))
    },
  }
}
/** What every update of a list about this token says. */
const ofApple = { symbol: 'AAPLc', address: APPLE, time: '2026-11-20T12:00:00.000Z', source: 'list' } as const
const typesOf = (drafts: readonly Draft[]) => drafts.map(({ type }) => type)

describe('a first list', () => {
  it('is published in full once the relay receives its logs, token by token', () => {
    const { list, subscribe } = openTokenTable()
    expect(list([apple(), tesla({ nav_price: undefined })])).toEqual([])
    const drafts = subscribe([APPLE, TESLA])
    expect(drafts).toEqual([
      { ...ofApple, type: 'token', change: 'listed', changed: [], token: apple(), before: null },
      { ...ofApple, type: 'multiplier', phase: 'effective', previous: null, multiplier: '1', effective_at: null },
      {
        ...ofApple,
        type: 'nav',
        nav: {
          price: '324.3014',
          updated_at: '2026-11-20T11:30:03.000Z',
          age_s: 1_797,
          state: 'fresh',
          stale_after_s: 93_600,
          frozen: null,
        },
        before: null,
      },
      expect.objectContaining({ type: 'token', symbol: 'TSLAc', change: 'listed', before: null }),
      expect.objectContaining({ type: 'multiplier', symbol: 'TSLAc', previous: null, multiplier: '1', source: 'list' }),
    ])
  })

  it('is published only for tokens whose logs the relay receives', () => {
    const { list, subscribe, tokenTable } = openTokenTable()
    list([apple(), tesla()])
    expect(typesOf(subscribe([TESLA]))).toEqual(['token', 'multiplier', 'nav'])
    expect([...tokenTable.values()].map(({ symbol, state }) => [symbol, state])).toEqual([
      ['AAPLc', 'awaited'],
      ['TSLAc', 'listed'],
    ])
    expect(list([apple({ nav_price: 1, symbol: 'APPL' }), tesla()])).toEqual([])
    expect(subscribe([APPLE, TESLA])).toMatchObject([
      { type: 'token', symbol: 'APPL', change: 'listed' },
      { type: 'multiplier', symbol: 'APPL', previous: null },
      { type: 'nav', symbol: 'APPL' },
    ])
  })
})

describe('a token', () => {
  it('that disappears is delisted once, and listed again when it returns', () => {
    const { list, subscribe, tokenTable } = openTokenTable()
    list([apple(), tesla()])
    subscribe([APPLE, TESLA])
    expect(list([tesla()])).toMatchObject([
      { type: 'token', symbol: 'AAPLc', change: 'delisted', changed: [], before: null, token: apple() },
    ])
    expect(list([tesla()])).toEqual([])
    expect(tokenTable.get(APPLE)?.state).toBe('delisted')
    expect(list([apple(), tesla()])).toEqual([])
    expect(subscribe([APPLE, TESLA])).toMatchObject([
      { type: 'token', symbol: 'AAPLc', change: 'listed' },
      { type: 'multiplier', symbol: 'AAPLc', previous: null },
      { type: 'nav', symbol: 'AAPLc', before: null },
    ])
  })

  it('that disappears before it was listed is never published', () => {
    const { list, subscribe } = openTokenTable()
    list([apple(), tesla()])
    expect(list([tesla()])).toEqual([])
    expect(typesOf(subscribe([APPLE, TESLA]))).toEqual(['token', 'multiplier', 'nav'])
  })

  it('that is renamed is still the same token, and keeps its former symbol', () => {
    const { change, list, tokenTable } = openTokenTable()
    expect(change(apple(), apple({ symbol: 'AAPL' }))).toEqual([
      {
        ...{ ...ofApple, type: 'token', symbol: 'AAPL', change: 'changed', changed: ['symbol'] },
        ...{ token: apple({ symbol: 'AAPL' }), before: { symbol: 'AAPLc' } },
      },
    ])
    expect(tokenTable.get(APPLE)?.formerSymbols).toEqual(['AAPLc'])
    for (const symbol of ['AAPLc', 'AAPL', 'AAPLc']) list([apple({ symbol })])
    expect(tokenTable.get(APPLE)?.formerSymbols).toEqual(['AAPL'])
    for (let nth = 0; nth < 20; nth += 1) list([apple({ symbol: `A${nth}` })])
    expect(tokenTable.get(APPLE)?.formerSymbols).toHaveLength(8)
    expect(tokenTable.get(APPLE)?.formerSymbols[0]).toBe('A18')
  })

  it('is published with its changed, new and removed fields and their old values', () => {
    const { change } = openTokenTable()
    const { isin: _isin, ...without } = apple({ name: 'Apple Inc.', total_supply: 1, website: 'https://apple.invalid' })
    const [draft, ...others] = change(apple(), without)
    expect(others).toEqual([])
    expect(draft).toMatchObject({
      change: 'changed',
      changed: ['name', 'isin', 'total_supply', 'website'],
      before: { name: 'Apple', isin: 'US0378331005', total_supply: 19_893.91 },
      token: without,
    })
    expect(draft?.type === 'token' && Object.keys(draft.before ?? {})).toEqual(['name', 'isin', 'total_supply'])
  })

  it('is not published for fields that have their own messages', () => {
    const { change } = openTokenTable()
    const drafts = change(
      apple(),
      apple({ multiplier: 2, paused_features: [0], nav_price: 325, nav_price_updated_at: '2026-11-20T11:45:00Z' }),
    )
    expect(typesOf(drafts)).toEqual(['multiplier', 'pause', 'nav'])
  })

  it.each(['1e400', '-0'])('does not change after a restart because of the number %s, which JSON does not keep', (digits) => {
    const record = JSON.stringify(apple({ total_supply: 'placeholder' })).replace('"placeholder"', digits)
    const token = JSON.parse(JSON.stringify(tokenOf(record)))
    expect(changesOfList(new Map([[token.address, token]]), parsedList(record), listTime)).toEqual([{ after: token, drafts: [] }])
  })

  it('does not change when only the order of its fields does', () => {
    const { change } = openTokenTable()
    const reversed = Object.fromEntries(Object.entries(apple()).reverse())
    expect(change(apple(), reversed)).toEqual([])
  })
})

describe('a multiplier of the list', () => {
  const withMultiplier = (digits: string) => JSON.stringify(apple({ multiplier: 'placeholder' })).replace('"placeholder"', digits)

  it('is published when it changes, with all digits and the old value', () => {
    expect(openTokenTable().change(withMultiplier('1'), withMultiplier('1.000537939576369481'))).toEqual([
      {
        ...{ ...ofApple, type: 'multiplier', phase: 'effective', effective_at: null },
        ...{ previous: '1', multiplier: '1.000537939576369481' },
      },
    ])
  })

  it('is not published when only its notation changes', () => {
    expect(openTokenTable().change(withMultiplier('2'), withMultiplier('2.0'))).toEqual([])
  })

  /** What happens to a token of which the list said 1 first, and the multipliers that are published of it. */
  type Step = { readonly by: 'list' | 'log' | 'call'; readonly value: string; readonly published: readonly string[] }
  const list = (value: string, ...published: readonly string[]): Step => ({ by: 'list', value, published })
  const log = (value: string): Step => ({ by: 'log', value, published: [] })
  const call = (value: string, ...published: readonly string[]): Step => ({ by: 'call', value, published })

  it.each<[string, readonly Step[]]>([
    ['repeats its value', [list('1')]],
    ['says another value', [list('2', '1 → 2 list'), list('2')]],
    ['says the old value after a log', [log('4'), list('1'), list('1')]],
    ['says the old value after a call', [call('4', '1 → 4 clock'), list('1'), list('1')]],
    ['says none and then the old value, after a log', [log('4'), list('null'), list('1')]],
    ['says none and then the old value, after a call', [call('4', '1 → 4 clock'), list('null'), list('1')]],
    ['says none for ever, after a log', [log('4'), ...Array(5).fill(list('null'))]],
    ['says none for ever, after a call', [call('4', '1 → 4 clock'), ...Array(5).fill(list('null'))]],
    ['says none for ever, after a call that confirmed it', [call('1'), ...Array(5).fill(list('null'))]],
    ['says the value of a log', [log('4'), list('4')]],
    ['says a new value after a log', [log('4'), list('8', '4 → 8 list')]],
    ['says a new value after a call', [call('4', '1 → 4 clock'), list('8', '4 → 8 list')]],
    ['says none for three refreshes', [...Array(3).fill(list('null')), list('1')]],
    [
      'says none for longer',
      [...Array(3).fill(list('null')), list('null', '1 → null list'), list('null'), list('1', 'null → 1 list')],
    ],
    ['says none with interruptions', [list('null'), list('null'), list('1'), list('null'), list('null'), list('1')]],
    ['says nonsense for longer', [list('0'), list('-1'), list('"2"'), list('0', '1 → null list'), list('3', 'null → 3 list')]],
    ['says another value after none', [list('null'), list('2', '1 → 2 list')]],
  ])('of a token whose list %s', (_, steps) => {
    const { list: readList, report, tokenTable, change } = openTokenTable()
    change(withMultiplier('1'), withMultiplier('1'))
    const apply = ({ by, value }: Step, block: number): readonly Draft[] => {
      const token = tokenTable.get(APPLE)
      if (!token) throw new Error('no token')
      if (by === 'list') return readList([withMultiplier(value)], { ...listTime, at: { block, logIndex: 0 } })
      if (by === 'call')
        return report(applyContractAnswer(token, { ...unpaused, block, multiplier: BigInt(value) * 10n ** 18n }, listTime))
      const fields = {
        block,
        logIndex: 1,
        key: `${block}`,
        source: 'log',
        phase: 'effective',
        from: token.multiplier,
        to: value,
      } as const
      const logChange = { ...fields, effectiveAt: null, timestamp: null, isApplied: false }
      tokenTable.set(
        APPLE,
        withDerivedState({ ...token, multiplierHistory: addLogChange(token.multiplierHistory, logChange) }, listTime),
      )
      return []
    }
    const published = steps.map((step, index) =>
      apply(step, index + 1).map((draft) =>
        draft.type === 'multiplier' ? `${draft.previous} → ${draft.multiplier} ${draft.source}` : draft.type,
      ),
    )
    expect(published).toEqual(steps.map((step) => step.published))
  })
})

describe('a field of a record that a log changed', () => {
  it.each<[string, StockRecord, readonly string[]]>([
    ['stays while the list goes on saying the old value', apple(), []],
    ['stays where the list says none', apple({ name: undefined }), []],
    ['stays where the list says null', apple({ name: null }), []],
    ['is replaced where the list says a new value', apple({ name: 'Apple Inc.' }), ['name']],
  ])('%s', (_, record, changed) => {
    const { list, subscribe, tokenTable } = openTokenTable()
    list([apple()])
    subscribe([APPLE])
    const token = tokenTable.get(APPLE)
    if (!token) throw new Error('no token')
    const named = { block: 5, logIndex: 1, key: 'a', field: 'name', entry: null, value: 'Pomme' }
    tokenTable.set(APPLE, withDerivedState({ ...token, recordChanges: [named] }, listTime))
    expect(list([record])).toMatchObject(changed.length > 0 ? [{ type: 'token', changed, before: { name: 'Pomme' } }] : [])
  })
})

describe('paused features', () => {
  it('are published by name when they are paused and unpaused, with all that are paused now', () => {
    const { change, list } = openTokenTable()
    expect(change(apple(), apple({ paused_features: [0, 3, 9] }))).toMatchObject([
      {
        type: 'pause',
        change: 'paused',
        features: ['TRANSFER', 'SEIZE', 'UNKNOWN_9'],
        feature_ids: [0, 3, 9],
        paused: ['TRANSFER', 'SEIZE', 'UNKNOWN_9'],
        source: 'list',
      },
    ])
    expect(list([apple({ paused_features: [1, 9] })])).toMatchObject([
      { type: 'pause', change: 'paused', features: ['MINT'], feature_ids: [1], paused: ['MINT', 'UNKNOWN_9'] },
      { type: 'pause', change: 'unpaused', features: ['TRANSFER', 'SEIZE'], feature_ids: [0, 3], paused: ['MINT', 'UNKNOWN_9'] },
    ])
    expect(list([apple({ paused_features: undefined })])).toMatchObject([
      { type: 'pause', change: 'unpaused', feature_ids: [1, 9], paused: [] },
    ])
  })

  it('are the same in another order', () => {
    expect(openTokenTable().change(apple({ paused_features: [0, 1] }), apple({ paused_features: [1, 0] }))).toEqual([])
  })

  it('have these names', () => {
    expect([0, 1, 2, 3, 4].map(featureName)).toEqual(['TRANSFER', 'MINT', 'BURN', 'SEIZE', 'UNKNOWN_4'])
  })
})

describe('a NAV of the list', () => {
  const nav = (nav_price: unknown, nav_price_updated_at: unknown) => apple({ nav_price, nav_price_updated_at })

  it('is published when it changes, with the last published one', () => {
    const drafts = openTokenTable().change(apple(), nav(325, '2026-11-20T11:59:00Z'))
    expect(drafts).toMatchObject([
      { type: 'nav', nav: { price: '325', age_s: 60, state: 'fresh' }, before: { price: '324.3014', state: 'fresh' } },
    ])
  })

  it('is not replaced by an older reading, as another machine may answer', () => {
    const { change, list, tokenTable } = openTokenTable()
    expect(change(apple(), nav(300, '2026-11-20T11:00:00Z'))).toEqual([])
    expect(tokenTable.get(APPLE)?.navReading.price).toBe('324.3014')
    expect(list([apple()])).toEqual([])
    expect(list([nav(330, '2026-11-20T11:59:00Z')])).toMatchObject([{ nav: { price: '330' }, before: { price: '324.3014' } }])
  })

  it('becomes stale by time, is published as stale once, and is fresh again with the next reading', () => {
    const { list, subscribe, advance } = openTokenTable()
    list([apple()])
    subscribe([APPLE])
    const stale = listTimeAfter(26 * HOUR_MS)
    expect(advance(listTimeAfter(25 * HOUR_MS))).toEqual([])
    expect(advance(stale)).toMatchObject([
      {
        type: 'nav',
        nav: { state: 'stale', price: '324.3014' },
        before: { state: 'fresh' },
        time: new Date(stale.now).toISOString(),
      },
    ])
    expect(advance(listTimeAfter(27 * HOUR_MS))).toEqual([])
    const next = new Date(NOON + 27 * HOUR_MS).toISOString()
    expect(list([nav(330, next)], listTimeAfter(27 * HOUR_MS))).toMatchObject([
      { nav: { state: 'fresh' }, before: { state: 'stale' } },
    ])
  })

  it('of a token that is not listed is not published as stale', () => {
    const { list, subscribe, advance } = openTokenTable()
    list([apple(), tesla()])
    subscribe([TESLA])
    list([apple()])
    expect(advance(listTimeAfter(1_000 * HOUR_MS))).toEqual([])
  })
})
