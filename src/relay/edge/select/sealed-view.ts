import type { Steps } from '../../../lib/turns.ts'
import type { Update, UpdateType } from '../../../protocol/updates.ts'
import type { Entry } from '../../tape/tape.ts'
import type { FactContent, KeyHistories, KeyHistory } from './key-history.ts'

/** An update of the sealed view: as on the tape (`n` is null), or emitted before a seal, which lists its key at place `n`. */
export type SealedViewEntry = Entry & { readonly n: number | null }

/**
 * Returns the updates that the sealed view emits for an update of the tape. They depend only on the tape, so live streams and
 * history agree. A fact whose publication was evicted cannot be emitted: a `gap` reports it.
 */
export function* sealedView(entry: Entry, histories: KeyHistories): Steps<readonly SealedViewEntry[]> {
  const { update } = entry
  const itself = { ...entry, n: null }
  switch (update.type) {
    case 'seal':
      return [...(yield* emittedBefore(entry.seq, update, histories)), itself]
    case 'retract':
    case 'amend':
      yield
      return wasEmitted(update, histories) ? [itself] : []
    default:
      return 'stage' in update && update.stage === 'preconfirmed' ? [] : [itself]
  }
}

/** Returns the contents of a key that the sealed view emitted before the update to which the histories belong. */
export function contentsEmitted(history: KeyHistory, histories: KeyHistories): readonly FactContent[] {
  const { contents } = history
  const emittedAt = histories.emittedAt(history) ?? histories.beforeSeq
  const first = contents.findLastIndex(({ seq }) => seq <= emittedAt)
  return contents.slice(first).map(({ content }) => content)
}

/** A large seal emits thousands of updates, so each one is serialized only when it is written. */
class EmittedEntry implements SealedViewEntry {
  readonly seq: number
  readonly update: Update
  readonly n: number
  #text: string | undefined

  constructor(seq: number, update: Update, n: number) {
    this.seq = seq
    this.update = update
    this.n = n
  }

  get text(): string {
    this.#text ??= JSON.stringify(this.update)
    return this.#text
  }
}

type Seal = Extract<Update, { type: 'seal' }>

/** Returns the updates that the sealed view emits before a seal. The seal may list thousands of keys, so each key is a step. */
function* emittedBefore(seq: number, seal: Seal, histories: KeyHistories): Steps<readonly SealedViewEntry[]> {
  const emitted: SealedViewEntry[] = []
  for (const [index, key] of seal.keys.entries()) {
    // A log that is folded into another one was published under the key of that one.
    const history = seal.types[index] === 'part' ? null : histories.historyOf(key)
    const update = history && histories.emittedAt(history) === null ? asSealed(history, seal, index + 1) : null
    if (update) emitted.push(new EmittedEntry(seq, update, index + 1))
    yield
  }
  return emitted
}

/** An update that the sealed view lacks: the place of its key among the keys of the seal, from 1, and its type. */
export type EvictedUpdate = { readonly n: number; readonly type: UpdateType }

/** Returns the keys of a seal whose publications were evicted. Late keys, and keys of an earlier seal, are not among them. */
export function* evictedBefore(seal: Seal, histories: KeyHistories): Steps<readonly EvictedUpdate[]> {
  const lateKeys = new Set(seal.late_keys)
  const evicted: EvictedUpdate[] = []
  for (const [index, key] of seal.keys.entries()) {
    const type = seal.types[index] ?? 'part'
    const isKept = type === 'part' || histories.historyOf(key) || lateKeys.has(key) || histories.wasSealed(key, seal.address)
    if (!isKept) evicted.push({ n: index + 1, type })
    yield
  }
  return evicted
}

/** Returns the last content of a key as a sealed update. Its fields are in the order of the contract. */
function asSealed({ published, contents }: KeyHistory, seal: Seal, n: number): Update | null {
  const content = contents.at(-1)?.content
  if (!content?.block) return null
  const { type, symbol, address } = content
  const id = `${seal.id}.${n}`
  const block = { ...content.block, hash: seal.block.hash }
  const common = { type, id, prev: null, symbol, address, time: published.time }
  return { ...common, ...content, id, prev: null, time: published.time, stage: 'sealed', block }
}

/** Whether the sealed view emitted a key before. Without its publication, the update says whether it may have been sealed. */
function wasEmitted(update: Extract<Update, { type: 'retract' | 'amend' }>, histories: KeyHistories): boolean {
  const history = histories.historyOf(update.key)
  if (history) return histories.emittedAt(history) !== null
  return update.type === 'retract' ? update.reason !== 'not_sealed' : update.update.stage !== 'preconfirmed'
}
