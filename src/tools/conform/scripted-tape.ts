import type { Hex } from '../../lib/hex.ts'
import { exampleOf } from '../../protocol/contract-examples.ts'
import { formatKey } from '../../protocol/fields.ts'
import type { NoticeOf } from '../../protocol/notices.ts'
import { formatPosition } from '../../protocol/position.ts'
import type { Update } from '../../protocol/updates.ts'
import { lineDigest } from '../../relay/tape/line-digest.ts'

/** Near Number.MAX_SAFE_INTEGER, so that a client that rounds numbers is noticed. */
const FIRST_SEQ = 9_007_199_254_700_000
const SYMBOL = 'AAPLc'
const ADDRESS = '0xb200000000000000000000c2e324d24d7eecd1fb'
const FIRST_BLOCK = 1_000_000
const TIME = '2026-11-23T14:30:00.000Z'
/** Raw amount with more digits than a floating-point number can keep. */
const RAW = '12345678901234567890123456789'
const AMOUNT = '123456789012345678901.23456789'
const SEALED_HASH: Hex = `0x${'b'.repeat(64)}`

type TypeOf<Type extends Update['type']> = Extract<Update, { type: Type }>
type OwnFields<Type extends Update['type']> = Omit<TypeOf<Type>, 'type' | 'id' | 'prev' | 'symbol' | 'address' | 'time'>

/** A tape of one token, written by a scenario, with positions and a chain of `prev` as on a real one. */
export class ScriptedTape {
  readonly epoch: string
  readonly #messages: Update[] = []
  readonly #lastIds = new Map<string, string>()
  #seq = FIRST_SEQ
  #transactions = 0

  constructor(epoch: string) {
    this.epoch = epoch
  }

  get start(): string {
    return formatPosition(this.epoch, FIRST_SEQ)
  }

  get end(): string {
    return formatPosition(this.epoch, this.#seq)
  }

  after(position: string): readonly Update[] {
    return this.#messages.slice(this.#messages.findIndex(({ id }) => id === position) + 1)
  }

  has(position: string): boolean {
    return position === this.start || this.#messages.some(({ id }) => id === position)
  }

  transfer(fields: Partial<OwnFields<'transfer'>> = {}): TypeOf<'transfer'> {
    this.#transactions += 1
    const hash: Hex = `0x${this.#transactions.toString(16).padStart(64, '0')}`
    const block = { number: FIRST_BLOCK + 1, hash: null, timestamp: TIME }
    return this.#write('transfer', {
      ...exampleOf('transfer'),
      key: formatKey(block.number, hash, 0),
      raw: RAW,
      amount: AMOUNT,
      shares: AMOUNT,
      block,
      tx: { hash, index: 0, log_index: 0 },
      ...fields,
    })
  }

  nav(): TypeOf<'nav'> {
    return this.#write('nav', exampleOf('nav'))
  }

  /** Writes an action whose text has at least `length` characters, some of them of several bytes. */
  action(length: number): TypeOf<'action'> {
    const { block, tx, key } = this.transfer()
    const description = 'Dividende für Größe ≥ 1 € 📈 '.repeat(Math.ceil(length / 30))
    return this.#write('action', {
      ...exampleOf('action'),
      key: `${key.slice(0, -1)}1`,
      description,
      keys: [key],
      block,
      tx: { ...tx, log_index: 1 },
    })
  }

  seal({ key, type, block }: TypeOf<'transfer'>): TypeOf<'seal'> {
    const sealed = { ...block, hash: SEALED_HASH }
    const digest = lineDigest([key])
    const listed = { keys: [key], types: [type], late_keys: [], count: 1, digest }
    return this.#write('seal', { ...exampleOf('seal'), block: sealed, ...listed })
  }

  retract({ key, id, block }: TypeOf<'transfer'>): TypeOf<'retract'> {
    const sealed = { ...block, hash: SEALED_HASH }
    return this.#write('retract', { ...exampleOf('retract'), key, fact_type: 'transfer', fact_id: id, block: sealed })
  }

  amend(transfer: TypeOf<'transfer'>): TypeOf<'amend'> {
    const { id, prev: _prev, time: _time, ...update } = transfer
    const memo: Hex = `0x${'7'.repeat(64)}`
    return this.#write('amend', { ...exampleOf('amend'), key: transfer.key, fact_id: id, update: { ...update, memo } })
  }

  hello(id: string | null): NoticeOf<'hello'> {
    return { ...exampleOf('hello'), id, end: this.end, oldest: this.start, heartbeat_s: 1 }
  }

  snapshot(id: string): NoticeOf<'snapshot'> {
    return { ...exampleOf('snapshot'), id, symbol: SYMBOL, address: ADDRESS, as_of: this.end }
  }

  heartbeat(id: string, sent: number): NoticeOf<'heartbeat'> {
    return { ...exampleOf('heartbeat'), id, end: this.end, sent }
  }

  #write<Type extends Update['type']>(type: Type, fields: OwnFields<Type>): TypeOf<Type> {
    this.#seq += 1
    const id = formatPosition(this.epoch, this.#seq)
    const prev = this.#lastIds.get(type) ?? null
    this.#lastIds.set(type, id)
    const message = { ...fields, type, id, prev, symbol: SYMBOL, address: ADDRESS, time: TIME } as unknown as TypeOf<Type>
    this.#messages.push(message)
    return message
  }
}
