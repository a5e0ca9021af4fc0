import type { Owed, Owing } from '../chain/sealed/block-logs.ts'
import { type Cursor, DEPTH_BOUND_BLOCKS, LATELY_BLOCKS } from '../chain/sealed/recent-blocks.ts'
import type { Hex } from '../protocol/fields.ts'
import type { FactDraft, FactType, Place } from './fact.ts'
import { byIndex, keysBySameness, movesOf, next } from './moved-facts.ts'

/** Keys remembered at most; beyond it the oldest settled block is forgotten first. */
const KEYS_BOUND = 262_144
/** Keys that may be open at once; beyond it what is pre-confirmed waits for its block, and is told then. */
const OPEN_BOUND = 100_000
/** No block is pre-confirmed so far above the newest settled one; its key would stay open for ever. */
const AHEAD_BOUND_BLOCKS = 100_000

/** Where on the tape a restart finds the oldest of what is remembered. */
export type Since = number

/** A fact that has been told, and how its promise stands. */
export type Told = Omit<Place, 'txIndex'> & {
  txIndex: number
  readonly symbol: string
  type: FactType
  content: string
  /** What follows from what the chain said elsewhere: a movement's multiplier and shares. */
  detail: string | null
  state: 'open' | 'sealed'
  /** The number on the tape of the message that told or amended it last. */
  seq: number
}

/** A fact as a sealed block says it. */
export type Fact = Place & {
  readonly content: string
  readonly detail: string | null
  readonly draft: FactDraft
}

/** What a sealed block says: its facts, and the places of what is folded into another. */
export type Facts = { readonly told: readonly Fact[]; readonly parts: readonly Place[] }

/** One log as a seal lists it. */
type Sealed = { readonly key: string; readonly type: FactType | 'part' }

type Retraction = {
  readonly told: Told
  readonly reason: 'reorg' | 'replaced' | 'not_sealed'
  readonly by: string | null
}

/** How the promises of one block ended, in the order in which it is told. */
export type Settling = {
  readonly retractions: readonly Retraction[]
  /** The same key, other content. `of`: as what it had been told. */
  readonly amendments: readonly { readonly told: Told; readonly of: FactType; readonly fact: Fact }[]
  /** Told only now. `moved`: the same content had been told under another index of its transaction. */
  readonly tellings: readonly { readonly told: Told; readonly fact: Fact; readonly moved: boolean }[]
  /** The tokens of which the block holds something that no seal has said yet. */
  readonly seals: readonly { readonly address: Hex; readonly symbol: string | null; readonly logs: readonly Sealed[] }[]
}

/** A block as it is sealed. */
type SealedAs = { readonly number: number; readonly hash: Hex; readonly timestamp: string | null }

type Block = {
  readonly told: Map<string, Told>
  /** What was said last of each token in this block: its hash and its keys. */
  readonly seals: Map<Hex, string>
  /** The tape's end when the block was first heard of. */
  readonly since: Since
  /** As what it was sealed last. */
  sealed: SealedAs | null
  open: number
}

/** Which logs have been told, and how each promise ended: sealed or retracted. */
export class Ledger implements Owed {
  readonly #blocks = new Map<number, Block>()
  /** Everything told of a transaction, wherever: one that moves is found again. */
  readonly #byTx = new Map<Hex, Set<Told>>()
  #size = 0
  #open = 0
  #settled: number | null = null
  #safe: number | null = null

  /** Up to here nothing can be pre-confirmed any more. */
  get settled(): number | null {
    return this.#settled
  }

  /** How many promises wait for their block. */
  get open(): number {
    return this.#open
  }

  get size(): number {
    return this.#size
  }

