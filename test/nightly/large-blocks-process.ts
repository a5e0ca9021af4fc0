import { nextTurn } from '../../src/lib/turns.ts'
import { readConfig } from '../../src/relay/config/config.ts'
import { openHttpEdge } from '../../src/relay/edge/http/http-app.ts'
import { openLiveEdge } from '../../src/relay/edge/live/live-edge.ts'
import { openMetrics } from '../../src/relay/metrics.ts'
import { Notes } from '../../src/relay/tape/notes.ts'
import type { Follower } from '../../src/relay/tape/tape.ts'
import { serveCommands } from '../bench/pinned-processes.ts'
import { openLocalTape, type TestTape } from '../support/local-tape.ts'
import { amendOf, at, retractOf, sealOf, transferAt } from '../unit/relay/edge/fact-drafts.ts'
import { apple, notesOfTokens } from '../unit/relay/tape/update-drafts.ts'

/** The edge of a relay in a process of its own, and how long its thread works between two turns of the event loop. */

export type LargeBlocksCommand =
  | { readonly do: 'open'; readonly logs: number }
  /** Writes a block's logs, amends of all of them, their seal, or a retract of each. Answers when they are delivered. */
  | { readonly do: 'write'; readonly what: 'logs' | 'amends' | 'seal' | 'retracts'; readonly block: number }
  /** The longest turn since the last answer. */
  | { readonly do: 'takeLongest' }

export type LargeBlocksReply =
  | { readonly done: 'open'; readonly url: string; readonly key: string }
  | { readonly done: 'write'; readonly longestMs: number }
  | { readonly done: 'takeLongest'; readonly longestMs: number }

const memo = `0x${'ab'.repeat(32)}` as const

let longestMs = 0
let before = process.threadCpuUsage()

/** Only the time of this thread counts: other programs may be busy. */
function recordTurn(): void {
  const { user, system } = process.threadCpuUsage(before)
  before = process.threadCpuUsage()
  longestMs = Math.max(longestMs, (user + system) / 1_000)
}

async function takeLongest(): Promise<number> {
  await nextTurn()
  recordTurn()
  const longest = longestMs
  longestMs = 0
  return longest
}

/** A tape whose followers wait for the test: what the write itself takes is no part of the delivery. */
function gatedTape(tape: TestTape) {
  const followers = new Set<Follower>()
  const follow = (deliver: Follower) => {
    followers.add(deliver)
    return () => followers.delete(deliver)
  }
  const gated = new Proxy(tape, {
    get: (target, name) => {
      if (name === 'follow') return follow
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { gated, followers }
}

async function open(logs: number) {
  const parsed = readConfig([], { PORT: '0', MAX_CLIENTS_PER_ADDRESS: '1000' })
  if (parsed.kind !== 'settings') throw new Error(JSON.stringify(parsed))
  const { config } = parsed
  const now = () => at
  const tape = openLocalTape({
    dataDir: ':memory:',
    tapeRetentionMs: config.tape.tapeRetentionMs,
    tapeMaxMessages: 1e6,
    now,
    random: () => 0.5,
  })
  const { gated, followers } = gatedTape(tape)
  const metrics = openMetrics()
  const live = openLiveEdge({
    ...{ config, tape: gated, metrics, now, wallTime: now, random: Math.random },
    uptime: () => performance.now(),
    shared: null,
    chain: { id: 1, isWrong: () => false },
    log: () => {},
  })
  const status = () => ({}) as never
  const server = await openHttpEdge({ ...live, config, metrics, parts: [], status, loadDocuments: async () => new Map() })
  const draftsOf = (block: number) => Array.from({ length: logs }, (_, index) => transferAt({ block, index }))
  const write = async (what: 'logs' | 'amends' | 'seal' | 'retracts', block: number, notes = new Notes()) => {
    const facts = draftsOf(block)
    const drafts = {
      logs: () => facts,
      amends: () => facts.map((fact) => amendOf(fact, { ...fact, memo })),
      seal: () => [sealOf(facts, block)],
      retracts: () => facts.map((fact) => retractOf(fact, 'reorg')),
    }
    const entries = await tape.append(drafts[what](), notes)
    await takeLongest()
    for (const deliver of followers) deliver(entries, notes, Number.POSITIVE_INFINITY, [])
    while (live.context.hub.deliveredSeq < tape.end()) await nextTurn()
    return takeLongest()
  }
  await write('logs', 1, notesOfTokens([{ address: apple, symbol: 'AAPLc', isin: null, formerSymbols: [] }]))
  setInterval(recordTurn, 0)
  return { url: `http://127.0.0.1:${server.port}`, key: draftsOf(1)[0]?.key ?? '', write }
}

let edge: Awaited<ReturnType<typeof open>> | undefined

serveCommands<LargeBlocksCommand, LargeBlocksReply>(async (command) => {
  if (command.do === 'takeLongest') return { done: 'takeLongest', longestMs: await takeLongest() }
  if (command.do === 'write') return { done: 'write', longestMs: (await edge?.write(command.what, command.block)) ?? Number.NaN }
  edge = await open(command.logs)
  return { done: 'open', url: edge.url, key: edge.key }
})
