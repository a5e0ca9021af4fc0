import { describe, expect, it, onTestFinished } from 'vitest'
import { ACCOUNTS, serveList, startAnvil } from '../../support/anvil-node.ts'
import { resultChecker } from '../../support/execution-api-schemas.ts'
import { openRelay } from '../../support/in-process-relay.ts'
import {
  callsOfAllMethods,
  highRpcRate,
  openIdleStack,
  type QuerySubject,
  type RpcCall,
} from '../../support/rpc-scenarios.ts'
import { openDevnet, openRelayFor, type TestStack } from '../../support/test-stack.ts'
import { parseAnswer, rpcTransports } from './raw-rpc-requests.ts'

/** Enough that the hashes and signatures of some begin with a zero. */
const TRANSFERS = 64

/** Anvil alone adds the time to its receipts, and as a number. */
const anvilReceipts = { 'blockTimestamp?': { type: 'integer' } } as const

type Open = (typeof rpcTransports)[number][1]
type AnsweredCall = { readonly call: RpcCall; readonly result: unknown }

/** Asks each call over a carrier; what was told. */
async function callAll(
  open: Open,
  relay: TestStack['relay'],
  calls: readonly RpcCall[],
): Promise<readonly AnsweredCall[]> {
  const { answer } = await open({ relay })
  const published: AnsweredCall[] = []
  for (const call of calls) {
    const said = parseAnswer(await answer(JSON.stringify({ jsonrpc: '2.0', id: 1, ...call })))
    expect(said.error, JSON.stringify(call)).toBeUndefined()
    published.push({ call, result: said.result })
  }
  return published
}

/** What of all that was told is not as its schema has it. */
const schemaErrors = (published: readonly AnsweredCall[], extras: Parameters<typeof resultChecker>[1] = {}) =>
  published.flatMap(({ call, result }) => {
    const objection = resultChecker(call, extras)(result)
    return objection === null ? [] : [`${call.method} ${JSON.stringify(call.params)}: ${objection}`]
  })

/** How much a method told in all. */
const resultCount = (published: readonly AnsweredCall[], method: string): number =>
  published.flatMap(({ call, result }) => (call.method === method ? result : [])).filter((one) => one !== null).length

async function openDevnetStack() {
  const stack = await openIdleStack()
  const { devnet } = stack
  for (let time = 0; time < TRANSFERS; time += 1) devnet.transfer({ symbol: 'AAPLc', raw: 5n })
  devnet.makeFlashblock()
  return stack
}

/** A node with a token and some that moved, and a relay on both. */
async function openAnvilStack() {
  const anvil = await startAnvil()
  onTestFinished(() => anvil.kill())
  await anvil.send({ functionName: 'mint', args: [ACCOUNTS[0], 1_000n] })
  await anvil.send({ functionName: 'transfer', args: [ACCOUNTS[1], 10n] })
  const list = await serveList({ contract_address: anvil.token, symbol: 'TESTc', name: 'Test', decimals: 8 })
  onTestFinished(() => list.stop())
  const relay = await openRelay({ rpcUrl: anvil.rpcUrl, wsUrl: anvil.wsUrl, url: list.url }, highRpcRate)
  onTestFinished(() => relay.stop())
  const { hash } = await anvil.block(2)
  const block = { number: 2, hash: hash as `0x${string}` }
  return { relay, subject: { account: ACCOUNTS[0], token: anvil.token, slot: '0x0', block } satisfies QuerySubject }
}

describe.each(rpcTransports)('over %s', (_, open) => {
  it('the devnet answers every method at every tag as the execution API has it', async () => {
    const { relay, subject } = await openDevnetStack()
    const published = await callAll(open, relay, callsOfAllMethods(subject))
    expect(schemaErrors(published)).toEqual([])
    expect(resultCount(published, 'eth_getBlockByNumber')).toBe(12)
    expect(resultCount(published, 'eth_getLogs')).toBeGreaterThan(TRANSFERS)
    expect(resultCount(published, 'eth_getBlockReceipts')).toBeGreaterThan(TRANSFERS)
  })

  it('anvil answers every method at every tag as the execution API has it', async () => {
    const { relay, subject } = await openAnvilStack()
    const published = await callAll(open, relay, callsOfAllMethods(subject))
    expect(schemaErrors(published, anvilReceipts)).toEqual([])
    expect(resultCount(published, 'eth_getBlockByNumber')).toBe(12)
    expect(resultCount(published, 'eth_getLogs')).toBeGreaterThan(0)
    expect(resultCount(published, 'eth_getBlockReceipts')).toBeGreaterThan(0)
  })

  it('a block that is being built may have neither number nor hash, and no other may', async () => {
    const devnet = await openDevnet()
    devnet.faults.pending = 'numberless'
    const relay = await openRelayFor(devnet, highRpcRate)
    const pending: RpcCall = { method: 'eth_getBlockByNumber', params: ['pending', false] }
    const [published] = await callAll(open, relay, [pending])
    expect(published?.result).toMatchObject({ number: null, hash: null })
    expect(resultChecker(pending)(published?.result)).toBeNull()
    expect(resultChecker({ ...pending, params: ['latest', false] })(published?.result)).not.toBeNull()
  })
})

