import type { Entry } from '../../../src/tape/tape.ts'
import type { Law, Scene } from './law.ts'

/** Told as delisted only after so many equal answers. */
const CONFIRMATIONS = 3

/** I5's other half: which tokens are listed on the tape, since which block, and whether the list agrees. */
export class Tokens implements Law {
  readonly #scene: Scene
  /** The head when each listed token was told as listed: all that is sealed above it has to be told. */
  readonly since = new Map<string, number>()

  constructor(scene: Scene) {
    this.#scene = scene
  }

  isListed(address: string): boolean {
    return this.since.has(address)
  }

  turn(entries: readonly Entry[]): void {
    const { broken, chain, list } = this.#scene
    for (const { update } of entries) {
      if (update.type !== 'token' || update.source === 'log') continue
      const { id, address, change } = update
      if (change === 'listed') {
        if (this.since.has(address)) broken('I5', `${id} lists ${address} again`)
        this.since.set(address, chain.head)
      } else if (!this.since.has(address)) broken('I5', `${id} is ${change}, though ${address} is not listed`)
      if (change !== 'delisted') continue
      this.since.delete(address)
      const last = list.served.slice(-CONFIRMATIONS)
      const lacking = last.filter(({ records }) => records.every((record) => record.contract_address !== address))
      if (lacking.length < CONFIRMATIONS) broken('I5', `${id} delists ${address} after ${lacking.length} answers`)
    }
  }

  end(recovered: boolean): void {
    const { broken, list } = this.#scene
    if (!recovered) return
    for (const { contract_address: address } of list.records()) {
      if (!this.since.has(address)) broken('I5', `${address} is not listed at last`)
    }
  }
}
