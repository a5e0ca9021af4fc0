import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { closeCodes } from '../../../src/protocol/close-codes.ts'
import { examples, examplesOf, readme } from '../../../src/protocol/contract-examples.ts'
import { amountOf, parseDecimal, referenceValueOf, sharesOf, unitPriceOf } from '../../../src/protocol/decimal.ts'
import { formatKey } from '../../../src/protocol/fields.ts'
import { Notice } from '../../../src/protocol/notices.ts'
import { Request } from '../../../src/protocol/requests.ts'
import { type Movement, movementTypes, Update } from '../../../src/protocol/updates.ts'

const typesOf = (union: { options: readonly { shape: { type: { value: string } } }[] }): string[] =>
  union.options.map((schema) => schema.shape.type.value)

const serverMessages = [...Update.options, ...Notice.options]
const clientRequests = Request.options
const isMovement = (update: Update): update is Movement => movementTypes.has(update.type)
/** Every tokenized stock has eight decimals. */
const DECIMALS = 8

describe('the contract page', () => {
  it.each([
    ['message of the tape', typesOf(Update)],
    ['message of a connection', typesOf(Notice)],
    ['request of a client', typesOf(Request)],
  ])('shows an example of every %s', (_, types) => {
    expect(types.filter((type) => examplesOf(type).length === 0)).toEqual([])
  })

  it('shows no unknown message type', () => {
    const known = new Set([...typesOf(Update), ...typesOf(Notice), ...typesOf(Request)])
    expect(examples.map(({ type }) => type).filter((type) => !known.has(type))).toEqual([])
  })

  it('names every type of the tape and of a connection in a table', () => {
    const rows = readme.split('\n').filter((line) => line.startsWith('| `'))
    const missing = [...typesOf(Update), ...typesOf(Notice)].filter(
      (type) => !rows.some((row) => row.split('|')[1]?.includes(`\`${type}\``)),
    )
    expect(missing).toEqual([])
  })

  it('lists every close code with its word', () => {
    expect(Object.entries(closeCodes).filter(([word, code]) => !readme.includes(`${code} \`${word}\``))).toEqual([])
  })
})

describe('an example of a message', () => {
  const messages = examples.filter(({ type }) => serverMessages.some((schema) => schema.shape.type.value === type))

  it.each(messages.map((example) => [example.type, example] as const))(
    '%s has the fields of its schema, in order',
    (type, example) => {
      const schema = serverMessages.find((one) => one.shape.type.value === type)
      // A schema returns its fields in its own order, inner objects included.
      expect(JSON.stringify(schema?.parse(example))).toBe(JSON.stringify(example))
    },
  )
})

describe('an example of a request', () => {
  const requests = examples.filter(({ type }) => clientRequests.some((schema) => schema.shape.type.value === type))

  it.each(requests.map((example) => [example.type, example] as const))('%s parses', (_, example) => {
    expect(Request.parse(example)).toMatchObject({ type: example.type, req: example.req })
  })

  it('shows every option of a subscription', () => {
    const options = Object.keys(Request.options[0].shape)
    expect(options.filter((option) => !examplesOf('subscribe').some((example) => option in example))).toEqual([])
  })
})

describe('the numbers of the examples', () => {
  const updates = examples.flatMap((example) => {
    const read = Update.safeParse(example)
    return read.success ? [read.data] : []
  })

  it('follow from raw, multiplier and NAV', () => {
    for (const update of updates.filter(isMovement)) {
      const raw = BigInt(update.raw)
      const multiplier = parseDecimal(update.multiplier ?? '')
      const price = parseDecimal(update.nav.price ?? '')
      expect(update.amount).toBe(amountOf(raw, DECIMALS))
      expect(update.shares).toBe(multiplier && sharesOf(raw, multiplier, DECIMALS))
      expect(update.reference_value).toBe(price && referenceValueOf(raw, DECIMALS, price))
    }
  })

  it('contain the key that follows from block, transaction and log index', () => {
    for (const update of updates) {
      if (!('tx' in update) || !update.tx || !update.block) continue
      expect(update.key).toBe(formatKey(update.block.number, update.tx.hash, update.tx.log_index))
    }
  })

  it("contain the age of a NAV at the message's time", () => {
    for (const update of updates) {
      // The NAV of a bar is that of its last trade.
      if (!('nav' in update) || update.nav.updated_at === null || update.type === 'bar') continue
      const ageMs = Date.parse(update.time) - Date.parse(update.nav.updated_at)
      expect(update.nav.age_s).toBe(Math.floor(ageMs / 1_000))
    }
  })

  it('contain the sums and the NAV of the trades of a bar', () => {
    const [bar, trade] = ['bar', 'trade'].map((type) => updates.find((update) => update.type === type))
    if (bar?.type !== 'bar' || trade?.type !== 'trade') throw new Error('an example is missing')
    const [currency, volume] = [bar.currency_volume, bar.volume].map((text) => parseDecimal(text))
    expect(currency && volume && unitPriceOf(currency, volume)).toBe(bar.vwap)
    expect([bar.close, bar.buy_volume, bar.basis_bps, bar.nav]).toEqual([trade.price, trade.amount, trade.basis_bps, trade.nav])
  })

  it('contain the count and the digest of the keys of a seal', () => {
    const seals = updates.filter((update) => update.type === 'seal')
    expect(seals.length).toBeGreaterThan(0)
    for (const { keys, types, count, digest } of seals) {
      expect([count, types.length]).toEqual([keys.length, keys.length])
      expect(digest).toBe(createHash('sha256').update(keys.join('\n')).digest('hex').slice(0, 32))
    }
  })
})
