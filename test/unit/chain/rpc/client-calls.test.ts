import { firstValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { apple, word } from '../node-json.ts'
import { type Answering, asker, bare, endpoint, failureOf, json, refusal, result } from './fake-endpoint.ts'

/** An endpoint that answers like this when a contract is asked, and everything else. */
const besides = (answering: Answering) =>
  endpoint((question, response) =>
    question.method === 'eth_call' ? answering(question, response) : result('0x64')(question, response),
  )

describe('a contract', () => {
  const ask = ({ rpc }: ReturnType<typeof asker>) =>
    firstValueFrom(rpc.ask('eth_call', [{ to: apple, data: '0xa60bf13d' }, '0x64']))

  it('is asked by its address and the hash of a name', async () => {
    const node = await besides(result(word(1)))
    expect(await ask(asker([node.url]))).toBe(word(1))
    expect(node.asked.at(-1)).toMatchObject({
      method: 'eth_call',
      params: [{ to: apple, data: '0xa60bf13d' }, '0x64'],
    })
  })

  it.each<[string, Answering, string]>([
    ['by reverting', refusal(200, 3, 'execution reverted'), 'reverted'],
    ['by reverting, said with a code for anything', refusal(200, -32000, 'execution reverted'), 'reverted'],
    ['by a method that nobody knows', refusal(200, -32601, 'the method eth_call does not exist'), 'unknown_method'],
    ['by a method that is not whitelisted', refusal(403, -32601, 'rpc method is not whitelisted'), 'forbidden'],
    ['by a bare refusal', bare(403, 'Forbidden'), 'forbidden'],
    ['by a question that is wrong', refusal(200, -32602, 'invalid params'), 'invalid'],
    ['in words that nobody knows', refusal(200, -32000, 'nobody knows what this means'), 'unknown'],
    ['by too many questions', bare(429, '', { 'retry-after': '60' }), 'busy'],
    ['by nothing that can be read', bare(200, '<html>'), 'unreadable'],
    ['by breaking off', (_, response) => response.destroy(), 'unreachable'],
    ['by another id', (_, response) => json(response, { id: 999, result: '0x' }), 'unreadable'],
  ])('that is answered %s leaves the endpoint as it is', async (_, answering, kind) => {
    const node = await besides(answering)
    const question = asker([node.url])
    const failure = await failureOf(ask(question))
    expect(failure.kind).toBe(kind)
    expect(await question.blockNumber()).toBe('0x64')
    expect(question.said).toEqual([])
    expect(node.methods()).toEqual(['eth_chainId', 'eth_call', 'eth_blockNumber'])
  })

  it('that one endpoint may not be asked for is asked for at the next', async () => {
    const first = await besides(refusal(403, -32601, 'rpc method is not whitelisted'))
    const second = await besides(result(word(1)))
    expect(await ask(asker([first.url, second.url]))).toBe(word(1))
  })

  it('that reverts has answered, and is asked nowhere else', async () => {
    const first = await besides(refusal(200, 3, 'execution reverted'))
    const second = await besides(result(word(1)))
    expect((await failureOf(ask(asker([first.url, second.url])))).kind).toBe('reverted')
    expect(second.asked).toEqual([])
  })

  it('is not asked where the endpoint is of another chain', async () => {
    const node = await endpoint(result(word(1)), { chain: 1 })
    const question = asker([node.url])
    expect((await failureOf(ask(question))).kind).toBe('wrong_chain')
    expect(question.said.map(({ kind }) => kind)).toEqual(['upstream wrong_chain'])
    expect(node.methods()).toEqual(['eth_chainId'])
  })
})
