import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { apiKey, otherApiKey } from '../support/api-keys.ts'
import { createTempFolder } from '../support/child-program.ts'
import { listenNdjson, listenWs, type MessageOf } from '../support/test-listener.ts'
import { fetchDocumented, openDevnet, openRelayFor, openTestStack, type TestStack, transfer } from '../support/test-stack.ts'
import { closeAfterTest } from './listeners.ts'

/** More requests than any wait takes. */

const metricsOf = async ({ relay }: TestStack): Promise<string> => (await fetchDocumented(`${relay.url}/metrics`)).text

/** The value of a series, by name and labels as they are printed. */
const valueIn = (text: string, series: string): number | null => {
  const line = text.split('\n').find((one) => one.startsWith(`stocktape_${series} `))
  return line === undefined ? null : Number(line.slice(line.lastIndexOf(' ')))
}

const movementsOf = async (url: string): Promise<readonly MessageOf<'transfer'>[]> =>
  ((await (await fetch(`${url}/v1/events?types=transfer&symbols=AAPLc`)).json()) as { events: MessageOf<'transfer'>[] }).events

/** Resolves when the metrics have this value. */
const waitForValue = (stack: TestStack, series: string, wanted: number): Promise<void> =>
  expect.poll(async () => valueIn(await metricsOf(stack), series), { timeout: 10_000, message: series }).toBe(wanted)

