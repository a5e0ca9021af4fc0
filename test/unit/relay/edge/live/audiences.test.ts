import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { runAtOnce } from '../../../../../src/lib/turns.ts'
import { parseDecimal } from '../../../../../src/protocol/decimal.ts'
import { defaultSelectionOptions, type SelectionOptions } from '../../../../../src/protocol/parameters/selection.ts'
import type { Transport } from '../../../../../src/protocol/transports.ts'
import type { Update } from '../../../../../src/protocol/updates.ts'
import { Audiences } from '../../../../../src/relay/edge/live/audiences.ts'
import { Listener } from '../../../../../src/relay/edge/live/listener.ts'
import { optionsKey } from '../../../../../src/relay/edge/select/compiled-selection.ts'
import { concatBytes, Frame } from '../../../../../src/relay/edge/select/frame.ts'
import { KeyLookup } from '../../../../../src/relay/edge/select/key-history.ts'
import { createMatcher } from '../../../../../src/relay/edge/select/match.ts'
import { openClients } from '../clients/test-clients.ts'
import { QuietOutlet } from '../quiet-outlet.ts'

const addresses = Array.from({ length: 6 }, (_, index): Hex => `0x${String(index + 1).repeat(40)}`)
const noHistory = new KeyLookup({ find: () => [] })

/** An update with the fields that matching reads; the others only make it distinct. */
const ACCOUNT = `0x${'1a'.repeat(20)}` as const
const OTHER_PARTY = `0x${'2b'.repeat(20)}` as const
const amountsOf = (seq: number) => ({
  ...{ stage: 'preconfirmed', reference_value: `${seq % 7}.00`, shares: `${seq % 5}` },
  ...{ from: OTHER_PARTY, to: seq % 3 === 0 ? ACCOUNT : OTHER_PARTY },
})

function frameOf(seq: number, type: 'transfer' | 'nav' | 'status', address: Hex, padding: number): Frame {
  const update = {
    ...{ type, id: `k.${seq}`, address: type === 'status' ? null : address },
    ...(type === 'transfer' && { ...amountsOf(seq), padding: 'x'.repeat(padding) }),
  } as unknown as Update
  return new Frame({ seq, update, text: JSON.stringify(update) }, noHistory)
}

const { patience } = openClients()
const host = { heartbeat: () => null, positionOf: () => null, leave: () => {} }
const backlogs = { mayWrite: () => true, hold: () => {} }
/** The bytes of a slow listener are never free. */
const isHeld = () => true

/** Records the bytes it is given. A slow one keeps the buffers themselves, so a reused buffer would show. */
class RecordingListener {
  readonly writes: Buffer[] = []
  readonly listener: Listener
  readonly #slow: boolean

  constructor(tokens: ReadonlySet<Hex> | null, options: Partial<SelectionOptions>, transport: Transport, isSlow: boolean) {
    this.#slow = isSlow
    const outlet = Object.defineProperty(new QuietOutlet(), 'backlog', { value: isSlow ? 1 : 0 })
    outlet.write = (bytes) => void this.writes.push(this.#slow ? bytes : Buffer.from(bytes))
    const init = { id: 'one', transport, address: 'here', outlet, heartbeatMs: null, uptime: 0, patience, host }
    this.listener = new Listener({ ...init, selection: { tokens, options: { ...defaultSelectionOptions, ...options } } })
  }

  get text(): string {
    return Buffer.concat(this.writes).toString()
  }
}

const anyTokens = fc.option(
  fc.subarray(addresses).map((chosen) => new Set(chosen)),
  { nil: null },
)
/** One selection for each option; a new option has to be here too. */
const optionCases = {
  types: { types: ['transfer'] },
  stage: { stage: 'sealed' },
  min_value: { min_value: parseDecimal('3') },
  min_shares: { min_shares: parseDecimal('3') },
  account: { account: [ACCOUNT] },
  pools: { pools: [ACCOUNT] },
} as const satisfies { readonly [Name in keyof SelectionOptions]: Pick<SelectionOptions, Name> }
const anyOptions = fc.constantFrom<Partial<SelectionOptions>>({}, ...Object.values(optionCases), { types: ['nav', 'status'] })
const anyListener = fc.record({
  tokens: anyTokens,
  options: anyOptions,
  transport: fc.constantFrom<Transport>('ws', 'sse', 'sse-named', 'ndjson'),
  slow: fc.boolean(),
})
const anyMessage = fc.record({
  type: fc.constantFrom('transfer' as const, 'transfer' as const, 'nav' as const, 'status' as const),
  address: fc.constantFrom(...addresses),
  // Some batches exceed the shared write buffer.
  padding: fc.oneof({ weight: 200, arbitrary: fc.constant(10) }, { weight: 1, arbitrary: fc.constant(300_000) }),
})
const anyBatch = fc.oneof(
  { weight: 5, arbitrary: fc.array(anyMessage, { minLength: 1, maxLength: 12 }) },
  { weight: 1, arbitrary: fc.array(anyMessage, { minLength: 150, maxLength: 300 }) },
)

it('selections that differ in any option have different keys, and equal ones the same', () => {
  const selections = [{}, ...Object.values(optionCases)].map((given) => ({ ...defaultSelectionOptions, ...given }))
  expect(new Set(selections.map(optionsKey)).size).toBe(selections.length)
  for (const options of selections) expect(optionsKey(structuredClone(options))).toBe(optionsKey(options))
})

// That it may change its selection is in match.test.ts.
describe('a live listener', () => {
  it('receives exactly what its selection matches, in order, beside any other listeners, slow ones too', () => {
    fc.assert(
      fc.property(fc.array(anyListener, { maxLength: 12 }), fc.array(anyBatch, { maxLength: 6 }), (selected, batches) => {
        const audiences = new Audiences(isHeld)
        const readers = selected.map(
          ({ tokens, options, transport, slow }) => new RecordingListener(tokens, options, transport, slow),
        )
        for (const { listener } of readers) audiences.assign(listener)
        let seq = 0
        const written = batches.map((batch) =>
          batch.map(({ type, address, padding }) => {
            seq += 1
            return frameOf(seq, type, address, padding)
          }),
        )
        for (const frames of written) audiences.deliver(frames, frames, backlogs)
        for (const { listener, text, writes } of readers) {
          const match = createMatcher(listener.selection)
          const expected = written.map((frames) => runAtOnce(match(frames))).filter((frames) => frames.length > 0)
          expect(text).toBe(expected.map((frames) => concatBytes(frames, listener.transport).toString()).join(''))
          expect(writes).toHaveLength(expected.length)
          expect(listener.sent).toBe(expected.flat().length)
        }
      }),
      { numRuns: 200 },
    )
  })
})
