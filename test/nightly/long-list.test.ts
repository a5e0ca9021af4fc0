import { asyncScheduler } from 'rxjs'
import { expect, it, onTestFinished } from 'vitest'
import { fetchList, pollList } from '../../src/tokens/list-poller.ts'
import { PinnedWorker } from '../bench/pinned-processes.ts'
import type { TrafficCommand, TrafficReply } from '../bench/traffic-process.ts'

const RECORDS = 100_000
const LOOP_BOUND_MS = 50

/** A Read API with as many records as a list may have, in a process of its own. */
async function openLongList(): Promise<string> {
  const traffic = new PinnedWorker<TrafficCommand, TrafficReply>('traffic-process.ts')
  onTestFinished(() => traffic.end())
  const { url } = await traffic.command({ do: 'chain', tokens: RECORDS, isLight: true })
  return url
}

/** The longest time that this thread worked between two turns of the event loop; other programs do not count. */
function watchLoop() {
  let longestMs = 0
  let before = process.threadCpuUsage()
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(before)
    before = process.threadCpuUsage()
    longestMs = Math.max(longestMs, (user + system) / 1_000)
  }, 0)
  onTestFinished(() => clearInterval(timer))
  return () => longestMs
}

it(`a list of ${RECORDS} records never holds the event loop for ${LOOP_BOUND_MS} ms`, async () => {
  const url = await openLongList()
  const longestMs = watchLoop()
  const sizes: number[] = []
  const polled = Promise.withResolvers<void>()
  const subscription = pollList({
    fetch: fetchList(url),
    ...{ refreshMs: 10, known: [], clock: asyncScheduler, random: () => 0.5, onUnreadable: () => {} },
    warn: (kind, detail) => polled.reject(new Error(`${kind} ${JSON.stringify(detail)}`)),
  }).subscribe((list) => {
    if (!list || list.more) return
    sizes.push([...(list.all?.keys() ?? [])].length)
    // The second list is the same: it is compared, and not parsed.
    if (sizes.length === 2) polled.resolve()
  })
  await polled.promise.finally(() => subscription.unsubscribe())
  expect(sizes).toEqual([RECORDS, RECORDS])
  expect(longestMs()).toBeLessThan(LOOP_BOUND_MS)
})
