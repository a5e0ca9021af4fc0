import type { Update } from '../../protocol/updates.ts'
import type { Entry } from '../../tape/tape.ts'
import type { Content, Life, Past } from './key-history.ts'

/** A message of the sealed view: as the tape has it, or the `n`-th of those that are given before a seal. */
export type Given = Entry & { readonly n: number | null }

/**
 * What the sealed view has where the tape has this message, in order. Nothing but the tape is asked, so it is the same
 * live, after a resume and in a page of history.
 *
 * A key whose telling is no longer kept cannot be given. It is not lost in silence: the seal comes and lists it.
 */
export function sealedView(entry: Entry, past: Past): readonly Given[] {
  const { update } = entry
  const itself = { ...entry, n: null }
  switch (update.type) {
    case 'seal':
      return [...givenBefore(entry.seq, update, past), itself]
    case 'retract':
    case 'amend':
      return wasGiven(update, past) ? [itself] : []
    default:
      return 'stage' in update && update.stage === 'preconfirmed' ? [] : [itself]
  }
}

/** As what the sealed view had told a key when it came to the message whose past this is; what it gave just before it too. */
export function contentsGiven(life: Life, past: Past): readonly Content[] {
  const { contents } = life
  const at = past.givenAt(life) ?? past.before
  const first = contents.findLastIndex(({ seq }) => seq <= at)
  return contents.slice(first).map(({ content }) => content)
}

type Seal = Extract<Update, { type: 'seal' }>

const givenBefore = (seq: number, seal: Seal, past: Past): readonly Given[] =>
  seal.keys.flatMap((key, index) => {
    // What is folded into another was told under the other's key.
    const life = seal.types[index] === 'part' ? null : past.life(key)
    if (!life || past.givenAt(life) !== null) return []
    const update = sealed(life, seal, index + 1)
    return update ? [{ seq, update, text: JSON.stringify(update), n: index + 1 }] : []
  })

/** The last content of a life, as the seal makes it; its fields in the order of the contract. */
function sealed({ telling, contents }: Life, seal: Seal, n: number): Update | null {
  const content = contents.at(-1)?.content
  if (!content?.block) return null
  const { type, symbol, address } = content
  const id = `${seal.id}.${n}`
  const block = { ...content.block, hash: seal.block.hash }
  const common = { type, id, prev: null, symbol, address, time: telling.time }
  return { ...common, ...content, id, prev: null, time: telling.time, stage: 'sealed', block }
}

/**
 * Whether a key that is retracted or amended had been given. Where its telling is no longer kept, the message itself says
 * whether it had been sealed, or that it may have been: then it comes.
 */
function wasGiven(update: Extract<Update, { type: 'retract' | 'amend' }>, past: Past): boolean {
  const life = past.life(update.key)
  if (life) return past.givenAt(life) !== null
  return update.type === 'retract' ? update.reason !== 'not_sealed' : update.update.stage !== 'preconfirmed'
}
