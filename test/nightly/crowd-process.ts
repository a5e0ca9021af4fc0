import { setMaxListeners } from 'node:events'
import { nextTurn } from '../../src/lib/turns.ts'
import { serveCommands } from '../bench/pinned-processes.ts'
import { SeededRandom } from '../simulation/seeded-random.ts'
import { behaviorOf } from './crowd-behaviors.ts'
import type { RelayAddress } from './crowd-connection.ts'
import { randomSelections, type SelectionChoices } from './crowd-selections.ts'
import { ReceivedHistory } from './received-history.ts'
import { TapeComparison } from './tape-comparison.ts'

/** The crowd, in a process of its own. Clients enter, behave and leave. What they received is compared with the tape at any time. */

export type CrowdCommand =
  | {
      readonly do: 'enter'
      readonly seed: string
      readonly port: number
      readonly clients: number
      readonly choices: SelectionChoices
    }
  | { readonly do: 'leave' }
  | { readonly do: 'audit' }

export type CrowdReport =
  | { readonly done: 'enter' | 'leave' }
  | { readonly done: 'audit'; readonly faults: readonly string[]; readonly compared: number }

/** Clients per local address, far below the relay's bound for one address. */
const CLIENTS_PER_ADDRESS = 50
/** Clients enter at random within this time. */
const ENTRY_SPREAD_MS = 4_000
const FAULTS_REPORTED = 20
/** The audit has addresses of its own, because the replays of a client that stalls delay others of its address. */
const AUDIT_ADDRESSES = ['127.0.2.1', '127.0.2.2', '127.0.2.3', '127.0.2.4'] as const

const relayAddressOf = (port: number, nth: number): RelayAddress => ({
  port,
  localAddress: `127.0.1.${1 + Math.floor(nth / CLIENTS_PER_ADDRESS)}`,
})

let histories: ReceivedHistory[] = []
let addresses: RelayAddress[] = []
let running: Promise<void>[] = []
let stopController = new AbortController()

function enter({ seed, port, clients: count, choices }: Extract<CrowdCommand, { do: 'enter' }>): CrowdReport {
  const random = new SeededRandom(seed)
  const selections = randomSelections(random.fork('selections'), choices)
  stopController = new AbortController()
  // Every client listens to this one signal.
  setMaxListeners(0, stopController.signal)
  addresses = Array.from({ length: count }, (_, nth) => relayAddressOf(port, nth))
  const clients = addresses.map((address, nth) => {
    const { name, run } = behaviorOf(nth)
    const clientRandom = new SeededRandom(seed, nth)
    const history = new ReceivedHistory(`${nth}, a ${name}`)
    const context = {
      address,
      random: clientRandom,
      selections,
      choices,
      history,
      stopSignal: stopController.signal,
      isStaller: name === 'staller',
    }
    const entered = new Promise<void>((resolve) => setTimeout(resolve, clientRandom.int(0, ENTRY_SPREAD_MS)))
    return { history, run: entered.then(() => run(context)).catch((failure) => history.addFault(String(failure?.stack))) }
  })
  histories = clients.map(({ history }) => history)
  running = clients.map(({ run }) => run)
  return { done: 'enter' }
}

async function leave(): Promise<CrowdReport> {
  stopController.abort()
  await Promise.all(running)
  return { done: 'leave' }
}

/** Compares what came since the last audit. The tape must still have it. */
async function audit(): Promise<CrowdReport> {
  const comparison = new TapeComparison()
  const segments = histories.flatMap((history) => history.takeSegments())
  const [epoch = ''] = histories.find(({ lastPosition }) => lastPosition !== null)?.lastPosition?.split('.') ?? []
  const [{ port } = { port: 0 }] = addresses
  const auditAddresses = AUDIT_ADDRESSES.map((localAddress) => ({ port, localAddress }))
  await comparison.readTapes(segments, auditAddresses, epoch)
  const differences: string[] = []
  for (const segment of segments) {
    // The clients of this process must continue to read: the relay disconnects one that reads nothing for seconds.
    await nextTurn()
    const fault = comparison.findFault(segment)
    if (fault !== null) differences.push(fault)
  }
  const faults = [...histories.flatMap((history) => history.faults), ...differences]
  return { done: 'audit', faults: faults.slice(0, FAULTS_REPORTED), compared: comparison.comparedCount }
}

serveCommands<CrowdCommand, CrowdReport>(async (command) =>
  command.do === 'enter' ? enter(command) : { leave, audit }[command.do](),
)
