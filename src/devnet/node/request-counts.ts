import { type Method, methods } from '../../chain/rpc/methods.ts'
import type { Door } from './server.ts'

/** What is counted: each method, by whichever carrier it came, and each door that was knocked at, also when it stayed shut. */
export type Counted = Method | 'eth_call' | 'eth_subscribe' | 'eth_unsubscribe' | 'unknown' | Door

const counted = [
  ...Object.keys(methods),
  'eth_call',
  'eth_subscribe',
  'eth_unsubscribe',
  'unknown',
  'list',
  'post',
  'socket',
]

const isCounted = (name: string): name is Counted => counted.includes(name)

/** How many may wait for something at a time. */
const WATCHERS_BOUND = 1_000

/** What was asked, counted, and a way to wait for a thing to be so without asking again and again. */
export const createEar = () => {
  const requests = Object.fromEntries(counted.map((name) => [name, 0])) as Record<Counted, number>
  const watchers = new Set<() => void>()
  const changed = () => {
    for (const watcher of watchers) watcher()
  }
  const see = (name: string) => {
    requests[isCounted(name) ? name : 'unknown'] += 1
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
  return { requests, see, changed, until }
}
