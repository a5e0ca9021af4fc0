import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { openTestStack, type TestLifecycle } from './test-stack.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

/** A relay that starts after this serves the board of the sources. */
export const buildBoard = (): void => {
  execFileSync(process.execPath, ['src/build/build-board.ts'], { cwd: project, stdio: 'pipe' })
}

/** The script of the board that a relay serves, once all that the page and the script name has been loaded too. */
export async function loadBoard(url: string): Promise<string> {
  const read = async (path: string): Promise<string> => {
    const response = await fetch(new URL(path, url))
    if (!response.ok) throw new Error(`${response.status} for ${path}`)
    return await response.text()
  }
  const page = await read('/')
  const [, main = 'no script'] = /<script type="module"[^>]* src="\.\/(assets\/[^"]+)"/.exec(page) ?? []
  const script = await read(main)
  const others = [...page.matchAll(/href="\.\/(assets\/[^"]+)"/g), ...script.matchAll(/`\.\/([^`]+\.js)`/g)].map(
    ([, path = '']) => path,
  )
  for (const path of others) await read(path.startsWith('assets/') ? path : `assets/${path}`)
  if (others.length < 3) throw new Error(`the page names ${others}, and no more`)
  return script
}

/** The board in a page of its own, with all that could go wrong in it. */
export type BoardPage = {
  readonly page: Page
  /** Errors of the console and of scripts; a connection that the relay ended is none. */
  readonly errors: readonly string[]
  readonly requestedUrls: readonly string[]
  /** The URL of each WebSocket, oldest first, and the messages that came. */
  readonly sockets: readonly { readonly url: URL; readonly received: readonly Record<string, unknown>[] }[]
}

export async function openBoard(
  test: TestLifecycle,
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<BoardPage> {
  const context = await browser.newContext({ viewport: { width: 1_440, height: 900 }, ...options })
  test.onTestFinished(() => context.close())
  const page = await context.newPage()
  const errors: string[] = []
  const requestedUrls: string[] = []
  const sockets: { url: URL; received: Record<string, unknown>[] }[] = []
  page.on('pageerror', (failure) => errors.push(failure.message))
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('ERR_CONNECTION_REFUSED')) errors.push(message.text())
  })
  page.on('request', (request) => requestedUrls.push(request.url()))
  page.on('websocket', (socket) => {
    const received: Record<string, unknown>[] = []
    sockets.push({ url: new URL(socket.url()), received })
    socket.on('framereceived', ({ payload }) => received.push(JSON.parse(String(payload))))
  })
  await page.goto(url)
  return { page, errors, requestedUrls, sockets }
}

/** A chain at rest, a relay, and the board that follows it. */
export async function openBoardStack(
  test: TestLifecycle,
  browser: Browser,
  { path = '/', settings = {}, ...options }: BrowserContextOptions & { path?: string; settings?: Record<string, string> } = {},
) {
  const stack = await openTestStack(settings, test)
  const board = await openBoard(test, browser, `${stack.relay.url}${path}`, options)
  await waitForLive(board.page)
  return { ...stack, ...board }
}

/** The page shows what the stream brings. */
export const waitForLive = (page: Page): Promise<unknown> => page.waitForSelector('html[data-connection="live"]')

/** The relay has subscribed: what happens from now on is pre-confirmed. */
export const waitForPendingLogs = (page: Page): Promise<void> => page.locator('.pulse[data-source=pendingLogs]').waitFor()

export type ShownLine = { readonly id: string; readonly stage: string; readonly text: string }

/** The lines that are drawn, newest first. */
export const shownLines = (page: Page): Promise<readonly ShownLine[]> =>
  page.locator('[data-line]').evaluateAll((lines) =>
    lines
      .map((line) => ({
        id: line.getAttribute('data-line') ?? '',
        stage: line.getAttribute('data-stage') ?? '',
        text: line.textContent ?? '',
        top: Number(/translateY\((\d+)px\)/.exec(line.getAttribute('style') ?? '')?.[1]),
      }))
      .sort((a, b) => a.top - b.top)
      .map(({ id, stage, text }) => ({ id, stage, text })),
  )