const without = (whole: object, field: string): object =>
  Object.fromEntries(Object.entries(whole).filter(([name]) => name !== field))

/** What no field may be. */
const invalidValues = [0, '', '0xg', 'latest', {}, [0]] as const
/** Fields that may be missing. */
const optional = ['v', 'to', 'contractAddress']

describe('the schemas', () => {
  const latest: RpcCall = { method: 'eth_getBlockByNumber', params: ['latest', false] }
  const full: RpcCall = { method: 'eth_getBlockByNumber', params: ['latest', true] }
  const logs: RpcCall = { method: 'eth_getLogs', params: [{ fromBlock: 'earliest' }] }
  const receipts: RpcCall = { method: 'eth_getBlockReceipts', params: ['latest'] }

  /** Good results, asked of a chain over the relay. */
  const openGood = async () => {
    const { relay, subject } = await openIdleStack()
    const { hash: blockHash } = subject.block
    const asked = [latest, full, { ...logs, params: [{ blockHash }] }, receipts]
    const [first, second, third, fourth] = (await callAll(rpcTransports[0][1], relay, asked)).map(
      ({ result }) => result,
    )
    return {
      block: first as object,
      transaction: (second as { transactions: object[] }).transactions[0] ?? {},
      whole: second as object,
      log: (third as object[])[0] ?? {},
      receipt: (fourth as object[])[0] ?? {},
    }
  }

  it('refuse a result that lacks a field, has one more, or has one that is written otherwise', async () => {
    const { block, transaction, whole, log, receipt } = await openGood()
    const [ofBlock, ofWhole, ofLogs, ofReceipts] = [latest, full, logs, receipts].map((call) => resultChecker(call))
    const parts = [
      ['block', block, ofBlock],
      ['transaction', transaction, (part: object) => ofWhole?.({ ...whole, transactions: [part] })],
      ['log', log, (part: object) => ofLogs?.([part])],
      ['log of a receipt', log, (part: object) => ofReceipts?.([{ ...receipt, logs: [part] }])],
      ['receipt', receipt, (part: object) => ofReceipts?.([part])],
    ] as const
    for (const [name, good, objection] of parts) {
      expect(objection?.(good), name).toBeNull()
      expect(objection?.({ ...good, more: '0x1' }), `a ${name} with more`).not.toBeNull()
      const fields = Object.keys(good)
      expect(fields.length, name).toBeGreaterThan(9)
      for (const field of fields) {
        const lacks = objection?.(without(good, field))
        expect(lacks === null, `a ${name} without ${field}`).toBe(optional.includes(field))
        for (const value of invalidValues) {
          const what = `a ${name} with ${field} ${JSON.stringify(value)}`
          expect(objection?.({ ...good, [field]: value }), what).not.toBeNull()
        }
      }
    }
  })

  it.each([
    ['a number with a zero before it', 'gasUsed', '0x01'],
    ['a number without digits', 'gasUsed', '0x'],
    ['a hash that is too short', 'parentHash', '0x00'],
    ['a hash in capitals', 'parentHash', `0x${'AB'.repeat(32)}`],
    ['an address that is too long', 'miner', `0x${'0'.repeat(42)}`],
    ['half a bloom filter', 'logsBloom', `0x${'0'.repeat(256)}`],
    ['a nonce as a number', 'nonce', '0x0'],
    ['no number', 'number', null],
  ])('refuse a block with %s', async (_, field, value) => {
    const { block } = await openGood()
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
  ])('refuse what %s never answers', (method, results) => {
    for (const result of results) expect(resultChecker({ method, params: [] })(result)).not.toBeNull()
  })
})
