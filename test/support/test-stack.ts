import { onTestFinished } from 'vitest'
import { type Devnet, type DevnetOptions, startDevnet } from '../../src/devnet/devnet.ts'
import type { Update } from '../../src/protocol/updates.ts'
import { openRelay, type TestRelay } from './in-process-relay.ts'
import { assertDocumented } from './openapi-validator.ts'
import { listenNdjson, type Message, type ReceivedMessage, type TestListener } from './test-listener.ts'

/** A chain and a relay that follows it. */
export type TestStack = { readonly devnet: Devnet; readonly relay: TestRelay }

/** Runs cleanups: the current test, or its context where tests run concurrently. */
export type TestLifecycle = { readonly onTestFinished: typeof onTestFinished }

/** A devnet at rest, and a relay with a live subscription to its logs. Both end with the test. */
export async function openTestStack(
  settings: Record<string, string> = {},
  { onTestFinished: atEnd }: TestLifecycle = { onTestFinished },
): Promise<TestStack> {
  const devnet = await openDevnet({ pace: 'manual' }, { onTestFinished: atEnd })
  const relay = await openRelayFor(devnet, settings, { onTestFinished: atEnd })
  const key = settings.API_KEYS ? `&key=${settings.API_KEYS.split(/[ ,]/)[0]}` : ''
  const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&types=status&since=start&snapshot=false${key}`)
  await listener.waitFor('status', ({ source }) => source === 'pendingLogs')
  listener.close()
  // The listener that only waits here must not count among those of the test.
  while (!(await fetchDocumented(`${relay.url}/metrics`)).text.includes('stocktape_listeners{transport="ndjson"} 0'));
  return { devnet, relay }
}

export async function openDevnet(
  options: DevnetOptions = { pace: 'manual' },
  { onTestFinished: atEnd }: TestLifecycle = { onTestFinished },
): Promise<Devnet> {
  const devnet = await startDevnet(options)
  atEnd(() => devnet.stop())
  return devnet
}

export async function openRelayFor(
  devnet: Devnet,
  settings: Record<string, string> = {},
  { onTestFinished: atEnd }: TestLifecycle = { onTestFinished },
): Promise<TestRelay> {
  const relay = await openRelay(devnet, settings)
  atEnd(() => relay.stop())
  return relay
}

/** Makes transfers in one flashblock, each one unit larger than the one before, so that they differ. */
export function transfer({ devnet }: Pick<TestStack, 'devnet'>, symbol = 'AAPLc', times = 1, raw = 100_000_000n): void {
  for (let time = 0; time < times; time += 1) devnet.transfer({ symbol, raw: raw + BigInt(time) })
  devnet.makeFlashblock()
}

/** A listener that selects everything. */
export async function listenToAll({ relay }: Pick<TestStack, 'relay'>, since = 'now'): Promise<TestListener> {
  const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&types=*&snapshot=false&since=${since}`)
  onTestFinished(() => listener.close())
  await listener.waitFor('live')
  return listener
}

/** The updates that a listener received, without messages about the connection. */
export const tapeUpdatesOf = (listener: TestListener): readonly Update[] =>
  listener.messages.filter((message): message is Update => 'prev' in message)

/** The text of every update that a relay keeps. */
export async function tapeTextsOf(url: string): Promise<readonly string[]> {
  const text = await (await fetch(`${url}/v1/events?types=*&format=ndjson`)).text()
  return text.split('\n').filter((line) => line.includes('"prev":'))
}

/** The keys of movements, in the order received. */
export const movementKeysOf = (listener: TestListener): readonly string[] =>
  tapeUpdatesOf(listener).flatMap((update) =>
    update.type === 'transfer' || update.type === 'mint' || update.type === 'burn' ? [update.key] : [],
  )

export const messageTypesOf = (received: readonly ReceivedMessage[]): readonly Message['type'][] =>
  received.map(({ message }) => message.type)

/** The number in a position. Only tests read it; for a client it is opaque. */
export const sequenceOf = (position: string | null | undefined): number => Number(position?.split('.')[1] ?? Number.NaN)

/** Sends an HTTP request. Returns status, headers and JSON, after validation by the OpenAPI document. */
export async function fetchDocumented(url: string, init: RequestInit = {}) {
  const response = await fetch(url, init)
  const text = await response.text()
  const { pathname: path } = new URL(response.url)
  assertDocumented({ method: init.method, path, status: response.status, type: response.headers.get('content-type'), text })
  const json: unknown = text.startsWith('{') ? JSON.parse(text) : null
  return { status: response.status, headers: response.headers, text, json }
}
