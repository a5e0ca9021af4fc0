import type { Hex } from '../../../lib/hex.ts'
import { runAtOnce, type Steps } from '../../../lib/turns.ts'
import type { SelectionOptions } from '../../../protocol/parameters/selection.ts'
import { hasValueFilter } from '../../../protocol/parameters/value-filters.ts'
import type { TapePosition } from '../../../protocol/position.ts'
import type { UpdateType } from '../../../protocol/updates.ts'
import { optionsKey, type Selection, tokensKey } from '../select/compiled-selection.ts'
import { evictedOf, type Frame } from '../select/frame.ts'
import { createMatcher } from '../select/match.ts'
import { Audience, type BacklogCheck, type FilterGroup } from './audience.ts'
import type { Listener } from './listener.ts'
import { MatchedBatch, UpdateBatch } from './matched-batch.ts'
import { ReusedBuffer } from './reused-buffer.ts'

const START: TapePosition = { seq: 0, n: null }
/** Updates whose match may depend on earlier updates of the keys that they name. */
const followerTypes: ReadonlySet<UpdateType> = new Set(['seal', 'retract', 'amend'])

export class Audiences {
  readonly #groups = new Map<string, FilterGroup>()
  readonly #audienceByListener = new Map<Listener, Audience>()
  /** Number of listeners that selected each token by name. The entry of null counts the listeners that selected all tokens. */
  readonly #listenersByToken = new Map<Hex | null, number>()
  readonly #listenersByCompression = { none: 0, message: 0, batch: 0 }
  readonly #buffer: ReusedBuffer
  #filteredCount = 0

  constructor(isHeld: (memory: ArrayBufferLike) => boolean) {
    this.#buffer = new ReusedBuffer(isHeld)
  }

  assign(listener: Listener): void {
    const { options, tokens } = listener.selection
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
    this.#countTokens(tokens, 1)
    this.#listenersByCompression[listener.compression] += 1
  }

  remove(listener: Listener): void {
    const audience = this.#audienceByListener.get(listener)
    if (!audience) return
    const { group } = audience
    this.#audienceByListener.delete(listener)
    audience.remove(listener)
    this.#countTokens(audience.tokens, -1)
    this.#listenersByCompression[listener.compression] -= 1
    if (audience.size > 0) return
    group.audiences.delete(audience.name)
    if (group.isFiltered) this.#filteredCount -= 1
    if (group.audiences.size === 0) this.#groups.delete(group.name)
  }

  /** Returns the number of selections with value filters if this listener, or a new one, had this selection. */
  filteredCountWith({ tokens, options }: Selection, listener?: Listener): number {
    const exists = this.#groups.get(optionsKey(options))?.audiences.has(tokensKey(tokens)) ?? false
    if (exists || !hasValueFilter(options)) return this.#filteredCount
    const previous = listener && this.#audienceByListener.get(listener)
    return this.#filteredCount + (previous?.group.isFiltered && previous.size === 1 ? 0 : 1)
  }

  get groupCount(): number {
    return this.#groups.size
  }

  get audienceCount(): number {
    let count = 0
    for (const { audiences } of this.#groups.values()) count += audiences.size
    return count
  }

  get listenerCount(): number {
    return this.#audienceByListener.size
  }

  /** Number of compressed forms of a message that listeners may receive: alone, and together with the messages around it. */
  get compressedForms(): number {
    const { message, batch } = this.#listenersByCompression
    return (message > 0 ? 1 : 0) + (batch > 0 ? 1 : 0)
  }

  /** Returns the greatest number of listeners that an update about this token may reach. */
  listenersOf(address: Hex | null): number {
    if (address === null) return this.listenerCount
    return (this.#listenersByToken.get(null) ?? 0) + (this.#listenersByToken.get(address) ?? 0)
  }

  /** Does in advance what takes long, so that the delivery of these frames is short: looks up keys, and compresses long messages. */
  *prepare(frames: readonly Frame[]): Steps<void> {
    const followers = frames.filter(({ entry }) => followerTypes.has(entry.update.type))
    if (followers.length === 0) return
    const addresses = new Set(followers.map(({ entry }) => entry.update.address))
    for (const { match, audiences, options } of [...this.#groups.values()]) {
      const wanted = [...addresses].filter((address) => isWanted(address, audiences))
      if (wanted.length === 0) continue
      const wantedFrames = followers.filter(({ entry }) => wanted.includes(entry.update.address))
      const matched = yield* match(wantedFrames)
      if (options.stage === 'sealed') for (const frame of wantedFrames) yield* frame.lookUpEvicted()
      if (![...audiences.values()].some(({ compresses }) => compresses)) continue
      for (const frame of matched) if (frame.isLong) yield* frame.deflate()
    }
  }

  /** Returns the listeners of the sealed view that lack an update of these frames, because eviction removed it. */
  lackingEvicted(frames: readonly Frame[]): readonly Listener[] {
    const seals = frames.filter(({ entry }) => entry.update.type === 'seal')
    const sealedGroups = seals.length > 0 ? [...this.#groups.values()].filter(({ options }) => options.stage === 'sealed') : []
    return sealedGroups.flatMap(({ audiences, options }) =>
      [...audiences.values()].flatMap((audience) =>
        evictedOf(seals, { tokens: audience.tokens, options }, START).length > 0 ? audience.listeners : [],
      ),
    )
  }

  /** Delivers `plain` to every audience of the default view, and `sealed` to every audience of the sealed view. */
  deliver(plain: readonly Frame[], sealed: readonly Frame[], backlogs: BacklogCheck): void {
    const plainBatch = new UpdateBatch(plain)
    const sealedBatch = sealed === plain ? plainBatch : new UpdateBatch(sealed)
    for (const { match, audiences, options } of this.#groups.values()) {
      const matched = new MatchedBatch(options.stage === 'sealed' ? sealedBatch : plainBatch, (frames) => runAtOnce(match(frames)))
      for (const audience of audiences.values()) audience.deliver(matched, backlogs, this.#buffer)
    }
  }

  #countTokens(tokens: ReadonlySet<Hex> | null, change: 1 | -1): void {
    for (const token of tokens ?? [null]) {
      const count = (this.#listenersByToken.get(token) ?? 0) + change
      if (count > 0) this.#listenersByToken.set(token, count)
      else this.#listenersByToken.delete(token)
    }
  }

  #groupOf(options: SelectionOptions): FilterGroup {
    const name = optionsKey(options)
    let group = this.#groups.get(name)
    if (!group) {
      const match = createMatcher({ tokens: null, options })
      group = { name, options, isFiltered: hasValueFilter(options), match, audiences: new Map() }
      this.#groups.set(name, group)
    }
    return group
  }
}

const isWanted = (address: Hex | null, audiences: FilterGroup['audiences']): boolean =>
  [...audiences.values()].some(({ tokens }) => tokens === null || (address !== null && tokens.has(address)))
