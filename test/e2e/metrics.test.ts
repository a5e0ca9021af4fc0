import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { listenNdjson, listenWs } from '../support/test-listener.ts'
import { fetchDocumented, openTestStack, type TestStack, transfer } from '../support/test-stack.ts'
import { closeAfterTest } from './listeners.ts'

/** More requests than any wait takes. */
const ATTEMPTS_BOUND = 500

const metricsOf = async ({ relay }: TestStack): Promise<string> => (await fetchDocumented(`${relay.url}/metrics`)).text

/** The value of a series, by name and labels as they are printed. */
const valueIn = (text: string, series: string): number | null => {
  const line = text.split('\n').find((one) => one.startsWith(`stocktape_${series} `))
  return line === undefined ? null : Number(line.slice(line.lastIndexOf(' ')))
}

/** Resolves when the metrics have this value, and fails with the last one where they do not get it. */
async function waitForValue(stack: TestStack, series: string, wanted: number): Promise<void> {
  let last: number | null = null
  for (let attempt = 0; attempt < ATTEMPTS_BOUND && last !== wanted; attempt += 1) last = valueIn(await metricsOf(stack), series)
  expect(last, series).toBe(wanted)
}

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

it('every metric of the dashboard and of the alert rules exists', async () => {
  const text = await metricsOf(await openTestStack())
  const known = new Set([...text.matchAll(/^# HELP (\S+)/gm)].map(([, name]) => name))
  for (const file of ['grafana-dashboard.json', 'alert-rules.yaml']) {
    const used = readFileSync(new URL(`../../docs/monitoring/${file}`, import.meta.url), 'utf8').matchAll(/\bstocktape_[a-z_]+/g)
    const names = [...used].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''))
    expect(names.length).toBeGreaterThan(10)
    for (const name of names) expect(known, `${name} in ${file}`).toContain(name)
  }
})
