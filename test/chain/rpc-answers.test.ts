import { describe, expect, it } from 'vitest'
import { type Answering, asker, endpoint, failureOf, json, refusal, result } from './endpoint.ts'

describe('an answer', () => {
  const kindOf = async (answering: Answering) =>
    (await failureOf(asker([(await endpoint(answering)).url]).blockNumber())).kind

  it.each<[string, Answering, string]>([
    [
      'an answer with neither result nor error',
      ({ id }, response) => json(response, { jsonrpc: '2.0', id }),
      'unreadable',
    ],
  ])('that is %s is an error of its kind', async (_, answering, kind) => {
    expect(await kindOf(answering)).toBe(kind)
  })

  it('that refuses one method says nothing about the others', async () => {
    const node = await endpoint((question, response) =>
      question.method === 'eth_getBlockReceipts'
        ? refusal(403, -32601, 'rpc method is not whitelisted')(question, response)
        : result('0x64')(question, response),
    )
    const { rpc, blockNumber } = asker([node.url])
    const failure = await failureOf(
      new Promise((resolve, reject) =>
        rpc.ask('eth_getBlockReceipts', ['latest']).subscribe({ next: resolve, error: reject }),
      ),
    )
    expect(failure.kind).toBe('forbidden')
    expect(await blockNumber()).toBe('0x64')
  })
})
