import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ACCOUNTS, type Anvil, serveList, startAnvil } from '../support/anvil-node.ts'
import { openRelay } from '../support/in-process-relay.ts'
import { keysInState } from '../support/key-states.ts'
import { listenSse, type TestListener } from '../support/test-listener.ts'
import { movementKeysOf, sequenceOf } from '../support/test-stack.ts'
import { closeAfterTest } from './listeners.ts'

const ZERO = `0x${'0'.repeat(40)}`
const [ALICE, BOB] = ACCOUNTS
const CONNECTIONS = [
  ['polled alone', { UPSTREAM_WS_URL: '' }],
  ['with a socket that refuses pendingLogs', {}],
  ['asked over its socket alone', { UPSTREAM_RPC_URL: '' }],
] as const satisfies readonly (readonly [string, Record<string, string>])[]

/** A node with a token, a list with that token, a relay on both, and a listener to everything. */
async function openRealNode(settings: Record<string, string>, record: Record<string, unknown> = {}) {
  const anvil = await startAnvil()
  onTestFinished(() => anvil.kill())
  const list = await serveList({
    contract_address: anvil.token,
    symbol: 'TESTc',
    name: 'Test',
    decimals: 8,
    multiplier: 2,
    nav_price: 10.5,
    nav_price_updated_at: new Date().toISOString(),
    ...record,
  })
  onTestFinished(() => list.stop())
  const relay = await openRelay({ rpcUrl: anvil.rpcUrl, wsUrl: anvil.wsUrl, url: list.url }, settings)
  onTestFinished(() => relay.stop())
  const listener = await closeAfterTest(listenSse(`${relay.url}/v1/stream?symbols=*&types=*&since=start`))
  await listener.waitFor('status', ({ source }) => source !== 'down')
  await listener.waitFor('token', ({ change }) => change === 'listed')
  return { anvil, relay, listener }
}

const sealed = (anvil: Anvil, functionName: 'mint' | 'transfer' | 'approve', to: typeof ALICE | typeof BOB, raw: bigint) =>
  anvil.send({ functionName, args: [to, raw] })

/** The newest movement of a type as last published: a poll may bring it before earlier blocks are settled. */
const lastMovementOf = (listener: TestListener, type: 'mint' | 'transfer' | 'seize') => {
  const published = listener.messagesOf(type).at(-1)
  const amended = listener.messagesOf('amend').findLast(({ key }) => key === published?.key)
  return amended ? amended.update : published
}

/** The source at the time of an update. */
const sourceAt = (listener: TestListener, id: string) =>
  listener.messagesOf('status').findLast((status) => sequenceOf(status.id) < sequenceOf(id))?.source

