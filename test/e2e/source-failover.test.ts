import { describe, expect, it } from 'vitest'
import { keysInState, sealedKeysOnChain } from '../support/key-states.ts'
import { listenToAll, openDevnet, openRelayFor, transfer } from '../support/test-stack.ts'
import { openStackWithListener, waitForSource } from './listeners.ts'

const blockOf = (key: string): number => Number(key.split('-')[0])

describe('a subscription that is silent', () => {
  it('is detected by three sealed logs that were never pushed, and polling loses nothing', async () => {
    const { stack, devnet, listener } = await openStackWithListener()
    const begin = devnet.chain.head.number
    devnet.faults.silent = ['pendingLogs']
    for (let block = 0; block < 3; block += 1) {
      transfer(stack, 'AAPLc')
      devnet.seal()
      await listener.until(() => listener.messagesOf('seal').length === block + 1)
    }
    await waitForSource(listener, 'poll')
    expect(listener.messagesOf('status').at(-1)).toMatchObject({ source: 'poll', reason: 'silent' })
    transfer(stack, 'TSLAc')
    const polled = await listener.waitFor('transfer', ({ symbol }) => symbol === 'TSLAc')
    expect(polled).toMatchObject({ stage: 'preconfirmed', ingest: { source: 'poll' } })
    devnet.seal()
    await listener.until(() => keysInState(listener.messages, 'sealed').join() === sealedKeysOnChain(devnet, begin).join())
    devnet.faults.clear()
    transfer(stack, 'NVDAc')
    await waitForSource(listener, 'pendingLogs')
    expect(listener.messagesOf('transfer').filter(({ late }) => late)).toHaveLength(3)
  })
})

describe('an upstream that pre-confirms nothing', () => {
  it.each([
    ['accepts pendingLogs and says nothing', { silent: ['pendingLogs'] as const }, {}],
    ['refuses pendingLogs', { refused: ['pendingLogs'] as const }, {}],
    ['has no socket', {}, { UPSTREAM_WS_URL: '' }],
  ])('and %s is published block by block as it is sealed', async (_, faults, settings) => {
    const devnet = await openDevnet({ blockMs: 200, flashblockMs: 200, transactionsPerFlashblock: 2 })
    Object.assign(devnet.faults, { pending: 'latest', ...faults })
    const relay = await openRelayFor(devnet, settings)
    const listener = await listenToAll({ relay }, 'start')
    await waitForSource(listener, 'sealed')
    const begin = devnet.chain.head.number
    await listener.until(() => listener.messagesOf('seal').some(({ block }) => block.number > begin + 8), 'nine blocks')
    const published = listener.messagesOf('transfer').filter(({ block }) => block.number > begin && block.number <= begin + 8)
    const ways = published.map(({ stage, late, ingest }) => `${stage} ${late} ${ingest.source}`)
    expect(new Set(ways)).toEqual(new Set(['sealed false sealed']))
    expect(listener.messagesOf('transfer').filter(({ stage }) => stage === 'preconfirmed')).toEqual([])
    const sealed = keysInState(listener.messages, 'sealed').filter((key) => blockOf(key) <= begin + 8)
    const first = Math.min(...sealed.map(blockOf))
    expect(sealed).toEqual(sealedKeysOnChain(devnet, first - 1).filter((key) => blockOf(key) <= begin + 8))
    expect(listener.messagesOf('retract')).toEqual([])
  })
})
