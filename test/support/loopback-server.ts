import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { onTestFinished } from 'vitest'

type AtEnd = typeof onTestFinished | ((cleanup: () => unknown) => unknown)

/** An HTTP server on a free port of this machine, until the end. Returns its URL. */
export async function serve(atEnd: AtEnd, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const headers = { 'content-type': 'application/json' }

/** Passes JSON-RPC requests on to a node, except those that get another answer. Returns its URL. */
export const serveNode = (
  atEnd: AtEnd,
  nodeUrl: string,
  answersItself: (body: string, response: ServerResponse) => unknown,
): Promise<string> =>
  serve(atEnd, async (request, response) => {
    const body = await text(request)
    if (await answersItself(body, response)) return
    const answer = await fetch(nodeUrl, { method: 'POST', headers, body }).catch(() => null)
    // At the end of a test the node may stop first.
    if (!answer) return response.destroy()
    response.writeHead(answer.status, headers).end(await answer.text())
  })
