import { serveCommands } from '../bench/pinned-processes.ts'
import { openRelay } from '../support/in-process-relay.ts'

/** A relay in a process of its own, and how long its thread works between two turns of the event loop. */

export type LongListCommand =
  | { readonly do: 'open'; readonly rpcUrl: string; readonly wsUrl: string; readonly url: string; readonly refreshMs: number }
  /** The longest turn since the last answer. */
  | { readonly do: 'takeLongest' }

export type LongListReply =
  | { readonly done: 'open'; readonly relayUrl: string }
  | { readonly done: 'takeLongest'; readonly longestMs: number }

let longestMs = 0

/** Only the time of this thread counts: other programs may be busy. */
function watchLoop(): void {
  let before = process.threadCpuUsage()
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before)
    before = process.threadCpuUsage()
    longestMs = Math.max(longestMs, (user + system) / 1_000)
  }, 0)
}

serveCommands<LongListCommand, LongListReply>(async (command) => {
  if (command.do === 'takeLongest') {
    const longest = longestMs
    longestMs = 0
    return { done: 'takeLongest', longestMs: longest }
  }
  const { rpcUrl, wsUrl, url, refreshMs } = command
  const settings = { STOCKS_REFRESH: `${refreshMs}ms`, PENDING_POLL: '200ms' }
  const relay = await openRelay({ rpcUrl, wsUrl, url }, settings)
  watchLoop()
  return { done: 'open', relayUrl: relay.url }
})