describe('the metrics', () => {
  it('follow a log from its receipt to its seal', async () => {
    const stack = await openTestStack()
    const listener = await closeAfterTest(listenWs(`${stack.relay.wsUrl}?symbols=AAPLc`))
    await listener.waitFor('live')
    const before = await metricsOf(stack)
    const valueBefore = (series: string) => valueIn(before, series) ?? 0
    transfer(stack, 'AAPLc', 3)
    await waitForValue(stack, 'keys_total{event="preconfirmed"}', valueBefore('keys_total{event="preconfirmed"}') + 3)
    expect(valueIn(await metricsOf(stack), 'oldest_open_key_seconds')).toBeGreaterThan(0)
    stack.devnet.seal()
    await listener.waitFor('seal')
    await waitForValue(stack, 'keys_total{event="sealed"}', valueBefore('keys_total{event="sealed"}') + 3)
    const after = await metricsOf(stack)
    const received = 'delivery_seconds_count{source="pendingLogs"}'
    expect(valueIn(after, received)).toBe(valueBefore(received) + 3)
    expect(valueIn(after, 'source{source="pendingLogs"}')).toBe(1)
    expect(valueIn(after, 'head_block{stage="sealed"}')).toBe(stack.devnet.chain.head.number)
    expect(valueIn(after, 'settling_lag_blocks')).toBe(0)
    expect(valueIn(after, 'tape_commit_seconds_count')).toBeGreaterThan(valueBefore('tape_commit_seconds_count'))
    expect(valueIn(after, 'tape_rows')).toBeGreaterThan(valueBefore('tape_rows'))
    expect(valueIn(after, 'nav_state{symbol="AAPLc",state="fresh"}')).toBe(1)
    expect(valueIn(after, 'listeners{transport="ws"}')).toBe(1)
    expect(valueIn(after, 'audiences')).toBe(1)
  })

  it('count who leaves and why, what is refused, and gaps', async () => {
    const stack = await openTestStack({ MAX_CLIENTS_PER_ADDRESS: '1' })
    const listener = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?symbols=AAPLc&since=zzzzzz.7`))
    await listener.waitFor('gap')
    expect(valueIn(await metricsOf(stack), 'gaps_total{reason="epoch"}')).toBe(1)
    const second = await closeAfterTest(listenWs(`${stack.relay.wsUrl}?symbols=AAPLc`))
    expect(await second.closed).toMatchObject({ code: 4102 })
    await waitForValue(stack, 'disconnects_total{transport="ws",reason="too_many_connections",code="4102"}', 1)
    const browser = { headers: { accept: 'text/event-stream' } }
    await (await fetch(`${stack.relay.url}/v1/stream/AAPLc`, browser)).text()
    await waitForValue(stack, 'refusals_total{code="429"}', 1)
    expect((await fetch(`${stack.relay.url}/v1/stream/NOTHING`)).status).toBe(404)
    await waitForValue(stack, 'refusals_total{code="404"}', 1)
    listener.close()
    await waitForValue(stack, 'disconnects_total{transport="ndjson",reason="client",code=""}', 2)
  })

  it('count what each API key uses, under its name, until the key is removed', async () => {
    const folder = await createTempFolder({ onTestFinished })
    const file = join(folder, 'keys')
    await writeFile(file, `${apiKey} name=desk clients=1\n`)
    const stack = await openTestStack({ API_KEYS: otherApiKey, API_KEYS_FILE: file })
    const url = `${stack.relay.wsUrl}?symbols=AAPLc&key=${apiKey}`
    const listener = await closeAfterTest(listenWs(url))
    await listener.waitFor('live')
    transfer(stack, 'AAPLc', 3)
    await listener.until(() => listener.messagesOf('transfer').length === 3, 'the transfers')
    const sent = listener.messages.filter((message) => 'prev' in message).length
    await waitForValue(stack, 'key_sent_messages_total{key="desk"}', sent)
    expect(valueIn(await metricsOf(stack), 'key_clients{key="desk"}')).toBe(1)
    expect((await (await closeAfterTest(listenWs(url))).closed).code).toBe(4102)
    expect((await fetch(`${stack.relay.url}/v1/stream/NOTHING?key=${apiKey}`)).status).toBe(404)
    await waitForValue(stack, 'key_refusals_total{key="desk"}', 2)
    await waitForValue(stack, 'key_requests_total{key="desk"}', 3)
    listener.close()
    await waitForValue(stack, 'key_clients{key="desk"}', 0)
    const after = await metricsOf(stack)
    expect(valueIn(after, 'key_sent_messages_total{key="desk"}')).toBe(sent)
    expect(valueIn(after, 'key_sent_bytes_total{key="desk"}')).toBeGreaterThan(listener.messages.length)
    expect(valueIn(after, 'sent_bytes_total{transport="ws"}')).toBe(valueIn(after, 'key_sent_bytes_total{key="desk"}'))
    const [unnamed = ''] = /key="[0-9a-f]{8}"/.exec(after) ?? []
    expect(unnamed).toBe(`key="${createHash('sha256').update(otherApiKey).digest('hex').slice(0, 8)}"`)
    await writeFile(file, '# nobody\n')
    await expect.poll(() => metricsOf(stack)).not.toContain('key="desk"')
  })

  it('show each token and pool as its snapshot does, and the movements with their value', async () => {
    const devnet = await openDevnet({ pace: 'manual', calls: true })
    const { poolsText: POOLS, quoteTokens: QUOTE_TOKENS, oracleRegistry: ORACLE_REGISTRY } = devnet
    const relay = await openRelayFor(devnet, { POOLS, QUOTE_TOKENS, ORACLE_REGISTRY })
    const stack = { devnet, relay }
    await waitForValue(stack, 'source{source="pendingLogs"}', 1)
    devnet.issuer.pause({ symbol: 'TSLAc', features: [0] })
    devnet.issuer.split({ symbol: 'NVDAc', to: '2', effectiveAt: devnet.chain.pending.timestamp + 60 })
    devnet.issuer.freezeFeed({ symbol: 'GOOGLc' })
    transfer(stack, 'AAPLc')
    devnet.seal()
    await waitForValue(stack, 'nav_frozen{symbol="GOOGLc"}', 1)
    await waitForValue(stack, 'paused{symbol="TSLAc",feature="TRANSFER"}', 1)
    await waitForValue(stack, 'movements_total{symbol="AAPLc",type="transfer"}', 1)
    const readPools = async () => {
      const { events } = (await (await fetch(`${relay.url}/v1/events?types=quote&limit=1000`)).json()) as {
        events: MessageOf<'quote'>[]
      }
      return new Set(events.map(({ venue }) => venue.pool)).size
    }
    await expect.poll(readPools).toBe(devnet.pools.length)
    const text = await metricsOf(stack)
    const { snapshots } = (await (await fetch(`${relay.url}/v1/snapshot`)).json()) as { snapshots: MessageOf<'snapshot'>[] }
    const numberOf = (value: string | null | undefined) => (value == null ? null : Number(value))
    for (const { symbol, nav, quote, supply, multiplier, scheduled, session } of snapshots) {
      const labels = `symbol="${symbol}"`
      expect(valueIn(text, `nav_price{${labels}}`)).toBe(numberOf(nav.price))
      expect(valueIn(text, `token_supply{${labels}}`)).toBe(numberOf(supply.tokens))
      expect(valueIn(text, `multiplier{${labels}}`)).toBe(numberOf(multiplier))
      expect(valueIn(text, `multiplier_next{${labels}}`)).toBe(numberOf(scheduled?.multiplier))
      const effectiveAt = scheduled?.effective_at
      expect(valueIn(text, `multiplier_next_timestamp_seconds{${labels}}`)).toBe(
        effectiveAt ? Date.parse(effectiveAt) / 1_000 : null,
      )
      expect(valueIn(text, `market_session{market="XNYS",state="${session?.state}"}`)).toBe(1)
      if (!quote) continue
      const pool = `${labels},venue="${quote.venue.kind}",pool="${quote.venue.pool}",currency="${quote.venue.currency.symbol}"`
      expect(valueIn(text, `pool_price{${pool}}`)).toBe(numberOf(quote.price))
      expect(valueIn(text, `pool_depth{${pool}}`)).toBe(numberOf(quote.depth))
      expect(valueIn(text, `pool_basis_bps{${pool},basis="${quote.basis}"}`)).toBe(numberOf(quote.basis_bps))
    }
    const [movement] = await movementsOf(relay.url)
    expect(valueIn(text, 'movement_value_usd_total{symbol="AAPLc",type="transfer"}')).toBe(numberOf(movement?.reference_value))
  })

  it('name an upstream by its host alone, and count its failures', async () => {
    const stack = await openTestStack({ SILENCE: '300ms' })
    const { host } = new URL(stack.devnet.rpcUrl)
    expect(valueIn(await metricsOf(stack), `upstream_request_seconds_count{endpoint="${host}"}`)).toBeGreaterThan(0)
    stack.devnet.faults.rpc = { status: 503 }
    stack.devnet.faults.dropSockets()
    await waitForValue(stack, 'source{source="down"}', 1)
    expect(valueIn(await metricsOf(stack), `upstream_errors_total{endpoint="${host}",kind="unreachable"}`)).toBeGreaterThan(0)
    expect(valueIn(await metricsOf(stack), `upstream_socket_losses_total{endpoint="${host}"}`)).toBeGreaterThan(0)
  })
})

it('every metric of the dashboards and of the alert rules exists', async () => {
  const text = await metricsOf(await openTestStack())
  const known = new Set([...text.matchAll(/^# HELP (\S+)/gm)].map(([, name]) => name))
  for (const file of ['relay-dashboard.json', 'relay-rules.yaml', 'market-dashboard.json', 'market-rules.yaml']) {
    const used = readFileSync(new URL(`../../docs/monitoring/${file}`, import.meta.url), 'utf8').matchAll(/\bstocktape_[a-z_]+/g)
    const names = [...used].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''))
    expect(names.length).toBeGreaterThan(5)
    for (const name of names) expect(known, `${name} in ${file}`).toContain(name)
  }
})
