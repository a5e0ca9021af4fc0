import type { Farewell } from '../protocol/farewell.ts'

/** Replays that run at once for one address; the others wait for their turn. */
const REPLAYS_BOUND = 2

type Bounds = { readonly clientsBound: number; readonly perAddressBound: number }
/** Those of one address. */
type Household = { listeners: number; replays: number; readonly waiting: (() => void)[] }

/** How many listen and how many read what was, in all and from one address. */
export class Attendance {
  readonly #bounds: Bounds
  readonly #households = new Map<string, Household>()
  #listeners = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  /** Why nobody else can come in from an address; null if there is room. */
  objection(address: string): Extract<Farewell, 'full' | 'too_many_connections'> | null {
    const { clientsBound, perAddressBound } = this.#bounds
    if ((this.#households.get(address)?.listeners ?? 0) >= perAddressBound) return 'too_many_connections'
    return this.#listeners >= clientsBound ? 'full' : null
  }

  enter(address: string): void {
    const household = this.#households.get(address)
    if (household) household.listeners += 1
    else this.#households.set(address, { listeners: 1, replays: 0, waiting: [] })
    this.#listeners += 1
  }

  leave(address: string): void {
    const household = this.#households.get(address)
    if (!household) return
    this.#listeners -= 1
    household.listeners -= 1
    this.#close(address, household)
  }

  /** Resolves when somebody of an address may begin to replay, with what is to be called when it is through. */
  async replayTurn(address: string): Promise<() => void> {
    const household = this.#households.get(address)
    if (!household) return () => {}
    if (household.replays < REPLAYS_BOUND) household.replays += 1
    // Whoever is through hands its turn on.
    else await new Promise<void>((resolve) => household.waiting.push(resolve))
    return () => {
      const next = household.waiting.shift()
      if (next) return next()
      household.replays -= 1
      this.#close(address, household)
    }
  }

  /** An address of which nobody is left is forgotten. */
  #close(address: string, { listeners, replays }: Household): void {
    if (listeners === 0 && replays === 0) this.#households.delete(address)
  }
}
