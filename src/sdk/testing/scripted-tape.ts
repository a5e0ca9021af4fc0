import { createHash } from 'node:crypto'
import { examples } from '../generated/examples.ts'
import type { Block, GapMessage, HeartbeatMessage, HelloMessage, Message, SnapshotMessage, Update } from '../generated/messages.ts'

export type MessageOf<Type extends Message['type']> = Extract<Message, { readonly type: Type }>
/** Fields of a message that a test sets. All others are those of the example in the contract. */
export type GivenFields<Type extends Update['type']> = Partial<
  Omit<MessageOf<Type>, 'type' | 'id' | 'prev' | 'address' | 'symbol'>
> & { readonly symbol?: string }
/** A message about a log on the chain. */
export type ScriptedFact = Extract<Update, { readonly key: string; readonly block: Block; readonly tx: object }>

export const HEARTBEAT_S = 1
const DIGEST_CHARS = 32
const { symbol: SYMBOL, address: ADDRESS, block: BLOCK } = examples.transfer
const SEALED_HASH = `0x${'b'.repeat(64)}`

/** The digest of a seal or a receipt. */
export const digestOf = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, DIGEST_CHARS)

/** A tape that a test writes, with positions and a chain of `prev` as on a real one. */
export class ScriptedTape {
  readonly epoch: string
  readonly #firstSeq: number
  readonly #messages: Update[] = []
  readonly #facts = new Map<string, Update>()
  readonly #lastIds = new Map<string, string>()
  readonly #snapshots = new Map<string, SnapshotMessage>()
  /** The newest message of each bar. Bars stay when messages are deleted. */
  readonly #bars = new Map<string, MessageOf<'bar'>>()
  /** Number of messages at the beginning that are no longer stored. */
  #deleted = 0
  #blockNumber = BLOCK.number
  #transactions = 0

  constructor(epoch: string, symbols: readonly string[] = [SYMBOL], firstSeq = 0) {
    this.epoch = epoch
    this.#firstSeq = firstSeq
    for (const symbol of symbols) this.setState(symbol, {})
  }

