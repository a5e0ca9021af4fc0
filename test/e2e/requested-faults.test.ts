import { describe, expect, it, type TestContext } from 'vitest'
import { startDevnet } from '../../src/devnet/devnet.ts'
import { readConfig, withUpstream } from '../../src/relay/config/config.ts'
import type { WriteLine } from '../../src/relay/log-lines.ts'
import { openMetrics } from '../../src/relay/metrics.ts'
import { startRelay } from '../../src/relay/relay.ts'
import { silentLog } from '../support/in-process-relay.ts'
import { listenNdjson, type TestListener } from '../support/test-listener.ts'

/** A relay with these faults, on a chain with fast blocks. */
const openFaulty = async (
  faults: string,
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
  {
    transactionsPerFlashblock = 1,
    log = silentLog,
    hasPools = false,
  }: { readonly transactionsPerFlashblock?: number; readonly log?: WriteLine; readonly hasPools?: boolean } = {},
) => {
  const settings = { PORT: '0', DATA_DIR: ':memory:', SILENCE: '500ms', STOCKS_REFRESH: '200ms', BACKFILL_FIRST: '0' }
  const parsed = readConfig([], { ...settings, FAULTS: faults })
  if (parsed.kind !== 'settings') throw new Error(JSON.stringify(parsed))
  const pace = { blockMs: 200, flashblockMs: 100, transactionsPerFlashblock }
  const devnet = await startDevnet({ ...pace, calls: hasPools, requestedFaults: parsed.config.process.faults ?? {} })
  onTestFinished(() => devnet.stop())
  const relay = await startRelay({
    config: withUpstream(parsed.config, {
      chain: { upstreamRpcUrl: [devnet.rpcUrl], upstreamWsUrl: [devnet.wsUrl], isBuiltIn: true },
      tokens: {
        stocksApiUrl: devnet.url,
        feeds: [],
        pools: hasPools ? devnet.pools : [],
        mainCurrency: null,
        oracleRegistry: null,
      },
    }),
    log,
    metrics: openMetrics(),
    loadDocuments: async () => new Map(),
    onFailure: (failure) => {
      throw failure
    },
  })
  onTestFinished(() => relay.stop())
  await relay.whenListed
  return `http://127.0.0.1:${relay.port}`
}

const listen = async (
  url: string,
  query: string,
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
): Promise<TestListener> => {
  const listener = await listenNdjson(`${url}/v1/stream?symbols=*&snapshot=false&${query}`)
  onTestFinished(() => listener.close())
  return listener
}

/** The statuses of a stream, each once, until the relay is not away. */
const statusesUntilPresent = async (url: string): Promise<readonly number[]> => {
  const statuses = new Set<number>()
  while (!statuses.has(200)) {
    const answer = await fetch(`${url}/v1/stream?symbols=*&format=ndjson`)
    statuses.add(answer.status)
    await answer.body?.cancel()
  }
  return [...statuses]
}

describe.concurrent('a relay on a chain with faults', () => {
  it.for([
    ['silent=2s/4s', { source: 'poll', reason: 'silent' }],
    ['refused=2s/4s', { source: 'poll', reason: 'refused' }],
    ['disconnect=2s/4s', { source: 'poll', reason: 'unreachable' }],
    ['outage=2s/4s', { source: 'down', reason: 'unreachable' }],
    ['sealed=3s/5s', { source: 'sealed', reason: 'no_pending' }],
    ['lag=5', { reason: 'behind' }],
  ] as const)('publishes a status with %s', async ([faults, fields], context) => {
    const url = await openFaulty(faults, context)
    const listener = await listen(url, 'since=start&types=status', context)
    const expected: Readonly<Record<string, string>> = fields
    await listener.waitFor('status', ({ source, reason }) =>
      Object.entries({ source, reason }).every(([name, value]) => (expected[name] ?? value) === value),
    )
  })

  it('logs when the chain cannot be read, and when it can again', async (context) => {
    const kinds: string[] = []
    const log = (kind: string) => void kinds.push(kind)
    const url = await openFaulty('outage=2s/4s', context, { log })
    const listener = await listen(url, 'since=start&types=status', context)
    await listener.waitFor('status', ({ source }) => source === 'down')
    await listener.until(() => listener.messagesOf('status').at(-1)?.source !== 'down', 'the end of the outage')
    expect(kinds.filter((kind) => kind.startsWith('source_')).slice(-2)).toEqual(['source_down', 'source_back'])
  })

  it('retracts and publishes late where chance wants it', async (context) => {
    // A reorg loses few transactions, so there have to be many.
    const url = await openFaulty('reorg=30%x4,drop=20%,late=20%', context, { transactionsPerFlashblock: 4, hasPools: true })
    const listener = await listen(url, 'since=start&types=*', context)
    await listener.waitFor('retract', ({ reason }) => reason === 'not_sealed')
    await listener.waitFor('retract', ({ reason }) => reason === 'reorg')
    const isPreconfirmed = (number: number) =>
      listener.messagesOf('transfer').some(({ stage, block }) => stage === 'preconfirmed' && block.number === number)
    for (const type of ['transfer', 'trade'] as const) {
      const facts = () => listener.messagesOf(type)
      await listener.until(
        () => facts().some(({ late, block }) => late && isPreconfirmed(block.number)),
        `a late ${type} beside a timely transfer`,
      )
      const keys = () => new Set(facts().map(({ key }) => key))
      await listener.until(() => listener.messagesOf('retract').some(({ key }) => keys().has(key)), `a retracted ${type}`)
    }
  })

  it('makes no block while the chain stalls, and then all at once', async (context) => {
    const url = await openFaulty('stall=1s/2s', context)
    const listener = await listen(url, 'since=start&types=seal', context)
    const pauses = () => {
      const times = listener.messagesOf('seal').map(({ time }) => Date.parse(time))
      return times.filter((time, index) => time - (times[index - 1] ?? time) >= 800).length
    }
    await listener.until(() => pauses() >= 2, 'two pauses')
  })

  it('gives a gap to a client that comes back after its absence', async (context) => {
    const url = await openFaulty('gap=2s/6s', context)
    // It has just come back, so that it does not leave before the first client listens.
    while (!(await statusesUntilPresent(url)).includes(503));
    const first = await listen(url, 'types=*', context)
    const { reason, id } = await first.waitFor('bye')
    expect(reason).toBe('going_away')
    expect(await statusesUntilPresent(url)).toEqual([503, 200])
    const again = await listen(url, `types=*&since=${id}`, context)
    expect(await again.waitFor('gap')).toMatchObject({ reason: 'expired', after: id })
  })
})
