import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createTempFolder } from '../../support/child-program.ts'
import { needPrograms } from '../../support/debian-programs.ts'
import {
  callsOfAllMethods,
  highRpcRate,
  nodeEndpoint,
  openIdleStack,
  type QuerySubject,
  type RpcCall,
  type RpcEndpoint,
  relayEndpoint,
} from '../../support/rpc-scenarios.ts'
import { openDevnet, openRelayFor, type TestStack } from '../../support/test-stack.ts'
import { request } from './node-and-gateway.ts'

needPrograms('curl')

const run = promisify(execFile)
const JSON_TYPE = ['-H', 'content-type: application/json']
const ANSWER_BOUND_BYTES = 32 * 2 ** 20

/** Runs curl; the status, version and content type of the answer, and its JSON. */
async function curl(...args: readonly string[]) {
  const options = ['--silent', '--show-error', '--write-out', '\n%{http_code} %{http_version} %{content_type}']
  const { stdout } = await run('curl', [...options, ...args], { maxBuffer: ANSWER_BOUND_BYTES })
  const end = stdout.lastIndexOf('\n')
  const [status, version, type] = stdout.slice(end + 1).split(' ')
  const text = stdout.slice(0, end)
  return { status: Number(status), version, type, json: text === '' ? null : JSON.parse(text) }
}

const bodyOf = ({ method, params }: RpcCall) => JSON.stringify(request(method, params, 7))
const post = ({ url }: RpcEndpoint, body: string) => curl(...JSON_TYPE, '--data', body, url)

let stack: TestStack & { subject: QuerySubject }
let viaRelay: RpcEndpoint
let direct: RpcEndpoint

beforeEach(async () => {
  stack = await openIdleStack()
  viaRelay = relayEndpoint(stack.relay)
  direct = nodeEndpoint(stack.devnet)
})

describe('curl that posts', () => {
  it('gets the answer of the node for each method at every block', async () => {
    for (const body of callsOfAllMethods(stack.subject).map(bodyOf)) {
      const [answer, expected] = await Promise.all([viaRelay, direct].map((endpoint) => post(endpoint, body)))
      expect([body, answer?.status, answer?.json]).toEqual([body, expected?.status, expected?.json])
    }
  })

  it('gets the status and the error of the node for a call that it refuses', async () => {
    const devnet = await openDevnet()
    const endpoints = [relayEndpoint(await openRelayFor(devnet, highRpcRate)), nodeEndpoint(devnet)]
    const calls = [
      { method: 'eth_getBlockReceipts', params: ['latest'] },
      { method: 'eth_getBalance', params: [stack.subject.account, '0x5'] },
      { method: 'eth_getCode', params: [stack.subject.account, `0x${'ab'.repeat(32)}`] },
    ]
    for (const call of calls) {
      const [answer, expected] = await Promise.all(endpoints.map((endpoint) => post(endpoint, bodyOf(call))))
      const error = expect.objectContaining(expected?.json.error)
      expect(answer).toEqual({ ...expected, json: { ...expected?.json, error } })
    }
  })

  it.each<[string, (folder: string, body: string) => readonly string[]]>([
    ['its own content type', (_, body) => ['--data', body]],
    ['no content type', (_, body) => ['-H', 'content-type:', '--data', body]],
    ['another content type', (_, body) => ['-H', 'content-type: text/plain; charset=utf-8', '--data', body]],
    ['its option for JSON', (_, body) => ['--json', body]],
    ['a body from a file', (folder) => ['--data', `@${join(folder, 'body')}`]],
    ['an unchanged body from a file', (folder) => [...JSON_TYPE, '--data-binary', `@${join(folder, 'body')}`]],
    ['a body in chunks', (folder) => ['-X', 'POST', '-H', 'transfer-encoding: chunked', '-T', join(folder, 'body')]],
    ['HTTP/1.0', (_, body) => ['--http1.0', '--data', body]],
    ['an answer that may be compressed', (_, body) => ['--compressed', '--data', body]],
    ['a wait for 100 Continue', (_, body) => ['-H', 'expect: 100-continue', '--data', body]],
    ['an offer of HTTP/2', (_, body) => ['--http2', '--data', body]],
    ['a connection of its own', (_, body) => ['-H', 'connection: close', '--data', body]],
  ])('gets an answer with %s', async (_, argsOf) => {
    const folder = await createTempFolder({ onTestFinished })
    const body = bodyOf({ method: 'eth_getBlockByNumber', params: ['latest', true] })
    await writeFile(join(folder, 'body'), `${body}\n`)
    const { status, type, json } = await curl(...argsOf(folder, body), viaRelay.url)
    expect({ status, type }).toEqual({ status: 200, type: 'application/json' })
    expect(json).toEqual((await post(direct, body)).json)
  })
})

describe('curl that gets the token list', () => {
  const listUrl = () => `${stack.relay.url}/v1/tokenized-stocks`

  it.each<[string, readonly string[]]>([
    ['without options', []],
    ['over HTTP/1.0', ['--http1.0']],
    ['that may be compressed', ['--compressed']],
    ['with an offer of HTTP/2', ['--http2']],
  ])('%s gets the answer of the Read API', async (_, args) => {
    const { status, type, json } = await curl(...args, listUrl())
    const expected = await curl(stack.devnet.stocksUrl)
    expect({ status, type, json }).toEqual({ status: 200, type: 'application/json', json: expected.json })
    expect(json.tokens).not.toHaveLength(0)
  })

  it('gets 304 with the ETag that it kept', async () => {
    const tag = join(await createTempFolder({ onTestFinished }), 'tag')
    expect(await curl('--etag-save', tag, '--etag-compare', tag, listUrl())).toMatchObject({ status: 200 })
    expect(await curl('--etag-compare', tag, listUrl())).toMatchObject({ status: 304, json: null })
  })

  it('can post over the same connection', async () => {
    const body = bodyOf({ method: 'eth_chainId', params: [] })
    const options = ['-s', '--write-out', '%{num_connects}', '--output', '/dev/null']
    const { stdout } = await run('curl', [...options, listUrl(), '--next', ...options, '--data', body, viaRelay.url])
    expect(stdout).toBe('10')
  })
})
