import { resumeAfter } from '../../protocol/position.ts'
import type { Tape } from '../../tape/tape.ts'
import { watched } from './eviction-guard.ts'
import { type Reading, readPart } from './history-page.ts'
import { type Asked, justBefore } from './query.ts'

/** What is read in one go, and so about all that is held for somebody who does not read. */
const PART = { messages: 100, chars: 131_072 }
/** What eviction would take next is read first, up to so much, where something spared by it has to be given before. */
const EDGE = { messages: 1_000, chars: 1_048_576 }

type LongReading = Reading & { readonly tape: Tape }

/**
 * Reads all of what was asked for, part after part, each in a turn of its own and when the one before was taken. Fails
 * where eviction is faster: nothing is ever skipped.
 */
export async function* wholeOf(reading: LongReading, asked: Asked): AsyncGenerator<readonly string[]> {
  let left = asked.limit ?? Number.POSITIVE_INFINITY
  for await (const texts of keptOf(reading, asked)) {
    yield texts.slice(0, left)
    left -= texts.length
    if (left <= 0) return
  }
}

async function* keptOf({ tape, turnstile, isGone }: LongReading, asked: Asked): AsyncGenerator<readonly string[]> {
  await turnstile.turn()
  const oldest = tape.oldest()
  const reading = { tape: await watched(tape, asked.selection.options.stage), turnstile, isGone }
  const maySpare = asked.order === 'asc' && resumeAfter(asked.after) < oldest && oldest + 1 < asked.before.seq
  if (!maySpare) return yield* partsOf(reading, asked)
  const edge = await readPart(reading, { ...asked, after: { seq: oldest, n: null } }, EDGE)
  yield* partsOf(reading, { ...asked, before: justBefore(oldest + 1, asked.selection.options.stage) })
  yield edge.texts
  if (edge.next) yield* partsOf(reading, { ...asked, after: edge.next })
}

async function* partsOf(reading: Reading, asked: Asked): AsyncGenerator<readonly string[]> {
  for (let rest: Asked | null = asked; rest !== null && !reading.isGone(); ) {
    await reading.turnstile.turn()
    const { texts, next } = await readPart(reading, rest, PART)
    yield texts
    rest = next && { ...rest, [rest.order === 'asc' ? 'after' : 'before']: next }
  }
}
