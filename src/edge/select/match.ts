import { movementTypes, type Update, type UpdateType } from '../../protocol/updates.ts'
import { createContentMatcher, hasValueFilter, includesToken, type Selection } from './compiled-selection.ts'
import type { Frame } from './frame.ts'
import type { FactContent } from './key-history.ts'
import { contentsEmitted } from './sealed-view.ts'

/** Picks the frames that a selection receives, in its view of the tape. */
export type Matcher = (frames: readonly Frame[]) => readonly Frame[]

/**
 * Decides which updates a selection receives. The decision depends on the tape and the selection alone, never on what a
 * connection was sent before, so a resume, another relay and a history page agree.
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

/** A seal, retract or amend matches if the selection names its type, or if an earlier update of its key matched. */
function createFrameMatcher(selection: Selection): (frame: Frame) => boolean {
  const types: ReadonlySet<UpdateType> = new Set(selection.options.types)
  const isFiltered = hasValueFilter(selection.options)
  const matchesContent = createContentMatcher(selection)
  const matchedEarlier = createEarlierMatcher(selection, matchesContent)
  return (frame) => {
    const { update } = frame.entry
    switch (update.type) {
      case 'seal':
        return includesToken(selection, update.address) && (types.has('seal') || matchedEarlier(frame, publishedKeysOf(update)))
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

/** Whether the selection matched one of the keys before. A key that the tape no longer keeps may have matched. */
function createEarlierMatcher({ options }: Selection, matchesContent: (content: FactContent) => boolean) {
  return ({ keyHistories }: Frame, keys: readonly string[]): boolean =>
    keys.some((key) => {
      const history = keyHistories.historyOf(key)
      if (!history) return true
      if (options.stage === 'sealed') return contentsEmitted(history, keyHistories).some(matchesContent)
      return history.contents.some(({ content }) => matchesContent(content))
    })
}

/** The keys of a seal that were published: a log folded into another has no publication of its own. */
const publishedKeysOf = ({ keys, types }: Extract<Update, { type: 'seal' }>): readonly string[] =>
  types.includes('part') ? keys.filter((_, index) => types[index] !== 'part') : keys
