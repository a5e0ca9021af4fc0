import { serveCommands } from '../bench/pinned-processes.ts'
import { openRelay } from '../support/in-process-relay.ts'

/** A relay in a process of its own, and how long its thread works between two turns of the event loop. */

export type LongListCommand =
  | { readonly do: 'open'; readonly rpcUrl: string; readonly wsUrl: string; readonly url: string; readonly refreshMs: number }
  /** The longest turn since the last answer, and the time of all of them. */
  | { readonly do: 'takeTurns' }

export type LongListReply =
  | { readonly done: 'open'; readonly relayUrl: string }
  | { readonly done: 'takeTurns'; readonly longestMs: number; readonly allMs: number }

let turns = { longestMs: 0, allMs: 0 }

/** Only the time of this thread counts: other programs may be busy. */
function watchLoop(): void {
  let before = process.threadCpuUsage()
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before)
    before = process.threadCpuUsage()
    const ms = (user + system) / 1_000
    turns = { longestMs: Math.max(turns.longestMs, ms), allMs: turns.allMs + ms }
  }, 0)
}

serveCommands<LongListCommand, LongListReply>(async (command) => {
  if (command.do === 'takeTurns') {
    const taken = turns
    turns = { longestMs: 0, allMs: 0 }
    return { done: 'takeTurns', ...taken }
  }
  const { rpcUrl, wsUrl, url, refreshMs } = command
  const settings = { STOCKS_REFRESH: `${refreshMs}ms`, PENDING_POLL: '200ms' }
  const relay = await openRelay({ rpcUrl, wsUrl, url }, settings)
  watchLoop()
  return { done: 'open', relayUrl: relay.url }
})
