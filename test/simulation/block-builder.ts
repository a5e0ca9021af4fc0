import type { ActiveFaults } from './active-faults.ts'
import { randomTx, type TransactionMix } from './random-transactions.ts'
import { sealTransactions } from './seal-changes.ts'
import { SeededRandom } from './seeded-random.ts'
import { type SimulatedChain, SLOT_MS, SLOTS_PER_BLOCK } from './simulated-chain.ts'
import { roundTx } from './simulated-feed.ts'
import { reorgBlocks } from './simulated-reorg.ts'
import { hex, type SimulatedTx, transactionsOf } from './simulated-transactions.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

type Options = {
  readonly settings: Settings
  readonly clock: VirtualClock
  readonly activeFaults: ActiveFaults
  readonly chain: SimulatedChain
}

/** A transaction that waits for a later block. It is shown there, or first appears when that block is sealed. */
type DeferredTx = { readonly tx: SimulatedTx; readonly shown: boolean }

/** How often, in %, a transaction that lost its block is shown again before the next block seals it. */
const SHOWN_AGAIN_PERCENT = 70
/** Roughly the flashblocks of a block after the first: the fault hits one of them. */
const GAPS_PER_BLOCK = 5

/** Builds the chain, slot by slot. Each slot has its own random numbers, so removing a fault changes nothing else. */
export class BlockBuilder {
  readonly #options: Options
  #slot = 0
  /** Slots since the newest block was sealed. */
  #slotsInBlock = 0
  /** Transactions that the block will contain and that are not shown. */
  #hiddenTxs: SimulatedTx[] = []
  #deferredTxs: readonly DeferredTx[] = []

