import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { keyStatesFrom, keysInState, sealedKeysOnChain } from '../support/key-states.ts'
import { listenSse, type TestListener } from '../support/test-listener.ts'
import { listenToAll, openDevnet, openRelayFor, transfer } from '../support/test-stack.ts'
import { closeAfterTest, openStackWithListener } from './listeners.ts'

const MEMO = `0x${'4d'.repeat(32)}` as const

/** Resolves when a listener has received every seal above a block, and no key is open. */
const waitForAllSealed = (listener: TestListener, devnet: Devnet, after: number) =>
  listener.until(() => {
    const states = keyStatesFrom(listener.messages)
    const open = [...states].some(([key, state]) => state === 'preconfirmed' && Number(key.split('-')[0]) > after)
    return !open && sealedKeysOnChain(devnet, after).every((key) => states.get(key) === 'sealed')
  }, 'all seals')

describe('a pre-confirmation', () => {
  it('ends sealed or retracted, and a log that was never pushed is published as late', async () => {
    const { devnet, listener } = await openStackWithListener()
    const dropped = devnet.transfer({ symbol: 'TSLAc', raw: 1n })
    devnet.transfer({ symbol: 'AAPLc', raw: 2n, memo: MEMO })
    devnet.makeFlashblock()
    await listener.until(() => listener.messagesOf('transfer').length === 2)
    devnet.faults.lostFlashes = 1
    devnet.transfer({ symbol: 'NVDAc', raw: 3n })
    devnet.makeFlashblock()
    devnet.faults.drop(dropped)
    const block = devnet.seal()
    await listener.until(() => listener.messagesOf('seal').length === 2)
    expect(listener.messagesOf('retract')).toMatchObject([
      { symbol: 'TSLAc', reason: 'not_sealed', block: { hash: block.hash } },
      {},
    ])
    expect(listener.messagesOf('transfer').filter(({ late }) => late)).toMatchObject([{ symbol: 'NVDAc', stage: 'sealed' }])
    expect(listener.messagesOf('seal').map(({ symbol, late_keys }) => [symbol, late_keys.length])).toEqual([
      ['AAPLc', 0],
      ['NVDAc', 1],
    ])
    expect(keysInState(listener.messages, 'sealed')).toEqual(sealedKeysOnChain(devnet, block.number - 1))
    // Both logs are read together, and folded.
    expect(listener.messagesOf('transfer')[1]).toMatchObject({ memo: MEMO, stage: 'preconfirmed' })
    expect(listener.messagesOf('seal')[0]?.types).toEqual(['transfer', 'part'])
  })

  it.each([
    ['a node that has the block later', { missingByHash: 3 }],
    ['a node that has the block before its logs', { emptyLogs: 1 }],
    ['a node that lags', { lagBlocks: 2, lagEvery: 2 }],
  ])('is not retracted because of %s', async (_, faults) => {
    const { stack, devnet, listener } = await openStackWithListener()
    const begin = devnet.chain.head.number
    transfer(stack, 'AAPLc', 2)
    await listener.until(() => listener.messagesOf('transfer').length === 2)
    Object.assign(devnet.faults, faults)
    devnet.seal()
    transfer(stack, 'TSLAc', 2)
    devnet.seal()
    transfer(stack, 'TSLAc', 2)
    devnet.seal()
    await waitForAllSealed(listener, devnet, begin)
    expect(listener.messagesOf('retract')).toEqual([])
    expect(listener.messagesOf('transfer')).toHaveLength(6)
  })

  it.each([1, 3, 30, 100])(
    'that a reorganisation of %i blocks removes is retracted, and the others are sealed again',
    async (depth) => {
      const { devnet, listener } = await openStackWithListener()
      const begin = devnet.chain.head.number
      const removed: `0x${string}`[] = []
      for (let block = 0; block < depth; block += 1) {
        if (block % 10 === 0) removed.push(devnet.transfer({ symbol: 'TSLAc', raw: BigInt(block) + 1n }))
        if (block % 5 === 0) devnet.transfer({ symbol: 'AAPLc', raw: BigInt(block) + 1n })
        devnet.makeFlashblock()
        devnet.seal()
      }
      await waitForAllSealed(listener, devnet, begin)
      devnet.reorg(depth, removed)
      await listener.until(() => keysInState(listener.messages, 'sealed').join() === sealedKeysOnChain(devnet, begin).join())
      await waitForAllSealed(listener, devnet, begin)
      const retracted = listener.messagesOf('retract').filter(({ reason }) => reason === 'reorg')
      expect(new Set(retracted.map(({ key }) => key.split('-')[1]))).toEqual(new Set(removed))
      expect(listener.messagesOf('hole')).toEqual([])
    },
  )
})

describe('finality', () => {
  it('is published as it rises, and is part of the head', async () => {
    const devnet = await openDevnet({ pace: 'manual', safeDepth: 2, finalizedDepth: 4 })
    const relay = await openRelayFor(devnet, { FINALITY_POLL: '100ms' })
    const listener = await listenToAll({ relay })
    devnet.seal()
    devnet.seal()
    const { number } = devnet.seal()
    const safe = await listener.waitFor('finality', ({ stage, block }) => stage === 'safe' && block.number === number - 2)
    expect(safe.block.hash).toBe(devnet.chain.block(number - 2)?.hash)
    await listener.waitFor('finality', ({ stage, block }) => stage === 'finalized' && block.number === number - 4)
    const late = await closeAfterTest(listenSse(`${relay.url}/v1/stream?symbols=*`))
    expect((await late.waitFor('hello')).head).toMatchObject({ sealed: number, safe: number - 2, finalized: number - 4 })
  })
})
