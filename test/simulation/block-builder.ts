import type { Weather } from './active-faults.ts'
import { drawTx, type Market } from './random-transactions.ts'
import { sealedFate } from './seal-changes.ts'
import { Dice } from './seeded-random.ts'
import { hex, type Tx } from './simulated-block.ts'
import { type Chain, SLOT_MS, SLOTS_PER_BLOCK } from './simulated-chain.ts'
import { reorganised } from './simulated-reorg.ts'
import type { Settings } from './simulation-settings.ts'
import { type Clock, NOON } from './virtual-clock.ts'

type Options = {
  readonly settings: Settings
  readonly clock: Clock
  readonly weather: Weather
  readonly chain: Chain
}

/** A transaction that waits for a later block: shown there, or not before it is sealed. */
type Held = { readonly tx: Tx; readonly shown: boolean }

/** How often, in %, what lost its block is shown again before it finds another. */
const SHOWN_AGAIN = 70
/** Flashblocks that are not the first of their block, more or less: a gap strikes one of them. */
const GAPS_PER_BLOCK = 5

/** Builds the chain, slot by slot. What each slot draws is its own, so that a fault less changes nothing else. */
export class Builder {
  readonly #options: Options
  #slot = 0
  /** Slots since the newest block was sealed. */
  #age = 0
  /** What will be in the block beyond what is shown. */
  #hidden: Tx[] = []
  #held: readonly Held[] = []

  constructor(options: Options) {
    const { clock, weather, chain } = options
    this.#options = options
    this.#begin([])
    weather.onsets('restart').subscribe(() => this.#restart())
    weather.onsets('reorg').subscribe(({ amount }) => this.#reorganise(amount, false))
    weather.onsets('rewind').subscribe(({ amount }) => this.#reorganise(amount, true))
    weather
      .onsets('deepReorg')
      .subscribe(({ amount }) => this.#reorganise(Math.ceil(((chain.head - chain.safe) * amount) / 100), false))
    const tick = () => {
      if (!weather.is('stop')) this.#tick()
      clock.after(SLOT_MS, tick)
    }
    clock.after(SLOT_MS, tick)
  }

  #tick(): void {
    const { settings } = this.#options
    this.#slot += 1
    this.#age += 1
    const txs = this.#draw()
    if (settings.mode === 'native') {
      this.#hidden.push(...txs)
      return this.#seal()
    }
    if (this.#age === SLOTS_PER_BLOCK) return this.#seal()
    const held = this.#age === 1 ? this.#release(true) : []
    this.#show([...held, ...txs])
  }

  #dice(name: string): Dice {
    return new Dice(this.#options.settings.seed, name, this.#slot)
  }

  #draw(): readonly Tx[] {
    const { activity } = this.#options.settings
    const dice = this.#dice('market')
    const count = Math.floor(activity / 100) + (dice.chance(activity % 100) ? 1 : 0)
    const hash = (nth: number) => hex(64, 0x7a_0000_0000 + this.#slot * 100 + nth)
    return Array.from({ length: count }, (_, nth) => drawTx(dice, hash(nth), this.#market))
  }

  get #market(): Market {
    const { settings, clock } = this.#options
    return { deeds: settings.deeds, second: Math.floor((NOON + clock.frame) / 1_000) }
  }

  #show(txs: readonly Tx[]): void {
    const { chain, clock, weather } = this.#options
    const { building } = chain
    const struck = this.#dice('gap').chance((weather.amount('gap') ?? 0) / GAPS_PER_BLOCK)
    // Whatever comes after something that was not shown is not shown either.
    if (struck || weather.is('dark') || this.#hidden.length > 0)
      building.lostAt = Math.min(building.lostAt, clock.frame)
    if (building.lostAt <= clock.frame) this.#hidden.push(...txs)
    else chain.deeds.next({ type: 'shown', building, logs: chain.show(txs) })
  }

  #seal(): void {
    const { chain, clock, weather } = this.#options
    const { number, timestamp, txs: shown } = chain.building
    const silent = this.#release(false)
    const { txs, held } = sealedFate({
      ...{ weather, shown },
      dice: this.#dice('fate'),
      market: this.#market,
      slot: this.#slot,
    })
    this.#held = [...this.#held, ...held]
    const block = chain.add({ number, timestamp, txs: [...silent, ...txs, ...this.#hidden], since: clock.frame })
    chain.mark(number)
    this.#begin([])
    chain.deeds.next({ type: 'sealed', block })
  }

  /** Takes those that waited: to be shown, or to be sealed unseen. */
  #release(shown: boolean): readonly Tx[] {
    const released = this.#held.filter((held) => held.shown === shown)
    this.#held = this.#held.filter((held) => held.shown !== shown)
    return released.map(({ tx }) => tx)
  }

  #hold(txs: readonly Tx[], dice: Dice): void {
    this.#held = [...this.#held, ...txs.map((tx) => ({ tx, shown: dice.chance(SHOWN_AGAIN) }))]
  }

  #begin(kept: readonly Tx[]): void {
    const { chain, settings, weather } = this.#options
    // Without flashblocks nothing is shown before it is sealed.
    chain.begin(kept, settings.mode === 'native' || weather.is('dark'))
    this.#age = 0
    this.#hidden = []
  }

  /** The builder fails over and begins the block anew; what it had shown stands under other indexes, or is not shown. */
  #restart(): void {
    const { chain, clock, settings } = this.#options
    if (settings.mode === 'native') return
    const dice = this.#dice('restart')
    const txs = chain.abandon().txs.filter(() => dice.chance(80))
    if (dice.chance(50)) txs.reverse()
    this.#begin([])
    if (dice.chance(50)) chain.building.lostAt = clock.frame
    this.#show(txs)
  }

  /** Another chain takes over: at once, or by going back and building again. */
  #reorganise(depth: number, slowly: boolean): void {
    const { chain, clock, settings } = this.#options
    const to = Math.max(chain.safe, chain.head - depth)
    const removed = chain.cut(to)
    if (removed.length === 0) return
    const { number, txs: shown } = chain.abandon()
    const hidden = this.#hidden
    const dice = this.#dice('reorg')
    const { blocks, left } = reorganised({ dice, removed, slowly, slot: this.#slot, deeds: settings.deeds })
    const added = blocks.map(({ timestamp, txs }, nth) =>
      chain.add({ number: to + 1 + nth, timestamp, txs, since: clock.frame }),
    )
    if (added.length > 0) chain.mark(to + added.length)
    const goesOn = chain.head + 1 === number
    this.#begin(goesOn ? shown : [])
    this.#hold(left, dice)
    if (goesOn) this.#hidden = hidden
    else this.#hold([...shown, ...hidden], dice)
    chain.deeds.next({ type: 'reorganised', removed, added })
  }
}
