import type { Farewell } from '../../protocol/close-codes.ts'

/** Replays that run at once for one address; the others wait for their turn. */
const REPLAYS_BOUND = 2

type Bounds = { readonly clientsBound: number; readonly perAddressBound: number }
/** Somebody who listens, and whom it is counted for. */
type Guest = { readonly address: string }
/** Those of one address. Who waits for its turn is told whether it has come; it may have left instead. */
type Household = { listeners: number; replays: number; readonly waiting: Map<Guest, (hasCome: boolean) => void> }

const ignore = (): void => {}

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

  enter({ address }: Guest): void {
    const household = this.#households.get(address)
    if (household) household.listeners += 1
    else this.#households.set(address, { listeners: 1, replays: 0, waiting: new Map() })
    this.#listeners += 1
  }

  leave(guest: Guest): void {
    const household = this.#households.get(guest.address)
    if (!household) return
    this.#listeners -= 1
    household.listeners -= 1
    call(household, guest, false)
    this.#close(guest.address, household)
  }

  /** Resolves when a guest may begin to replay, or has left, with what is to be called when it is through. */
  async replayTurn(guest: Guest): Promise<() => void> {
    const household = this.#households.get(guest.address)
    if (!household) return ignore
    if (household.replays < REPLAYS_BOUND) household.replays += 1
    else if (!(await new Promise<boolean>((resolve) => household.waiting.set(guest, resolve)))) return ignore
    return () => {
      // Whoever is through hands its turn on.
      const [next] = household.waiting.keys()
      if (next) return call(household, next, true)
      household.replays -= 1
      this.#close(guest.address, household)
    }
  }

  /** An address of which nobody is left is forgotten. */
  #close(address: string, { listeners, replays }: Household): void {
    if (listeners === 0 && replays === 0) this.#households.delete(address)
  }
}

/** Tells a guest that waits for its turn, if it does, that it need not any longer. */
function call({ waiting }: Household, guest: Guest, hasCome: boolean): void {
  waiting.get(guest)?.(hasCome)
  waiting.delete(guest)
}