  constructor(options: Options) {
    const { clock, activeFaults, chain } = options
    this.#options = options
    this.#beginBlock([])
    activeFaults.onsets('builderRestarts').subscribe(() => this.#restartBlock())
    activeFaults.onsets('reorg').subscribe(({ amount }) => this.#reorganise(amount, false))
    activeFaults.onsets('rewind').subscribe(({ amount }) => this.#reorganise(amount, true))
    activeFaults
      .onsets('deepReorg')
      .subscribe(({ amount }) => this.#reorganise(Math.ceil(((chain.head - chain.safe) * amount) / 100), false))
    const tick = () => {
      if (!activeFaults.isActive('chainStops')) this.#tick()
      clock.runAfter(SLOT_MS, tick)
    }
    clock.runAfter(SLOT_MS, tick)
  }

  #tick(): void {
    const { settings } = this.#options
    this.#slot += 1
    this.#slotsInBlock += 1
    const txs = this.#randomTxs()
    if (settings.mode === 'native') {
      this.#hiddenTxs.push(...txs)
      return this.#sealBlock()
    }
    if (this.#slotsInBlock === SLOTS_PER_BLOCK) return this.#sealBlock()
    const deferred = this.#slotsInBlock === 1 ? this.#releaseDeferred(true) : []
    this.#showTxs([...deferred, ...txs])
  }

  #randomFor(name: string): SeededRandom {
    return new SeededRandom(this.#options.settings.seed, name, this.#slot)
  }

  #randomTxs(): readonly SimulatedTx[] {
    const { activity } = this.#options.settings
    const random = this.#randomFor('market')
    const count = Math.floor(activity / 100) + (random.chance(activity % 100) ? 1 : 0)
    const hash = (nth: number) => hex(64, 0x7a_0000_0000 + this.#slot * 100 + nth)
    const market = Array.from({ length: count }, (_, nth) => randomTx(random, hash(nth), this.#transactionMix))
    const { second } = this.#transactionMix
    return [...market, ...roundTx(this.#options.activeFaults, this.#randomFor('round'), this.#slot, second)]
  }

  get #transactionMix(): TransactionMix {
    const { settings, clock } = this.#options
    const { issuerPercent, pools, hasManager = false } = settings
    const hasPools = pools !== undefined
    return { issuerPercent, second: Math.floor(clock.now() / 1_000), hasPools, hasManager: hasPools && hasManager }
  }

  #showTxs(txs: readonly SimulatedTx[]): void {
    const { chain, clock, activeFaults } = this.#options
    const { pendingBlock } = chain
    const isGapStruck = this.#randomFor('gap').chance((activeFaults.amount('flashblocksLost') ?? 0) / GAPS_PER_BLOCK)
    // Once a transaction is hidden, all later ones of its block are hidden too.
    if (isGapStruck || activeFaults.isActive('nothingShown') || this.#hiddenTxs.length > 0)
      pendingBlock.hiddenFrom = Math.min(pendingBlock.hiddenFrom, clock.elapsedMs)
    if (pendingBlock.hiddenFrom <= clock.elapsedMs) this.#hiddenTxs.push(...txs)
    else {
      const logs = chain.showTransactions(txs)
      chain.events.next({ type: 'shown', pending: chain.now.pending, logs })
    }
  }

  #sealBlock(): void {
    const { chain, activeFaults } = this.#options
    const { pending } = chain.now
    const silent = this.#releaseDeferred(false)
    const { txs, deferred } = sealTransactions({
      activeFaults,
      shown: transactionsOf(pending),
      random: this.#randomFor('fate'),
      transactionMix: this.#transactionMix,
      slot: this.#slot,
    })
    this.#deferredTxs = [...this.#deferredTxs, ...deferred]
    const block = chain.addBlock({ timestamp: pending.timestamp, txs: [...silent, ...txs, ...this.#hiddenTxs] })
    chain.markHead()
    this.#beginBlock([])
    chain.events.next({ type: 'sealed', block })
  }

  /** Takes the waiting transactions that will be shown, or those that will be sealed without being shown. */
  #releaseDeferred(shown: boolean): readonly SimulatedTx[] {
    const released = this.#deferredTxs.filter((deferred) => deferred.shown === shown)
    this.#deferredTxs = this.#deferredTxs.filter((deferred) => deferred.shown !== shown)
    return released.map(({ tx }) => tx)
  }

  #defer(txs: readonly SimulatedTx[], random: SeededRandom): void {
    this.#deferredTxs = [...this.#deferredTxs, ...txs.map((tx) => ({ tx, shown: random.chance(SHOWN_AGAIN_PERCENT) }))]
  }

  #beginBlock(keptTxs: readonly SimulatedTx[]): void {
    const { chain, settings, activeFaults } = this.#options
    // Without flashblocks nothing is shown before it is sealed.
    chain.beginBlock(keptTxs, settings.mode === 'native' || activeFaults.isActive('nothingShown'))
    this.#slotsInBlock = 0
    this.#hiddenTxs = []
  }

  /** The builder fails over and restarts the block. What it had shown gets other indexes, or is not shown. */
  #restartBlock(): void {
    const { chain, clock, settings } = this.#options
    if (settings.mode === 'native') return
    const random = this.#randomFor('restart')
    chain.abandon()
    const txs = transactionsOf(chain.now.pending).filter(() => random.chance(80))
    if (random.chance(50)) txs.reverse()
    this.#beginBlock([])
    if (random.chance(50)) chain.pendingBlock.hiddenFrom = clock.elapsedMs
    this.#showTxs(txs)
  }

  /** Another chain takes over: at once, or by rolling back and building again. */
  #reorganise(depth: number, isRewind: boolean): void {
    const { chain } = this.#options
    const to = Math.max(chain.first, chain.safe, chain.head - depth)
    const { pending } = chain.now
    const shown = transactionsOf(pending)
    const removed = chain.rollBackTo(to)
    if (removed.length === 0) return
    chain.abandon()
    const hidden = this.#hiddenTxs
    const random = this.#randomFor('reorg')
    const { blocks, remaining } = reorgBlocks({ random, removed, isRewind, slot: this.#slot, transactionMix: this.#transactionMix })
    const added = blocks.map((block) => chain.addBlock(block))
    if (added.length > 0) chain.markHead()
    const continuesBlock = chain.head + 1 === pending.number
    this.#beginBlock(continuesBlock ? shown : [])
    this.#defer(remaining, random)
    if (continuesBlock) this.#hiddenTxs = hidden
    else this.#defer([...shown, ...hidden], random)
    chain.events.next({ type: 'reorganised', removed, added })
  }
}
