import { Agent, get } from 'node:http'
import { obey } from './pinned-processes.ts'

/** Whoever asks about the past, in a process of its own: one question at a time over a connection that is kept. */

export type PastOrder = Question | { readonly do: 'read'; readonly port: number; readonly path: string }

type Question = {
  readonly do: 'ask'
  readonly port: number
  /** Asked in turn. */
  readonly paths: readonly string[]
  /** How long it is asked; once at least. */
  readonly forMs: number
  /** The parameter that the next page goes into; null for a question that has no pages. */
  readonly goesInto: 'after' | 'before' | null
}
export type PastReport = Answers | Lines

export type Answers = {
  readonly done: 'ask'
  /** Of each first page, from the question to its last byte. */
  readonly tookMs: readonly number[]
  /** On the first page. */
  readonly messages: number
  /** Until a hundred messages have come, or there are no more. */
  readonly requests: number
  readonly wrong: number
}

export type Lines = { readonly done: 'read'; readonly lines: number; readonly bytes: number; readonly seconds: number }

/** What a page holds that names no limit. */
const ENOUGH = 100
const REQUESTS_BOUND = 40

type Page = { readonly events?: readonly unknown[]; readonly next?: string | null }
type Answer = { readonly status: number; readonly body: string }

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

function ask(port: number, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path, agent }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }))
    })
    request.on('error', reject)
  })
}

async function askAll({ port, paths, forMs, goesInto }: Question): Promise<Answers> {
  const began = performance.now()
  const tookMs: number[] = []
  let wrong = 0
  let first: Page = {}
  for (let nth = 0; nth === 0 || performance.now() - began < forMs; nth += 1) {
    const from = performance.now()
    const { status, body } = await ask(port, paths[nth % paths.length] ?? '/')
    tookMs.push(performance.now() - from)
    if (status !== 200) wrong += 1
    if (nth === 0) first = JSON.parse(body)
  }
  const messages = first.events?.length ?? 1
  let requests = 1
  let page = first
  for (let heard = messages; goesInto && page.next && heard < ENOUGH && requests < REQUESTS_BOUND; requests += 1) {
    page = JSON.parse((await ask(port, `${paths[0]}&${goesInto}=${page.next}`)).body)
    heard += page.events?.length ?? 0
  }
  return { done: 'ask', tookMs, messages, requests, wrong }
}

const NEW_LINE = 10

function read(port: number, path: string): Promise<Lines> {
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

obey<PastOrder, PastReport>((order) => (order.do === 'ask' ? askAll(order) : read(order.port, order.path)))
