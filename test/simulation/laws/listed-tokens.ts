import type { Entry } from '../../../src/relay/tape/tape.ts'
import type { Law, LawContext } from './law.ts'

/** A token is delisted after this many equal answers. */
const CONFIRMATIONS = 3

/** Whether this update tells the multiplier of a token that was listed just before: its value is as old as the token. */
export const isIntroduction = (entries: readonly Entry[], index: number): boolean => {
  const [before, update] = [entries[index - 1]?.update, entries[index]?.update]
  return (
    update?.type === 'multiplier' && before?.type === 'token' && before.change === 'listed' && before.address === update.address
  )
}

/** The other half of I5: which tokens the tape lists, since which block, and whether the list agrees. */
export class ListedTokens implements Law {
  readonly #context: LawContext
  /** The head when each token was published as listed: everything sealed above it has to be published. */
  readonly listedSince = new Map<string, number>()

  constructor(context: LawContext) {
    this.#context = context
  }

  isListed(address: string): boolean {
    return this.listedSince.has(address)
  }

  onBatch(entries: readonly Entry[]): void {
    const { violation, chain, clock, list } = this.#context
    for (const { update } of entries) {
      if (update.type !== 'token' || update.source === 'log') continue
      const { id, address, change } = update
      if (change === 'listed') {
        if (this.listedSince.has(address)) violation('I5', `${id} lists ${address} again`)
        this.listedSince.set(address, chain.headAt(clock.elapsedMs))
      } else if (!this.listedSince.has(address)) violation('I5', `${id} is ${change}, though ${address} is not listed`)
      if (change !== 'delisted') continue
      this.listedSince.delete(address)
      const last = list.served.slice(-CONFIRMATIONS)
      const answersWithout = last.filter(({ records }) => records.every((record) => record.contract_address !== address))
      if (answersWithout.length < CONFIRMATIONS) violation('I5', `${id} delists ${address} after ${answersWithout.length} answers`)
    }
  }

  onEnd(recovered: boolean): void {
    const { violation, list } = this.#context
    if (!recovered) return
    for (const { contract_address: address } of list.records()) {
      if (!this.listedSince.has(address)) violation('I5', `${address} is not listed at the end`)
    }
  }
}
