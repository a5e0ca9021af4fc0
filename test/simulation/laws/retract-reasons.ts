import type { Update } from '../../../src/protocol/updates.ts'
import { type ExpectedLog, expectedLogsOf } from './expected-logs.ts'
import type { KeyLifecycle, KeyLifecycles } from './key-lifecycles.ts'
import type { LawContext } from './law.ts'

type Retract = Extract<Update, { type: 'retract' }>
type Amend = Extract<Update, { type: 'amend' }>

/** Whether a retract has the right reason, and whether an amend should have been a retract. */
export class RetractReasons {
  readonly #context: LawContext
  readonly #lifecycles: KeyLifecycles
  /** Retracts of the current block that name no other key, and the keys that they could have named. */
  #withoutReplacement: { readonly id: string; readonly key: string; readonly others: readonly string[] }[] = []
  #replacements = new Set<string>()

  constructor(context: LawContext, lifecycles: KeyLifecycles) {
    this.#context = context
    this.#lifecycles = lifecycles
  }

  /** `lifecycle`: the state before the retract. */
  checkRetract({ id, key, reason, replaced_by, block }: Retract, lifecycle: KeyLifecycle): void {
    const { violation, chain } = this.#context
    if (reason === 'replaced') {
      this.#replacements.add(replaced_by ?? '')
      const [number = ''] = (replaced_by ?? '').split('-')
      const replacements =
        chain.blocksByNumber.get(Number(number))?.flatMap(({ logs }) => expectedLogsOf(logs).get(replaced_by ?? '') ?? []) ?? []
      const found = replacements.some((read) => this.#isSame(read, lifecycle))
      if (!found || replaced_by === key)
        violation('I4', `${id} ${key} is replaced by ${replaced_by}, which does not have its content`)
      return
    }
    if (replaced_by !== null) violation('I4', `${id} ${key}: ${reason} by ${replaced_by}`)
    const expected = lifecycle.hash === null ? 'not_sealed' : 'reorg'
    if (reason !== expected) violation('I4', `${id} ${key} is retracted as ${reason}, not ${expected}`)
    const inBlock = this.#sameContentKeys(block.hash, lifecycle).filter((other) => !this.#isPublishedAlike(other, lifecycle))
    const elsewhere = [...this.#lifecycles.all.values()].filter(
      (other) => other.tx === lifecycle.tx && other.number !== lifecycle.number && this.#isStillSealed(other, lifecycle.text),
    )
    this.#withoutReplacement.push({ id, key, others: [...inBlock, ...elsewhere.map((other) => other.key)] })
  }

  /** A fact is amended only if its content is nowhere else in the transaction. */
  checkAmend({ id, key, update }: Amend): void {
    const { violation } = this.#context
    const lifecycle = this.#lifecycles.all.get(key)
    if (!lifecycle || update.stage !== 'sealed') return
    // A fact that is still under its own key has not moved, even if an equal log exists. Only details changed.
    const own = expectedLogsOf(this.#lifecycles.blockOf(update.block?.hash ?? null)?.logs ?? []).get(key)
    if (own && this.#isSame(own, lifecycle)) return
    // Where the content was there twice, one of the two may have moved to this key.
    const [other] = this.#sameContentKeys(update.block?.hash ?? null, lifecycle).filter(
      (key) => !this.#isPublishedAlike(key, lifecycle) && !this.#replacements.has(key),
    )
    if (other) violation('I4', `${id} amends ${key} though its content is now ${other}`)
  }

  /** The block is complete. A retract without a key is right if there was none, or other retracts named them all. */
  onBlockSettled(): void {
    const { violation } = this.#context
    for (const { id, key, others } of this.#withoutReplacement) {
      const free = others.find((other) => !this.#replacements.has(other))
      if (free) violation('I4', `${id} ${key} is not published as replaced by ${free}`)
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
    const others = [...expectedLogsOf(logs)].filter(([key, read]) => key !== lifecycle.key && this.#isSame(read, lifecycle))
    return others.map(([key]) => key)
  }

  /** Whether a key was published with this content on its own: then nothing has moved there. */
  #isPublishedAlike(key: string, { text }: KeyLifecycle): boolean {
    const other = this.#lifecycles.all.get(key)
    return other !== undefined && other.state !== 'retracted' && other.text === text
  }

  #isStillSealed({ state, hash, text: published, isForgotten }: KeyLifecycle, text: string): boolean {
    return state === 'sealed' && hash !== null && published === text && !isForgotten
  }
}
