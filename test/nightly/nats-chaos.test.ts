import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { SeededRandom } from '../simulation/seeded-random.ts'
import { hasNats, type NatsServer } from '../support/nats-server.ts'
import { type ClusterMember, openCluster, type RelayCluster } from '../support/relay-cluster.ts'
import { openDevnet } from '../support/test-stack.ts'
import {
  CHAOS_MS,
  CHAOS_SEED,
  CHAOS_TRAFFIC,
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
 * Two ingesters and two edges that share a tape over NATS. For some time a seeded driver kills, pauses, cuts and restarts all
 * of them, NATS too. Then each client's history is compared with the tape, and the tape with the chain.
 */

const CLIENTS = 200
const CATCH_UP_TIMEOUT_MS = 30_000

const processFaults = (member: ClusterMember | NatsServer, name: string): readonly Fault[] => [
  { name: `kill ${name}`, begin: () => member.kill(), end: () => member.start() },
  { name: `pause ${name}`, begin: () => member.signal('SIGSTOP'), end: () => member.signal('SIGCONT') },
]

const faultsOf = ({ nats, ingesters, edges }: RelayCluster): readonly (readonly Fault[])[] => [
  ...[...ingesters, ...edges].map((member) => [
    ...processFaults(member, member.name),
    { name: `cut ${member.name} from NATS`, begin: () => member.proxy.cut(), end: () => member.proxy.mend() },
  ]),
  processFaults(nats, 'NATS'),
]

it.skipIf(!hasNats)(
  `over ${CHAOS_MS / 1_000} s of kills, pauses and cuts, ${CLIENTS} clients lose nothing and get nothing twice`,
  async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const cluster = await openCluster(test, devnet, { settings: { MAX_CLIENTS_PER_ADDRESS: String(2 * CLIENTS) } })
    const { edges, ingesters } = cluster
    const random = new SeededRandom('nats-chaos-clients', CHAOS_SEED)
    const urls = edges.map(({ url }) => url)
    const { clients, cutAll } = openChaosClients(test, urls, CLIENTS, random)
    const traffic = new DevnetTraffic(test, devnet, CHAOS_TRAFFIC)
    traffic.start()
    const faults = await runFaults([...faultsOf(cluster), [cutAll]], new SeededRandom('nats-chaos', CHAOS_SEED))
    await pause(3_000)
    traffic.stop()
    for (let block = 0; block < 3; block += 1) devnet.seal()
    process.stdout.write(`CHAOS_SEED=${CHAOS_SEED}, ${faults.length} faults: ${faults.join(', ')}\n`)

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
    const last = positionOf(tape.at(-1) ?? '')
    const lateClients = () => clients.filter(({ position }) => position !== last).length
    await expect.poll(lateClients, { timeout: CATCH_UP_TIMEOUT_MS }).toBe(0)

    expect(clients.flatMap(({ gaps }) => gaps)).toEqual([])
    const { positions, checksums } = contentOf(tape)
    for (const { runs } of clients) {
      const from = positions.indexOf(runs[0]?.positions[0] ?? '')
      expect(runs).toEqual([{ positions: positions.slice(from), checksums: checksums.slice(from) }])
    }
    expectSealedAsOnChain(tape, devnet)
  },
)
