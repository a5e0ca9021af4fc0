import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

type Answer = (id: number, response: ServerResponse) => void

/** Passes JSON-RPC requests on to a node, except `eth_getLogs` while it has an answer of its own. */
export async function openLogsProxy(nodeUrl: string, atEnd: typeof onTestFinished = onTestFinished) {
  const proxy: { url: string; answerLogs: Answer | null } = { url: '', answerLogs: null }
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    const { id, method } = JSON.parse(body)
    if (method === 'eth_getLogs' && proxy.answerLogs) return proxy.answerLogs(id, response)
    const answer = await fetch(nodeUrl, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return proxy
}
