import { Agent, get } from 'node:http'
import { serveCommands } from './pinned-processes.ts'

/** Whoever asks about the past, in a process of its own: one question at a time over a connection that is kept. */

export type HistoryCommand = HistoryQueryCommand | { readonly do: 'read'; readonly port: number; readonly path: string }

type HistoryQueryCommand = {
  readonly do: 'ask'
  readonly port: number
  /** Asked in turn. */
  readonly paths: readonly string[]
  /** How long it is asked; once at least. */
  readonly forMs: number
  /** The parameter that the next page goes into; null for a question that has no pages. */
  readonly cursorParameter: 'after' | 'before' | null
}
export type HistoryReply = QueryResult | ReadResult

export type QueryResult = {
  readonly done: 'ask'
  /** Of each first page, from the question to its last byte. */
  readonly tookMs: readonly number[]
  /** On the first page. */
  readonly messages: number
  /** Until a hundred messages have come, or there are no more. */
  readonly requests: number
  readonly wrong: number
}

export type ReadResult = {
  readonly done: 'read'
  readonly lines: number
  readonly bytes: number
  readonly seconds: number
}

/** What a page holds that names no limit. */
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
  return { done: 'ask', tookMs, messages, requests, wrong }
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
  command.do === 'ask' ? runQuery(command) : readLines(command.port, command.path),
)