  get symbols(): readonly string[] {
    return [...this.#snapshots.keys()]
  }

  /** Names under which a client may ask for a token, in lower case. */
  namesOf(symbol: string): readonly string[] {
    const { address, token } = this.#stateOf(symbol)
    const name = symbol.toLowerCase()
    return [name, name.replace(/c$/, ''), address, `isin:${token.isin}`.toLowerCase()]
  }

  get oldest(): string {
    return this.#positionAt(this.#deleted)
  }

  get end(): string {
    return this.#positionAt(this.#messages.length)
  }

  /** Messages after a position. A position that this tape does not have stands for its beginning. */
  after(position: string): readonly Update[] {
    return this.#messages.slice(Math.max(this.#deleted, this.#messages.findIndex(({ id }) => id === position) + 1))
  }

  has(position: string): boolean {
    return position === this.oldest || this.after(this.oldest).some(({ id }) => id === position)
  }

  /** Whether a position is one of this tape, and was deleted. */
  hasDeleted(position: string): boolean {
    return position.split('.')[0] === this.epoch && !this.has(position)
  }

  /** The published bars of a token, in the order of their start. */
  barsOf(symbol: string): readonly MessageOf<'bar'>[] {
    return [...this.#bars.values()].filter((bar) => bar.symbol === symbol).sort((a, b) => (a.start < b.start ? -1 : 1))
  }

  /** Returns the message that published a key. */
  factOf(key: string): Update | undefined {
    return this.#facts.get(key)
  }

  deleteAll(): void {
    this.#deleted = this.#messages.length
  }

  /** Writes a message. It is the example of the contract, but for the given fields, its time, and its place on tape and chain. */
  write<Type extends Update['type']>(type: Type, given: GivenFields<Type> = {}): MessageOf<Type> {
    const example: Update | undefined = examples[type]
    if (!example) throw new Error(`there is no message of the type ${type}`)
    const { time = new Date().toISOString() } = given
    const isOfAll = example.symbol === '*'
    const symbol = isOfAll ? '*' : (given.symbol ?? SYMBOL)
    const address = isOfAll ? null : this.#stateOf(symbol).address
    const channel = `${address} ${type}`
    const id = this.#positionAt(this.#messages.length + 1)
    const envelope = { type, id, prev: this.#lastIds.get(channel) ?? null, symbol, address, time }
    const place = 'tx' in example ? this.#nextPlace(time) : {}
    const ingest = 'ingest' in example && { ingest: { ...example.ingest, received_at: time, published_at: time } }
    const message = { ...envelope, ...example, ...ingest, ...place, ...given, ...envelope } as never as Update
    this.#lastIds.set(channel, id)
    this.#messages.push(message)
    if ('tx' in message && message.key !== undefined && !this.#facts.has(message.key)) this.#facts.set(message.key, message)
    if (message.type === 'nav') this.setState(symbol, { nav: message.nav })
    if (message.type === 'bar') this.#bars.set(`${symbol} ${message.start}`, message)
    if (message.type === 'quote') this.setState(symbol, { quote: message })
    return message as MessageOf<Type>
  }

  /** Seals facts of one token and block. */
  seal(...facts: readonly ScriptedFact[]): MessageOf<'seal'> {
    const [first] = facts
    if (!first || facts.some(({ symbol, block }) => symbol !== first.symbol || block.number !== first.block.number))
      throw new Error('a seal needs facts, all of one symbol and one block')
    const keys = facts.map(({ key }) => key)
    const types = facts.map(({ type }) => type)
    this.#blockNumber = Math.max(this.#blockNumber, first.block.number + 1)
    return this.write('seal', {
      ...{ symbol: first.symbol, block: { ...first.block, hash: SEALED_HASH }, keys, types },
      ...{ late_keys: [], count: keys.length, digest: digestOf(keys) },
    })
  }

  retract({ symbol, key, type, id, block }: ScriptedFact, given: GivenFields<'retract'> = {}): MessageOf<'retract'> {
    return this.write('retract', { symbol, key, fact_type: type, fact_id: id, block: { ...block, hash: SEALED_HASH }, ...given })
  }

  amend<Fact extends ScriptedFact>(fact: Fact, changes: Partial<Fact>): MessageOf<'amend'> {
    const { id, prev: _prev, time: _time, ...content } = fact
    const update = { ...content, ...changes } as never as MessageOf<'amend'>['update']
    const changed = Object.keys(changes)
    return this.write('amend', { symbol: fact.symbol, key: fact.key, fact_type: fact.type, fact_id: id, changed, update })
  }

  /** Changes the state of a token in later snapshots, and lists a token that is new. */
  setState(symbol: string, fields: Partial<SnapshotMessage>): void {
    const isExample = symbol === SYMBOL
    const address = isExample ? ADDRESS : `0xb2${(this.#snapshots.size + 1).toString(16).padStart(38, '0')}`
    const { token } = examples.snapshot
    const before = this.#snapshots.get(symbol) ?? {
      ...examples.snapshot,
      ...{ symbol, address, paused: [], token: { ...token, symbol, name: symbol, contract_address: address, paused_features: [] } },
    }
    this.#snapshots.set(symbol, { ...before, ...fields })
  }

  hello(id: string | null): HelloMessage {
    return { ...examples.hello, id, end: this.end, oldest: this.oldest, heartbeat_s: HEARTBEAT_S, source: 'pendingLogs' }
  }

  snapshot(symbol: string, id: string): SnapshotMessage {
    return { ...this.#stateOf(symbol), id, as_of: this.end }
  }

  heartbeat(id: string, sent: number): HeartbeatMessage {
    return { ...examples.heartbeat, id, end: this.end, sent, source: 'pendingLogs' }
  }

  /** The gap of a client that cannot continue after a position; null if it can. */
  gapAfter(position: string): GapMessage | null {
    if (this.has(position)) return null
    const reason = this.hasDeleted(position) ? 'expired' : 'epoch'
    return { type: 'gap', id: this.oldest, reason, after: position, through: this.oldest, backfill: null }
  }

  #positionAt(count: number): string {
    return `${this.epoch}.${this.#firstSeq + count}`
  }

  #stateOf(symbol: string): SnapshotMessage {
    const state = this.#snapshots.get(symbol)
    if (!state) throw new Error(`the tape has no token ${symbol}; it has ${this.symbols.join(', ')}`)
    return state
  }

  #nextPlace(timestamp: string) {
    this.#transactions += 1
    const hash = `0x${this.#transactions.toString(16).padStart(64, '0')}`
    const block = { number: this.#blockNumber, hash: null, timestamp }
    return { key: `${block.number}-${hash}-0`, block, tx: { hash, index: 0, log_index: 0 }, stage: 'preconfirmed', late: false }
  }
}
