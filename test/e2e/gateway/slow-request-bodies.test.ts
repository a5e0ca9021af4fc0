import { expect, it, onTestFinished } from 'vitest'
import { openApp } from '../../../src/edge/http/routes.ts'
import { listen } from '../../../src/edge/http/server.ts'
import { Budget } from '../../../src/edge/limits/byte-budget.ts'
import { RpcPosts } from '../../../src/gateway/http.ts'
import { Rates } from '../../../src/gateway/rate-limit.ts'
import { connectRaw, request } from '../../integration/http/raw-connection.ts'
import { answering } from '../../unit/gateway/answers-fixture.ts'
import { answerIn, gist } from './raw-rpc-requests.ts'

const quick = { headers: 100, request: 200, keepAlive: 1_000, silence: 60_000, look: 10 }
const body = '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["latest"]}'

/** A server that is out of patience soon, with a node that only hears. */
async function opened() {
  const { answers, moment, passed } = answering()
  const budget = () => new Budget(2 ** 20)
  const shared = { rates: new Rates(1_000), unsent: budget(), addressOf: () => 'somebody', uptime: () => 0 }
  const streams = { house: { hub: { draining: false } }, admit: () => null } as never
  const app = openApp({
    ...{ streams, posts: new RpcPosts({ service: { answers, moment }, ...shared }), listCaching: '' },
    metrics: async () => '',
    metricsToken: undefined,
    unready: () => [],
    status: () => null as never,
  })
  const lines = null as never
  const server = await listen(app, { streams, lines }, { host: '127.0.0.1', port: 0, clientsBound: 1 }, quick)
  onTestFinished(() => server.close(0))
  const connect = async () => {
    const raw = await connectRaw(`http://127.0.0.1:${server.port}`)
    onTestFinished(() => void raw.socket.destroy())
    return raw
  }
  return { connect, passed }
}

it.each([
  ['of a length', request('POST /rpc', ['content-length: 1000000']), ' '],
  ['of chunks', request('POST /rpc', ['transfer-encoding: chunked']), '1\r\n \r\n'],
])(
  'a body %s that comes byte by byte for ever is given up on, and others are answered meanwhile',
  async (_, head, piece) => {
    const { connect, passed } = await opened()
    const [slow, other] = [await connect(), await connect()]
    slow.send(head)
    other.send(request('POST /rpc', [`content-length: ${body.length}`]), body)
    expect(gist(answerIn((await other.answer()).body))).toEqual([1, -32602])
    while (slow.over === 'no') await slow.trickle([piece])
    expect(slow.bytes.toString()).not.toContain('200')
    expect(passed).toEqual([])
  },
)

it('a body that stops in its middle is given up on', async () => {
  const { connect, passed } = await opened()
  const raw = await connect()
  raw.send(request('POST /rpc', ['content-length: 1000']), body)
  await raw.ended()
  expect(raw.bytes.toString()).not.toContain('200')
  expect(passed).toEqual([])
})
