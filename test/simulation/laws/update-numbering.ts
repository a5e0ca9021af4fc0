import { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import { findSchemaError } from '../../support/message-validator.ts'
import type { Law, LawContext } from './law.ts'

/** I1: numbers grow, `prev` is the previous message of the same token and type, and every message fits the contract. */
export class UpdateNumbering implements Law {
  readonly #context: LawContext
  readonly #heads = new Map<string, string>()
  #seq = 0
  #epoch: string | null = null

  constructor(context: LawContext) {
    this.#context = context
  }

  onBatch(entries: readonly Entry[]): void {
    const { violation } = this.#context
    for (const { seq, update } of entries) {
      const { id, prev, address, type } = update
      const [epoch = '', number] = id.split('.')
      this.#epoch ??= epoch
      if (epoch !== this.#epoch) violation('I1', `${id}: the epoch was ${this.#epoch}`)
      if (Number(number) !== seq || seq <= this.#seq) violation('I1', `${id} after ${this.#seq}`)
      this.#seq = seq
      const head = `${address} ${type}`
      if (prev !== (this.#heads.get(head) ?? null)) violation('I1', `${id}: prev ${prev}, not ${this.#heads.get(head)}`)
      this.#heads.set(head, id)
      const read = Update.safeParse(update)
      if (!read.success) violation('I1', `${id} breaks the contract: ${read.error.message.replaceAll(/\s+/g, ' ')}`)
      const error = findSchemaError(update)
      if (error !== null) violation('I1', `${id} does not fit the published schema: ${error}`)
    }
  }
}
