import type { Hex } from '../../lib/hex.ts'
import type { Nav } from '../../protocol/fields.ts'
import type { NoticeOf } from '../../protocol/notices.ts'
import { formatPosition } from '../../protocol/position.ts'
import type { Update } from '../../protocol/updates.ts'

/** Numbers near the greatest one, which a client must not round. */
const FIRST_SEQ = 9_007_199_254_700_000
const SYMBOL = 'AAPLc'
const ADDRESS = '0xb200000000000000000000c2e324d24d7eecd1fb'
const FIRST_BLOCK = 1_000_000
const TIME = '2026-11-23T14:30:00.000Z'
/** More digits than a floating-point number has. */
const RAW = '12345678901234567890123456789'
const AMOUNT = '123456789012345678901.23456789'
const SEALED_HASH: Hex = `0x${'b'.repeat(64)}`

const nav: Nav = { price: '317.1226', updated_at: TIME, age_s: 20, state: 'fresh', stale_after_s: 93_600, frozen: null }
const head = { pending: FIRST_BLOCK + 1, sealed: FIRST_BLOCK, safe: FIRST_BLOCK - 30, finalized: FIRST_BLOCK - 100 }

type TypeOf<Type extends Update['type']> = Extract<Update, { type: Type }>
type OwnFields<Type extends Update['type']> = Omit<TypeOf<Type>, 'type' | 'id' | 'prev' | 'symbol' | 'address' | 'time'>

/** A short tape of one token, written by a scenario. Positions and the chain of `prev` are those of a real one. */
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

  /** Whether a position was given here. */
  has(position: string): boolean {
    return position === this.start || this.#messages.some(({ id }) => id === position)
  }

  transfer(fields: Partial<OwnFields<'transfer'>> = {}): TypeOf<'transfer'> {
    this.#transactions += 1
    const hash: Hex = `0x${this.#transactions.toString(16).padStart(64, '0')}`
    const block = { number: FIRST_BLOCK + 1, hash: null, timestamp: TIME }
    return this.#write('transfer', {
      key: `${block.number}-${hash}-0`,
      stage: 'preconfirmed',
      late: false,
      from: `0x${'1'.repeat(40)}`,
      to: `0x${'2'.repeat(40)}`,
      raw: RAW,
      amount: AMOUNT,
      multiplier: '1',
      shares: AMOUNT,
      reference_value: '39150937787312.61',
      nav,
      memo: null,
      block,
      tx: { hash, index: 0, log_index: 0 },
      ingest: { source: 'pendingLogs', received_at: TIME, published_at: TIME },
      ...fields,
    })
  }

  nav(): TypeOf<'nav'> {
    return this.#write('nav', { nav, before: null, source: 'list' })
  }

  /** A message whose text is as long as asked for, with characters of several bytes. */
  action(length: number): TypeOf<'action'> {
    const { block, tx, key } = this.transfer()
    const description = 'Dividende für Größe ≥ 1 € 📈 '.repeat(Math.ceil(length / 30))
    return this.#write('action', {
      key: `${key.slice(0, -1)}1`,
      ...{ stage: 'preconfirmed', late: false, action_id: '7', description, uri: '', keys: [key], block },
      tx: { ...tx, log_index: 1 },
    })
  }

  seal({ key, type, block }: TypeOf<'transfer'>): TypeOf<'seal'> {
    const sealed = { ...block, hash: SEALED_HASH }
    return this.#write('seal', { block: sealed, keys: [key], types: [type], late_keys: [], count: 1, digest: '0'.repeat(32) })
  }

  retract({ key, type, id, block }: TypeOf<'transfer'>): TypeOf<'retract'> {
    const sealed = { ...block, hash: SEALED_HASH }
    return this.#write('retract', {
      ...{ key, fact_type: type, fact_id: id, reason: 'not_sealed', replaced_by: null, restored: null, block: sealed },
    })
  }

  amend(transfer: TypeOf<'transfer'>): TypeOf<'amend'> {
    const { id, prev: _prev, time: _time, ...update } = transfer
    const memo: Hex = `0x${'7'.repeat(64)}`
    return this.#write('amend', {
      ...{ key: transfer.key, fact_type: 'transfer', fact_id: id, changed: ['memo'], update: { ...update, memo } },
    })
  }

  hello(id: string | null): NoticeOf<'hello'> {
    return {
      type: 'hello',
      id,
      end: this.end,
      oldest: this.start,
      protocol: 'stocktape.v1',
      server: 'conform',
      connection: 'conform',
      chain_id: 8_453,
      heartbeat_s: 1,
      limits: { symbols_max: 1, selections_max: 1, replay_max: 1, backlog_bytes: 1, message_bytes: 4_096, retention_ms: 1 },
      source: 'pendingLogs',
      head,
      demo: false,
    }
  }

  snapshot(id: string): NoticeOf<'snapshot'> {
    return {
      type: 'snapshot',
      id,
      symbol: SYMBOL,
      address: ADDRESS,
      as_of: this.end,
      token: { contract_address: ADDRESS, symbol: SYMBOL, decimals: 8 },
      token_warnings: [],
      multiplier: '1',
      multiplier_source: 'list',
      scheduled: null,
      paused: [],
      supply: { tokens: AMOUNT, shares: AMOUNT },
      nav,
      quote: null,
      session: null,
    }
  }

  heartbeat(id: string, sent: number): NoticeOf<'heartbeat'> {
    return { type: 'heartbeat', id, end: this.end, time: TIME, head, source: 'pendingLogs', sent, backlog: 0 }
  }

  #write<Type extends Update['type']>(type: Type, fields: OwnFields<Type>): TypeOf<Type> {
    this.#seq += 1
    const id = formatPosition(this.epoch, this.#seq)
    const prev = this.#lastIds.get(type) ?? null
    this.#lastIds.set(type, id)
    const message = { type, id, prev, symbol: SYMBOL, address: ADDRESS, time: TIME, ...fields } as unknown as TypeOf<Type>
    this.#messages.push(message)
    return message
  }
}