describe.each(CONNECTIONS)('a real node, %s', (_, settings) => {
  beforeAll(async () => {
    // Compiles the token, so that no test waits for it.
    await (await startAnvil()).kill()
  })

  it('has each mint, transfer, burn and approval published once, with the right amounts', async () => {
    const { anvil, listener } = await openRealNode(settings)
    const hashes = [
      await sealed(anvil, 'mint', ALICE, 1_000_000_000n),
      await sealed(anvil, 'transfer', BOB, 150_000_000n),
      await anvil.send({ functionName: 'burn', args: [1n] }),
      await sealed(anvil, 'approve', BOB, 300_000_000n),
    ]
    await listener.waitFor('approval')
    await listener.until(() => movementKeysOf(listener).length >= 3)
    const last = await sealed(anvil, 'transfer', BOB, 2n)
    await listener.waitFor('transfer', ({ tx }) => tx.hash === last)
    expect(movementKeysOf(listener).length).toBe(4)
    expect(new Set(movementKeysOf(listener)).size).toBe(4)
    expect(listener.messagesOf('mint')).toMatchObject([
      { from: ZERO, to: ALICE, raw: '1000000000', amount: '10', multiplier: '2', shares: '20', reference_value: '105.00' },
    ])
    expect(listener.messagesOf('transfer')[0]).toMatchObject({ from: ALICE, to: BOB, amount: '1.5', shares: '3' })
    expect(listener.messagesOf('burn')).toMatchObject([{ from: ALICE, to: ZERO, amount: '0.00000001', reference_value: '0.00' }])
    expect(listener.messagesOf('approval')).toMatchObject([{ owner: ALICE, spender: BOB, amount: '3' }])
    const published = [
      ...listener.messagesOf('mint'),
      ...listener.messagesOf('transfer').slice(0, 1),
      ...listener.messagesOf('burn'),
      ...listener.messagesOf('approval'),
    ]
    expect(published.map(({ tx }) => tx.hash)).toEqual(hashes)
    for (const { id, key, stage, late, block, tx } of published) {
      expect(late).toBe(stage === 'sealed' && ['pendingLogs', 'poll'].includes(sourceAt(listener, id) ?? ''))
      expect(key).toBe(`${block.number}-${tx.hash}-0`)
      const nodeBlock = await anvil.block(block.number)
      expect(block.hash).toBe(stage === 'sealed' ? nodeBlock.hash : null)
    }
  })

  it('has an announced split, a pause, a seizure and a scheduled split published', async () => {
    const { anvil, listener } = await openRealNode(settings)
    const WAD = 10n ** 18n
    const memo = `0x${'4d'.repeat(32)}` as const
    await sealed(anvil, 'mint', ALICE, 1_000_000_000n)
    await anvil.send({ functionName: 'announce', args: ['spt-1', 4n * WAD, 0n] })
    await sealed(anvil, 'transfer', BOB, 100_000_000n)
    await anvil.send({ functionName: 'pause', args: [[0, 2]] })
    await anvil.send({ functionName: 'seizeWithMemo', args: [BOB, ALICE, 100_000_000n, memo] })
    expect(await listener.waitFor('seize')).toMatchObject({ from: BOB, to: ALICE, memo })
    await listener.waitFor('seal', ({ types }) => types.includes('seize'))
    expect(lastMovementOf(listener, 'mint')).toMatchObject({ multiplier: '2', shares: '20' })
    expect(lastMovementOf(listener, 'transfer')).toMatchObject({ multiplier: '4', shares: '4' })
    expect(lastMovementOf(listener, 'seize')).toMatchObject({ multiplier: '4', shares: '4' })
    const changes = listener.messagesOf('multiplier').filter(({ source }) => source === 'log')
    expect(changes).toMatchObject([{ phase: 'effective', previous: '2', multiplier: '4' }])
    expect(listener.messagesOf('action')).toMatchObject([{ action_id: 'spt-1', keys: [changes[0]?.key] }])
    expect(listener.messagesOf('pause')).toMatchObject([
      { change: 'paused', features: ['TRANSFER', 'BURN'], paused: ['TRANSFER', 'BURN'] },
    ])
    expect(listener.messagesOf('seal').map(({ types }) => types)).toContainEqual(['seize', 'part', 'part'])
    expect(listener.messagesOf('seal').map(({ types }) => types)).toContainEqual(['action', 'part', 'multiplier', 'part'])

    const soon = BigInt(Math.floor(Date.now() / 1_000) + 1_000)
    await anvil.send({ functionName: 'announce', args: ['spt-2', 8n * WAD, soon] })
    await listener.waitFor('multiplier', ({ phase }) => phase === 'scheduled')
    await anvil.rpc('evm_setNextBlockTimestamp', Number(soon))
    await anvil.rpc('evm_mine')
    expect(await listener.waitFor('multiplier', ({ source }) => source === 'clock')).toMatchObject({
      ...{ phase: 'effective', previous: '4', multiplier: '8', effective_at: new Date(Number(soon) * 1_000).toISOString() },
    })
    const last = await sealed(anvil, 'transfer', BOB, 1n)
    await listener.waitFor('seal', ({ keys }) => keys.some((key) => key.includes(last)))
    expect(lastMovementOf(listener, 'transfer')).toMatchObject({ raw: '1', multiplier: '8' })
  })

  it('corrects a multiplier that the list has wrong', async () => {
    const { anvil, relay, listener } = await openRealNode(settings, { multiplier: 3 })
    const change = await listener.waitFor('multiplier', ({ source }) => source === 'clock')
    expect(change).toMatchObject({ phase: 'effective', previous: '3', multiplier: '2' })
    await sealed(anvil, 'mint', ALICE, 100_000_000n)
    expect(await listener.waitFor('mint')).toMatchObject({ multiplier: '2', shares: '2' })
    const other = await closeAfterTest(listenSse(`${relay.url}/v1/stream?symbols=TESTc`))
    expect(await other.waitFor('snapshot')).toMatchObject({ multiplier: '2', multiplier_source: 'call' })
  })

  it('has every block sealed, and the logs that a reorganisation removes retracted', async () => {
    const { anvil, listener } = await openRealNode(settings)
    await sealed(anvil, 'mint', ALICE, 1_000n)
    const lost = [await sealed(anvil, 'transfer', BOB, 1n), await sealed(anvil, 'transfer', BOB, 2n)]
    await listener.until(() => keysInState(listener.messages, 'sealed').length === 3, 'three sealed keys')
    await anvil.rpc('anvil_reorg', 2, [])
    await listener.until(() => listener.messagesOf('retract').length === 2, 'two retractions')
    expect(listener.messagesOf('retract').map(({ key, reason }) => [key.split('-')[1], reason])).toEqual(
      lost.map((hash) => [hash, 'reorg']),
    )
    const last = await sealed(anvil, 'transfer', BOB, 3n)
    await listener.waitFor('seal', ({ keys }) => keys.some((key) => key.includes(last)))
    expect(keysInState(listener.messages, 'preconfirmed')).toEqual([])
    for (const { block } of listener.messagesOf('seal').slice(-1)) {
      expect(block.hash).toBe((await anvil.block(block.number)).hash)
    }
  })

  it('has the blocks that were sealed during an outage published', async () => {
    const { anvil, listener } = await openRealNode(settings)
    await sealed(anvil, 'mint', ALICE, 100n)
    await listener.waitFor('mint')
    const reason = 'UPSTREAM_WS_URL' in settings ? 'ok' : 'refused'
    await listener.waitFor(
      'status',
      ({ source, ...status }) => source === 'sealed' || (source === 'poll' && status.reason === reason),
    )
    const state = await anvil.rpc('anvil_dumpState')
    await anvil.kill()
    await listener.waitFor('status', ({ source, reason }) => source === 'down' && reason === 'unreachable')
    const again = await startAnvil({ port: anvil.port })
    onTestFinished(() => again.kill())
    await again.rpc('anvil_loadState', state)
    await again.send({ functionName: 'transfer', args: [BOB, 7n] })
    const back = await listener.waitFor('transfer', ({ raw }) => raw === '7')
    await listener.until(() => listener.messagesOf('status').at(-1)?.source !== 'down', 'the source after the outage')
    await again.send({ functionName: 'transfer', args: [BOB, 8n] })
    await listener.waitFor('transfer', ({ raw }) => raw === '8')
    // Published as sealed if the relay came back too late for the pending log; sealed in any case.
    if (back.stage !== 'sealed') await listener.waitFor('seal', ({ keys }) => keys.includes(back.key))
    expect(listener.messagesOf('transfer').map(({ raw }) => raw)).toEqual(['7', '8'])
    expect(listener.messagesOf('mint').length).toBe(1)
  })
})
