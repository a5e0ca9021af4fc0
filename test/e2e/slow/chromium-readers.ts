import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { TestListener } from '../../support/test-listener.ts'
import type { TestLifecycle } from './deployed-relay.ts'
import { type ReconnectingReader, selfReconnecting } from './reconnecting-readers.ts'

const CHROMIUM = '/usr/bin/chromium'

const args = [
  // Root may not have one, and nothing is opened here but our own pages.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Debian's own browser, without a window. */
export function openChromium(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) throw new Error(`There is no ${CHROMIUM}: apt-get install chromium, and run it again.`)
  return chromium.launch({ executablePath: CHROMIUM, args })
}

/** What a reader in a page hears, and what becomes of its connections. */
export type PageReader = ReconnectingReader & {
  /** A WebSocket's close codes; the states in which an `EventSource` reported an error. */
  readonly states: readonly number[]
  /** Resolves when its `EventSource` has given up for good. */
  readonly waitForClosed: () => Promise<unknown>
  /** Lets the page's clock run ahead by so much; it stands still while anything is being fetched. */
  readonly advanceWhenIdle: (ms: number) => Promise<void>
  /** The same, whatever is being fetched. */
  readonly advanceNow: (ms: number) => Promise<void>
}

/** Runs a script in a page of its own; it says what it hears by `take`, and how it stands by `state`. */
async function readInPage(
  test: TestLifecycle,
  browser: Browser,
  { name, page: at, script }: { readonly name: string; readonly page: string; readonly script: string },
): Promise<PageReader> {
  const page = await browser.newPage()
  test.onTestFinished(() => page.close())
  const listener = new TestListener({ close: () => void page.close() })
  const states: number[] = []
  await page.exposeFunction('take', (data: string, id?: string, event?: string) =>
    listener.receive(data, { id, event }),
  )
  await page.exposeFunction('state', (state: number) => void states.push(state))
  await page.goto(at)
  await page.evaluate(script)
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

/** The browser's `EventSource`, in a page that was loaded from somewhere. */
export const readEventSourceInPage = (
  test: TestLifecycle,
  browser: Browser,
  page: string,
  url: string,
): Promise<PageReader> =>
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

/** The browser's WebSocket, with the few lines that bring it back. */
export const readWebSocketInPage = (
  test: TestLifecycle,
  browser: Browser,
  page: string,
  url: string,
): Promise<PageReader> =>
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
