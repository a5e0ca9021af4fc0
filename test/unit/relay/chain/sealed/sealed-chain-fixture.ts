import { VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import { WakeUp } from '../../../../../src/lib/async-loop.ts'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Cursor, OpenKey, OpenKeys, SealedBlock } from '../../../../../src/relay/chain/blocks/sealed-block.ts'
import { Header, isSealed, type SealedHeader } from '../../../../../src/relay/chain/rpc/block-header.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { learn } from '../../../../../src/relay/chain/sealed/learn.ts'
import { cursorOf, type SealedState, startSealed } from '../../../../../src/relay/chain/sealed/sealed-state.ts'
import { settleChain } from '../../../../../src/relay/chain/sealed/settle-chain.ts'
import type { SealedEvidence, SettlementEvent } from '../../../../../src/relay/chain/sealed/settlement-types.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { FakeChain, type RpcRequest } from '../fake-chain.ts'
import { apple, keyOf, txHash } from '../node-json.ts'

export const HEAD = 10_000

/** Open keys by block, as a ledger keeps them. */
type AddedKey = Pick<OpenKey, 'topics'> & { block: number; index?: number; address?: Hex; tx?: Hex }

export class FakeOpenKeys implements OpenKeys {
  readonly sealedInPreviousRun: readonly Cursor[] = []
  readonly #openKeys = new Map<number, OpenKey[]>()

  add({ block, index = 0, address = apple, tx, topics }: AddedKey): void {
    const openKey = { key: keyOf({ block, index }), address, tx: tx ?? txHash(block, index), ...(topics && { topics }) }
    this.#openKeys.set(block, [...this.at(block), openKey])
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

/** The events of settling without suspicions, with views for tests. */
class SettledEvents {
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
    const holes = this.ofType('sealed').flatMap((event) => event.holes)
    return holes.map(({ blocks: { from, to }, reason }) => `${from}-${to} ${reason}`)
  }

  /** Where a restart continues. */
  restartCursor(): Cursor | null {
    return this.ofType('sealed').at(-1)?.restartCursor ?? null
  }

  cursors(): readonly number[] {
    return this.ofType('sealed').map(({ cursor }) => cursor.number)
  }
}

export const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** The block range of a request; null if it has none. */
export const rangeOf = ({ params }: RpcRequest): readonly [from: number, to: number] | null => {
  const { fromBlock, toBlock } = (params[0] ?? {}) as { fromBlock?: string; toBlock?: string }
  return fromBlock === undefined ? null : [Number(fromBlock), Number(toBlock)]
}

type ChainSettings = {
  /** The last settled block of the previous run; without it settling starts at the head. */
  readonly cursor?: Cursor
  /** Where the first run began. */
  readonly began?: number | null
  readonly safe?: number | null
  readonly backfillLimitMs?: number
  readonly backfillFirstMs?: number
  readonly readFirstState?: (block: Cursor) => Promise<void>
}

/** Settling of a scripted chain in virtual time. */
export const openSealedBlocks = ({
  cursor,
  began = null,
  safe = null,
  backfillLimitMs = 3_600_000,
  ...first
}: ChainSettings = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(HEAD, clock)
  const openKeys = new FakeOpenKeys()
  const settledEvents = new SettledEvents()
  const warnings: string[] = []
  const changed = new WakeUp()
  let state = startSealed({ cursor: cursor ?? null, began, safe, openKeys, silenceMs: 3_000, ...first })
  const change = (next: (before: SealedState) => SealedState) => {
    state = next(state)
    changed.notify()
  }
  const receive = (evidence: SealedEvidence) =>
    change((before) => {
      const [next, events] = learn(before, evidence, clock.now())
      for (const event of events) if (event.type !== 'finality' && !('isSuspected' in event)) settledEvents.all.push(event)
      return next
    })
  receive({ type: 'listed', filters: [{ addresses: [apple] }] })
  receive({ type: 'began', cursor: { number: HEAD, hash: chain.hashOf(HEAD) } })
  const subscription = settleChain({
    node: new ChainReader(chain.request),
    confirmChain: chain.confirmChain,
    openKeys,
    state: () => state,
    changed,
    backfillLimitMs,
    ...first,
    clock,
    log: (kind) => warnings.push(kind),
  }).subscribe(receive)
  onTestFinished(() => subscription.unsubscribe())
  const advance = (ms: number) => advanceClock(clock, ms)
  const announceHead = (block = chain.head) =>
    receive({ type: 'head', header: sealedHeader(chain.headerOf(block)), isPushed: false })
  return {
    chain,
    openKeys,
    settledEvents,
    warnings,
    change,
    clock,
    /** The newest block below which nothing is unread. */
    cursorNow: () => cursorOf(state),
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
