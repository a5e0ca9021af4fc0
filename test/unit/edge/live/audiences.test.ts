import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Audiences } from '../../../../src/edge/live/audiences.ts'
import { Listener } from '../../../../src/edge/live/listener.ts'
import { concatBytes, Frame } from '../../../../src/edge/select/frame.ts'
import { createMatcher } from '../../../../src/edge/select/match.ts'
import type { Transport } from '../../../../src/edge/transport/encode.ts'
import { parseDecimal } from '../../../../src/protocol/decimal.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { defaultSelectionOptions, type SelectionOptions } from '../../../../src/protocol/selection.ts'
import type { Update } from '../../../../src/protocol/updates.ts'

const addresses = Array.from({ length: 6 }, (_, index): Hex => `0x${String(index + 1).repeat(40)}`)
const noHistory = { readKey: () => [], sealsOfToken: () => [] }

/** A message as far as it matters to who hears it; the rest is there to be told apart. */
function frameOf(seq: number, type: 'transfer' | 'nav' | 'status', address: Hex, padding: number): Frame {
  const update = {
    ...{ type, id: `k.${seq}`, address: type === 'status' ? null : address },
    ...(type === 'transfer'
      ? { stage: 'preconfirmed', reference_value: `${seq % 7}.00`, padding: 'x'.repeat(padding) }
      : {}),
  } as unknown as Update
  return new Frame({ seq, update, text: JSON.stringify(update) }, noHistory)
}

/** One who listens and takes bytes at its own pace: those that it has not taken must stay as they were. */
class RecordingListener {
  readonly given: Buffer[] = []
  readonly listener: Listener
  readonly #slow: boolean

  constructor(
    tokens: ReadonlySet<Hex> | null,
    options: Partial<SelectionOptions>,
    carrier: Transport,
    isSlow: boolean,
  ) {
    this.#slow = isSlow
    const outlet = {
      write: (bytes: Buffer) => void this.given.push(this.#slow ? bytes : Buffer.from(bytes)),
      backlog: isSlow ? 1 : 0,
      takenBytes: 0,
      drained: async () => {},
      ping: () => false,
      end: () => {},
    }
    const given = { id: 'one', transport: carrier, address: 'here', outlet, heartbeatMs: null, uptime: 0 }
    this.listener = new Listener({ ...given, options: { ...defaultSelectionOptions, ...options } })
    this.listener.tokens = tokens
  }

  get text(): string {
    return Buffer.concat(this.given).toString()
  }
}

const anyTokens = fc.option(
  fc.subarray(addresses).map((chosen) => new Set(chosen)),
  { nil: null },
)
const anyOptions = fc.constantFrom<Partial<SelectionOptions>>(
  {},
  { types: ['transfer'] },
  { types: ['nav', 'status'] },
  { minValue: parseDecimal('3') },
  { stage: 'sealed' },
)
const anyListener = fc.record({
  tokens: anyTokens,
  options: anyOptions,
  carrier: fc.constantFrom<Transport>('ws', 'sse', 'sse-named', 'ndjson'),
  slow: fc.boolean(),
})
const anyMessage = fc.record({
  type: fc.constantFrom('transfer' as const, 'transfer' as const, 'nav' as const, 'status' as const),
  address: fc.constantFrom(...addresses),
  // Some turns are larger than any room that is kept at hand.
  padding: fc.oneof({ weight: 200, arbitrary: fc.constant(10) }, { weight: 1, arbitrary: fc.constant(300_000) }),
})
const anyBatch = fc.oneof(
  { weight: 5, arbitrary: fc.array(anyMessage, { minLength: 1, maxLength: 12 }) },
  { weight: 1, arbitrary: fc.array(anyMessage, { minLength: 150, maxLength: 300 }) },
)

describe('everybody who hears the tape live', () => {
  it('hears exactly what its own selection lets through, in order, whoever else listens and however slowly', () => {
    fc.assert(
      fc.property(fc.array(anyListener, { maxLength: 12 }), fc.array(anyBatch, { maxLength: 6 }), (asked, turns) => {
        const audiences = new Audiences()
        const readers = asked.map(
          ({ tokens, options, carrier, slow }) => new RecordingListener(tokens, options, carrier, slow),
        )
        for (const { listener } of readers) audiences.assign(listener)
        let seq = 0
        const written = turns.map((turn) =>
          turn.map(({ type, address, padding }) => {
            seq += 1
            return frameOf(seq, type, address, padding)
          }),
        )
        for (const frames of written) audiences.deliver(frames, frames.at(-1)?.seq ?? 0, () => true)
        for (const { listener, text, given } of readers) {
          const hear = createMatcher({ tokens: listener.tokens, options: listener.options })
          const heard = written.map(hear).filter((frames) => frames.length > 0)
          expect(text).toBe(heard.map((frames) => concatBytes(frames, listener.transport).toString()).join(''))
          expect(given).toHaveLength(heard.length)
          expect(listener.sent).toBe(heard.flat().length)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('can change what it hears, and leave, at any time', () => {
    const audiences = new Audiences()
    const [one, other] = [
      new RecordingListener(new Set(), {}, 'ndjson', false),
      new RecordingListener(null, {}, 'ndjson', false),
    ]
    for (const { listener } of [one, other]) audiences.assign(listener)
    const deliver = (seq: number) => audiences.deliver([frameOf(seq, 'nav', addresses[0] ?? '0x', 0)], seq, () => true)
    deliver(1)
    one.listener.tokens = new Set(addresses.slice(0, 1))
    audiences.assign(one.listener)
    deliver(2)
    audiences.remove(other.listener)
    deliver(3)
    expect([one, other].map(({ text }) => text.match(/k\.\d/g))).toEqual([
      ['k.2', 'k.3'],
      ['k.1', 'k.2'],
    ])
    expect([one, other].map(({ listener }) => audiences.has(listener))).toEqual([true, false])
  })
})
