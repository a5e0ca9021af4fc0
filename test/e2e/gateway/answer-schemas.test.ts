import { describe, expect, it } from 'vitest'
import { resultChecker } from '../../support/execution-api-schemas.ts'
import { callsOfAllMethods, highRpcRate, openIdleStack, type RpcCall } from '../../support/rpc-scenarios.ts'
import { openDevnet, openRelayFor } from '../../support/test-stack.ts'
import { openAnvilGateway, request } from './node-and-gateway.ts'
import { parseAnswer, type RpcCaller, rpcTransports } from './raw-rpc-requests.ts'

/** Enough for some hashes and signatures to begin with a zero. */
const TRANSFERS = 64

/** Anvil alone adds the time to its receipts, and as a number. */
const anvilReceipts = { 'blockTimestamp?': { type: 'integer' } } as const

type AnsweredCall = { readonly call: RpcCall; readonly result: unknown }

async function callAll({ answer }: RpcCaller, calls: readonly RpcCall[]): Promise<readonly AnsweredCall[]> {
  const answered: AnsweredCall[] = []
  for (const call of calls) {
    const { result, error } = parseAnswer(await answer(JSON.stringify(request(call.method, call.params))))
    expect(error, JSON.stringify(call)).toBeUndefined()
    answered.push({ call, result })
  }
  return answered
}

const schemaErrors = (answered: readonly AnsweredCall[], extras: Parameters<typeof resultChecker>[1] = {}) =>
  answered.flatMap(({ call, result }) => {
    const error = resultChecker(call, extras)(result)
    return error === null ? [] : [`${call.method} ${JSON.stringify(call.params)}: ${error}`]
  })

/** How many results that are not null a method gave in all, each element of a list for itself. */
const resultCount = (answered: readonly AnsweredCall[], method: string): number =>
  answered.flatMap(({ call, result }) => (call.method === method ? result : [])).filter((part) => part !== null).length

async function openDevnetStack() {
  const stack = await openIdleStack()
  for (let time = 0; time < TRANSFERS; time += 1) stack.devnet.transfer({ symbol: 'AAPLc', raw: 5n })
  stack.devnet.makeFlashblock()
  return stack
}

describe.each(rpcTransports)('over %s', (_, open) => {
  it.each([
    ['the devnet', openDevnetStack, {}, TRANSFERS],
    ['anvil', openAnvilGateway, anvilReceipts, 0],
  ] as const)('%s answers every method at every tag as the execution API specifies', async (__, openNode, extras, least) => {
    const { relay, subject } = await openNode()
    const answered = await callAll(await open({ relay }), callsOfAllMethods(subject))
    expect(schemaErrors(answered, extras)).toEqual([])
    expect(resultCount(answered, 'eth_getBlockByNumber')).toBe(12)
    expect(resultCount(answered, 'eth_getLogs')).toBeGreaterThan(least)
    expect(resultCount(answered, 'eth_getBlockReceipts')).toBeGreaterThan(least)
  })

  it('only a pending block may have neither number nor hash', async () => {
    const devnet = await openDevnet()
    devnet.faults.pending = 'numberless'
    const relay = await openRelayFor(devnet, highRpcRate)
    const pending: RpcCall = { method: 'eth_getBlockByNumber', params: ['pending', false] }
    const [answered] = await callAll(await open({ relay }), [pending])
    expect(answered?.result).toMatchObject({ number: null, hash: null })
    expect(resultChecker(pending)(answered?.result)).toBeNull()
    expect(resultChecker({ ...pending, params: ['latest', false] })(answered?.result)).not.toBeNull()
  })
})

const without = (object: object, field: string): object =>
  Object.fromEntries(Object.entries(object).filter(([name]) => name !== field))

/** Valid for no field. */
const invalidValues = [0, '', '0xg', 'latest', {}, [0]] as const
const optionalFields = ['v', 'to', 'contractAddress']

