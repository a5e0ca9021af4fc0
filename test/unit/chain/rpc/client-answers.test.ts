import { describe, expect, it } from 'vitest'
import { type Answering, asker, endpoint, failureOf, json, refusal, result } from './fake-endpoint.ts'

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

  it('that knows no such block yet is asked of the next endpoint, and says nothing against the first', async () => {
    const first = await endpoint(refusal(200, -32000, 'header not found'))
    const second = await endpoint(result('0x65'))
    const { rpc, said, blockNumber } = asker([first.url, second.url])
    expect(await blockNumber()).toBe('0x65')
    expect(await blockNumber()).toBe('0x65')
    expect(first.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_blockNumber'])
    expect(said).toEqual([])
    second.answering = refusal(200, -32000, 'unknown block')
    const failure = await failureOf(
      new Promise((resolve, reject) => rpc.ask('eth_blockNumber', []).subscribe({ next: resolve, error: reject })),
    )
    expect(failure).toMatchObject({ kind: 'behind', message: '-32000 unknown block' })
  })
})
