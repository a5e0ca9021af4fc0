import { setTimeout as pause } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { startDevnet } from '../../src/devnet/devnet.ts'
import type { Update } from '../../src/protocol/updates.ts'
import { SeededRandom } from '../simulation/seeded-random.ts'
import { keysInState, sealedKeysOnChain } from '../support/key-states.ts'
import { hasNats, type NatsServer } from '../support/nats-server.ts'
import { type ClusterMember, openCluster, type RelayCluster } from '../support/relay-cluster.ts'
import { isNightly } from '../support/test-length.ts'
import { DevnetTraffic } from './devnet-traffic.ts'

/**
 * Two ingesters and two edges that share a tape over NATS. For some time a seeded driver kills, pauses, cuts and restarts all
 * of them, NATS too. Then each client's history is compared with the tape, and the tape with the chain.
 */

const SEED = Number(process.env.CHAOS_SEED ?? 7)
const CHAOS_MS = isNightly ? 180_000 : 30_000
const CLIENTS = 200
const CLIENT_RETRY_MS = 150
/** How long a part works between two faults, and how long a fault lasts. */
const [CHANGE_LEAST_MS, CHANGE_MOST_MS] = [1_000, 8_000]
const [FAULT_LEAST_MS, FAULT_MOST_MS] = [50, 3_500]
const CATCH_UP_TIMEOUT_MS = 30_000

