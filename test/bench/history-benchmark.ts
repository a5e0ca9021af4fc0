import { type Asked, Past } from './history-under-load.ts'
import { print, shown } from './result-table.ts'

/** History over a full tape: how soon each kind of question has its first page, and what that does to who listens live. */

const ALONE_MS = 5_000
const ASKED_MS = 1_500

/** Makes a full tape, starts a relay on it, and asks. */
export async function history(updates: number): Promise<void> {
  const past = await Past.open(updates)
  try {
    const { made, makingMs, startingMs } = past
    const counts = Object.entries(made.counts).map(([type, count]) => `${shown(count, 0)} ${type}`)
    print(`a tape of ${shown(updates, 0)} updates, made in ${shown(makingMs / 1_000, 1)} s: ${counts.join(', ')}`)
    print(`the relay listens on it after ${shown(startingMs / 1_000, 2)} s`)
    print(''.padEnd(WHAT_CHARS) + columns.map(({ name }) => name.padStart(COLUMN_CHARS)).join(''))
    print(row({ ...unasked, ...(await past.alone(ALONE_MS)) }))
    for (const question of past.questions) print(row(await past.ask(question, ASKED_MS)))
    print(row({ ...unasked, ...(await past.alone(ALONE_MS)) }))
    print('messages: on the first page; requests: until a hundred have come, there are no more, or nobody waits longer')
    print('live: from the upstream to a listener; held up: how long /healthz took, asked all the while')
    for (const path of ['/v1/events?format=ndjson', '/v1/events?format=ndjson&stage=sealed']) {
      const { lines, bytes, seconds, liveP99Ms, heldUpP99Ms } = await past.read(path)
      const read = `${shown(lines, 0)} lines, ${shown(bytes / 2 ** 20, 0)} MiB in ${shown(seconds, 1)} s`
      const live = `live p99 ${shown(liveP99Ms, 1)} ms, held p99 ${shown(heldUpP99Ms, 1)} ms`
      print(`${path}: ${read}, ${shown(lines / seconds, 0)} lines a second; ${live}`)
    }
  } finally {
    await past.end()
  }
}

const unasked = {
  ...{ what: 'nothing', medianMs: Number.NaN, p99Ms: Number.NaN, worstMs: Number.NaN },
  ...{ answers: 0, messages: 0, requests: 0, wrong: 0 },
}

const WHAT_CHARS = 40
const COLUMN_CHARS = 11
const columns: readonly { readonly name: string; readonly of: (asked: Asked) => number; readonly digits: number }[] = [
  { name: 'answers', of: (one) => one.answers, digits: 0 },
  { name: 'median ms', of: (one) => one.medianMs, digits: 1 },
  { name: 'p99 ms', of: (one) => one.p99Ms, digits: 1 },
  { name: 'worst ms', of: (one) => one.worstMs, digits: 1 },
  { name: 'messages', of: (one) => one.messages, digits: 0 },
  { name: 'requests', of: (one) => one.requests, digits: 0 },
  { name: 'wrong', of: (one) => one.wrong, digits: 0 },
  { name: 'live p99', of: (one) => one.liveP99Ms, digits: 1 },
  { name: 'live worst', of: (one) => one.liveWorstMs, digits: 1 },
  { name: 'held p99', of: (one) => one.heldUpP99Ms, digits: 1 },
  { name: 'held worst', of: (one) => one.heldUpMs, digits: 1 },
]

const row = (asked: Asked): string =>
  asked.what.padEnd(WHAT_CHARS) +
  columns.map(({ of, digits }) => shown(of(asked), digits).padStart(COLUMN_CHARS)).join('')
