import { describe, expect, it } from 'vitest'
import { freePort, spawnRelay } from '../../support/child-program.ts'
import { openRelayFor } from '../../support/test-stack.ts'
import { type Responder, sendJson } from '../../unit/chain/rpc/fake-endpoint.ts'
import { BOB, post, rpcCall, rpcResult, startManualDevnet } from '../../unit/devnet/devnet-client.ts'
import { highRpcRateSettings, nodeWithOverrides, request, throughRelay } from './node-and-gateway.ts'

const path = 'path-Key_0123456789'
const query = 'query/key+0123456789'
const user = 'user-0123456789'
const password = 'pass:word-0123456789'
const keys = [path, query, user, password].flatMap((key) => [key, encodeURIComponent(key)])

/** A relay whose upstreams have keys everywhere in their URLs, and whose node says what it is told of them. */
async function openRelayWithSecrets(
  error: (url: string, wsUrl: string) => { code: number; message: string; data?: unknown },
) {
  const devnet = await startManualDevnet()
  const urls = { url: '', wsUrl: '' }
  const answering: Responder = ({ id }, response) =>
    sendJson(response, { jsonrpc: '2.0', id, error: error(urls.url, urls.wsUrl) })
  const asked = new Set(['eth_getBalance', 'eth_getBlockReceipts'])
  const upstream = await nodeWithOverrides(devnet, ({ method }) => (asked.has(method) ? answering : null))
  urls.url = `${new URL(upstream.url).origin}/v2/${path}?apikey=${encodeURIComponent(query)}`
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`
  urls.wsUrl = `${devnet.wsUrl.replace('://', `://${login}`)}ws/${path}`
  const relay = await openRelayFor(
    { ...devnet, rpcUrl: urls.url, wsUrl: urls.wsUrl },
    { ...highRpcRateSettings, RECEIPTS_RPC_URL: urls.url },
  )
  return { devnet, node: throughRelay(devnet, relay), ...urls }
}

type ErrorText = (url: string, wsUrl: string) => string
const errorTexts: readonly [string, ErrorText][] = [
  ['its URL', (url) => `could not reach ${url} today`],
  ['its URL without the scheme', (url) => `could not reach ${url.replace('http://', '')}`],
  ['where it is', (url) => `connect ECONNREFUSED ${new URL(url).host}`],
  ['its path and query', (url) => `POST ${new URL(url).pathname}${new URL(url).search} failed`],
  ['the key in its path', () => `project ${path} is over its quota`],
  ['the key in its query', () => `key ${query} is unknown`],
  ['the key in its query as it stands in the URL', () => `key ${encodeURIComponent(query)} is unknown`],
  ['the URL of its sockets', (_, wsUrl) => `use ${wsUrl} for subscriptions`],
  ['whose it is', () => `user ${user} may not`],
  ['its password', () => `login with ${password}, or ${encodeURIComponent(password)}, failed`],
]

describe('an upstream that repeats what is in its URL', () => {
  it.each(errorTexts)('is heard without it: %s', async (_, errorTextFor) => {
    const { node, url } = await openRelayWithSecrets((...urls) => ({
      code: 3,
      message: `sorry: ${errorTextFor(...urls)}, really`,
    }))
    for (const method of ['eth_getBalance', 'eth_getBlockReceipts']) {
      const params = method === 'eth_getBalance' ? [BOB, 'latest'] : ['latest']
      const single = await post(node, request(method, params))
      const batch = await post(node, [request(method, params)])
      const error = { code: 3, message: expect.stringMatching(/^sorry: .+ really$/) }
      expect(single).toMatchObject({ status: 200, json: { error } })
      expect(batch).toMatchObject({ status: 200, json: [{ error }] })
      const texts = JSON.stringify([single.json, batch.json, [...single.headers], [...batch.headers]])
      for (const secret of [...keys, new URL(url).host]) expect(texts).not.toContain(secret)
    }
  })

  it.each(errorTexts)('is heard without it in its data: %s', async (_, errorTextFor) => {
    const { node, url } = await openRelayWithSecrets((...urls) => ({
      code: 3,
      message: 'sorry',
      data: { deep: [{ why: errorTextFor(...urls), count: 12 }], [errorTextFor(...urls)]: true },
    }))
    const { json: published } = await post(node, request('eth_getBalance', [BOB, 'latest']))
    expect(published).toMatchObject({ error: { code: 3, message: 'sorry', data: { deep: [{ count: 12 }] } } })
    for (const secret of [...keys, new URL(url).host]) expect(JSON.stringify(published)).not.toContain(secret)
  })

  it('is heard with everything else that it says', async () => {
    const message = 'state of block 0x5 is pruned; see https://docs.example/v2/errors?code=7'
    const { node } = await openRelayWithSecrets(() => ({ code: 3, message, data: { v2: [1, 2.5, null] } }))
    const { json: published } = await post(node, request('eth_getBalance', [BOB, 'latest']))
    expect(published).toMatchObject({ error: { code: 3, message, data: { v2: [1, 2.5, null] } } })
  })
})

describe('an upstream with another kind of URL', () => {
  /** A relay whose node has this key in its query and answers with this error. */
  const openWith = async (key: string, error: Record<string, unknown>) => {
    const devnet = await startManualDevnet()
    const upstream = await nodeWithOverrides(devnet, ({ method }) =>
      method === 'eth_getBalance' ? ({ id }, response) => sendJson(response, { jsonrpc: '2.0', id, error }) : null,
    )
    const rpcUrl = `${new URL(upstream.url).origin}/?key=${key}`
    return throughRelay(devnet, await openRelayFor({ ...devnet, rpcUrl }, highRpcRateSettings))
  }

  it('keeps a key of six characters to itself', async () => {
    const node = await openWith('s3cr3t', { code: 3, message: 'key s3cr3t is unknown' })
    expect((await rpcCall(node, 'eth_getBalance', BOB, 'latest')).error?.message).not.toContain('s3cr3t')
  })

  it('has its errors passed on where a key of digits stands in a number of their data', async () => {
    const node = await openWith('12345678', { code: 3, message: 'no', data: { block: 9_123_456_781 } })
    const { json: published } = await post(node, request('eth_getBalance', [BOB, 'latest']))
    expect(published).toMatchObject({ error: { code: 3, message: 'no' } })
  })

  it('is asked under the user and the password that stand in it', async () => {
    const devnet = await startManualDevnet()
    const upstream = await nodeWithOverrides(devnet, ({ method }) =>
      method === 'eth_getBalance'
        ? ({ id }, response) => sendJson(response, { jsonrpc: '2.0', id, result: response.req.headers.authorization })
        : null,
    )
    const rpcUrl = upstream.url.replace('://', `://${user}:${encodeURIComponent(password)}@`)
    const node = throughRelay(devnet, await openRelayFor({ ...devnet, rpcUrl }, highRpcRateSettings))
    const login = Buffer.from(`${user}:${password}`).toString('base64')
    expect(await rpcResult(node, 'eth_getBalance', BOB, 'latest')).toBe(`Basic ${login}`)
  })

  it('is named in the log of the relay by its host alone', async (test) => {
    const login = `${user}:${encodeURIComponent(password)}`
    const url = `http://${login}@127.0.0.1:${await freePort()}/v2/${path}?apikey=${encodeURIComponent(query)}`
    const program = spawnRelay(test, {
      PORT: '0',
      DATA_DIR: ':memory:',
      UPSTREAM_RPC_URL: url,
      RECEIPTS_RPC_URL: url,
      STOCKS_API_URL: url,
    })
    for (const failed of [/upstream unreachable.*/, /list unreadable.*/]) await program.waitForOutput('stderr', failed)
    for (const secret of keys) expect(program.stdout + program.stderr).not.toContain(secret)
  })
})
