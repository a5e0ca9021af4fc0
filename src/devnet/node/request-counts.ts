import { type Method, methods } from '../../protocol/json-rpc-methods.ts'
import type { RequestKind } from './node-server.ts'

/** A method over HTTP or a socket, or a kind of request. Refused ones count too. */
export type CountedRequest = Method | 'eth_call' | 'eth_subscribe' | 'eth_unsubscribe' | 'unknown' | RequestKind

const countedNames = [...Object.keys(methods), 'eth_call', 'eth_subscribe', 'eth_unsubscribe', 'unknown', 'list', 'post', 'socket']
const isCountedRequest = (name: string): name is CountedRequest => countedNames.includes(name)

/** Waits that may be open at once. */
const WATCHERS_BOUND = 1_000

/** Counts requests, and lets a test wait for a condition without polling. */
export const createRequestCounts = () => {
  const requests = Object.fromEntries(countedNames.map((name) => [name, 0])) as Record<CountedRequest, number>
  const watchers = new Set<() => void>()
  const changed = () => {
    for (const watcher of watchers) watcher()
  }
  const countRequest = (name: string) => {
    requests[isCountedRequest(name) ? name : 'unknown'] += 1
    changed()
  }
  const until = (condition: () => boolean) =>
    new Promise<void>((resolve) => {
      if (watchers.size >= WATCHERS_BOUND) throw new Error(`only ${WATCHERS_BOUND} can wait at a time`)
      const watcher = () => {
        if (!condition()) return
        watchers.delete(watcher)
        resolve()
      }
      watchers.add(watcher)
      watcher()
    })
  return { requests, countRequest, changed, until }
}
export type RequestCounts = ReturnType<typeof createRequestCounts>
