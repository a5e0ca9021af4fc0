import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { type Devnet, type DevnetOptions, startDevnet } from '../../../src/devnet/devnet.ts'
import type { Faults } from '../../../src/devnet/faults/faults.ts'
import { openSteadyClock, schedulerOn } from '../../../src/lib/steady-clock.ts'
import { readConfig } from '../../../src/relay/config/config.ts'
import { type Examination, examine } from '../../../src/tools/doctor/examination.ts'
import { serveList, startAnvil } from '../../support/anvil-node.ts'
import { ChildProgram, upstreamOf } from '../../support/child-program.ts'
import { openRelayBeforeList } from '../../support/in-process-relay.ts'
import { serve, serveNode } from '../../support/loopback-server.ts'

type Settings = Readonly<Record<string, string>>
/**
 * Findings as `id state message`, where the message is the beginning of a pattern with `#` for a number. An absent one is
 * `id absent`, and the verdict is that of `source`.
 */
type Expected = string

const DOWN = 'source down unreachable$'

/** How long an examination may take: none does, but for one that waits for a node that hangs. */
const TIMEOUT_MS = 60_000
/** Nothing listens there. A free port of the system may soon be that of another server. */
const DEAD_PORT = 2
const RELAY_TIMEOUT_MS = 60_000

const cleanups: (() => Promise<unknown>)[] = []
const cleanUpAll = () => Promise.all(cleanups.splice(0).map((cleanUp) => cleanUp()))
afterAll(cleanUpAll)

const now = openSteadyClock(Date.now, () => performance.now())

async function examineSettings(settings: Settings, timeoutMs = TIMEOUT_MS): Promise<Examination> {
  const result = readConfig([], settings, { isListOptional: true })
  if (result.kind !== 'settings') throw new Error(JSON.stringify(result))
  const ports = { clock: schedulerOn(now), wallTime: Date.now, random: Math.random }
  return examine({ config: result.config, timeoutMs, ...ports })
}

/** Little happens on a devnet of these tests, since many of them run at the same time. */
const quick = { blockMs: 500, flashblockMs: 100, transactionsPerFlashblock: 0.4 }

async function openDevnet(options: DevnetOptions = {}): Promise<Devnet> {
  const devnet = await startDevnet({ ...quick, ...options })
  cleanups.push(() => devnet.stop())
  return devnet
}

const atEnd = (cleanUp: () => unknown) => cleanups.push(async () => cleanUp())

const answerWith =
  (status: number, body: string): RequestListener =>
  (_, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)

/** Prepares the devnet of a kind, and returns the settings that differ from those of the devnet. */
type Prepare = (devnet: Devnet) => Settings | Promise<Settings>

const withFaults =
  (faults: Partial<Faults>, settings: Settings = {}): Prepare =>
  (devnet) => {
    Object.assign(devnet.faults, faults)
    return settings
  }

const withList =
  (change: (list: Devnet['list']) => void): Prepare =>
  ({ list }) => {
    change(list)
    return {}
  }

/** No HTTP node but this one, and no socket. */
const onlyNode = (url: string): Settings => ({ UPSTREAM_RPC_URL: url, UPSTREAM_WS_URL: '' })
const onlyServer = (listener: RequestListener) => async () => onlyNode(await serve(atEnd, listener))

/** A real node, with a token that is listed. */
async function realNode(): Promise<Settings> {
  const anvil = await startAnvil()
  cleanups.push(() => anvil.kill())
  const nav = { nav_price: 10.5, nav_price_updated_at: new Date().toISOString() }
  const list = await serveList({ contract_address: anvil.token, symbol: 'TESTc', decimals: 8, multiplier: 1, ...nav })
  cleanups.push(() => list.stop())
  return { UPSTREAM_RPC_URL: anvil.rpcUrl, UPSTREAM_WS_URL: anvil.wsUrl, STOCKS_API_URL: list.url }
}

/** A devnet behind a proxy that takes short batches only. */
const withShortBatches =
  (bound: number): Prepare =>
  async ({ rpcUrl }) => {
    const refusal = '{"jsonrpc":"2.0","id":null,"error":{"code":-32014,"message":"too many RPC calls in batch request"}}'
    const url = await serveNode(atEnd, rpcUrl, (body, response) => {
      const parsed: unknown = JSON.parse(body)
      return Array.isArray(parsed) && parsed.length > bound && response.writeHead(413).end(refusal)
    })
    return { UPSTREAM_RPC_URL: url }
  }

