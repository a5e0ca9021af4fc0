import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { SeededRandom } from '../simulation/seeded-random.ts'
import { ChildProgram, createTempFolder, freePort, startCommand } from '../support/child-program.ts'
import { FaultyMachine, hasFaketime } from '../support/faulty-machine.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { openDevnet, type TestLifecycle, tapeTextsOf } from '../support/test-stack.ts'
import {
  CHAOS_MS,
  CHAOS_SEED,
  CHAOS_TRAFFIC,
  type ChaosClient,
  contentOf,
  expectSealedAsOnChain,
  type Fault,
  openChaosClients,
  positionOf,
  runFaults,
  unsealed,
} from './chaos.ts'
import { DevnetTraffic } from './devnet-traffic.ts'

/**
 * One relay with its tape in a file, on a machine where everything fails for a while: the process, the disk, the clock, the
 * descriptors, the upstream. Then each client's history is compared with the tape, and the tape with the chain.
 */

const CLIENTS = 150
const CATCH_UP_TIMEOUT_MS = 60_000
/** Starting, catching up and comparing. Reaching it is a failure. */
vi.setConfig({ testTimeout: 2 * CHAOS_MS + 3 * CATCH_UP_TIMEOUT_MS })
/** How long the supervisor waits before it starts an ended relay again. */
const RESTART_MS = 200
const HOUR_S = 3_600
/** How many more descriptors an exhausted relay may open, and how many connections take them. */
const [FREE_DESCRIPTORS, BURST] = [8, 60]
/** Descriptors that a relay may have at rest beyond those it had at first: to the upstream, and to files of the tape. */
const DESCRIPTORS_MARGIN = 6

const DIFFERENCES_SHOWN = 5

type SupervisedRelay = Awaited<ReturnType<typeof openSupervisedRelay>>

/** A relay that is started again whenever it ends. */
async function openSupervisedRelay(test: TestLifecycle, upstream: Record<string, string>, machine: FaultyMachine) {
  const [port, folder] = [await freePort(), await createTempFolder(test)]
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...{ PATH: process.env.PATH, LOG_LEVEL: 'error', PORT: String(port), DATA_DIR: join(folder, 'data') },
    ...{ MAX_CLIENTS_PER_ADDRESS: String(4 * CLIENTS), STOCKS_REFRESH: '1s', HEARTBEAT: '1s', ...upstream, ...machine.env },
  }
  /** The exit codes with what the relay printed before; null where a signal ended it. */
  const exits: { readonly code: number | null; readonly printed: string }[] = []
  let program: ChildProgram | null = null
  let isStopped = false
  const run = async () => {
    while (!isStopped) {
      program = new ChildProgram(startCommand, { env })
      exits.push({ code: await program.waitForExit(), printed: program.stderr })
      await pause(RESTART_MS)
    }
  }
  const running = run()
  const signal = (name: NodeJS.Signals) => program?.signal(name)
  test.onTestFinished(async ({ task }) => {
    isStopped = true
    signal('SIGCONT')
    await program?.kill()
    await running
    if (task.result?.state !== 'fail') return
    for (const { code, printed } of exits) process.stderr.write(`The relay ended with ${code}: ${printed}\n`)
  })
  return {
    ...{ url, exits, signal },
    isReady: async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200,
    /** Open files and sockets; 0 while no process runs. */
    countDescriptors: () => {
      try {
        return readdirSync(`/proc/${program?.pid}/fd`).length
      } catch {
        return 0
      }
    },
    /** Bounds the descriptors of the process, if it has not just ended. */
    boundDescriptors: (bound: number) => {
      const args = ['--pid', String(program?.pid), `--nofile=${bound}:`]
      spawnSync('prlimit', args, { stdio: 'ignore' })
    },
  }
}

const MANY_DESCRIPTORS = 10_000

/** The relay has no descriptors left, and connections take what gets free. */
function exhaustion(relay: SupervisedRelay): Fault {
  let sockets: readonly Socket[] = []
  const begin = () => {
    relay.boundDescriptors(relay.countDescriptors() + FREE_DESCRIPTORS)
    const port = Number(new URL(relay.url).port)
    sockets = Array.from({ length: BURST }, () => connect(port, '127.0.0.1').on('error', () => {}))
  }
  const end = () => {
    for (const socket of sockets) socket.destroy()
    relay.boundDescriptors(MANY_DESCRIPTORS)
  }
  return { name: 'no descriptors', begin, end }
}

const faultsOf = (relay: SupervisedRelay, machine: FaultyMachine, upstream: TcpProxy): readonly (readonly Fault[])[] => {
  const nothing = () => {}
  const clock = (hours: number): Fault => ({
    name: `clock ${hours} h`,
    begin: () => machine.setClock(hours * HOUR_S),
    end: nothing,
  })
  const disk = (what: 'flush' | 'write' | 'room'): Fault => ({
    name: `disk fails: ${what}`,
    begin: () => machine.breakDisk(what),
    end: () => machine.mendDisk(),
  })
  return [
    [
      { name: 'kill', begin: () => relay.signal('SIGKILL'), end: nothing },
      { name: 'pause', begin: () => relay.signal('SIGSTOP'), end: () => relay.signal('SIGCONT') },
      exhaustion(relay),
    ],
    [disk('room'), disk('write'), disk('flush')],
    [clock(1), clock(0), clock(-1)],
    [{ name: 'cut upstream', begin: () => upstream.cut(), end: () => upstream.mend() }],
  ]
}

