import { describe, expect, it } from 'vitest'
// It defines the notes of the ingest, which are checked too.
import '../../../../../src/relay/notes/published-notes.ts'
import { type BatchMessage, encodeBatch } from '../../../../../src/relay/tape/batch-message.ts'
import { StreamCopy } from '../../../../../src/relay/tape/jetstream/stream-copy.ts'
import { unboundedOptions } from '../test-tape.ts'
import { amend, apple, oneOfEach, pause, retract, seal, tesla, transfer } from '../update-drafts.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')
const EPOCH = 'epoch1'
const END = 1_000

const empty: BatchMessage = {
  ...{ epoch: EPOCH, epochBeganAt: NOON, after: END, first: 0, texts: [], notes: {}, bars: [] },
  ...{ keepAfter: null, lastSeqs: null, resigns: false },
}
const idOf = (seq: number) => `${EPOCH}.${seq}`
const textOf = (
  { type, ...draft }: { readonly type: string; readonly [field: string]: unknown },
  seq: number,
  prev: string | null = null,
) => JSON.stringify({ type, id: idOf(seq), prev, ...draft })
const good = transfer({ at: NOON })
const goodText = textOf(good, END + 1)
const withText = (text: string): Partial<BatchMessage> => ({ first: END + 1, texts: [text] })
const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`

/** A tape that ends at 1000, with no NATS: messages are handed to it. */
function openTape() {
  const seen = { unreadable: 0, warnings: [] as [string, unknown][], failures: [] as unknown[] }
  const options = {
    ...unboundedOptions,
    ...{ dataDir: ':memory:', uptime: () => 0, stream: { extent: async () => null } },
    origin: { epoch: EPOCH, epochBeganAt: NOON, end: END },
    log: (kind: string, detail: unknown) => void seen.warnings.push([kind, detail]),
    onUnreadable: () => {
      seen.unreadable += 1
    },
    onFailure: (failure: unknown) => void seen.failures.push(failure),
  }
  const copy = new StreamCopy(options)
  const tape = copy.store
  let seq = 0
  const receive = (bytes: Uint8Array | string) => {
    seq += 1
    return copy.receive({ seq, id: `other.${seq}`, bytes: Buffer.from(bytes), pending: 0 })
  }
  return { tape, seen, receive }
}

describe('a message of the stream', () => {
  it.each<[string, Partial<BatchMessage>]>([
    ['an update that is no JSON', withText('{"type":"transfer"')],
    ['an update that is null', withText('null')],
    ['an update of no type', withText(textOf({ ...good, type: 'nothing' }, END + 1))],
    ['an update without its block', withText(textOf({ ...seal({ at: NOON }), block: undefined }, END + 1))],
    ['an update with another form than the tape writes', withText(goodText.replace('{"type"', '{ "type"'))],
    ['an update whose type is not its first field', withText(JSON.stringify({ id: idOf(END + 1), prev: null, ...good }))],
    ['an update whose time is none', withText(textOf({ ...good, time: '2026-99-99T99:99:99.999Z' }, END + 1))],
    ['an update with the position of another', withText(textOf(good, END + 2))],
    ['an update of another epoch', withText(goodText.replace(EPOCH, 'epoch2'))],
    ['an update whose previous one comes later', withText(textOf(good, END + 1, idOf(END + 5)))],
    ['an update whose previous one is of another epoch', withText(textOf(good, END + 1, 'epoch2.5'))],
    ['a good update, and then a bad one', { first: END + 1, texts: [goodText, '{}'] }],
    ['a first number that is taken', { first: END, texts: [textOf(good, END)] }],
    ['a first number of 0', { first: 0, texts: [textOf(good, 0)] }],
    ['numbers without room for more', { first: Number.MAX_SAFE_INTEGER, texts: [textOf(good, Number.MAX_SAFE_INTEGER)] }],
    ['an end without room for more', { after: Number.MAX_SAFE_INTEGER, lastSeqs: [] }],
    ['an epoch that is too long', { epoch: 'e'.repeat(1_000), lastSeqs: [] }],
    ['a last number after its end', { lastSeqs: [['* status', END + 1]] }],
    ['a last number of no type', { lastSeqs: [['nothing', 1]] }],
    ['a head that is none', { notes: { head: 5 } }],
    ['a status that is none', { notes: { status: { source: 'sun', reason: 'ok', since: '' } } }],
    ['an order of the list that is none', { notes: { 'list-order': 'apple' } }],
    ['a token that is none', { notes: { [`token/${apple}`]: { address: apple } } }],
    ['quotes that are none', { notes: { [`quote/${apple}`]: [{}] } }],
    ['a session that is none', { notes: { session: 'open' } }],
  ])('with %s is skipped and counted, and the tape goes on', (_, change) => {
    const { tape, seen, receive } = openTape()
    expect(receive(encodeBatch({ ...empty, ...change }))).toBe(true)
    expect(seen).toMatchObject({ unreadable: 1, failures: [] })
    expect(seen.warnings).toHaveLength(1)
    expect(receive(encodeBatch({ ...empty, first: END + 1, texts: [goodText] }))).toBe(true)
    expect([tape.end(), seen.unreadable, seen.failures]).toEqual([END + 1, 1, []])
    expect(tape.readTexts(0, 10).map(({ text }) => text)).toEqual([goodText])
  })

  it.each([
    ['more updates than it says', (text: string) => `${text}\n${goodText}`],
    ['a note that is too deep to be stored', (text: string) => text.replace('"notes":{}', `"notes":{"anything":${deep}}`)],
    ['no line', () => ''],
    ['a header that is too deep', () => `${'['.repeat(1e6)}`],
    ['only lines', () => '\n'.repeat(1e6)],
  ])('with %s is skipped and counted', (_, change) => {
    const { seen, receive } = openTape()
    expect(receive(change(Buffer.from(encodeBatch({ ...empty, ...withText(goodText) })).toString()))).toBe(true)
    expect(seen).toMatchObject({ unreadable: 1, failures: [] })
  })

  it('of another version of stocktape is skipped and counted, and the log names the version', () => {
    const { tape, seen, receive } = openTape()
    const [head = '', ...rest] = Buffer.from(encodeBatch({ ...empty, ...withText(goodText) }))
      .toString()
      .split('\n')
    receive([JSON.stringify({ ...JSON.parse(head), version: 99 }), ...rest].join('\n'))
    expect([tape.end(), seen.unreadable, seen.failures]).toEqual([END, 1, []])
    expect(seen.warnings).toEqual([['stream_other_version', { seq: 1, version: 99 }]])
    // Whoever wrote it has it on the tape. Its next batch does not follow here: the tape begins anew with it, and clients get a gap.
    expect(receive(encodeBatch({ ...empty, after: END + 1 }))).toBe(false)
  })

  it('with good updates is taken over as it is', () => {
    const { tape, seen, receive } = openTape()
    const at = { at: NOON }
    const drafts = [...oneOfEach(at), retract(at), amend(at), pause(at), transfer({ at: NOON, address: tesla, nth: 2 })]
    const texts = drafts.map((draft, nth) => textOf(draft, END + 1 + nth))
    receive(encodeBatch({ ...empty, first: END + 1, texts }))
    expect(seen).toEqual({ unreadable: 0, warnings: [], failures: [] })
    expect(tape.readTexts(0, 100).map(({ text }) => text)).toEqual(texts)
  })
})