const kinds: readonly (readonly [name: string, prepare: Prepare, expected: Expected])[] = [
  [
    'no fault',
    ({ poolsText, quoteTokens }) => ({ POOLS: poolsText, QUOTE_TOKENS: quoteTokens }),
    `source pendingLogs ok$ | rpc.reach ok answers in # ms | rpc.chain ok chain 84532001 | rpc.head ok block #
    | rpc.block_time ok # ms over the last 100 blocks | rpc.clock ok differs by | rpc.pending ok pre-confirmed: block #
    | rpc.pending_logs ok eth_getLogs to pending answers | rpc.finality ok safe is # below latest, finalized #
    | rpc.batch ok 94 requests in one batch | rpc.tokens ok | rpc.storage ok | rpc.call ok | rpc.receipts ok | ws.heads ok
    | ws.pending_logs ok pendingLogs pushes: .*one log in each message | list.reach ok answers | list.tokens ok # tokens: AAPLc,
    | list.records ok | list.navs .*fresh`,
  ],
  ['no socket', () => ({ UPSTREAM_WS_URL: '' }), 'source poll ok$ | ws.reach absent'],
  ['only a socket', () => ({ UPSTREAM_RPC_URL: '' }), 'source pendingLogs ok$ | rpc.pending ok | rpc.clock skip'],
  ['a silent socket', withFaults({ silent: ['pendingLogs'] }), 'source poll silent$ | ws.pending_logs warn .*it is silent'],
  [
    'a socket that refuses',
    withFaults({ refused: ['pendingLogs', 'newHeads'] }),
    'source poll refused$ | ws.pending_logs warn pendingLogs is refused: -32602 | ws.heads warn newHeads is refused',
  ],
  ['the older shape', withFaults({ shape: 'all' }), 'source pendingLogs ok$ | ws.pending_logs ok .*the older shape'],
  [
    'latest as pending',
    withFaults({ pending: 'latest' }),
    'source sealed no_pending$ | rpc.pending warn pending is the latest block | rpc.pending_logs ok .*: 0 pre-confirmed logs',
  ],
  ['null as pending', withFaults({ pending: 'null' }), 'source sealed no_pending$ | rpc.pending warn there is no pending block'],
  ['pending far behind', withFaults({ pending: 'behind' }), 'source sealed behind$ | rpc.pending warn block #, but latest is #'],
  ['pending without a number', withFaults({ pending: 'numberless' }), 'source pendingLogs | rpc.pending ok .*on top of latest'],
  [
    'HTTP that lags',
    withFaults({ lagBlocks: 60, rangeBound: 100 }),
    'rpc.lag warn # blocks behind | rpc.logs_range warn 62 blocks .*more is refused: -32602',
  ],
  [
    'no receipts, calls and finality',
    async () => {
      const devnet = await openDevnet()
      devnet.faults.finality = 'refused'
      return upstreamOf(devnet)
    },
    'rpc.receipts warn .*not whitelisted | rpc.call warn .*not whitelisted | rpc.finality warn -32602',
  ],
  ['short batches', withShortBatches(4), 'rpc.batch warn 2 requests in one batch are answered; 10 are refused: -32014'],
  ['no batches', withShortBatches(0), 'rpc.batch warn -32014'],
  ['another node for receipts', ({ rpcUrl }) => ({ RECEIPTS_RPC_URL: rpcUrl }), 'receipts.receipts ok | rpc.receipts absent'],
  [
    'a real node',
    realNode,
    `source poll refused$ | rpc.client ok anvil | rpc.tokens ok | rpc.call ok | rpc.receipts ok
    | ws.pending_logs warn pendingLogs is refused | ws.heads skip .*no new block`,
  ],
  ['a rate limit', onlyServer(answerWith(429, '')), `${DOWN} | rpc.reach fail HTTP 429 | rpc.head absent`],
  [
    'HTML instead of JSON',
    onlyServer(answerWith(200, '<html>')),
    `${DOWN} | rpc.reach fail the answer is not JSON-RPC | rpc.head absent`,
  ],
  ['a node that hangs', onlyServer(() => {}), `${DOWN} | rpc.reach fail no answer in #`],
  [
    'a dead port',
    () => onlyNode(`http://127.0.0.1:${DEAD_PORT}`),
    `${DOWN} | rpc.reach fail the connection is refused | rpc.head absent`,
  ],
  [
    'a dead port for the socket',
    () => ({ UPSTREAM_WS_URL: `ws://127.0.0.1:${DEAD_PORT}` }),
    'source poll unreachable$ | ws.reach fail the connection is refused | ws.pending_logs absent',
  ],
  [
    'another chain',
    () => ({ CHAIN_ID: '8453' }),
    'source down wrong_chain$ | rpc.chain fail it is of chain 84532001, but CHAIN_ID says 8453 | rpc.pending absent',
  ],
  ['an empty list', withList((list) => list.corrupt('{"tokens":[]}')), 'source .*no_list$ | list.tokens fail the list is empty'],
  ['a malformed list', withList((list) => list.corrupt('{"tokens":[')), 'source .*no_list$ | list.reach fail no list: '],
  ['no list but an error', withFaults({ list: { status: 503 } }), 'source .*no_list$ | list.reach fail no list: HTTP 503'],
  [
    'a list with bad records and stale NAVs',
    withList((list) => {
      list.change('AAPLc', { nav_price_updated_at: '2020-01-01T00:00:00Z' })
      list.change('TSLAc', { nav_price: -1 })
      list.add({ symbol: 'BADc' })
      list.add({ ...list.records()[0] })
    }),
    `source pendingLogs ok$ | list.navs warn .*[1-9]\\d* stale, .*[1-9]\\d* invalid; the oldest is # h old
    | list.records warn 1 unreadable record, 1 repeated: record #: no usable contract_address`,
  ],
  [
    'no setting for the list',
    () => ({ STOCKS_API_URL: '' }),
    'source .*no_list$ | list.reach fail no list is set | rpc.pending ok | rpc.pending_logs skip no list',
  ],
]

