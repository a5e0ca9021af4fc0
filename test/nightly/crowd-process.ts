import { setMaxListeners } from 'node:events'
import { serveCommands } from '../bench/pinned-processes.ts'
import { SeededRandom } from '../simulation/seeded-random.ts'
import { behaviorOf } from './crowd-behaviors.ts'
import { randomSelections, type SelectionChoices } from './crowd-selections.ts'
import type { RelayAddress } from './crowd-stream-readers.ts'
import { LatencyRecorder, type LatencySummary } from './latency-recorder.ts'
import { ReceivedHistory } from './received-history.ts'
import { TapeComparison } from './tape-comparison.ts'

/** The crowd, in a process of its own: comes, behaves each in its way, leaves, and is then judged by the tape. */

export type CrowdCommand =
  | {
      readonly do: 'enter'
      readonly seed: string
      readonly port: number
      readonly clients: number
      readonly choices: SelectionChoices
    }
  | { readonly do: 'look' }
  | { readonly do: 'leave' }
  | { readonly do: 'judge' }

export type CrowdSummary = {
  readonly done: 'look'
  readonly received: number
  /** How long transfers took to those who never stall, since the last look. */
  readonly latency: LatencySummary
  /** The share of a core that this process used since the last look. */
  readonly load: number
  readonly endings: Readonly<Record<string, number>>
}

export type CrowdReport =
  | { readonly done: 'enter' }
  | CrowdSummary
  | { readonly done: 'leave'; readonly received: number }
  | {
      readonly done: 'judge'
      readonly faults: readonly string[]
      readonly faultCount: number
      readonly histories: number
      readonly segments: number
      readonly compared: number
      readonly queries: number
    }

/** Each address of this machine is shared by so many, far fewer than may come from one. */
const CLIENTS_PER_ADDRESS = 50
/** Nobody enters later than this. */
const ENTRY_SPREAD_MS = 4_000
const FAULTS_REPORTED = 20

const relayAddressOf = (port: number, nth: number): RelayAddress => ({
  port,
  localAddress: `127.0.1.${1 + Math.floor(nth / CLIENTS_PER_ADDRESS)}`,
})

let histories: ReceivedHistory[] = []
let addresses: RelayAddress[] = []
let running: Promise<void>[] = []
let stopController = new AbortController()
const latency = new LatencyRecorder()
let endings: Record<string, number> = {}
let lastSummary = { at: performance.now(), cpu: process.cpuUsage() }

function enter({ seed, port, clients: count, choices }: Extract<CrowdCommand, { do: 'enter' }>): CrowdReport {
  const random = new SeededRandom(seed)
  const selections = randomSelections(random.fork('selections'), choices)
  stopController = new AbortController()
  // Everybody waits for the end of it.
  setMaxListeners(0, stopController.signal)
  addresses = Array.from({ length: count }, (_, nth) => relayAddressOf(port, nth))
  endings = {}
  const clients = addresses.map((address, nth) => {
    const { name, run } = behaviorOf(nth)
    const clientRandom = new SeededRandom(seed, nth)
    const history = new ReceivedHistory(`${nth}, a ${name}`)
    const context = {
      ...{
        way: address,
        random: clientRandom,
        pool: selections,
        offer: choices,
        story: history,
        stopSignal: stopController.signal,
      },
      recordLatency: latency.record,
      isStaller: name === 'staller',
      countEnding: (what: string) => {
        endings[what] = (endings[what] ?? 0) + 1
      },
    }
    const entered = new Promise<void>((resolve) => setTimeout(resolve, clientRandom.int(0, ENTRY_SPREAD_MS)))
    return {
      story: history,
      life: entered.then(() => run(context)).catch((failure) => history.addFault(String(failure?.stack))),
    }
  })
  histories = clients.map(({ story }) => story)
  running = clients.map(({ life }) => life)
  check()
  return { done: 'enter' }
}

const totalReceived = (): number => histories.reduce((sum, { messageCount }) => sum + messageCount, 0)

function check(): CrowdSummary {
  const [now, { user, system }] = [performance.now(), process.cpuUsage(lastSummary.cpu)]
  const load = (user + system) / 1_000 / (now - lastSummary.at)
  lastSummary = { at: now, cpu: process.cpuUsage() }
  return { done: 'look', received: totalReceived(), latency: latency.takeSummary(), load, endings }
}

async function leave(): Promise<CrowdReport> {
  stopController.abort()
  await Promise.all(running)
  return { done: 'leave', received: totalReceived() }
}

async function judge(): Promise<CrowdReport> {
  const comparison = new TapeComparison()
  const faults = histories.flatMap((history) => history.faults)
  const pieces = histories.flatMap((history) => history.segments)
  const [epoch = ''] = histories.find(({ lastPosition }) => lastPosition !== null)?.lastPosition?.split('.') ?? []
  await comparison.readTapes(
    pieces,
    addresses.filter((_, nth) => nth % CLIENTS_PER_ADDRESS === 0),
    epoch,
  )
  for (const piece of pieces) {
    const fault = comparison.findFault(piece)
    if (fault) faults.push(fault)
  }
  return {
    ...{ done: 'judge', faults: faults.slice(0, FAULTS_REPORTED), faultCount: faults.length },
    ...{
      histories: histories.length,
      segments: pieces.length,
      compared: comparison.comparedCount,
      queries: comparison.queryCount,
    },
  }
}

const commandHandlers = { enter, look: check, leave, judge }

serveCommands<CrowdCommand, CrowdReport>(async (order) =>
  order.do === 'enter' ? commandHandlers.enter(order) : commandHandlers[order.do](),
)
