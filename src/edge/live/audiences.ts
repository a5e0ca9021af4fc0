import type { SelectionOptions } from '../../protocol/selection.ts'
import { hasValueFilter, optionsKey, type Selection, tokensKey } from '../select/compiled-selection.ts'
import type { Frame } from '../select/frame.ts'
import { createMatcher } from '../select/match.ts'
import { Audience, type BacklogCheck, type FilterGroup } from './audience.ts'
import { MatchedBatch, UpdateBatch } from './batch.ts'
import { BatchEncoder } from './batch-encoder.ts'
import type { Listener } from './listener.ts'

/** All live listeners, grouped by selection. */
export class Audiences {
  readonly #groups = new Map<string, FilterGroup>()
  readonly #audienceByListener = new Map<Listener, Audience>()
  readonly #encoder: BatchEncoder
  #filteredCount = 0

  constructor(isHeld: (memory: ArrayBufferLike) => boolean) {
    this.#encoder = new BatchEncoder(isHeld)
  }

  has(listener: Listener): boolean {
    return this.#audienceByListener.has(listener)
  }

  /** Puts a listener into the audience of its selection. */
  assign(listener: Listener): void {
    const { options, tokens } = listener
    const group = this.#groupOf(options)
    const name = tokensKey(tokens)
    let audience = group.audiences.get(name)
    if (audience && this.#audienceByListener.get(listener) === audience) return
    if (!audience) {
      audience = new Audience(group, name, tokens)
      group.audiences.set(name, audience)
      if (group.isFiltered) this.#filteredCount += 1
    }
    audience.add(listener)
    this.remove(listener)
    this.#audienceByListener.set(listener, audience)
  }

  remove(listener: Listener): void {
    const audience = this.#audienceByListener.get(listener)
    if (!audience) return
    const { group } = audience
    this.#audienceByListener.delete(listener)
    audience.remove(listener)
    if (audience.size > 0) return
    group.audiences.delete(audience.name)
    if (group.isFiltered) this.#filteredCount -= 1
    if (group.audiences.size === 0) this.#groups.delete(group.name)
  }

  /** The number of selections with value filters if this listener, or a new one, had this selection. */
  filteredCountWith({ tokens, options }: Selection, listener?: Listener): number {
    const exists = this.#groups.get(optionsKey(options))?.audiences.has(tokensKey(tokens)) ?? false
    if (exists || !hasValueFilter(options)) return this.#filteredCount
    const previous = listener && this.#audienceByListener.get(listener)
    return this.#filteredCount + (previous?.group.isFiltered && previous.size === 1 ? 0 : 1)
  }

  /** Delivers a batch to every audience. */
  deliver(frames: readonly Frame[], backlogs: BacklogCheck): void {
    const batch = new UpdateBatch(frames)
    for (const { match, audiences } of this.#groups.values()) {
      const matched = new MatchedBatch(batch, match)
      for (const audience of audiences.values()) audience.deliver(matched, backlogs, this.#encoder)
    }
  }

  #groupOf(options: SelectionOptions): FilterGroup {
    const name = optionsKey(options)
    let group = this.#groups.get(name)
    if (!group) {
      const match = createMatcher({ tokens: null, options })
      group = { name, isFiltered: hasValueFilter(options), match, audiences: new Map() }
      this.#groups.set(name, group)
    }
    return group
  }
}