/** A relay is not started without a list, and needs no other node for receipts. */
const withoutRelay = new Set(['no setting for the list', 'another node for receipts'])

describe('the doctor', () => {
  const examinations = new Map<string, Examination>()
  const settingsByKind = new Map<string, Settings>()

  beforeAll(async () => {
    for (const [name, prepare] of kinds) {
      // Each has a devnet of its own: a process that is short of time accepts connections to one server slowly.
      const devnet = await openDevnet({ calls: true, receipts: true })
      settingsByKind.set(name, { ...upstreamOf(devnet), ...(await prepare(devnet)) })
    }
    const examineKind = async ([name, settings]: readonly [string, Settings]) =>
      examinations.set(name, await examineSettings(settings))
    await Promise.all([...settingsByKind].map(examineKind))
  })

  afterAll(cleanUpAll)

  it.each(kinds)('finds with %s what is there', (name, _, expected) => {
    const { verdict, findings } = examinations.get(name) as Examination
    const found: Record<string, string> = { source: `${verdict.source} ${verdict.reason}` }
    for (const { id, state, message } of findings) found[id] = `${state} ${message}`
    for (const finding of expected.split('|')) {
      const [id = '', ...words] = finding.trim().split(' ')
      expect(found[id] ?? 'absent', id).toMatch(new RegExp(`^${words.join(' ').replaceAll('#', '\\d+')}`))
    }
    const canRun = verdict.source !== 'down' && verdict.reason !== 'no_list'
    expect(verdict.ok).toBe(canRun)
    for (const { state, advice } of findings) expect(advice !== undefined).toBe(state === 'warn' || state === 'fail')
  })

  it('says of each upstream what a relay on it says in its status', async () => {
    const compare = async (name: string) => {
      const { verdict } = examinations.get(name) as Examination
      const settings = settingsByKind.get(name) ?? {}
      const relay = await openRelayBeforeList({ rpcUrl: '', wsUrl: '', url: '' }, settings)
      const Status = z.object({ source: z.string(), reason: z.string() })
      const read = async () => Status.parse(await (await fetch(`${relay.url}/v1/status`)).json())
      const expected = { source: verdict.source, reason: verdict.reason }
      const isSame = async () => JSON.stringify(await read()) === JSON.stringify(expected)
      await vi.waitUntil(isSame, { timeout: RELAY_TIMEOUT_MS, interval: 100 }).catch(() => {})
      const status = await read()
      await relay.stop()
      expect({ name, ...status }).toEqual({ name, ...expected })
    }
    await Promise.all(kinds.flatMap(([name]) => (withoutRelay.has(name) ? [] : [compare(name)])))
  })
})

