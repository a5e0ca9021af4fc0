import { expect, it, onTestFinished } from 'vitest'
import { type NodeRoute, openApp } from '../../../src/edge/http/routes.ts'
import { listen } from '../../../src/edge/http/server.ts'
import { ByteBudget } from '../../../src/edge/limits/byte-budget.ts'
import { RpcHttpHandler } from '../../../src/gateway/http.ts'
import { RateLimiter } from '../../../src/gateway/rate-limit.ts'
import { formatRequest, openRawConnection } from '../../integration/http/raw-connection.ts'
import { openAnswers } from '../../unit/gateway/answers-fixture.ts'
import { answerSummary, parseAnswer } from './raw-rpc-requests.ts'

const shortDeadlines = { headers: 100, request: 200, keepAlive: 1_000, idle: 60_000, check: 10 }
const body = '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["latest"]}'

/** A server that is out of patience soon, with a node that only hears. */
async function openServer() {
  const { answers, chainState, upstreamCalls } = openAnswers()
  const budget = () => new ByteBudget(2 ** 20)
  const shared = { rates: new RateLimiter(1_000), unsentBudget: budget(), addressOf: () => 'somebody', uptime: () => 0 }
  const streams = { edge: { hub: { isDraining: false } }, authorize: () => null } as never
  const rpcHttp = new RpcHttpHandler({ backend: { answers, chainState }, ...shared })
  const route: NodeRoute = { method: 'post', path: '/rpc', handle: (...exchange) => rpcHttp.handle(...exchange) }
  const app = openApp({
    ...{ streams, nodeRoutes: [route], listCacheControl: '' },
    metrics: async () => '',
    metricsToken: undefined,
    unreadyReasons: () => [],
    status: () => null as never,
  })
  const server = await listen(
    app,
    { streams, webSocketRoutes: [] },
    { host: '127.0.0.1', port: 0, clientsBound: 1 },
    shortDeadlines,
  )
  onTestFinished(() => server.close(0))
  const connect = async () => {
    const raw = await openRawConnection(`http://127.0.0.1:${server.port}`)
    onTestFinished(() => void raw.socket.destroy())
    return raw
  }
  return { connect, passed: upstreamCalls }
}

it.each([
  ['of a length', formatRequest('POST /rpc', ['content-length: 1000000']), ' '],
  ['of chunks', formatRequest('POST /rpc', ['transfer-encoding: chunked']), '1\r\n \r\n'],
])(
  'a body %s that comes byte by byte for ever is given up on, and others are answered meanwhile',
  async (_, head, piece) => {
    const { connect, passed } = await openServer()
    const [slow, other] = [await connect(), await connect()]
    slow.send(head)
    other.send(formatRequest('POST /rpc', [`content-length: ${body.length}`]), body)
    expect(answerSummary(parseAnswer((await other.response()).body))).toEqual([1, -32602])
    while (slow.closeState === 'no') await slow.sendSlowly([piece])
    expect(slow.bytes.toString()).not.toContain('200')
    expect(passed).toEqual([])
  },
)

it('a body that stops in its middle is given up on', async () => {
  const { connect, passed } = await openServer()
  const raw = await connect()
  raw.send(formatRequest('POST /rpc', ['content-length: 1000']), body)
  await raw.ended()
  expect(raw.bytes.toString()).not.toContain('200')
  expect(passed).toEqual([])
})
