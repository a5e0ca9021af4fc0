import { VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import { Header, isSealed, type SealedHeader } from '../../../../src/chain/logs/log-schema.ts'
import { Reader } from '../../../../src/chain/rpc/block-reader.ts'
import type { Owed, Owing, SealedBlock, Settled } from '../../../../src/chain/sealed/block-logs.ts'
import type { Cursor } from '../../../../src/chain/sealed/recent-blocks.ts'
import { Sealed } from '../../../../src/chain/sealed/sealed-blocks.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple, keyOf, txHash } from '../node-json.ts'

export const HEAD = 10_000

/** What was told of each block, and never ended. */
export class Debts implements Owed {
  /** What a former life sealed. */
  sealedBefore: readonly Cursor[] = []
  readonly #owing = new Map<number, Owing[]>()

  owe({ block, index = 0, address = apple, tx }: { block: number; index?: number; address?: Hex; tx?: Hex }): void {
    const owing = { key: keyOf({ block, index }), address, tx: tx ?? txHash(block, index) }
    this.#owing.set(block, [...this.at(block), owing])
  }

  /** What a block held when it was told is owed from then on, and nothing else of it. */
  settle({ number, logs }: SealedBlock): void {
    this.#owing.delete(number)
    for (const { logIndex, address, transactionHash } of logs)
      this.owe({ block: number, index: logIndex, address, tx: transactionHash })
  }

  at(block: number): readonly Owing[] {
    return this.#owing.get(block) ?? []
  }

  toldBetween(from: number, to: number): readonly number[] {
    return [...this.#owing.keys()].filter((block) => block >= from && block <= to).sort((a, b) => a - b)
  }
}

export const sealedHeader = (given: unknown): SealedHeader => {
  const header = Header.parse(given)
  if (!isSealed(header)) throw new Error('no sealed header')
  return header
}

/** What settling brought, as it is read in tests. */
export class Told {
  readonly all: Settled[] = []

  of<Type extends Settled['type']>(type: Type): readonly Extract<Settled, { type: Type }>[] {
    return this.all.filter((one): one is Extract<Settled, { type: Type }> => one.type === type)
  }

  blocks(): readonly SealedBlock[] {
    return this.of('sealed').flatMap(({ blocks }) => blocks)
  }

  numbers(): readonly number[] {
    return this.blocks().map(({ number }) => number)
  }

  logs(): readonly string[] {
    return this.blocks().flatMap(({ logs }) => logs.map(({ key }) => key))
  }

  holes(): readonly string[] {
    return this.of('hole').map(({ blocks: { from, to }, reason }) => `${from}-${to} ${reason}`)
  }

  /** Each block that held something, as it was told last. */
  sealedLast(): readonly Cursor[] {
    const last = new Map(this.blocks().map((block) => [block.number, block] as const))
    const held = [...last.values()].filter(({ logs }) => logs.length > 0)
    return held.map(({ number, hash }) => ({ number, hash })).sort((a, b) => a.number - b.number)
  }

  cursor(): Cursor | null {
    return this.all.findLast((one) => 'cursor' in one)?.cursor ?? null
  }

  cursors(): readonly number[] {
    return this.all.flatMap((one) => ('cursor' in one ? [one.cursor.number] : []))
  }
}

export const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

type Given = {
  readonly head?: number
  /** Up to where a former life settled; without it the walk begins at the head. */
  readonly cursor?: Cursor
  readonly safe?: number | null
  readonly sealedBefore?: readonly Cursor[]
  readonly backfillBoundMs?: number
  /** Whether what was told is remembered, as by a ledger. */
  readonly remembers?: boolean
}

/** Every sealed block of a chain that does as it is told, walked in virtual time. */
export const walk = ({
  head = HEAD,
  cursor,
  safe = null,
  sealedBefore = [],
  backfillBoundMs = 3_600_000,
  remembers = false,
}: Given = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(head, clock)
  const owed = new Debts()
  owed.sealedBefore = sealedBefore
  const told = new Told()
  const said: string[] = []
  const list = { addresses: [apple] as readonly Hex[] }
  const open = (from: Cursor | null, knownSafe: number | null) =>
    new Sealed({
      node: new Reader(chain.ask),
      owed,
      addresses: () => list.addresses,
      cursor: from,
      safe: knownSafe,
      backfillBoundMs,
      silenceMs: 3_000,
      clock,
      say: (kind) => said.push(kind),
    })
  const follow = (one: Sealed) =>
    one.follow().subscribe((settled) => {
      told.all.push(settled)
      if (remembers && settled.type === 'sealed') for (const block of settled.blocks) owed.settle(block)
    })
  const sealed = open(cursor ?? null, safe)
  if (!cursor) sealed.begin({ number: head, hash: chain.hashOf(head) })
  const life = { sealed, listening: follow(sealed) }
  onTestFinished(() => life.listening.unsubscribe())
  const pass = (ms: number) => {
    clock.maxFrames += ms
    clock.flush()
    clock.frame = clock.maxFrames
  }
  const raise = (block = chain.head) => life.sealed.raise(sealedHeader(chain.headerOf(block)))
  return {
    chain,
    owed,
    told,
    said,
    list,
    sealed,
    clock,
    /** The walk as it is after a restart. */
    life,
    /** Ends this life and begins another, with what the tape would know. */
    restart: (knownSafe: number | null) => {
      life.listening.unsubscribe()
      owed.sealedBefore = told.sealedLast()
      life.sealed = open(told.cursor() ?? { number: head, hash: chain.hashOf(head) }, knownSafe)
      life.listening = follow(life.sealed)
    },
    /** Lets time pass. */
    pass,
    /** Tells of a head, as the chain knows it now. */
    raise,
    /** Seals so many blocks, one by one, and tells of each. */
    seal: (count: number) => {
      for (let block = 0; block < count; block += 1) {
        chain.head += 1
        raise()
        pass(200)
      }
    },
  }
}
