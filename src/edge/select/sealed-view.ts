import type { Update } from '../../protocol/updates.ts'
import type { Entry } from '../../tape/tape.ts'
import type { FactContent, KeyHistories, KeyHistory } from './key-history.ts'

/** A message of the sealed view: as the tape has it, or the `n`-th of those that are given before a seal. */
export type SealedViewEntry = Entry & { readonly n: number | null }

/**
 * What the sealed view has where the tape has this message, in order. Nothing but the tape is asked, so it is the same
 * live, after a resume and in a page of history.
 *
 * A key whose telling is no longer kept cannot be given. It is not lost in silence: the seal comes and lists it.
 */
export function sealedView(entry: Entry, histories: KeyHistories): readonly SealedViewEntry[] {
  const { update } = entry
  const itself = { ...entry, n: null }
  switch (update.type) {
    case 'seal':
      return [...emittedBefore(entry.seq, update, histories), itself]
    case 'retract':
    case 'amend':
      return wasEmitted(update, histories) ? [itself] : []
    default:
      return 'stage' in update && update.stage === 'preconfirmed' ? [] : [itself]
  }
}

/** As what the sealed view had told a key when it came to the message whose past this is; what it gave just before it too. */
export function contentsEmitted(history: KeyHistory, histories: KeyHistories): readonly FactContent[] {
  const { contents } = history
  const emittedAt = histories.emittedAt(history) ?? histories.beforeSeq
  const first = contents.findLastIndex(({ seq }) => seq <= emittedAt)
  return contents.slice(first).map(({ content }) => content)
}

type Seal = Extract<Update, { type: 'seal' }>

const emittedBefore = (seq: number, seal: Seal, histories: KeyHistories): readonly SealedViewEntry[] =>
  seal.keys.flatMap((key, index) => {
    // What is folded into another was told under the other's key.
    const history = seal.types[index] === 'part' ? null : histories.historyOf(key)
    if (!history || histories.emittedAt(history) !== null) return []
    const update = asSealed(history, seal, index + 1)
    return update ? [{ seq, update, text: JSON.stringify(update), n: index + 1 }] : []
  })

/** The last content of a life, as the seal makes it; its fields in the order of the contract. */
function asSealed({ published, contents }: KeyHistory, seal: Seal, n: number): Update | null {
  const content = contents.at(-1)?.content
  if (!content?.block) return null
  const { type, symbol, address } = content
  const id = `${seal.id}.${n}`
  const block = { ...content.block, hash: seal.block.hash }
  const common = { type, id, prev: null, symbol, address, time: published.time }
  return { ...common, ...content, id, prev: null, time: published.time, stage: 'sealed', block }
}

/**
 * Whether a key that is retracted or amended had been given. Where its telling is no longer kept, the message itself says
 * whether it had been sealed, or that it may have been: then it comes.
 */
function wasEmitted(update: Extract<Update, { type: 'retract' | 'amend' }>, histories: KeyHistories): boolean {
  const history = histories.historyOf(update.key)
  if (history) return histories.emittedAt(history) !== null
  return update.type === 'retract' ? update.reason !== 'not_sealed' : update.update.stage !== 'preconfirmed'
}
