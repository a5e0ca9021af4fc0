import { movementTypes, type Update, type UpdateType } from '../../protocol/updates.ts'
import { createContentMatcher, hasValueFilter, includesToken, type Selection } from './compiled-selection.ts'
import type { Frame } from './frame.ts'
import type { FactContent } from './key-history.ts'
import { contentsEmitted } from './sealed-view.ts'

/** What a selection hears of some messages of the tape, in its view of it. */
export type Matcher = (frames: readonly Frame[]) => readonly Frame[]

/**
 * Makes the one question of who hears what. It is answered by the tape and the selection alone, never by what a
 * connection happened to be sent: so a resume, another edge and a page of history answer the same.
 */
export function createMatcher(selection: Selection): Matcher {
  const matches = createFrameMatcher(selection)
  if (selection.options.stage === 'preconfirmed') return (frames) => frames.filter(matches)
  return (frames) =>
    frames
      .filter(({ entry }) => includesToken(selection, entry.update.address))
      .flatMap((frame) => frame.sealedViewFrames)
      .filter(matches)
}

/** What follows a key comes to whoever was told the key, and to those who asked for all of its type. */
function createFrameMatcher(selection: Selection): (frame: Frame) => boolean {
  const types: ReadonlySet<UpdateType> = new Set(selection.options.types)
  const isFiltered = hasValueFilter(selection.options)
  const matchesContent = createContentMatcher(selection)
  const matchedEarlier = createEarlierMatcher(selection, matchesContent)
  return (frame) => {
    const { update } = frame.entry
    switch (update.type) {
      case 'seal':
        return (
          includesToken(selection, update.address) &&
          (types.has('seal') || matchedEarlier(frame, publishedKeysOf(update)))
        )
      case 'retract':
      case 'amend':
        return (
          includesToken(selection, update.address) &&
          ((types.has(update.type) && !(isFiltered && movementTypes.has(update.of))) ||
            (update.type === 'amend' && matchesContent(update.update)) ||
            matchedEarlier(frame, [update.key]))
        )
      default:
        return matchesContent(update)
    }
  }
}

/** Whether one of the keys was told to the selection. What is no longer kept may have been. */
function createEarlierMatcher({ options }: Selection, matchesContent: (content: FactContent) => boolean) {
  return ({ keyHistories }: Frame, keys: readonly string[]): boolean =>
    keys.some((key) => {
      const history = keyHistories.historyOf(key)
      if (!history) return true
      if (options.stage === 'sealed') return contentsEmitted(history, keyHistories).some(matchesContent)
      return history.contents.some(({ content }) => matchesContent(content))
    })
}

/** The keys that a seal lists and that were told: what is folded into another has no telling of its own. */
const publishedKeysOf = ({ keys, types }: Extract<Update, { type: 'seal' }>): readonly string[] =>
  types.includes('part') ? keys.filter((_, index) => types[index] !== 'part') : keys