it('the doctor prints no more of a URL than its origin', async () => {
  const devnet = await openDevnet()
  const secrets = ['0123456789abcdef', 'user-name', 'pass-word']
  const [key, user, password] = secrets
  const dead = `http://${user}:${password}@127.0.0.1:${DEAD_PORT}/v2/${key}?key=${key}`
  // A node that repeats the URL in its errors, and as its name.
  const echo = await serve(atEnd, async (request, response) => {
    const { id, method } = z.object({ id: z.number(), method: z.string() }).parse(JSON.parse(await text(request)))
    const said = `bad ${request.url}`
    const answer = method === 'web3_clientVersion' ? { result: said } : { error: { code: -32601, message: said } }
    response.writeHead(200).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  })
  const settings = { UPSTREAM_RPC_URL: `${dead},${echo}/v2/${key}`, STOCKS_API_URL: `${devnet.url}/${key}` }
  const shown = JSON.stringify(await examineSettings(settings, 2_000))
  expect(shown).toContain(new URL(dead).origin)
  expect(shown).toMatch(/"id":"rpc.client"[^}]*bad/)
  for (const secret of secrets) expect(shown).not.toContain(secret)
})

const Report = z.object({
  ok: z.boolean(),
  source: z.string(),
  reason: z.string(),
  checks: z.array(
    z.object({ id: z.string(), target: z.string(), state: z.enum(['ok', 'warn', 'fail', 'skip']), message: z.string() }),
  ),
})

const run = (...args: readonly string[]): ChildProgram => {
  const env = { PATH: process.env.PATH, FORCE_COLOR: '1' }
  const program = new ChildProgram([process.execPath, 'src/main.ts', 'doctor', ...args], { env })
  cleanups.push(async () => program.kill())
  return program
}

describe.concurrent('the doctor command', () => {
  it('without settings examines the built-in chain, in plain lines for a pipe', async () => {
    const program = run()
    expect(await program.waitForExit()).toBe(0)
    expect(program.stderr).toBe(
      'stocktape doctor: no upstream is set, so this examines the built-in chain: nothing on it is real\n',
    )
    expect(program.stdout).toMatch(/^node {2}http:\/\/127\.0\.0\.1:\d+\n {2}✓ ok {3}reach /)
    expect(program.stdout).toMatch(/\nthe relay can run on these\n {2}✓ ok {3}source +pendingLogs, reason ok: .*\n$/)
    expect(program.stdout).toBe(stripVTControlCharacters(program.stdout))
  })

  it('with --json prints one object, and exits with 1 where the relay cannot run', async () => {
    const devnet = await openDevnet({ pace: 'manual' })
    const program = run('--rpc', `http://127.0.0.1:${DEAD_PORT}`, '--stocks', devnet.url, '--timeout', '2s', '--json')
    expect(await program.waitForExit()).toBe(1)
    expect(program.stderr).toBe('')
    expect(Report.parse(JSON.parse(program.stdout))).toMatchObject({
      ...{ ok: false, source: 'down', reason: 'unreachable' },
      checks: [
        { id: 'rpc.reach', state: 'fail' },
        { id: 'list.reach' },
        { id: 'list.tokens' },
        { id: 'list.records' },
        { id: 'list.navs' },
      ],
    })
  })

  it('reports mistakes in the settings and exits with 2', async () => {
    const program = run('--rpc', 'ftp://user:secret@one.example/key')
    expect(await program.waitForExit()).toBe(2)
    expect(program.stderr).toMatch(
      /^stocktape doctor: UPSTREAM_RPC_URL must be a URL that begins with http:\/\/ or https:\/\/.*\n$/,
    )
    expect(program.stderr).not.toMatch(/secret|key/)
  })

  it('ends at once after Ctrl-C', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    const program = run('--rpc', await serve(atEnd, () => resolve()), '--timeout', '300s')
    await asked
    program.signal('SIGINT')
    await program.waitForExit()
    expect(program.stdout).toBe('')
  })
})
