import { Agent, get } from 'node:http'
import { serveCommands } from './pinned-processes.ts'

/** Sends history queries from a process of its own: one at a time over a kept-alive connection. */

export type HistoryCommand = HistoryQueryCommand | { readonly do: 'read'; readonly port: number; readonly path: string }

type HistoryQueryCommand = {
  readonly do: 'query'
  readonly port: number
  /** Requested in turn. */
  readonly paths: readonly string[]
  /** How long to repeat the query; it runs at least once. */
  readonly forMs: number
  /** The parameter that continues with the next page; null for a query without pages. */
  readonly cursorParameter: 'after' | 'before' | null
}
export type HistoryReply = QueryResult | ReadResult

export type QueryResult = {
  readonly done: 'query'
  /** For each first page, from the request to its last byte. */
  readonly tookMs: readonly number[]
  /** On the first page. */
  readonly messages: number
  /** Until a hundred messages have come, or there are no more. */
  readonly requests: number
  readonly wrong: number
}

export type ReadResult = { readonly done: 'read'; readonly lines: number; readonly bytes: number; readonly seconds: number }

/** The size of a page without a limit. */
const MESSAGES_WANTED = 100
const REQUESTS_BOUND = 40

type Page = { readonly events?: readonly unknown[]; readonly next?: string | null }
type Answer = { readonly status: number; readonly body: string }

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

function fetchPath(port: number, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path, agent }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }))
    })
    request.on('error', reject)
  })
}

async function runQuery({ port, paths, forMs, cursorParameter }: HistoryQueryCommand): Promise<QueryResult> {
  const began = performance.now()
  const tookMs: number[] = []
  let wrong = 0
  let first: Page = {}
  for (let nth = 0; nth === 0 || performance.now() - began < forMs; nth += 1) {
    const from = performance.now()
    const { status, body } = await fetchPath(port, paths[nth % paths.length] ?? '/')
    tookMs.push(performance.now() - from)
    if (status !== 200) wrong += 1
    if (nth === 0) first = JSON.parse(body)
  }
  const messages = first.events?.length ?? 1
  let requests = 1
  let page = first
  for (
    let received = messages;
    cursorParameter && page.next && received < MESSAGES_WANTED && requests < REQUESTS_BOUND;
    requests += 1
  ) {
    page = JSON.parse((await fetchPath(port, `${paths[0]}&${cursorParameter}=${page.next}`)).body)
    received += page.events?.length ?? 0
  }
  return { done: 'query', tookMs, messages, requests, wrong }
}

const NEW_LINE = 10

function readLines(port: number, path: string): Promise<ReadResult> {
  const from = performance.now()
  let [lines, bytes] = [0, 0]
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, agent }, (response) => {
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        for (let at = chunk.indexOf(NEW_LINE); at >= 0; at = chunk.indexOf(NEW_LINE, at + 1)) lines += 1
      })
      response.on('error', reject)
      response.on('end', () => resolve({ done: 'read', lines, bytes, seconds: (performance.now() - from) / 1_000 }))
    }).on('error', reject)
  })
}

serveCommands<HistoryCommand, HistoryReply>((command) =>
  command.do === 'query' ? runQuery(command) : readLines(command.port, command.path),
)
