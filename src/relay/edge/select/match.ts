import type { Steps } from '../../../lib/turns.ts'
import { followedKeys } from '../../../protocol/key-life.ts'
import { leftOutTypes } from '../../../protocol/parameters/value-filters.ts'
import type { Update, UpdateType } from '../../../protocol/updates.ts'
import { createContentMatcher, includesToken, type Selection } from './compiled-selection.ts'
import type { Frame } from './frame.ts'
import type { FactContent } from './key-history.ts'
import { contentsEmitted } from './sealed-view.ts'

/** Returns the frames that a selection receives, in the view of the selection. Looks up the keys of a large seal in steps. */
export type Matcher = (frames: readonly Frame[]) => Steps<readonly Frame[]>

/** A match depends only on the tape and the selection, so a live stream, a resume, another relay and a history page agree. */
export function createMatcher(selection: Selection): Matcher {
  const matches = createFrameMatcher(selection)
  const isSealed = selection.options.stage === 'sealed'
  return function* (frames) {
    const matched: Frame[] = []
    for (const frame of frames) {
      if (isSealed && !includesToken(selection, frame.entry.update.address)) continue
      for (const viewed of isSealed ? yield* frame.sealedView() : [frame]) {
        const outcome = matches(viewed)
        if (typeof outcome === 'boolean' ? outcome : yield* outcome) matched.push(viewed)
      }
    }
    return matched
  }
}

/** A seal, retract or amend matches by its type, or if an earlier update of its key matched; an amend also by its new content. */
function createFrameMatcher(selection: Selection): (frame: Frame) => boolean | Steps<boolean> {
  const types: ReadonlySet<UpdateType> = new Set(selection.options.types)
  const leftOut = leftOutTypes(selection.options)
  const matchesContent = createContentMatcher(selection)
  const matchedEarlier = createEarlierMatcher(selection, matchesContent)
  /** A seal may list thousands of keys, and is matched twice: in steps before it is delivered, and when it is delivered. */
  const sealOutcomes = new WeakMap<Frame, boolean>()
  function* matchSeal(frame: Frame, seal: Extract<Update, { type: 'seal' }>): Steps<boolean> {
    const outcome = yield* matchedEarlier(frame, followedKeys(seal))
    sealOutcomes.set(frame, outcome)
    return outcome
  }
  return (frame) => {
    const { update } = frame.entry
    switch (update.type) {
      case 'seal':
        return (
          includesToken(selection, update.address) && (types.has('seal') || (sealOutcomes.get(frame) ?? matchSeal(frame, update)))
        )
      case 'retract':
      case 'amend':
        return (
          includesToken(selection, update.address) &&
          ((types.has(update.type) && !leftOut.has(update.fact_type)) ||
            (update.type === 'amend' && matchesContent(update.update)) ||
            matchedEarlier(frame, [update.key]))
        )
      default:
        return matchesContent(update)
    }
  }
}

/** Tests whether an earlier update of one of the keys matched. A key whose publication was evicted counts as matched. */
function createEarlierMatcher({ options }: Selection, matchesContent: (content: FactContent) => boolean) {
  return function* ({ keyHistories }: Frame, keys: readonly string[]): Steps<boolean> {
    for (const key of keys) {
      const history = keyHistories.historyOf(key)
      if (!history) return true
      const contents =
        options.stage === 'sealed' ? contentsEmitted(history, keyHistories) : history.contents.map(({ content }) => content)
      if (contents.some(matchesContent)) return true
      yield
    }
    return false
  }
}