  at(number: number): readonly Owing[] {
    return [...(this.#blocks.get(number)?.told.values() ?? [])]
  }

  toldBetween(from: number, to: number): readonly number[] {
    const told = [...this.#blocks].filter(([number, block]) => number >= from && number <= to && block.told.size > 0)
    return told.map(([number]) => number).sort((a, b) => a - b)
  }

  get sealedBefore(): readonly Cursor[] {
    const sealed = [...this.#blocks.values()].flatMap(({ sealed }) => sealed ?? [])
    return sealed.sort((a, b) => a.number - b.number)
  }

  /** Whether a pre-confirmed log is news: it was not told, and its block can still be open. */
  admits(block: number, key: string): boolean {
    if (this.#settled !== null && (block <= this.#settled || block > this.#settled + AHEAD_BOUND_BLOCKS)) return false
    return this.#open < OPEN_BOUND && !this.#blocks.get(block)?.told.has(key)
  }

  /** Remembers what was told. `end` is the tape's end before it. */
  tell(block: number, told: Told, end: number): void {
    const known = this.#blocks.get(block) ?? { told: new Map(), seals: new Map(), since: end, sealed: null, open: 0 }
    this.#blocks.set(block, known)
    this.#drop(known, told.key)
    known.told.set(told.key, told)
    this.#size += 1
    const others = this.#byTx.get(told.tx)
    if (others) others.add(told)
    else this.#byTx.set(told.tx, new Set([told]))
    if (told.state === 'open') {
      known.open += 1
      this.#open += 1
    }
    if (this.#size > KEYS_BOUND) this.#forgetOldest()
  }

  /** The same key, other content. */
  amend(told: Told, type: FactType, content: string, detail: string | null): void {
    told.type = type
    told.content = content
    told.detail = detail
  }

  /** What is told of a token from a block on, in the order of the chain. */
  from(
    block: number,
    address: Hex,
  ): readonly { readonly told: Told; readonly number: number; readonly sealed: SealedAs | null }[] {
    const later = [...this.#blocks].filter(([number]) => number >= block).sort(([a], [b]) => a - b)
    return later.flatMap(([number, { told, sealed }]) => {
      const its = [...told.values()].filter((one) => one.address === address).sort(byIndex)
      return its.map((one) => ({ told: one, number, sealed: one.state === 'sealed' ? sealed : null }))
    })
  }

  /** Whether anything is told of a transaction beside what is named. */
  tellsMore(tx: Hex, keys: ReadonlyMap<string, unknown>): boolean {
    return [...(this.#byTx.get(tx) ?? [])].some(({ key }) => !keys.has(key))
  }

  /** What was told of a key, if it is not retracted. */
  find(block: number, key: string): Told | undefined {
    return this.#blocks.get(block)?.told.get(key)
  }

  retract(block: number, key: string): void {
    const known = this.#blocks.get(block)
    if (known) this.#drop(known, key)
  }

  /** Ends what is told of a block as sealed under a hash: so says a seal that was told in a former life. */
  recallSeal(block: SealedAs, address: Hex, keys: readonly string[]): void {
    const known = this.#blocks.get(block.number)
    if (!known) return
    known.sealed = block
    known.seals.set(address, `${block.hash} ${keys.join()}`)
    for (const key of keys) this.#end(known, known.told.get(key))
  }

  /**
   * Up to this block all is settled, in the order of the chain; further back after a reorganisation. What lies above
   * `waiting` is still caught up beside it, so nothing of that is forgotten.
   */
  reach(block: number, waiting: number = block): void {
    this.#settled = block
    this.#forget(waiting)
  }

  /** Nothing below this is settled anew. */
  safe(block: number): void {
    this.#safe = Math.max(block, this.#safe ?? block)
  }

  /** Where on the tape the first of what is remembered may stand. */
  since(end: number): Since {
    let since = end
    for (const block of this.#blocks.values()) since = Math.min(since, block.since)
    return since
  }

  /**
   * Settles a block, for the first time or anew. What holds the same content under the same key stays. `asked` says whose
   * facts these are: of nobody else can anything be concluded. `end` is the tape's end before it.
   */
  settle(block: SealedAs, said: Facts, asked: ReadonlySet<Hex>, end: number): Settling {
    const facts = said.told
    const known = this.#blocks.get(block.number)
    const told = [...(known?.told.values() ?? [])].filter(({ address }) => asked.has(address)).sort(byIndex)
    const fresh = new Map(facts.map((fact) => [fact.key, fact]))
    const amendments: { told: Told; of: FactType; fact: Fact }[] = []
    const gone = told.filter((one) => {
      const fact = fresh.get(one.key)
      if (fact?.content !== one.content) return true
      fresh.delete(one.key)
      one.txIndex = fact.txIndex
      if (fact.detail !== one.detail) amendments.push({ told: one, of: one.type, fact })
      return false
    })
    const moves = movesOf(gone, [...fresh.values()], facts)
    const taken = new Set([...moves.values()].filter((key) => fresh.has(key)))
    const retractions: Retraction[] = []
    const elsewhere = this.#elsewhere(gone, block.number)
    for (const one of gone) {
      const fact = fresh.get(one.key)
      if (!moves.has(one.key) && fact && !taken.has(one.key) && fact.address === one.address) {
        amendments.push({ told: one, of: one.type, fact })
        fresh.delete(one.key)
        continue
      }
      const by = moves.get(one.key) ?? next(elsewhere, one) ?? null
      const reason = by !== null ? 'replaced' : one.state === 'sealed' ? 'reorg' : 'not_sealed'
      retractions.push({ told: one, reason, by })
    }
    for (const { told: one } of retractions) this.retract(block.number, one.key)
    for (const { told: one, fact } of amendments) this.amend(one, fact.draft.type, fact.content, fact.detail)
    const tellings = [...fresh.values()].map((fact) => {
      const { draft, ...place } = fact
      const { symbol, type } = draft
      const one: Told = { ...place, symbol, type, state: 'sealed', seq: 0 }
      this.tell(block.number, one, end)
      return { told: one, fact, moved: taken.has(fact.key) }
    })
    amendments.sort((a, b) => byIndex(a.told, b.told))
    return { retractions, amendments, tellings, seals: this.#seal(block, said) }
  }

  /** Ends what the block holds, and finds the tokens of which no seal says so yet. */
  #seal(block: SealedAs, { told, parts }: Facts): Settling['seals'] {
    const { number, hash } = block
    const logs = [...told, ...parts].sort(byIndex)
    const known = this.#blocks.get(number)
    if (!known) return []
    known.sealed = block
    const byAddress = Map.groupBy(logs, (log) => log.address)
    const seals: { address: Hex; symbol: string | null; logs: readonly Sealed[] }[] = []
    for (const [address, its] of byAddress) {
      const ended = its.map(({ key }) => known.told.get(key))
      for (const one of ended) this.#end(known, one)
      const says = `${hash} ${its.map(({ key }) => key).join()}`
      if (known.seals.get(address) === says) continue
      known.seals.set(address, says)
      const symbol = ended.find((one) => one)?.symbol ?? null
      seals.push({ address, symbol, logs: its.map(({ key }, at) => ({ key, type: ended[at]?.type ?? 'part' })) })
    }
    for (const address of known.seals.keys()) if (!byAddress.has(address)) known.seals.delete(address)
    return seals
  }

  /** The keys of other blocks under which the same transactions are sealed now, by what they say. */
  #elsewhere(gone: readonly Told[], block: number): ReadonlyMap<string, string[]> {
    const here = this.#blocks.get(block)?.told
    const others = [...new Set(gone.map(({ tx }) => tx))].flatMap((tx) => [...(this.#byTx.get(tx) ?? [])])
    return keysBySameness(others.filter((one) => one.state === 'sealed' && here?.get(one.key) !== one))
  }

  #end(block: Block, told: Told | undefined): void {
    if (told?.state !== 'open') return
    told.state = 'sealed'
    block.open -= 1
    this.#open -= 1
  }

  #drop(block: Block, key: string): void {
    const told = block.told.get(key)
    if (!told) return
    block.told.delete(key)
    this.#size -= 1
    if (told.state === 'open') {
      block.open -= 1
      this.#open -= 1
    }
    const others = this.#byTx.get(told.tx)
    others?.delete(told)
    if (others?.size === 0) this.#byTx.delete(told.tx)
  }

  #forgetOldest(): void {
    for (const [number, block] of this.#blocks) {
      if (block.open > 0 || block.told.size === 0) continue
      return this.#forgetBlock(number, block)
    }
  }

  /** Forgets what no reorganisation can reach any more; what is open is never forgotten. */
  #forget(waiting: number): void {
    const settled = this.#settled ?? 0
    const deep = Math.min(this.#safe ?? settled, settled - LATELY_BLOCKS)
    const floor = Math.min(waiting, Math.max(deep, settled - DEPTH_BOUND_BLOCKS))
    for (const [number, block] of this.#blocks) if (number < floor && block.open === 0) this.#forgetBlock(number, block)
  }

  #forgetBlock(number: number, block: Block): void {
    for (const key of block.told.keys()) this.#drop(block, key)
    this.#blocks.delete(number)
  }
}