/** The parts that all messages on the tape begin with. */
const messageStart = /^\{"type":"(\w+)","id":"(\w+)\.(\d+)"/

/** A client that comes back with its last position, to either edge. */
class ChaosClient {
  readonly #edges: readonly ClusterMember[]
  readonly #random: SeededRandom
  #socket: WebSocket | null = null
  #isStopped = false
  /** The numbers and the checksums of what it received. */
  readonly seqs: number[] = []
  readonly checksums: number[] = []
  /** Gaps and errors: nothing here is a reason for one. */
  readonly complaints: string[] = []
  #epoch = ''

  constructor(edges: readonly ClusterMember[], random: SeededRandom) {
    this.#edges = edges
    this.#random = random
    this.#connect()
  }

  get lastPosition(): string | null {
    return this.seqs.length === 0 ? null : `${this.#epoch}.${this.seqs.at(-1)}`
  }

  cut(): void {
    this.#socket?.terminate()
  }

  stop(): void {
    this.#isStopped = true
    this.#socket?.terminate()
  }

  #connect(): void {
    if (this.#isStopped) return
    const { url = '' } = this.#edges[this.#random.int(0, this.#edges.length - 1)] ?? {}
    const since = this.lastPosition ?? 'start'
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws?symbols=*&types=*&snapshot=false&since=${since}`)
    this.#socket = socket
    socket.on('error', () => {})
    socket.on('message', (data) => this.#receive(data as Buffer))
    socket.on('close', () => setTimeout(() => this.#connect(), CLIENT_RETRY_MS))
  }

  #receive(bytes: Buffer): void {
    const [, type = '', epoch = '', seq = ''] = messageStart.exec(bytes.toString('latin1', 0, 96)) ?? []
    if (bytes.includes('"prev":') && seq !== '') {
      this.#epoch ||= epoch
      if (epoch !== this.#epoch) this.complaints.push(`another epoch: ${epoch}`)
      this.seqs.push(Number(seq))
      this.checksums.push(crc32(bytes))
    } else if (type === 'gap' || bytes.includes('"type":"gap"')) this.complaints.push(String(bytes))
  }
}

type Fault = { readonly name: string; readonly begin: () => unknown; readonly end: () => unknown }

const processFaults = (member: ClusterMember | NatsServer, name: string): readonly Fault[] => [
  { name: `kill ${name}`, begin: () => member.kill(), end: () => member.start() },
  { name: `pause ${name}`, begin: () => member.signal('SIGSTOP'), end: () => member.signal('SIGCONT') },
]

const cutAll = (clients: readonly ChaosClient[]): void => {
  for (const client of clients) client.cut()
}

/** Begins and ends faults, one of each part at a time, in an order that the seed determines. */
async function runChaos({ nats, ingesters, edges }: RelayCluster, clients: readonly ChaosClient[]): Promise<readonly string[]> {
  const random = new SeededRandom('nats-chaos', SEED)
  const parts: readonly (readonly Fault[])[] = [
    ...[...ingesters, ...edges].map((member) => [
      ...processFaults(member, member.name),
      { name: `cut ${member.name} from NATS`, begin: () => member.proxy.cut(), end: () => member.proxy.mend() },
    ]),
    processFaults(nats, 'NATS'),
    [{ name: 'cut all clients', begin: () => cutAll(clients), end: () => {} }],
  ]
  const log: string[] = []
  const runPart = async (faults: readonly Fault[], partRandom: SeededRandom, until: number) => {
    while (performance.now() < until) {
      await pause(partRandom.int(CHANGE_LEAST_MS, CHANGE_MOST_MS))
      const fault = partRandom.pick(faults as [Fault, ...Fault[]])
      log.push(fault.name)
      await fault.begin()
      await pause(partRandom.int(FAULT_LEAST_MS, FAULT_MOST_MS))
      await fault.end()
    }
  }
  const until = performance.now() + CHAOS_MS
  await Promise.all(parts.map((faults, nth) => runPart(faults, random.fork(String(nth)), until)))
  return log
}

it.skipIf(!hasNats)(
  `over ${CHAOS_MS / 1_000} s of kills, pauses and cuts, ${CLIENTS} clients lose nothing and get nothing twice`,
  async (test) => {
    const devnet = await startDevnet({ pace: 'manual' })
    test.onTestFinished(() => devnet.stop())
    const cluster = await openCluster(test, devnet, { settings: { CLIENTS_PER_ADDRESS_BOUND: String(2 * CLIENTS) } })
    const { edges, ingesters } = cluster
    const random = new SeededRandom('nats-chaos-clients', SEED)
    const clients = Array.from({ length: CLIENTS }, (_, nth) => new ChaosClient(edges, random.fork(String(nth))))
    test.onTestFinished(() => {
      for (const client of clients) client.stop()
    })
    const traffic = new DevnetTraffic(test, devnet, {
      ...{ flashblockMs: 100, transfersPerFlash: 4, logsPerFlash: 1, logBytes: 32 },
      ...{ flashesPerBlock: 5, reorgEveryBlocks: 25 },
    })
    traffic.start()
    const faults = await runChaos(cluster, clients)
    await pause(3_000)
    traffic.stop()
    for (let block = 0; block < 3; block += 1) devnet.seal()
    process.stdout.write(`CHAOS_SEED=${SEED}, ${faults.length} faults: ${faults.join(', ')}\n`)

    // The tape is complete when every key has its end on both edges, and every client has the last update.
    const head = devnet.chain.head.number
    await expect
      .poll(async () => (await Promise.all(edges.map((edge) => edge.tape()))).map((texts) => unsealed(texts, head)), {
        timeout: CATCH_UP_TIMEOUT_MS,
        interval: 500,
      })
      .toEqual(edges.map(() => 0))
    for (const ingester of ingesters) await ingester.kill()
    await pause(1_000)
    const [tape = [], otherTape = []] = await Promise.all(edges.map((edge) => edge.tape()))
    expect(otherTape).toEqual(tape)
    const updates = tape.map((text) => JSON.parse(text) as Update)
    const last = updates.at(-1)?.id
    const lateClients = () => clients.filter(({ lastPosition }) => lastPosition !== last).length
    await expect.poll(lateClients, { timeout: CATCH_UP_TIMEOUT_MS }).toBe(0)

    expect(clients.flatMap(({ complaints }) => complaints)).toEqual([])
    const tapeSeqs = updates.map(({ id }) => Number(id.split('.')[1]))
    const tapeChecksums = tape.map((text) => crc32(text))
    for (const { seqs, checksums } of clients) {
      const from = tapeSeqs.indexOf(seqs[0] ?? 0)
      expect(seqs).toEqual(tapeSeqs.slice(from))
      expect(checksums).toEqual(tapeChecksums.slice(from))
    }
    expect(keysInState(updates, 'preconfirmed')).toEqual([])
    const first = Math.min(...updates.flatMap((update) => (update.type === 'seal' ? [update.block.number] : [])))
    const sealed = keysInState(updates, 'sealed').filter((key) => Number.parseInt(key, 10) > first)
    expect(sealed).toEqual(sealedKeysOnChain(devnet, first))
    expect(sealed.length).toBeGreaterThan(CHAOS_MS / 100)
  },
)

/** How many keys are open, or all if the newest block is not settled. */
function unsealed(texts: readonly string[], head: number): number {
  const updates = texts.map((text) => JSON.parse(text) as Update)
  const isSettled = updates.some((update) => update.type === 'seal' && update.block.number >= head - 4)
  return isSettled ? keysInState(updates, 'preconfirmed').length : -1
}
