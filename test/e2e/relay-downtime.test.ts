import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { openRelay } from '../support/in-process-relay.ts'
import { keyStatesFrom, keysInState, sealedKeysOnChain } from '../support/key-states.ts'
import type { MessageOf } from '../support/test-listener.ts'
import { listenToAll, openDevnet, transfer } from '../support/test-stack.ts'
import { waitForSealAt, waitForSource } from './listeners.ts'

/** A relay that publishes two transfers and stops; then blocks are sealed, every seventh with a transfer, and it restarts. */
async function restartAfterDowntime(devnet: Devnet, missedBlocks: number, settings: Record<string, string> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'stocktape-absence-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  const before = await openRelay(devnet, { DATA_DIR: dir, ...settings })
  const listener = await listenToAll({ relay: before }, 'start')
  await waitForSource(listener, 'pendingLogs')
  const begin = devnet.chain.head.number
  const dropped = devnet.transfer({ symbol: 'TSLAc', raw: 1n })
  transfer({ devnet }, 'AAPLc')
  await listener.until(() => listener.messagesOf('transfer').length === 2)
  await before.stop()
  devnet.faults.drop(dropped)
  for (let block = 0; block < missedBlocks; block += 1) {
    if (block % 7 === 0) transfer({ devnet }, 'NVDAc', 1, BigInt(block) + 1n)
    devnet.seal()
  }
  const relay = await openRelay(devnet, { DATA_DIR: dir, ...settings })
  onTestFinished(() => relay.stop())
  return { begin, relay, listener: await listenToAll({ relay }, 'start') }
}

describe('blocks that were sealed while the relay was stopped', () => {
  it.each([
    ['a minute', 30, {}],
    ['longer, on a node with a range bound of 5', 200, { rangeBound: 5 }],
    ['longer, on a node with a bound of 4 logs that suggests a range', 200, { resultsBound: 4, suggestRange: true }],
    ['longer, behind two nodes of which one lags', 300, { lagBlocks: 3, lagEvery: 3 }],
  ])('for %s are published as late, and open keys end', async (_, missedBlocks, faults) => {
    const devnet = await openDevnet()
    Object.assign(devnet.faults, faults)
    const { begin, listener } = await restartAfterDowntime(devnet, missedBlocks)
    await listener.until(() => keysInState(listener.messages, 'sealed').join() === sealedKeysOnChain(devnet, begin).join())
    expect(keysInState(listener.messages, 'preconfirmed')).toEqual([])
    expect([...keyStatesFrom(listener.messages).values()].filter((state) => state === 'retracted')).toHaveLength(2)
    const missed = listener.messagesOf('transfer').filter(({ symbol }) => symbol === 'NVDAc')
    // The relay saw none of them before, so all come from the backfill.
    expect(new Set(missed.map(({ stage, late, ingest }) => `${stage} ${late} ${ingest.source}`))).toEqual(
      new Set(['sealed true backfill']),
    )
    expect(missed).toHaveLength(Math.ceil(missedBlocks / 7))
    expect(listener.messagesOf('hole')).toEqual([])
  })

  it('further back than the bound are a hole with its blocks, except those with published keys', async () => {
    const devnet = await openDevnet()
    const { begin, listener } = await restartAfterDowntime(devnet, 100, { BACKFILL_LIMIT: '1m' })
    await waitForSealAt(listener, devnet.chain.head.number - 1)
    const holes: readonly MessageOf<'hole'>[] = listener.messagesOf('hole')
    expect(holes).toMatchObject([{ blocks: { first: begin + 2, last: begin + 69 }, reason: 'backfill_bound' }])
    await listener.until(() => keysInState(listener.messages, 'preconfirmed').length === 0)
    const outside = sealedKeysOnChain(devnet, begin).filter((key) => {
      const block = Number(key.split('-')[0])
      return block === begin + 1 || block > begin + 69
    })
    await listener.until(() => keysInState(listener.messages, 'sealed').join() === outside.join())
  })

  it('that the node no longer has are a hole too', async () => {
    const devnet = await openDevnet()
    const { begin, listener } = await restartAfterDowntime(devnet, 2_100)
    const [hole] = [await listener.waitFor('hole')]
    const { oldest } = devnet.chain
    expect(hole).toMatchObject({ blocks: { first: begin + 1, last: oldest - 1 }, reason: 'pruned' })
    await listener.until(() => {
      const sealed = keysInState(listener.messages, 'sealed')
      return sealedKeysOnChain(devnet, oldest - 1).every((key) => sealed.includes(key))
    })
  })
})