/**
 * How the history of a client differs from the tape; null where it does not. The tape may have lost what stands before a gap. A gap
 * with the reason `ahead` leaves out what the tape wrote before the client came.
 */
function differenceOf({ runs, gaps }: ChaosClient, tape: ReturnType<typeof contentOf>, places: ReadonlySet<string>): string | null {
  let at = 0
  for (const [nth, { positions, checksums }] of runs.entries()) {
    const gap = JSON.parse(gaps[nth - 1] ?? '{}')
    if (gap.reason === 'ahead') at = Math.max(at, tape.positions.indexOf(gap.through) + 1)
    const firstLost = nth === runs.length - 1 ? -1 : positions.findIndex((position) => !places.has(position))
    for (const [index, position] of positions.slice(0, firstLost < 0 ? undefined : firstLost).entries()) {
      if (position !== tape.positions[at] || checksums[index] !== tape.checksums[at])
        return `got ${position} where the tape has ${tape.positions[at]}, message ${at + 1} of ${tape.positions.length}`
      at += 1
    }
  }
  return at === tape.positions.length ? null : `ended at message ${at} of ${tape.positions.length}`
}

/** Positions that name two messages. */
function ambiguousPositions(contents: readonly ReturnType<typeof contentOf>[]): readonly string[] {
  const checksumOf = new Map<string, number>()
  return contents.flatMap(({ positions, checksums }) =>
    positions.filter((position, at) => {
      const [known, checksum = 0] = [checksumOf.get(position), checksums[at]]
      checksumOf.set(position, checksum)
      return known !== undefined && known !== checksum
    }),
  )
}

it.skipIf(!hasFaketime)(
  `over ${CHAOS_MS / 1_000} s of faults of its machine, a relay loses nothing for ${CLIENTS} clients, and says nothing twice`,
  async (test) => {
    const machine = await FaultyMachine.open(test)
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const proxy = await TcpProxy.open(Number(new URL(devnet.url).port))
    test.onTestFinished(() => proxy.close())
    const through = (url: string) => url.replace(new URL(devnet.url).host, `127.0.0.1:${proxy.port}`)
    const upstream = {
      ...{ UPSTREAM_RPC_URL: through(devnet.rpcUrl), UPSTREAM_WS_URL: through(devnet.wsUrl) },
      STOCKS_API_URL: through(devnet.url),
    }
    const relay = await openSupervisedRelay(test, upstream, machine)
    await expect.poll(() => relay.isReady(), { timeout: CATCH_UP_TIMEOUT_MS }).toBe(true)
    const descriptors = relay.countDescriptors()
    const random = new SeededRandom('machine-chaos', CHAOS_SEED)
    const { clients, stopAll, cutAll } = openChaosClients(test, [relay.url], CLIENTS, random)
    const traffic = new DevnetTraffic(test, devnet, CHAOS_TRAFFIC)
    traffic.start()
    const faults = await runFaults([...faultsOf(relay, machine, proxy), [cutAll]], random)
    await expect.poll(() => relay.isReady(), { timeout: CATCH_UP_TIMEOUT_MS }).toBe(true)
    traffic.stop()
    for (let block = 0; block < 3; block += 1) devnet.seal()
    const gaps = clients.flatMap(({ gaps }) => gaps)
    const codes = relay.exits.map(({ code }) => code)
    process.stdout.write(
      `CHAOS_SEED=${CHAOS_SEED}, ${faults.length} faults: ${faults.join(', ')}; exits: ${JSON.stringify(codes)}\n`,
    )

    const head = devnet.chain.head.number
    await expect
      .poll(async () => unsealed(await tapeTextsOf(relay.url), head), { timeout: CATCH_UP_TIMEOUT_MS, interval: 500 })
      .toBe(0)
    let tape: readonly string[] = []
    const lateClients = async () => {
      tape = await tapeTextsOf(relay.url)
      const last = positionOf(tape.at(-1) ?? '')
      return clients.filter(({ position }) => position !== last).length
    }
    await expect.poll(lateClients, { timeout: CATCH_UP_TIMEOUT_MS, interval: 500 }).toBe(0)
    stopAll()
    const most = descriptors + DESCRIPTORS_MARGIN
    await expect.poll(() => relay.countDescriptors(), { timeout: CATCH_UP_TIMEOUT_MS }).toBeLessThanOrEqual(most)

    const content = contentOf(tape)
    const places = new Set(content.positions)
    const differences = clients.map((client) => differenceOf(client, content, places)).filter((difference) => difference !== null)
    expect(differences.slice(0, DIFFERENCES_SHOWN)).toEqual([])
    expect(ambiguousPositions([content, ...clients.flatMap(({ runs }) => runs)])).toEqual([])
    // Only a disk may end the relay, or take from the tape what clients have received.
    const hasDiskFault = faults.some((name) => name.startsWith('disk'))
    expect(hasDiskFault ? [] : gaps).toEqual([])
    expect(relay.exits.filter(({ code, printed }) => code !== null && !(hasDiskFault && /the tape/.test(printed)))).toEqual([])
    expectSealedAsOnChain(tape, devnet)
  },
)
