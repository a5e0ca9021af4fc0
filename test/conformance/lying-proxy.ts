import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type RawData, WebSocket, WebSocketServer } from 'ws'
import type { TestLifecycle } from '../support/test-stack.ts'

export type StreamMessage = Readonly<Record<string, unknown>> & { readonly type: string }

/** A mistake of a server. What it does not change goes through as it is. */
export type Mistake = {
  /** Makes the change for one stream: the texts that are sent for each text of the relay. */
  readonly alter?: () => (text: string, message: StreamMessage) => readonly string[]
  /** The lines of an SSE event. */
  readonly alterEvent?: (event: string) => string
  readonly closeCode?: (code: number) => number
  readonly requestHeaders?: (headers: IncomingMessage['headers']) => IncomingMessage['headers']
  /** The body of an answer that is no stream. */
  readonly alterBody?: (text: string) => string
}

const untouched = (text: string): readonly string[] => [text]

/** A relay as a client sees it, with one mistake in it. */
export async function openLyingProxy(test: TestLifecycle, target: string, mistake: Mistake): Promise<string> {
  const server = createServer((incoming, response) => forward(target, mistake, incoming, response))
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (incoming, socket, head) =>
    sockets.handleUpgrade(incoming, socket, head, (client) => connectSocket(target, mistake, client, incoming)),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.onTestFinished(() => {
    for (const client of sockets.clients) client.terminate()
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function connectSocket(
  target: string,
  { alter, closeCode = (code) => code }: Mistake,
  client: WebSocket,
  incoming: IncomingMessage,
): void {
  const alterText = alter?.() ?? untouched
  const relay = new WebSocket(target.replace('http', 'ws') + incoming.url, 'stocktape.v1')
  const waiting: RawData[] = []
  client.on('message', (data) => (relay.readyState === WebSocket.OPEN ? relay.send(String(data)) : waiting.push(data)))
  relay.on('open', () => {
    for (const data of waiting) relay.send(String(data))
  })
  relay.on('message', (data) => {
    for (const text of alterText(String(data), JSON.parse(String(data)))) client.send(text)
  })
  relay.on('error', () => client.terminate())
  relay.on('close', (code, reason) => (code === 1_006 ? client.terminate() : client.close(closeCode(code), String(reason))))
  client.on('close', () => relay.terminate())
}

function forward(target: string, mistake: Mistake, incoming: IncomingMessage, response: ServerResponse): void {
  const { method, url = '' } = incoming
  // An answer is changed as text, so it must not be compressed.
  const given = { ...incoming.headers, 'accept-encoding': 'identity' }
  const headers = mistake.requestHeaders?.(given) ?? given
  const outgoing = request(target + url, { method, headers }, (answer) => {
    const { 'content-length': _, ...kept } = answer.headers
    response.writeHead(answer.statusCode ?? 502, kept)
    const type = answer.headers['content-type'] ?? ''
    answer.setEncoding('utf8').on('error', () => response.destroy())
    if (type.startsWith('text/event-stream')) forwardParts(answer, response, '\n\n', eventsOf(mistake))
    else if (type.startsWith('application/x-ndjson') && url.startsWith('/v1/stream'))
      forwardParts(answer, response, '\n', linesOf(mistake))
    else answer.on('data', (text: string) => response.write(mistake.alterBody?.(text) ?? text))
    answer.on('end', () => response.end())
  })
  outgoing.on('error', () => response.destroy())
  response.on('close', () => outgoing.destroy())
  incoming.pipe(outgoing)
}

function linesOf({ alter }: Mistake): (line: string) => readonly string[] {
  const alterText = alter?.() ?? untouched
  return (line) => alterText(line, JSON.parse(line))
}

function eventsOf({ alter, alterEvent = (event) => event }: Mistake): (event: string) => readonly string[] {
  const alterText = alter?.() ?? untouched
  return (event) => {
    const lines = event.split('\n')
    const at = lines.findIndex((line) => line.startsWith('data: '))
    if (at < 0) return [event]
    const text = lines[at]?.slice(6) ?? ''
    return alterText(text, JSON.parse(text)).map((altered) => alterEvent(lines.with(at, `data: ${altered}`).join('\n')))
  }
}

function forwardParts(
  answer: IncomingMessage,
  response: ServerResponse,
  end: string,
  alter: (part: string) => readonly string[],
): void {
  let rest = ''
  answer.on('data', (text: string) => {
    const parts = (rest + text).split(end)
    rest = parts.pop() ?? ''
    for (const part of parts) for (const altered of alter(part)) response.write(altered + end)
  })
}
