import { describe, expect, it } from 'vitest'
import { freePort, spawnRelay } from '../../support/child-program.ts'
import { BOB, post } from '../../unit/devnet/devnet-client.ts'
import { type Responder, sendJson } from '../../unit/relay/chain/rpc/fake-endpoint.ts'
import { openGatewayWithOverrides, overrideMethod, request } from './node-and-gateway.ts'

const path = 'path-Key_0123456789'
const query = 'query/key+0123456789'
const user = 'user-0123456789'
const password = 'pass:word-0123456789'
const keys = [path, query, user, password].flatMap((key) => [key, encodeURIComponent(key), key.replaceAll('-', '%2D')])
const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`

const balance = request('eth_getBalance', [BOB, 'latest'])

/** The URLs of an upstream, as the relay has them. */
type Urls = { url: string; wsUrl: string }
type RpcError = { readonly code: number; readonly message: string; readonly data?: unknown }
/** A relay whose node has keys in its URL and answers with an error, which may contain its URLs. */
async function openWithKeys(errorFor: (urls: Urls) => RpcError) {
  const upstream: Urls = { url: '', wsUrl: '' }
  const respond: Responder = ({ id }, response) => sendJson(response, { jsonrpc: '2.0', id, error: errorFor(upstream) })
  const failing = new Set(['eth_getBalance', 'eth_getBlockReceipts'])
  const { node } = await openGatewayWithOverrides(
    ({ method }) => (failing.has(method) ? respond : null),
    (upstreamUrl, { wsUrl }) => {
      upstream.url = `${new URL(upstreamUrl).origin}/v2/${path}?apikey=${encodeURIComponent(query)}`
      upstream.wsUrl = `${wsUrl.replace('://', `://${login}@`)}ws/${path}`
      return { UPSTREAM_RPC_URL: upstream.url, RECEIPTS_RPC_URL: upstream.url, UPSTREAM_WS_URL: upstream.wsUrl }
    },
  )
  const expectNoSecrets = (text: string) => {
    for (const secret of [...keys, loginAsSent, 'u0070', new URL(upstream.url).host]) expect(text).not.toContain(secret)
  }
  return { node, expectNoSecrets }
}

const loginAsSent = Buffer.from(`${user}:${password}`).toString('base64')
const jsonEscaped = (text: string): string => [...text].map((one) => `\\u00${one.charCodeAt(0).toString(16)}`).join('')

// The forms of a secret are proved by the tests of the redactor; here they come from each of the relay's URLs.
const errorTexts: readonly [string, (urls: Urls) => string][] = [
  ['its URL', ({ url }) => `could not reach ${url} today`],
  ['its host', ({ url }) => `connect ECONNREFUSED ${new URL(url).host}`],
  ['its path and query', ({ url }) => `POST ${new URL(url).pathname}${new URL(url).search} failed`],
  ['the keys in its path and query', () => `project ${path} is over its quota, ${query} and ${encodeURIComponent(query)} too`],
  ['the URL of its sockets', ({ wsUrl }) => `use ${wsUrl} for subscriptions`],
  ['its user and password', () => `login of ${user} with ${password}, or ${encodeURIComponent(password)}, failed`],
  ['the login as it is sent', () => `bad header Basic ${loginAsSent}, or ${loginAsSent.replaceAll('/', '_')}`],
  ['the key in its path, escaped', () => `bad ${jsonEscaped(path)} and ${path.replaceAll('-', '%2D')}`],
]

describe('an error of an upstream that repeats a secret', () => {
  it.each(errorTexts)('reaches the client without it in the message: %s', async (_, textFor) => {
    const { node, expectNoSecrets } = await openWithKeys((urls) => ({
      code: 3,
      message: `sorry: ${textFor(urls)}, really`,
      data: { deep: [{ why: textFor(urls), count: 12 }], [textFor(urls)]: true },
    }))
    const error = { code: 3, message: expect.stringMatching(/^sorry: .+ really$/), data: { deep: [{ count: 12 }] } }
    for (const call of [balance, request('eth_getBlockReceipts', ['latest'])]) {
      const [single, batch] = [await post(node, call), await post(node, [call])]
      expect(single).toMatchObject({ status: 200, json: { error } })
      expect(batch).toMatchObject({ status: 200, json: [{ error }] })
      expectNoSecrets(JSON.stringify([single.json, batch.json, [...single.headers], [...batch.headers]]))
    }
  })
})

describe('the user and password in the URL of an upstream', () => {
  it('reach the upstream as basic authorization', async () => {
    const { node } = await openGatewayWithOverrides(
      overrideMethod('eth_getBalance', ({ id }, response) =>
        sendJson(response, { jsonrpc: '2.0', id, result: response.req.headers.authorization }),
      ),
      (upstreamUrl) => ({ UPSTREAM_RPC_URL: upstreamUrl.replace('://', `://${login}@`) }),
    )
    const result = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    expect((await post(node, balance)).json).toMatchObject({ result })
  })

  it('are not logged', async (test) => {
    const url = `http://${login}@127.0.0.1:${await freePort()}/v2/${path}?apikey=${encodeURIComponent(query)}`
    const program = spawnRelay(test, {
      PORT: '0',
      DATA_DIR: ':memory:',
      UPSTREAM_RPC_URL: url,
      RECEIPTS_RPC_URL: url,
      STOCKS_API_URL: url,
    })
    for (const failed of [/upstream_failed.*/, /list_unreadable.*/]) await program.waitForOutput('stderr', failed)
    for (const secret of keys) expect(program.stdout + program.stderr).not.toContain(secret)
  })
})
