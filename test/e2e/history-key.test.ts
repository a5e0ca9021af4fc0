import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { OneFact } from '../../src/protocol/history.ts'
import { listenNdjson, type TestListener } from '../support/test-listener.ts'
import { fetchDocumented, listenToAll, openDevnet, openRelayFor, type TestStack, transfer } from '../support/test-stack.ts'
import { tapeTexts } from './history-reader.ts'
import { openStackWithListener } from './listeners.ts'

const memo = `0x${'4d'.repeat(32)}` as const

/** A chain whose blocks are safe after two others and final after four, and a listener to everything. */
async function openStackWithEarlyFinality(): Promise<TestStack & { readonly listener: TestListener }> {
  const devnet = await openDevnet({ pace: 'manual', safeDepth: 2, finalizedDepth: 4 })
  const relay = await openRelayFor(devnet, { FINALITY_POLL: '100ms' })
  const statusListener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&types=status&since=start&snapshot=false`)
  await statusListener.waitFor('status', ({ source }) => source === 'pendingLogs')
  statusListener.close()
  return { devnet, relay, listener: await listenToAll({ relay }) }
}

/** The fact under a key, with the exact text of its updates. */
async function fetchFact({ relay }: Pick<TestStack, 'relay'>, key: string) {
  const { status, text, json } = await fetchDocumented(`${relay.url}/v1/events/${key}`)
  expect(status).toBe(200)
  const fact = OneFact.parse(json)
  expect(text).toBe(JSON.stringify(fact))
  return { ...fact, texts: fact.events.map((update) => JSON.stringify(update)) }
}

/** The updates that a listener received with this key, or with this key in a seal. */
const textsAbout = (listener: TestListener, key: string): readonly string[] =>
  tapeTexts(listener).filter((text) => {
    const update = JSON.parse(text)
    return update.key === key || update.keys?.includes(key)
  })

/** Seals until a finality mark reaches a block. */
async function raiseWatermark(devnet: Devnet, listener: TestListener, stage: 'safe' | 'finalized', to: number) {
  const depth = stage === 'safe' ? 2 : 4
  while (devnet.chain.head.number - depth < to) devnet.seal()
  await listener.waitFor('finality', (published) => published.stage === stage && published.block.number >= to)
}

describe('one fact', () => {
  it('is preconfirmed, sealed, safe and finalized as the chain grows, with the bytes of the stream', async () => {
    const stack = await openStackWithEarlyFinality()
    const { devnet, listener } = stack
    transfer(stack)
    const { key, block } = await listener.waitFor('transfer')
    expect(await fetchFact(stack, key)).toMatchObject({ key, stage: 'preconfirmed', texts: textsAbout(listener, key) })
    devnet.seal()
    await listener.waitFor('seal', ({ keys }) => keys.includes(key))
    const published = textsAbout(listener, key)
    expect(published).toHaveLength(2)
    expect(await fetchFact(stack, key)).toMatchObject({ stage: 'sealed', texts: published })
    await raiseWatermark(devnet, listener, 'safe', block.number)
    expect(await fetchFact(stack, key)).toMatchObject({ stage: 'safe', texts: published })
    await raiseWatermark(devnet, listener, 'finalized', block.number)
    expect(await fetchFact(stack, key)).toMatchObject({ stage: 'finalized', texts: published })
    const upper = key.replace(/0x[0-9a-f]+/, (hash) => `0X${hash.slice(2).toUpperCase()}`)
    expect(await fetchFact(stack, upper)).toMatchObject({ key, stage: 'finalized', texts: published })
  })

  it('that is not sealed, or that a reorganisation removes, is retracted; sealed in another block it is another fact', async () => {
    const stack = await openStackWithEarlyFinality()
    const { devnet, listener } = stack
    const hash = devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    const dropped = devnet.transfer({ symbol: 'TSLAc', raw: 1n })
    const other = devnet.transfer({ symbol: 'AAPLc', raw: 2n })
    devnet.makeFlashblock()
    devnet.faults.drop(dropped)
    devnet.seal()
    const { key: lost, block } = await listener.waitFor('retract', ({ reason }) => reason === 'not_sealed')
    expect(await fetchFact(stack, lost)).toMatchObject({ stage: 'retracted', texts: textsAbout(listener, lost) })
    const { keys } = await listener.waitFor('seal', (seal) => seal.count === 2)
    const [removed = '', kept = ''] = [hash, other].map((tx) => keys.find((key) => key.includes(tx)))
    devnet.reorg(1, [hash], [hash])
    devnet.makeFlashblock()
    devnet.seal()
    await listener.waitFor('retract', ({ key, reason }) => key === removed && reason === 'reorg')
    const { keys: later } = await listener.waitFor('seal', (seal) => seal.keys.some((key) => key.includes(hash) && key !== removed))
    expect(await fetchFact(stack, removed)).toMatchObject({ stage: 'retracted', texts: textsAbout(listener, removed) })
    const again = later.find((key) => key.includes(hash)) ?? ''
    expect(await fetchFact(stack, again)).toMatchObject({ stage: 'sealed', texts: textsAbout(listener, again) })
    // The log after it in the block has a new index: the retraction of its old key names the new one.
    const moved = await fetchFact(stack, kept)
    const { replaced_by } = listener.messagesOf('retract').find(({ key }) => key === kept) ?? {}
    expect([moved.stage, moved.texts]).toEqual(['retracted', textsAbout(listener, kept)])
    expect((await fetchFact(stack, replaced_by ?? '')).stage).toBe('sealed')
    // Its block is final, and it stays retracted.
    await raiseWatermark(devnet, listener, 'finalized', block.number)
    expect(await fetchFact(stack, lost)).toMatchObject({ stage: 'retracted', texts: textsAbout(listener, lost) })
  })

  it('that is folded into another is found in the seal of its block, and before that a 404 explains it', async () => {
    const { stack, devnet, listener } = await openStackWithListener()
    devnet.issuer.transferWithMemo({ symbol: 'TSLAc', raw: 100_000_000n, memo })
    devnet.makeFlashblock()
    const { key } = await listener.waitFor('transfer', (message) => message.memo === memo)
    const own = key.replace(/\d+$/, (index) => String(Number(index) + 1))
    const { status, json } = await fetchDocumented(`${stack.relay.url}/v1/events/${own}`)
    expect([status, json]).toMatchObject([404, { message: expect.stringContaining('listed in the seal of its block') }])
    devnet.seal()
    const seal = await listener.waitFor('seal', ({ keys }) => keys.includes(key))
    expect(seal.types[seal.keys.indexOf(own)]).toBe('part')
    expect(await fetchFact(stack, own)).toMatchObject({ stage: 'sealed', events: [seal] })
  })
})
