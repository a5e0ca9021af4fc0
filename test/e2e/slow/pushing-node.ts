import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { Anvil } from '../../support/anvil-node.ts'
import { serveNode } from '../../support/loopback-server.ts'

type WireLog = { readonly address: string; readonly transactionHash: string }

/** A node with `pendingLogs`, and its faults, which a test may change. */
export type PushingNode = {
  readonly rpcUrl: string
  readonly wsUrl: string
  /** Logs that the node seals and never pushes. */
  withholds: (log: WireLog) => boolean
  /** Whether it answers eth_getLogs with an error, and how many times it did. */
  refusesLogs: boolean
  refused: number
}

/** Makes a node with `pendingLogs` of one without: it pushes the logs of a block, with no hash, and then announces the block. */
export async function openPushingNode(anvil: Anvil): Promise<PushingNode> {
  const error = { code: -32_000, message: 'internal error' }
  const rpcUrl = await serveNode(onTestFinished, anvil.rpcUrl, (body, response) => {
    if (!node.refusesLogs || !body.includes('"eth_getLogs"')) return false
    node.refused += 1
    const calls = JSON.parse(body) as { id: number } | { id: number }[]
    const answers = [calls].flat().map(({ id }) => ({ jsonrpc: '2.0', id, error }))
    return response.end(JSON.stringify(Array.isArray(calls) ? answers : answers[0]))
  })
  const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(sockets, 'listening')
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate()
    sockets.close()
  })
  const wsUrl = `ws://127.0.0.1:${(sockets.address() as AddressInfo).port}`
  const node: PushingNode = { rpcUrl, wsUrl, withholds: () => false, refusesLogs: false, refused: 0 }
  sockets.on('connection', (client) => connect(client, anvil, node))
  return node
}

function connect(client: WebSocket, { rpc, wsUrl }: Anvil, node: PushingNode): void {
  const upstream = new WebSocket(wsUrl)
  const opened = once(upstream, 'open')
  const prefix = 'pending'
  let subscription: { readonly id: string; readonly address: unknown } | null = null
  let newestPushed = 0
  client.on('message', async (data) => {
    const { id, method, params } = JSON.parse(String(data))
    const answer = (result: unknown) => client.send(JSON.stringify({ jsonrpc: '2.0', id, result }))
    if (method === 'eth_subscribe' && params[0] === 'pendingLogs') {
      subscription = { id: `${prefix} ${id}`, address: params[1].address }
      return answer(subscription.id)
    }
    if (method === 'eth_unsubscribe' && String(params[0]).startsWith(prefix)) return answer(true)
    await opened
    upstream.send(String(data))
  })
  /** A block that replaces another is only announced, as by real nodes. */
  const push = async ({ number, hash }: { readonly number: string; readonly hash: string }) => {
    if (!subscription || Number(number) <= newestPushed) return
    newestPushed = Number(number)
    const logs = (await rpc('eth_getLogs', { blockHash: hash, address: subscription.address })) as WireLog[]
    for (const log of logs.filter((sealed) => !node.withholds(sealed))) {
      const params = { subscription: subscription.id, result: { ...log, blockHash: `0x${'0'.repeat(64)}` } }
      client.send(JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params }))
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
