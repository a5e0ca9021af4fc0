import { firstValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { apple, word } from '../node-json.ts'
import {
  errorResponder,
  failureOf,
  openEndpoint,
  openRpcClient,
  type Responder,
  rawResponder,
  resultResponder,
  sendJson,
} from './fake-endpoint.ts'

/** An endpoint that answers like this when a contract is asked, and everything else. */
const openContractEndpoint = (answering: Responder) =>
  openEndpoint((question, response) =>
    question.method === 'eth_call' ? answering(question, response) : resultResponder('0x64')(question, response),
  )

describe('a contract', () => {
  const callContract = ({ rpc }: ReturnType<typeof openRpcClient>) =>
    firstValueFrom(rpc.request('eth_call', [{ to: apple, data: '0xa60bf13d' }, '0x64']))

  it('is asked by its address and the hash of a name', async () => {
    const node = await openContractEndpoint(resultResponder(word(1)))
    expect(await callContract(openRpcClient([node.url]))).toBe(word(1))
    expect(node.requests.at(-1)).toMatchObject({
      method: 'eth_call',
      params: [{ to: apple, data: '0xa60bf13d' }, '0x64'],
    })
  })

  it.each<[string, Responder, string]>([
    ['by reverting', errorResponder(200, 3, 'execution reverted'), 'reverted'],
    ['by reverting, said with a code for anything', errorResponder(200, -32000, 'execution reverted'), 'reverted'],
    [
      'by a method that nobody knows',
      errorResponder(200, -32601, 'the method eth_call does not exist'),
      'unknown_method',
    ],
    ['by a method that is not whitelisted', errorResponder(403, -32601, 'rpc method is not whitelisted'), 'forbidden'],
    ['by a bare refusal', rawResponder(403, 'Forbidden'), 'forbidden'],
    ['by a question that is wrong', errorResponder(200, -32602, 'invalid params'), 'invalid'],
    ['in words that nobody knows', errorResponder(200, -32000, 'nobody knows what this means'), 'unknown'],
    ['by too many questions', rawResponder(429, '', { 'retry-after': '60' }), 'busy'],
    ['by nothing that can be read', rawResponder(200, '<html>'), 'unreadable'],
    ['by breaking off', (_, response) => response.destroy(), 'unreachable'],
    ['by another id', (_, response) => sendJson(response, { id: 999, result: '0x' }), 'unreadable'],
  ])('that is answered %s leaves the endpoint as it is', async (_, answering, kind) => {
    const node = await openContractEndpoint(answering)
    const question = openRpcClient([node.url])
    const failure = await failureOf(callContract(question))
    expect(failure.kind).toBe(kind)
    expect(await question.blockNumber()).toBe('0x64')
    expect(question.warnings).toEqual([])
    expect(node.methods()).toEqual(['eth_chainId', 'eth_call', 'eth_blockNumber'])
  })

  it('that one endpoint may not be asked for is asked for at the next', async () => {
    const first = await openContractEndpoint(errorResponder(403, -32601, 'rpc method is not whitelisted'))
    const second = await openContractEndpoint(resultResponder(word(1)))
    expect(await callContract(openRpcClient([first.url, second.url]))).toBe(word(1))
  })

  it('that reverts has answered, and is asked nowhere else', async () => {
    const first = await openContractEndpoint(errorResponder(200, 3, 'execution reverted'))
    const second = await openContractEndpoint(resultResponder(word(1)))
    expect((await failureOf(callContract(openRpcClient([first.url, second.url])))).kind).toBe('reverted')
    expect(second.requests).toEqual([])
  })

  it('is not asked where the endpoint is of another chain', async () => {
    const node = await openEndpoint(resultResponder(word(1)), { chain: 1 })
    const question = openRpcClient([node.url])
    expect((await failureOf(callContract(question))).kind).toBe('wrong_chain')
    expect(question.warnings.map(({ kind }) => kind)).toEqual(['upstream wrong_chain'])
    expect(node.methods()).toEqual(['eth_chainId'])
  })
})
