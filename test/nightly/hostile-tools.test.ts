import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts'
import type { TestLifecycle } from '../e2e/slow/deployed-relay.ts'
import { SeededRandom } from '../simulation/seeded-random.ts'
import { hasPrograms } from '../support/debian-programs.ts'
import { isNightly } from '../support/test-length.ts'
import { ConnectionFlood, pipelineRequests, runSlowHttpTest, sendRandomRequests } from './attacks.ts'
import { MonitoredRelay } from './monitored-relay.ts'
import { WellBehavedClient } from './well-behaved-client.ts'

vi.setConfig({ testTimeout: 120_000 })

/** How long each slow attack lasts. */
const ATTACK_SECONDS = isNightly ? 30 : 1
const RANDOM_REQUESTS = isNightly ? 20_000 : 1_000
const RANDOM_AT_ONCE = 20
/** Connections that pipeline, and the requests of each. */
const [PIPELINING, PIPELINED] = [60, isNightly ? 1_000 : 200]
const FLOOD = isNightly ? 30_000 : 3_000
/** An update or an answer may take so long while the relay is attacked. The machine is busy with the attack as well. */
const ANSWER_BOUND_MS = 1_000
/** A connection that was just closed may be there for a moment. */
const SPARE_DESCRIPTORS = 5
const SPARE_HEAP_BYTES = 8 * 2 ** 20
/** What the relay remembers of an update of the client. */
const UPDATE_BYTES = 4_096
/** How often the memory is measured until it is back. */
const RETAINED_CHECKS = 10
/** The relay has room for this and a thousand more, and for 150 and 200 more of one address. A flood fills all of it. */
const settings = { MAX_CLIENTS: '200', MAX_CLIENTS_PER_ADDRESS: '150' }
const manyAddresses = Array.from({ length: 50 }, (_, at) => `127.0.1.${at + 1}`)

const cleanups: (() => unknown)[] = []
let devnet: Devnet
let relay: MonitoredRelay
let client: WellBehavedClient
let before: { readonly descriptors: number; readonly bytes: number; readonly sockets: number }

beforeAll(async () => {
  const onTestFinished: TestLifecycle['onTestFinished'] = (cleanup) => void cleanups.unshift(cleanup as () => unknown)
  devnet = await startDevnet({ pace: 'manual' })
  cleanups.unshift(() => devnet.stop())
  relay = await MonitoredRelay.open({ onTestFinished }, devnet, settings)
  client = await WellBehavedClient.open(relay.url, devnet)
  cleanups.unshift(() => client.close())
  // A relay that runs from its sources makes the documents when the first one is asked for. The built program contains them.
  await fetch(`${relay.url}/docs`).then((answer) => answer.text())
  await client.useDuring(Promise.resolve())
  before = { ...(await relay.retained()), descriptors: relay.descriptors }
})

afterAll(async () => {
  for (const cleanup of cleanups) await cleanup()
})

/** Attacks the relay while the client uses it, and checks that the client notices nothing. */
async function endure(attack: () => Promise<unknown>, stop: () => void = () => {}): Promise<void> {
  const slowestMs = await client.useDuring(attack())
  stop()
  const { made, received } = client.amounts
  expect(received).toEqual([made, made])
  expect(slowestMs).toBeLessThan(ANSWER_BOUND_MS)
  expect(relay.errorLines).toEqual([])
  expect(relay.printedErrors).not.toMatch(/^\s+at |Error:/m)
  await relay.until(() => relay.descriptors <= before.descriptors + SPARE_DESCRIPTORS)
}

it.runIf(hasPrograms('slowhttptest')).each([
  ['slow headers', ['-H', '-x', '24'], '/'],
  ['slow bodies', ['-B', '-s', '8192', '-x', '10'], '/rpc'],
  ['slow readers', ['-X', '-w', '512', '-y', '1024', '-n', '1', '-z', '32', '-k', '3'], '/docs'],
  ['overlapping ranges', ['-R', '-a', '10', '-b', '1000'], '/docs'],
])('%s of slowhttptest delay no other client', (_, flags, path) =>
  endure(() => runSlowHttpTest(flags, relay.url + path, ATTACK_SECONDS)),
)

it('requests of random bytes delay no other client', () =>
  endure(() => sendRandomRequests(relay.port, new SeededRandom('requests'), RANDOM_REQUESTS, RANDOM_AT_ONCE)))

it('thousands of requests in the same packets delay no other client', () =>
  endure(() => pipelineRequests(relay.port, PIPELINING, PIPELINED)))

it.each([
  ['one address', ['127.0.0.1']],
  ['fifty addresses', manyAddresses],
])('a flood of connections from %s leaves room for others', async (_, addresses) => {
  const flood = new ConnectionFlood(relay.port)
  await endure(
    () => flood.run(FLOOD, addresses),
    () => flood.stop(),
  )
  // The relay cut what it has no room for, and kept what it has room for.
  expect(flood.cut).toBeGreaterThan(FLOOD / 2)
})

it('all attacks together leave no memory and no sockets behind', async () => {
  const heapBound = before.bytes + SPARE_HEAP_BYTES + client.amounts.made.length * UPDATE_BYTES
  const isBack = ({ bytes, sockets }: typeof before) => sockets <= before.sockets + SPARE_DESCRIPTORS && bytes < heapBound
  let after = { ...(await relay.retained()), descriptors: relay.descriptors }
  // The parser of a closed connection is freed some time later.
  for (let check = 1; check < RETAINED_CHECKS && !isBack(after); check += 1) after = { ...after, ...(await relay.retained()) }
  expect(after.sockets).toBeLessThanOrEqual(before.sockets + SPARE_DESCRIPTORS)
  expect(after.bytes).toBeLessThan(heapBound)
})
