import { describe, expect, it, onTestFinished } from 'vitest'
import type { EmittedLog } from '../../../src/devnet/chain/chain-types.ts'
import { createTempFolder } from '../../support/child-program.ts'
import { listenNdjson, type TestListener } from '../../support/test-listener.ts'
import { openDevnet, openRelayFor, type TestStack } from '../../support/test-stack.ts'
import { listenLive, tapeTextsOf, wholeTokens } from './stream-listeners.ts'

const ACCOUNT = `0x${'ab'.repeat(20)}` as const
const word = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}` as const

/** The same transfer with another amount, and another recipient if one is named. */
const alteredLog = ({ address, topics }: EmittedLog, raw: bigint, to?: string): EmittedLog => ({
  address,
  topics: to ? [...topics.slice(0, 2), word(BigInt(to))] : topics,
  data: word(raw),
})

/** A relay with a durable tape. */
async function openRestartableStack(): Promise<TestStack & { restart(): Promise<TestStack> }> {
  const devnet = await openDevnet()
  const settings = { DATA_DIR: await createTempFolder({ onTestFinished }), STOCKS_REFRESH: '1h' }
  const relay = await openRelayFor(devnet, settings)
  await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
  const restart = async () => {
    await relay.stop()
    return { devnet, relay: await openRelayFor(devnet, settings) }
  }
  return { devnet, relay, restart }
}

/**
 * A block of six transfers. When it is sealed, the third grows above every filter, the fourth shrinks below them and goes to
 * another party, and the last two are missing. Then a reorg replaces the block with one that holds the first alone.
 */
async function produceHistory({ devnet, relay }: TestStack): Promise<readonly string[]> {
  const all = await listenNdjson(`${relay.url}/v1/stream?symbols=AAPLc&types=transfer,amend,retract,seal`)
  onTestFinished(() => all.close())
  await all.waitFor('live')
  const amounts = [1, 10, 1, 10, 10, 1]
  const hashes = amounts.map((tokens, index) =>
    devnet.transfer({ symbol: 'AAPLc', raw: wholeTokens(tokens), ...(index === 0 ? { to: ACCOUNT } : {}) }),
  )
  const logs = devnet.makeFlashblock()
  await all.until(() => all.messagesOf('transfer').length === amounts.length)
  const [, second, third, fourth, fifth, sixth] = hashes
  const [, , growing, shrinking] = logs
  if (!second || !third || !fourth || !fifth || !sixth || !growing || !shrinking) throw new Error('too few transfers')
  devnet.faults.change(third, [alteredLog(growing, wholeTokens(10))])
  devnet.faults.change(fourth, [alteredLog(shrinking, wholeTokens(1), ACCOUNT)])
  devnet.faults.drop(fifth)
  devnet.faults.drop(sixth)
  devnet.seal()
  await all.until(() => all.messagesOf('seal').length === 1)
  devnet.faults.clear()
  devnet.reorg(1, [second, third, fourth])
  await all.until(() => all.messagesOf('seal').length === 2)
  return hashes
}

/** Each update as its type and the number of its transfer. */
const messageSummaries = (listener: TestListener, hashes: readonly string[]): readonly string[] =>
  tapeTextsOf(listener).map((text) => {
    const { type, key, keys } = JSON.parse(text)
    return type === 'seal' ? `seal of ${keys.length}` : `${type} ${hashes.indexOf(key.split('-')[1]) + 1}`
  })

const query = (rest: string) => `symbols=AAPLc&snapshot=false&${rest}`

/** What each query receives, in the order of the contract: retracts, amends, new updates, the seal. */
const listeners: Readonly<Record<string, readonly string[]>> = {
  'types=transfer': [
    ...[1, 2, 3, 4, 5, 6].map((nth) => `transfer ${nth}`),
    ...['retract 5', 'retract 6', 'amend 3', 'amend 4', 'seal of 4'],
    ...['retract 2', 'retract 3', 'retract 4', 'seal of 1'],
  ],
  'types=transfer&min_value=1000': [
    ...['transfer 2', 'transfer 4', 'transfer 5', 'retract 5', 'amend 3', 'amend 4', 'seal of 4'],
    ...['retract 2', 'retract 3', 'retract 4'],
  ],
  'types=transfer&min_shares=10': [
    ...['transfer 2', 'transfer 4', 'transfer 5', 'retract 5', 'amend 3', 'amend 4', 'seal of 4'],
    ...['retract 2', 'retract 3', 'retract 4'],
  ],
  [`types=transfer&account=${ACCOUNT}`]: ['transfer 1', 'amend 4', 'seal of 4', 'retract 4', 'seal of 1'],
  [`types=transfer&account=${ACCOUNT}&min_shares=10`]: [],
  // Retracts and amends of filtered movements are filtered too. Seals are not movements.
  'types=retract,amend,seal&min_value=1000': ['seal of 4', 'seal of 1'],
  'types=retract,amend': [...['retract 5', 'retract 6', 'amend 3', 'amend 4', 'retract 2', 'retract 3', 'retract 4']],
  'types=mint,seize': [],
  'stage=sealed&types=transfer': [
    ...['transfer 1', 'transfer 2', 'transfer 3', 'transfer 4', 'seal of 4'],
    ...['retract 2', 'retract 3', 'retract 4', 'seal of 1'],
  ],
  'stage=sealed&types=transfer&min_value=1000': [...['transfer 2', 'transfer 3', 'seal of 4', 'retract 2', 'retract 3']],
  [`stage=sealed&types=transfer&account=${ACCOUNT}`]: ['transfer 1', 'transfer 4', 'seal of 4', 'retract 4', 'seal of 1'],
}

describe('the updates that follow a key', () => {
  it('come to listeners that received the key: live, in a replay, after a resume and after a restart', async () => {
    const stack = await openRestartableStack()
    const live = await Promise.all(Object.keys(listeners).map((rest) => listenLive(stack, 'sse', query(rest))))
    const { id: start } = await (live[0] as TestListener).waitFor('live')
    const hashes = await produceHistory(stack)
    const expected = Object.values(listeners)
    const ids = live.map((listener) => tapeTextsOf(listener).map((text) => String(JSON.parse(text).id)))
    const check = async (current: TestStack) => {
      for (const [index, rest] of Object.keys(listeners).entries()) {
        const replayed = await listenLive(current, 'ndjson', query(rest), start)
        expect(messageSummaries(replayed, hashes), rest).toEqual(expected[index])
        expect(tapeTextsOf(replayed), rest).toEqual(tapeTextsOf(live[index] as TestListener))
        for (const [received, id] of (ids[index] ?? []).entries()) {
          const resumed = await listenLive(current, received % 2 === 0 ? 'ws' : 'sse', query(rest), id)
          expect(tapeTextsOf(resumed), `${rest} after ${id}`).toEqual(tapeTextsOf(replayed).slice(received + 1))
          resumed.close()
        }
      }
    }
    for (const [index, listener] of live.entries()) {
      await listener.until(() => tapeTextsOf(listener).length >= (expected[index]?.length ?? 0), Object.keys(listeners)[index])
      ids[index] = tapeTextsOf(listener).map((text) => String(JSON.parse(text).id))
    }
    await check(stack)
    await check(await stack.restart())
  })

  it('stop after an unsubscribe of the token, and follow the new options after a change', async () => {
    const stack = await openRestartableStack()
    const listeners = await Promise.all(
      ['types=transfer', 'types=transfer', 'types=transfer&min_shares=1'].map((rest) =>
        listenLive(stack, 'ws', `symbols=AAPLc,TSLAc&snapshot=false&${rest}`),
      ),
    )
    const [unsubscribed, narrowed, widened] = listeners as [TestListener, TestListener, TestListener]
    stack.devnet.transfer({ symbol: 'TSLAc', raw: wholeTokens(5) })
    const dropped = [1, 2, 3].map((tokens) => stack.devnet.transfer({ symbol: 'AAPLc', raw: wholeTokens(tokens) }))
    stack.devnet.makeFlashblock()
    for (const listener of listeners) await listener.until(() => listener.messagesOf('transfer').length === 4)
    unsubscribed.send({ type: 'unsubscribe', req: 1, symbols: ['AAPLc'] })
    await unsubscribed.waitFor('unsubscribed')
    narrowed.send({ type: 'subscribe', req: 1, min_shares: '3' })
    widened.send({ type: 'subscribe', req: 1, min_shares: null, types: ['transfer', 'retract'] })
    await narrowed.waitFor('subscribed', ({ req }) => req === 1)
    await widened.waitFor('subscribed', ({ req }) => req === 1)
    for (const hash of dropped) stack.devnet.faults.drop(hash)
    stack.devnet.seal()
    for (const listener of listeners) await listener.waitFor('seal')
    expect(unsubscribed.messagesOf('retract')).toEqual([])
    expect(unsubscribed.messagesOf('seal').map(({ symbol }) => symbol)).toEqual(['TSLAc'])
    expect(narrowed.messagesOf('retract').map(({ key }) => dropped.indexOf(key.split('-')[1] as (typeof dropped)[number]))).toEqual(
      [2],
    )
    expect(widened.messagesOf('retract')).toHaveLength(3)
    unsubscribed.send({ type: 'subscribe', req: 2, symbols: ['AAPLc'] })
    await unsubscribed.waitFor('subscribed', ({ req }) => req === 2)
    stack.devnet.transfer({ symbol: 'AAPLc', raw: wholeTokens(7) })
    stack.devnet.makeFlashblock()
    await unsubscribed.waitFor('transfer', ({ raw }) => raw === String(wholeTokens(7)))
  })
})
