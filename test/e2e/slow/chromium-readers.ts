import { type Browser, chromium } from 'playwright-core'
import { needPrograms, pathOf } from '../../support/debian-programs.ts'
import { TestListener } from '../../support/test-listener.ts'
import type { TestLifecycle } from './deployed-relay.ts'
import { type ReconnectingReader, selfReconnecting } from './reconnecting-readers.ts'

const args = [
  // Root cannot use the sandbox, and only our own pages are opened.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Chromium of Debian, headless. */
export function openChromium(): Promise<Browser> {
  needPrograms('chromium')
  return chromium.launch({ executablePath: pathOf('chromium'), args })
}

/** A reader in a page, with the states of its connections. */
export type PageReader = ReconnectingReader & {
  /** Close codes of a WebSocket, or states of an `EventSource` at its errors. */
  readonly states: readonly number[]
  /** Resolves when the `EventSource` gives up. */
  readonly waitForClosed: () => Promise<unknown>
  /** Advances the clock of the page, which pauses during network requests. */
  readonly advanceWhenIdle: (ms: number) => Promise<void>
  /** Advances the clock also during network requests. */
  readonly advanceNow: (ms: number) => Promise<void>
}

/** Passes on what came while the call before was under way: one call for each message would be slower than the relay. */
const takeInBatches = `
  const batch = []
  let isPassing = false
  globalThis.take = async (...message) => {
    batch.push(message)
    if (isPassing) return
    isPassing = true
    while (batch.length > 0) await takeAll(batch.splice(0))
    isPassing = false
  }
`
type TakenMessage = readonly [data: string, id?: string, event?: string]

/** Runs a script in a page; it passes messages to `take` and connection states to `state`. */
async function readInPage(
  test: TestLifecycle,
  browser: Browser,
  { name, page: pageUrl, script }: { readonly name: string; readonly page: string; readonly script: string },
): Promise<PageReader> {
  const page = await browser.newPage()
  test.onTestFinished(() => page.close())
  const listener = new TestListener({ close: () => void page.close() })
  const states: number[] = []
  await page.exposeFunction('takeAll', (messages: readonly TakenMessage[]) => {
    for (const [data, id, event] of messages) listener.receive(data, { id, event })
  })
  await page.exposeFunction('state', (state: number) => void states.push(state))
  await page.goto(pageUrl)
  await page.evaluate(`{ ${takeInBatches} }\n${script}`)
  const clock = await page.context().newCDPSession(page)
  const advanceClock = (policy: 'advance' | 'pauseIfNetworkFetchesPending') => (ms: number) =>
    new Promise<void>((resolve, reject) => {
      clock.once('Emulation.virtualTimeBudgetExpired', () => resolve())
      clock.send('Emulation.setVirtualTimePolicy', { policy, budget: ms }).catch(reject)
    })
  return {
    ...selfReconnecting(name, listener),
    states,
    waitForClosed: () => page.waitForFunction('source.readyState === EventSource.CLOSED'),
    advanceWhenIdle: advanceClock('pauseIfNetworkFetchesPending'),
    advanceNow: advanceClock('advance'),
  }
}

/** The `EventSource` of the browser, in a page of the given origin. */
export const readEventSourceInPage = (test: TestLifecycle, browser: Browser, page: string, url: string): Promise<PageReader> =>
  readInPage(test, browser, {
    name: `Chromium's EventSource on ${page}`,
    page,
    script: `
      globalThis.source = new EventSource(${JSON.stringify(url)})
      source.onmessage = ({ data, lastEventId }) => take(data, lastEventId)
      source.addEventListener('heartbeat', ({ data, lastEventId }) => take(data, lastEventId, 'heartbeat'))
      source.onerror = () => state(source.readyState)
    `,
  })

/** The WebSocket of the browser, with a few lines that reconnect it. */
export const readWebSocketInPage = (test: TestLifecycle, browser: Browser, page: string, url: string): Promise<PageReader> =>
  readInPage(test, browser, {
    name: `Chromium's WebSocket on ${page}`,
    page,
    script: `
      let since = 'start'
      const connect = () => {
        let retry = 500
        const socket = new WebSocket(${JSON.stringify(`${url}&since=`)} + since)
        socket.onmessage = ({ data }) => {
          const { id, retry_ms } = JSON.parse(data)
          since = id ?? since
          retry = retry_ms ?? retry
          take(data)
        }
        socket.onclose = ({ code }) => {
          state(code)
          setTimeout(connect, retry)
        }
      }
      connect()
    `,
  })
