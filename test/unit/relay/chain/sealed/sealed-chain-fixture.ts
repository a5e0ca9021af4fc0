import { VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { Header, isSealed, type SealedHeader } from '../../../../../src/relay/chain/rpc/block-header.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import type { Cursor } from '../../../../../src/relay/chain/sealed/recent-blocks.ts'
import { SealedChain } from '../../../../../src/relay/chain/sealed/sealed-chain.ts'
import type { OpenKey, OpenKeys, SealedBlock, SettlementEvent } from '../../../../../src/relay/chain/sealed/settlement-types.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple, keyOf, txHash } from '../node-json.ts'

export const HEAD = 10_000

/** Open keys by block, as a ledger keeps them. */
export class FakeOpenKeys implements OpenKeys {
  /** Blocks that the previous run sealed. */
  sealedInPreviousRun: readonly Cursor[] = []
  readonly #openKeys = new Map<number, OpenKey[]>()

  add({ block, index = 0, address = apple, tx }: { block: number; index?: number; address?: Hex; tx?: Hex }): void {
    const openKey = { key: keyOf({ block, index }), address, tx: tx ?? txHash(block, index) }
    this.#openKeys.set(block, [...this.at(block), openKey])
  }

  /** Replaces the open keys of a block by its settled logs. */
  settle({ number, logs }: SealedBlock): void {
    this.#openKeys.delete(number)
    for (const { logIndex, address, transactionHash } of logs)
      this.add({ block: number, index: logIndex, address, tx: transactionHash })
  }

  at(block: number): readonly OpenKey[] {
    return this.#openKeys.get(block) ?? []
  }

  publishedBlocksBetween(from: number, to: number): readonly number[] {
    return [...this.#openKeys.keys()].filter((block) => block >= from && block <= to).sort((a, b) => a - b)
  }
}

export const sealedHeader = (value: unknown): SealedHeader => {
  const header = Header.parse(value)
  if (!isSealed(header)) throw new Error('no sealed header')
  return header
}

/** The events of settling, with views for tests. */
export class SettledEvents {
  readonly all: SettlementEvent[] = []

  ofType<Type extends SettlementEvent['type']>(type: Type): readonly Extract<SettlementEvent, { type: Type }>[] {
    return this.all.filter((event): event is Extract<SettlementEvent, { type: Type }> => event.type === type)
  }

  blocks(): readonly SealedBlock[] {
    return this.ofType('sealed').flatMap(({ blocks }) => blocks)
  }

  blockNumbers(): readonly number[] {
    return this.blocks().map(({ number }) => number)
  }

  logKeys(): readonly string[] {
    return this.blocks().flatMap(({ logs }) => logs.map(({ key }) => key))
  }

  holes(): readonly string[] {
    return this.ofType('hole').map(({ blocks: { from, to }, reason }) => `${from}-${to} ${reason}`)
  }

  /** The last settled version of each block with logs. */
  latestSealed(): readonly Cursor[] {
    const latest = new Map(this.blocks().map((block) => [block.number, block] as const))
    const nonEmpty = [...latest.values()].filter(({ logs }) => logs.length > 0)
    return nonEmpty.map(({ number, hash }) => ({ number, hash })).sort((a, b) => a.number - b.number)
  }

  /** Where a restart continues. */
  restartCursor(): Cursor | null {
    const last = this.all.findLast((event) => 'cursor' in event)
    return last?.restartCursor ?? null
  }

  cursors(): readonly number[] {
    return this.all.flatMap((event) => ('cursor' in event ? [event.cursor.number] : []))
  }
}

export const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

type ChainSettings = {
  readonly head?: number
  /** The last settled block of the previous run; without it settling starts at the head. */
  readonly cursor?: Cursor
  /** Where the first run began. */
  readonly began?: number | null
  readonly safe?: number | null
  readonly sealedInPreviousRun?: readonly Cursor[]
  readonly backfillLimitMs?: number
  /** Whether settled logs become open keys, as in a ledger. */
  readonly recordsSettled?: boolean
}

/** Settling of a scripted chain in virtual time. */
export const openSealedBlocks = ({
  head = HEAD,
  cursor,
  began = null,
  safe = null,
  sealedInPreviousRun = [],
  backfillLimitMs = 3_600_000,
  recordsSettled = false,
}: ChainSettings = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(head, clock)
  const openKeys = new FakeOpenKeys()
  openKeys.sealedInPreviousRun = sealedInPreviousRun
  const settledEvents = new SettledEvents()
  const warnings: string[] = []
  const list = { addresses: [apple] as readonly Hex[] }
  const open = (from: Cursor | null, knownSafe: number | null) =>
    new SealedChain({
      node: new ChainReader(chain.request),
      confirmChain: chain.confirmChain,
      openKeys,
      addresses: () => list.addresses,
      cursor: from,
      began,
      safe: knownSafe,
      backfillLimitMs,
      silenceMs: 3_000,
      clock,
      warn: (kind) => warnings.push(kind),
    })
  const follow = (sealedBlocks: SealedChain) =>
    sealedBlocks.follow().subscribe((event) => {
      settledEvents.all.push(event)
      if (recordsSettled && event.type === 'sealed') for (const block of event.blocks) openKeys.settle(block)
    })
  const sealed = open(cursor ?? null, safe)
  if (!cursor) sealed.begin({ number: head, hash: chain.hashOf(head) })
  const run = { sealed, subscription: follow(sealed) }
  onTestFinished(() => run.subscription.unsubscribe())
  const advance = (ms: number) => advanceClock(clock, ms)
  const announceHead = (block = chain.head) => run.sealed.receiveHead(sealedHeader(chain.headerOf(block)))
  return {
    chain,
    openKeys,
    settledEvents,
    warnings,
    list,
    sealed,
    clock,
    /** The current run, replaced by `restart`. */
    run,
    /** Ends this run and starts another with what the tape would hold. */
    restart: (knownSafe: number | null) => {
      run.subscription.unsubscribe()
      openKeys.sealedInPreviousRun = settledEvents.latestSealed()
      run.sealed = open(settledEvents.restartCursor() ?? { number: head, hash: chain.hashOf(head) }, knownSafe)
      run.subscription = follow(run.sealed)
    },
    /** Lets time pass. */
    advance,
    /** Pushes the current header of a block. */
    announceHead,
    /** Seals this many blocks, one by one, and pushes each head. */
    seal: async (count: number) => {
      for (let block = 0; block < count; block += 1) {
        chain.head += 1
        announceHead()
        await advance(200)
      }
    },
  }
}
