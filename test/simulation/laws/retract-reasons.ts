import type { Update } from '../../../src/protocol/updates.ts'
import { type ExpectedLog, expectedLogsOf } from './expected-logs.ts'
import type { KeyLifecycle, KeyLifecycles } from './key-lifecycles.ts'
import type { LawContext } from './law.ts'

type Retract = Extract<Update, { type: 'retract' }>
type Amend = Extract<Update, { type: 'amend' }>

/** Whether a retraction gives the right reason, and an amendment should not have been a retraction. */
export class RetractReasons {
  readonly #context: LawContext
  readonly #lifecycles: KeyLifecycles
  /** Retractions of the block at hand that named no other key, and the keys that they could have named. */
  #withoutReplacement: { readonly id: string; readonly key: string; readonly others: readonly string[] }[] = []
  #replacements = new Set<string>()

  constructor(context: LawContext, lifecycles: KeyLifecycles) {
    this.#context = context
    this.#lifecycles = lifecycles
  }

  /** `life` as it was before it ended. */
  checkRetract({ id, key, reason, by, block }: Retract, lifecycle: KeyLifecycle): void {
    const { violation, chain } = this.#context
    if (reason === 'replaced') {
      this.#replacements.add(by ?? '')
      const [number = ''] = (by ?? '').split('-')
      const places =
        chain.blocksByNumber.get(Number(number))?.flatMap(({ logs }) => expectedLogsOf(logs).get(by ?? '') ?? []) ?? []
      const found = places.some((read) => this.#isSame(read, lifecycle))
      if (!found || by === key) violation('I4', `${id} ${key} is replaced by ${by}, which does not hold its content`)
      return
    }
    if (by !== null) violation('I4', `${id} ${key}: ${reason} by ${by}`)
    const expected = lifecycle.hash === null ? 'not_sealed' : 'reorg'
    if (reason !== expected) violation('I4', `${id} ${key} is retracted as ${reason}, not ${expected}`)
    const here = this.#sameContentKeys(block.hash, lifecycle).filter(
      (other) => !this.#isPublishedAlike(other, lifecycle),
    )
    const elsewhere = [...this.#lifecycles.all.values()].filter(
      (other) =>
        other.tx === lifecycle.tx && other.number !== lifecycle.number && this.#isStillSealed(other, lifecycle.text),
    )
    this.#withoutReplacement.push({ id, key, others: [...here, ...elsewhere.map((other) => other.key)] })
  }

  /** Only what is nowhere else in the transaction is amended. */
  checkAmend({ id, key, update }: Amend): void {
    const { violation } = this.#context
    const lifecycle = this.#lifecycles.all.get(key)
    if (!lifecycle || update.stage !== 'sealed') return
    // What still stands under its own key has not moved, whatever else says the same: only what follows from it changed.
    const own = expectedLogsOf(this.#lifecycles.blockOf(update.block?.hash ?? null)?.logs ?? []).get(key)
    if (own && this.#isSame(own, lifecycle)) return
    // Where it stood twice, one of the two may have moved there.
    const [other] = this.#sameContentKeys(update.block?.hash ?? null, lifecycle).filter(
      (one) => !this.#isPublishedAlike(one, lifecycle) && !this.#replacements.has(one),
    )
    if (other) violation('I4', `${id} amends ${key} though its content is now ${other}`)
  }

  /** A block is told whole: whoever named no key found none, or each was named by another already. */
  onBlockSettled(): void {
    const { violation } = this.#context
    for (const { id, key, others } of this.#withoutReplacement) {
      const free = others.find((other) => !this.#replacements.has(other))
      if (free) violation('I4', `${id} ${key} is not told as replaced by ${free}`)
    }
    this.#withoutReplacement = []
    this.#replacements = new Set()
  }

  #isSame({ log, text, isPart }: ExpectedLog, lifecycle: KeyLifecycle): boolean {
    return !isPart && log.tx === lifecycle.tx && text === lifecycle.text
  }

  /** Other keys of a block under which the same content of the same transaction is sealed. */
  #sameContentKeys(hash: string | null, lifecycle: KeyLifecycle): readonly string[] {
    const logs = this.#lifecycles.blockOf(hash)?.logs ?? []
    const others = [...expectedLogsOf(logs)].filter(
      ([key, read]) => key !== lifecycle.key && this.#isSame(read, lifecycle),
    )
    return others.map(([key]) => key)
  }

  /** Whether a key was told with this very content by itself: it has not moved there. */
  #isPublishedAlike(key: string, { text }: KeyLifecycle): boolean {
    const other = this.#lifecycles.all.get(key)
    return other !== undefined && other.state !== 'retracted' && other.text === text
  }

  #isStillSealed(other: KeyLifecycle, saying: string): boolean {
    return other.state === 'sealed' && other.hash !== null && other.text === saying
  }
}
