import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createTempFolder } from '../../support/child-program.ts'
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

const run = promisify(execFile)
const JSON_TYPE = ['-H', 'content-type: application/json']
const ANSWER_BOUND_BYTES = 32 * 2 ** 20

/** What curl says: the status, the version and type of the answer, and its JSON. */
async function curl(...args: readonly string[]) {
  const asked = ['--silent', '--show-error', '--write-out', '\n%{http_code} %{http_version} %{content_type}', ...args]
  const { stdout } = await run('curl', asked, { maxBuffer: ANSWER_BOUND_BYTES })
  const end = stdout.lastIndexOf('\n')
  const [status, version, type] = stdout.slice(end + 1).split(' ')
  const text = stdout.slice(0, end)
  return { status: Number(status), version, type, json: text === '' ? null : JSON.parse(text) }
}

const bodyOf = (call: RpcCall) => JSON.stringify({ jsonrpc: '2.0', id: 7, ...call })
const post = ({ url }: RpcEndpoint, body: string, ...args: readonly string[]) => curl(...args, '--data', body, url)

let stack: TestStack & { subject: QuerySubject }
let viaRelay: RpcEndpoint
let direct: RpcEndpoint

beforeEach(async () => {
  stack = await openIdleStack()
  viaRelay = relayEndpoint(stack.relay)
  direct = nodeEndpoint(stack.devnet)
})

describe('curl that posts', () => {
  it('has each of the seven methods answered at every block as the node answers it', async () => {
    const bodies = callsOfAllMethods(stack.subject).map(bodyOf)
    for (const body of bodies) {
      const [answer, truth] = await Promise.all([viaRelay, direct].map((door) => post(door, body, ...JSON_TYPE)))
      expect([body, answer?.status, answer?.json]).toEqual([body, truth?.status, truth?.json])
    }
  })

  it.each<[string, (folder: string, body: string) => readonly string[]]>([
    ['its own content type', (_, body) => ['--data', body]],
    ['no content type', (_, body) => ['-H', 'content-type:', '--data', body]],
    ['another content type', (_, body) => ['-H', 'content-type: text/plain; charset=utf-8', '--data', body]],
    ['the short way of saying it', (_, body) => ['--json', body]],
    ['a body from a file', (folder) => ['--data', `@${join(folder, 'body')}`]],
    ['a body from a file as it is', (folder) => [...JSON_TYPE, '--data-binary', `@${join(folder, 'body')}`]],
    ['a body in pieces', (folder) => ['-X', 'POST', '-H', 'transfer-encoding: chunked', '-T', join(folder, 'body')]],
    ['HTTP/1.0', (_, body) => ['--http1.0', '--data', body]],
    ['an answer that may be compressed', (_, body) => ['--compressed', '--data', body]],
    ['a wait for 100 Continue', (_, body) => ['-H', 'expect: 100-continue', '--data', body]],
    ['an offer of HTTP/2', (_, body) => ['--http2', '--data', body]],
    ['a connection of its own', (_, body) => ['-H', 'connection: close', '--data', body]],
  ])('is answered with %s', async (_, argsOf) => {
    const folder = await createTempFolder({ onTestFinished })
    const body = bodyOf({ method: 'eth_getBlockByNumber', params: ['latest', true] })
    await writeFile(join(folder, 'body'), `${body}\n`)
    const { status, type, json } = await curl(...argsOf(folder, body), viaRelay.url)
    expect({ status, type }).toEqual({ status: 200, type: 'application/json' })
    expect(json).toEqual((await post(direct, body, ...JSON_TYPE)).json)
  })
})

describe('curl that posts what the node refuses', () => {
  it('is told so with the status and the words of the node', async () => {
    const devnet = await openDevnet()
    const relay = await openRelayFor(devnet, highRpcRate)
    const calls = [
      { method: 'eth_getBlockReceipts', params: ['latest'] },
      { method: 'eth_getBalance', params: [stack.subject.account, '0x5'] },
      { method: 'eth_getCode', params: [stack.subject.account, `0x${'ab'.repeat(32)}`] },
    ]
    for (const call of calls) {
      const [answer, truth] = await Promise.all(
        [relayEndpoint(relay), nodeEndpoint(devnet)].map((door) => post(door, bodyOf(call), ...JSON_TYPE)),
      )
      expect(answer).toEqual({ ...truth, json: { ...truth?.json, error: expect.objectContaining(truth?.json.error) } })
    }
  })
})

describe('curl that gets the list', () => {
  const list = () => `${stack.relay.url}/v1/tokenized-stocks`

  it.each<[string, readonly string[]]>([
    ['as it is', []],
    ['over HTTP/1.0', ['--http1.0']],
    ['that may be compressed', ['--compressed']],
    ['with an offer of HTTP/2', ['--http2']],
  ])('%s has what the Read API gives', async (_, args) => {
    const { status, type, json } = await curl(...args, list())
    const truth = await curl(stack.devnet.stocksUrl)
    expect({ status, type, json }).toEqual({ status: 200, type: 'application/json', json: truth.json })
    expect(json.tokens).not.toHaveLength(0)
  })

  it('is told that it has it already, by the tag that it kept', async () => {
    const tag = join(await createTempFolder({ onTestFinished }), 'tag')
    expect(await curl('--etag-save', tag, '--etag-compare', tag, list())).toMatchObject({ status: 200 })
    expect(await curl('--etag-compare', tag, list())).toMatchObject({ status: 304, json: null })
  })

  it('asks for both on one connection', async () => {
    const body = bodyOf({ method: 'eth_chainId', params: [] })
    const twice = ['--write-out', '%{num_connects}', '--output', '/dev/null']
    const { stdout } = await run('curl', [
      '-s',
      ...twice,
      list(),
      '--next',
      '-s',
      ...twice,
      '--data',
      body,
      viaRelay.url,
    ])
    expect(stdout).toBe('10')
  })
})
