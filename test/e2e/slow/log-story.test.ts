import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import type { LogKind } from '../../../src/relay/log-lines.ts'
import { createTempFolder } from '../../support/child-program.ts'
import { hasNats } from '../../support/nats-server.ts'
import { type ClusterMember, openCluster } from '../../support/relay-cluster.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { openDevnet } from '../../support/test-stack.ts'

const WAIT = { timeout: 20_000, interval: 100 }

/** The kinds that the story is about. Lines that a condition repeats are not among them. */
const told: readonly LogKind[] = [
  ...(['started', 'nats_connected', 'api_keys_read', 'listening', 'serving', 'list_read'] as const),
  ...([
    'nats_lost',
    'updates_missing',
    'nats_back',
    'updates_arrive',
    'leads',
    'leads_no_more',
    'client_connected',
    'client_ended',
    'stopping',
    'stopped',
  ] as const),
]

it.skipIf(!hasNats)('the log of a cluster tells each event once, in order', { timeout: 90_000 }, async (test) => {
  const devnet = await openDevnet({ pace: 'clock', flashblockMs: 100, blockMs: 500, transactionsPerFlashblock: 2 }, test)
  const API_KEYS_FILE = join(await createTempFolder(test), 'keys')
  const [first, second] = ['first-key-of-the-story', 'second-key-of-the-story']
  writeFileSync(API_KEYS_FILE, `${first}\n${second}\n`)
  const { nats, ingesters, edges } = await openCluster(test, devnet, { edges: 1, settings: { API_KEYS_FILE, LOG_LEVEL: 'debug' } })
  const [edge] = edges as [ClusterMember]
  const leading = async () => (await Promise.all(ingesters.map((one) => one.isLeading()))).indexOf(true)
  await vi.waitFor(async () => expect(await leading()).not.toBe(-1), WAIT)
  const heirOf = (leader: number) => ingesters[1 - leader] as ClusterMember
  const isStillMissing = ({ log }: ClusterMember) =>
    log.findLast(({ kind }) => kind === 'updates_missing' || kind === 'updates_arrive')?.kind === 'updates_missing'
  const visit = async () => {
    const listener = await listenNdjson(`${edge.url}/v1/stream?symbols=*&key=${second}`)
    await listener.waitFor('live')
    listener.close()
  }
  const events: readonly (readonly [string, ClusterMember | null, () => Promise<unknown>, readonly LogKind[]])[] = [
    ['start', edge, async () => {}, ['started', 'nats_connected', 'api_keys_read', 'listening', 'serving']],
    ['NATS is lost', edge, () => nats.kill(), ['nats_lost', 'updates_missing']],
    ['NATS is back', edge, () => nats.start(), ['nats_back', 'updates_arrive']],
    ['the leader is killed', null, async () => ingesters[await leading()]?.kill(), ['leads', 'list_read']],
    ['a client', edge, visit, ['client_connected', 'client_ended']],
    ['a key is rotated', edge, async () => writeFileSync(API_KEYS_FILE, `${second}\n`), ['api_keys_read']],
    ['stop', edge, () => edge.stop(), ['stopping', 'stopped']],
  ]
  let read = 0
  for (const [event, member, act, kinds] of events) {
    await vi.waitFor(async () => expect(await leading()).not.toBe(-1), WAIT)
    if (!member) await vi.waitFor(() => expect(ingesters.some(isStillMissing)).toBe(false), WAIT)
    const watched = member ?? heirOf(await leading())
    const from = member ? read : watched.log.length
    await act()
    const linesOf = () => watched.log.slice(from).filter(({ kind }) => told.includes(kind))
    await vi.waitFor(() => expect([event, linesOf().map(({ kind }) => kind)]).toEqual([event, kinds]), WAIT)
    if (member) read = watched.log.length
  }
  const lineOf = (kind: LogKind) => edge.log.find((line) => line.kind === kind)
  expect(lineOf('started')).toMatchObject({ level: 'info', detail: { settings: { ROLE: 'edge', NATS_URL: expect.any(String) } } })
  expect(edge.log.findLast(({ kind }) => kind === 'api_keys_read')?.detail).toEqual({ keys: 1, removed: 1 })
  expect(lineOf('client_ended')?.detail).toEqual({ transport: 'ndjson', reason: 'client', alive_ms: expect.any(Number) })
  expect(lineOf('stopped')?.detail).toEqual({ took_ms: expect.any(Number), clients_disconnected: 0 })
  expect(JSON.stringify(edge.log)).not.toMatch(new RegExp(`${first}|${second}`))
})
