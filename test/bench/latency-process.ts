import { performance } from 'node:perf_hooks'
import { WebSocket } from 'ws'
import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts'

/**
 * The world around a relay that is measured, in a process of its own: the upstream on one side, the listeners on the
 * other. Takes orders from its parent.
 */

export type Order =
  | { readonly do: 'upstream' }
  | { readonly do: 'listen'; readonly url: string; readonly listeners: number }
  | { readonly do: 'transfer'; readonly raw: number }
export type Report =
  | { readonly done: 'upstream'; readonly rpcUrl: string; readonly wsUrl: string; readonly url: string }
  | { readonly done: 'listen' }
  /** How long after the flashblock each listener had it. */
  | { readonly done: 'transfer'; readonly heardMs: readonly number[] }

let devnet: Devnet | null = null
let sockets: WebSocket[] = []

/** When the next message that holds this word arrives. */
function next(socket: WebSocket, word: string): Promise<number> {
  return new Promise((resolve) => {
    const hear = (data: Buffer) => {
      const at = performance.now()
      if (!data.includes(word)) return
      socket.off('message', hear)
      resolve(at)
    }
    socket.on('message', hear)
  })
}

async function carryOut(order: Order): Promise<Report> {
  switch (order.do) {
    case 'upstream': {
      devnet = await startDevnet({ pace: 'manual' })
      return { done: 'upstream', rpcUrl: devnet.rpcUrl, wsUrl: devnet.wsUrl, url: devnet.url }
    }
    case 'listen': {
      sockets = Array.from({ length: order.listeners }, () => new WebSocket(order.url))
      await Promise.all(sockets.map((socket) => next(socket, '"live"')))
      await devnet?.until(() => devnet?.subscriptions().pendingLogs === 1)
      return { done: 'listen' }
    }
    case 'transfer': {
      const heard = sockets.map((socket) => next(socket, '"transfer"'))
      devnet?.transfer({ symbol: 'AAPLc', raw: BigInt(order.raw) })
      const from = performance.now()
      devnet?.flash()
      return { done: 'transfer', heardMs: (await Promise.all(heard)).map((at) => at - from) }
    }
  }
}

process.on('message', (order: Order) => {
  void carryOut(order).then((report) => process.send?.(report))
})
process.on('disconnect', () => process.exit(0))