describe('the schemas', () => {
  const latest: RpcCall = { method: 'eth_getBlockByNumber', params: ['latest', false] }
  const full: RpcCall = { method: 'eth_getBlockByNumber', params: ['latest', true] }
  const logs: RpcCall = { method: 'eth_getLogs', params: [{ fromBlock: 'earliest' }] }
  const receipts: RpcCall = { method: 'eth_getBlockReceipts', params: ['latest'] }

  const openValidResults = async () => {
    const { relay, subject } = await openIdleStack()
    const calls = [latest, full, { ...logs, params: [{ blockHash: subject.block.hash }] }, receipts]
    const answered = await callAll(await rpcTransports[0][1]({ relay }), calls)
    const [block, fullBlock, logList, receiptList] = answered.map(({ result }) => result)
    return {
      block: block as object,
      transaction: (fullBlock as { transactions: object[] }).transactions[0] ?? {},
      fullBlock: fullBlock as object,
      log: (logList as object[])[0] ?? {},
      receipt: (receiptList as object[])[0] ?? {},
    }
  }

  it('refuse a result with a missing, an additional or an invalid field', async () => {
    const { block, transaction, fullBlock, log, receipt } = await openValidResults()
    const [ofBlock, ofFullBlock, ofLogs, ofReceipts] = [latest, full, logs, receipts].map((call) => resultChecker(call))
    const parts = [
      ['block', block, ofBlock],
      ['transaction', transaction, (part: object) => ofFullBlock?.({ ...fullBlock, transactions: [part] })],
      ['log', log, (part: object) => ofLogs?.([part])],
      ['log of a receipt', log, (part: object) => ofReceipts?.([{ ...receipt, logs: [part] }])],
      ['receipt', receipt, (part: object) => ofReceipts?.([part])],
    ] as const
    for (const [name, valid, errorOf] of parts) {
      expect(errorOf?.(valid), name).toBeNull()
      expect(errorOf?.({ ...valid, more: '0x1' }), `a ${name} with more`).not.toBeNull()
      const fields = Object.keys(valid)
      expect(fields.length, name).toBeGreaterThan(9)
      for (const field of fields) {
        const isOptional = errorOf?.(without(valid, field)) === null
        expect(isOptional, `a ${name} without ${field}`).toBe(optionalFields.includes(field))
        for (const value of invalidValues)
          expect(errorOf?.({ ...valid, [field]: value }), `${name}.${field} ${JSON.stringify(value)}`).not.toBeNull()
      }
    }
  })

  it.each([
    ['a number with a leading zero', 'gasUsed', '0x01'],
    ['a number without digits', 'gasUsed', '0x'],
    ['a hash that is too short', 'parentHash', '0x00'],
    ['a hash in capitals', 'parentHash', `0x${'AB'.repeat(32)}`],
    ['an address that is too long', 'miner', `0x${'0'.repeat(42)}`],
    ['half a bloom filter', 'logsBloom', `0x${'0'.repeat(256)}`],
    ['a nonce as a number', 'nonce', '0x0'],
    ['no number', 'number', null],
  ])('refuse a block with %s', async (_, field, value) => {
    const { block } = await openValidResults()
    expect(resultChecker(latest)({ ...block, [field]: value })).not.toBeNull()
  })

  it.each([
    ['eth_getBalance', ['1', '0x01', '0xA', '0x', 1, null]],
    ['eth_getTransactionCount', ['0x00', '', -1, []]],
    ['eth_getStorageAt', ['0x0', `0x${'0'.repeat(63)}`, `0x${'A'.repeat(64)}`, null]],
    ['eth_getCode', ['', '0xG', null, 0]],
    ['eth_chainId', [1, '1', null]],
    ['eth_blockNumber', ['latest', 7, null]],
    ['eth_getLogs', [null, {}, [null]]],
  ])('refuse invalid results of %s', (method, results) => {
    for (const result of results) expect(resultChecker({ method, params: [] })(result), JSON.stringify(result)).not.toBeNull()
  })
})
