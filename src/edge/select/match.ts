import { movementTypes, type Update, type UpdateType } from '../../protocol/updates.ts'
import { concerns, hasValueFilter, passing, type Selection } from './compiled-selection.ts'
import type { Frame } from './frame.ts'
import type { Content } from './key-history.ts'
import { contentsGiven } from './sealed-view.ts'

/** What a selection hears of some messages of the tape, in its view of it. */
export type Hearing = (frames: readonly Frame[]) => readonly Frame[]

/**
 * Makes the one question of who hears what. It is answered by the tape and the selection alone, never by what a
 * connection happened to be sent: so a resume, another edge and a page of history answer the same.
 */
export function hearing(selection: Selection): Hearing {
  const hears = hearingIn(selection)
  if (selection.options.stage === 'preconfirmed') return (frames) => frames.filter(hears)
  return (frames) =>
    frames
      .filter(({ entry }) => concerns(selection, entry.update.address))
      .flatMap((frame) => frame.sealed)
      .filter(hears)
}

/** What follows a key comes to whoever was told the key, and to those who asked for all of its type. */
function hearingIn(selection: Selection): (frame: Frame) => boolean {
  const types: ReadonlySet<UpdateType> = new Set(selection.options.types)
  const filtered = hasValueFilter(selection.options)
  const passes = passing(selection)
  const wasTold = toldTo(selection, passes)
  return (frame) => {
    const { update } = frame.entry
    switch (update.type) {
      case 'seal':
        return concerns(selection, update.address) && (types.has('seal') || wasTold(frame, keysOf(update)))
      case 'retract':
      case 'amend':
        return (
          concerns(selection, update.address) &&
          ((types.has(update.type) && !(filtered && movementTypes.has(update.of))) ||
            (update.type === 'amend' && passes(update.update)) ||
            wasTold(frame, [update.key]))
        )
      default:
        return passes(update)
    }
  }
}

/** Whether one of the keys was told to the selection. What is no longer kept may have been. */
function toldTo({ options }: Selection, passes: (content: Content) => boolean) {
  return ({ past }: Frame, keys: readonly string[]): boolean =>
    keys.some((key) => {
      const life = past.life(key)
      if (!life) return true
      if (options.stage === 'sealed') return contentsGiven(life, past).some(passes)
      return life.contents.some(({ content }) => passes(content))
    })
}

/** The keys that a seal lists and that were told: what is folded into another has no telling of its own. */
const keysOf = ({ keys, types }: Extract<Update, { type: 'seal' }>): readonly string[] =>
  types.includes('part') ? keys.filter((_, index) => types[index] !== 'part') : keys
