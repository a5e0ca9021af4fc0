import { concatMap, defer, finalize, interval, type Observable } from 'rxjs'
import type { Host } from '../host.ts'
import { statusNote } from '../notes/published-notes.ts'
import { TimePerSource, timePerSourceNote } from '../notes/time-per-source.ts'
import { Notes } from '../tape/notes.ts'
import type { Tape, TapeWriter } from '../tape/tape.ts'

/** Interval at which the time of each source is saved beside the tape. A crash loses at most this much time. */
const SAVE_MS = 10_000

type SaveInputs = Pick<Host, 'clock' | 'wallTime'> & { readonly tape: Tape; readonly writer: TapeWriter }

/** Counts the time of each source while it has a subscriber, and saves it: at intervals, and at the end. */
export const saveTimePerSource = ({ tape, writer, clock, wallTime }: SaveInputs): Observable<unknown> =>
  defer(() => {
    const source = tape.notes.note(statusNote)?.source ?? 'down'
    const times = new TimePerSource(tape.notes.note(timePerSourceNote) ?? [], source, wallTime())
    /** As of the last batch: these batches must not evict more than those of the ingest. */
    let keepAfter = 0
    const unfollow = tape.follow((batch, _, after) => {
      for (const { update } of batch) if (update.type === 'status') times.setSource(update.source, wallTime())
      keepAfter = after
    })
    const save = () => {
      const notes = new Notes().set(timePerSourceNote, times.note(wallTime()))
      return writer.append({ first: tape.next, updates: [], notes, keepAfter })
    }
    return interval(SAVE_MS, clock).pipe(
      concatMap(save),
      finalize(() => {
        unfollow()
        // If another process leads now, it counts on from the last save.
        save().catch(() => {})
      }),
    )
  })
