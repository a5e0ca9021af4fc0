import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { Anvil } from '../../support/anvil-node.ts'
import { serveNode } from '../../support/loopback-server.ts'

type WireLog = { readonly address: string; readonly transactionHash: string }
type WireFilter = { readonly address: unknown; readonly topics?: unknown }
type Call = { readonly id: number; readonly method: string; readonly params: readonly [WireFilter] }

/** A node with `pendingLogs`, and its faults, which a test may change. */
export type PushingNode = {
  readonly rpcUrl: string
  readonly wsUrl: string
  /** Logs that the node seals and never pushes. */
  withholds: (log: WireLog) => boolean
  /** Gives the code of the error with which it answers an eth_getLogs or a subscription; null for those that it answers. */
  refuses: (filter: WireFilter) => number | null
  /** How many eth_getLogs it answered so. */
  refused: number
}

/** Makes a node with `pendingLogs` of one without: it pushes the logs of a block, with no hash, and then announces the block. */
export async function openPushingNode(anvil: Anvil, refuses: PushingNode['refuses']): Promise<PushingNode> {
  const rpcUrl = await serveNode(onTestFinished, anvil.rpcUrl, async (body, response) => {
    const sent: Call | readonly Call[] = JSON.parse(body)
    const errors = [sent].flat().flatMap(({ id, method, params: [filter] }) => {
      const code = method === 'eth_getLogs' ? node.refuses(filter) : null
      return code === null ? [] : [errorOf(id, code)]
    })
    if (errors.length === 0) return false
    node.refused += errors.length
    const passed = [sent].flat().filter(({ id }) => !errors.some((error) => error.id === id))
    const others = await Promise.all(passed.map((call) => answerOf(anvil, call))).catch(() => null)
    // At the end of a test the node may stop first.
    if (!others) return response.destroy()
    return response.end(JSON.stringify(Array.isArray(sent) ? [...errors, ...others] : errors[0]))
  })
  const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(sockets, 'listening')
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate()
    sockets.close()
  })
  const wsUrl = `ws://127.0.0.1:${(sockets.address() as AddressInfo).port}`
  const node: PushingNode = { rpcUrl, wsUrl, withholds: () => false, refuses, refused: 0 }
  sockets.on('connection', (client) => connect(client, anvil, node))
  return node
}

const errorOf = (id: number, code: number) => ({ jsonrpc: '2.0', id, error: { code, message: 'this filter is not served' } })

async function answerOf({ rpcUrl }: Anvil, call: Call): Promise<unknown> {
  const headers = { 'content-type': 'application/json' }
  return (await fetch(rpcUrl, { method: 'POST', headers, body: JSON.stringify(call) })).json()
}

function connect(client: WebSocket, { rpc, wsUrl }: Anvil, node: PushingNode): void {
  const upstream = new WebSocket(wsUrl)
  const opened = once(upstream, 'open')
  const prefix = 'pending'
  const subscriptions = new Map<string, WireFilter>()
  let newestPushed = 0
  client.on('message', async (data) => {
    const { id, method, params } = JSON.parse(String(data))
    const answer = (result: unknown) => client.send(JSON.stringify({ jsonrpc: '2.0', id, result }))
    if (method === 'eth_subscribe' && params[0] === 'pendingLogs') {
      const code = node.refuses(params[1])
      if (code !== null) return client.send(JSON.stringify(errorOf(id, code)))
      subscriptions.set(`${prefix} ${id}`, params[1])
      return answer(`${prefix} ${id}`)
    }
    if (method === 'eth_unsubscribe' && String(params[0]).startsWith(prefix)) return answer(subscriptions.delete(params[0]))
    await opened
    upstream.send(String(data))
  })
  /** A block that replaces another is only announced, as by real nodes. */
  const push = async ({ number, hash }: { readonly number: string; readonly hash: string }) => {
    if (subscriptions.size === 0 || Number(number) <= newestPushed) return
    newestPushed = Number(number)
    for (const [subscription, filter] of subscriptions) {
      const logs = (await rpc('eth_getLogs', { ...filter, blockHash: hash })) as WireLog[]
      for (const log of logs.filter((sealed) => !node.withholds(sealed))) {
        const params = { subscription, result: { ...log, blockHash: `0x${'0'.repeat(64)}` } }
        client.send(JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params }))
      }
    }
  }
  let sent = Promise.resolve()
  upstream.on('message', (data) => {
    sent = sent.then(async () => {
      const header = JSON.parse(String(data)).params?.result
      // The block may have been replaced by now.
      if (header?.parentHash) await push(header).catch(() => undefined)
      client.send(String(data))
    })
  })
  upstream.on('error', () => client.terminate())
  upstream.on('close', () => client.terminate())
  client.on('close', () => upstream.terminate())
}
