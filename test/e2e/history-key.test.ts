import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { OneFact } from '../../src/protocol/history.ts'
import { type Ear, listenNdjson } from '../support/test-listener.ts'
import { ask, hearAll, openDevnet, openWorld, relayOn, transfer, type World } from '../support/test-stack.ts'
import { textsOf } from './history-reader.ts'

const memo = `0x${'4d'.repeat(32)}` as const

/** A chain whose blocks are safe after two others and final after four, and one who hears all of it. */
async function openShallow(): Promise<World & { readonly ear: Ear }> {
  const devnet = await openDevnet({ pace: 'manual', safeDepth: 2, finalizedDepth: 4 })
  const relay = await relayOn(devnet, { FINALITY_POLL_MS: '100' })
  const hearer = await listenNdjson(`${relay.url}/v1/stream?symbols=*&types=status&since=start&snapshot=false`)
  await hearer.hear('status', ({ source }) => source === 'pendingLogs')
  hearer.close()
  return { devnet, relay, ear: await hearAll({ relay }) }
}

/** All about a key, as a stranger reads it: the very bytes that every listener was given. */
async function factOf({ relay }: Pick<World, 'relay'>, key: string) {
  const { status, text, json } = await ask(`${relay.url}/v1/events/${key}`)
  expect(status).toBe(200)
  const fact = OneFact.parse(json)
  expect(text).toBe(JSON.stringify(fact))
  return { ...fact, texts: fact.updates.map((update) => JSON.stringify(update)) }
}

/** What a listener heard that names a key as its own, or as one that is sealed. */
const heardAbout = (ear: Ear, key: string): readonly string[] =>
  textsOf(ear).filter((text) => {
    const update = JSON.parse(text)
    return update.key === key || update.keys?.includes(key)
  })

/** Seals until a watermark has come to a block. */
async function raise(devnet: Devnet, ear: Ear, stage: 'safe' | 'finalized', to: number) {
  const depth = stage === 'safe' ? 2 : 4
  while (devnet.chain.head.number - depth < to) devnet.seal()
  await ear.hear('finality', (told) => told.stage === stage && told.block.number >= to)
}

describe('one fact', () => {
  it('is preconfirmed, sealed, safe and finalized as the chain goes on, and its bytes are those of the stream', async () => {
    const world = await openShallow()
    const { devnet, ear } = world
    transfer(world)
    const { key, block } = await ear.hear('transfer')
    expect(await factOf(world, key)).toMatchObject({ key, stage: 'preconfirmed', texts: heardAbout(ear, key) })
    devnet.seal()
    await ear.hear('seal', ({ keys }) => keys.includes(key))
    const told = heardAbout(ear, key)
    expect(told).toHaveLength(2)
    expect(await factOf(world, key)).toMatchObject({ stage: 'sealed', texts: told })
    await raise(devnet, ear, 'safe', block.number)
    expect(await factOf(world, key)).toMatchObject({ stage: 'safe', texts: told })
    await raise(devnet, ear, 'finalized', block.number)
    expect(await factOf(world, key)).toMatchObject({ stage: 'finalized', texts: told })
    const upper = key.replace(/0x[0-9a-f]+/, (hash) => `0X${hash.slice(2).toUpperCase()}`)
    expect(await factOf(world, upper)).toMatchObject({ key, stage: 'finalized', texts: told })
  })

  it('that is not sealed is retracted, and stays so when its block is final', async () => {
    const world = await openShallow()
    const { devnet, ear } = world
    const hash = devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    transfer(world, 'TSLAc')
    const { key, block } = await ear.hear('transfer', ({ symbol }) => symbol === 'AAPLc')
    devnet.weather.drop(hash)
    devnet.seal()
    await ear.hear('retract', ({ reason }) => reason === 'not_sealed')
    expect(await factOf(world, key)).toMatchObject({ stage: 'retracted', texts: heardAbout(ear, key) })
    await raise(devnet, ear, 'finalized', block.number)
    expect(await factOf(world, key)).toMatchObject({ stage: 'retracted', texts: heardAbout(ear, key) })
  })

  it('that a reorganisation leaves out is retracted; sealed anew in another block it is another fact', async () => {
    const world = await openShallow()
    const { devnet, ear } = world
    const hash = devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    const other = devnet.transfer({ symbol: 'AAPLc', raw: 2n })
    devnet.flash()
    devnet.seal()
    const { keys } = await ear.hear('seal', (seal) => seal.count === 2)
    const [gone = '', kept = ''] = [hash, other].map((tx) => keys.find((key) => key.includes(tx)))
    devnet.reorg(1, [hash], [hash])
    devnet.flash()
    devnet.seal()
    await ear.hear('retract', ({ key, reason }) => key === gone && reason === 'reorg')
    const { keys: later } = await ear.hear('seal', (seal) =>
      seal.keys.some((key) => key.includes(hash) && key !== gone),
    )
    expect(await factOf(world, gone)).toMatchObject({ stage: 'retracted', texts: heardAbout(ear, gone) })
    const again = later.find((key) => key.includes(hash)) ?? ''
    expect(await factOf(world, again)).toMatchObject({ stage: 'sealed', texts: heardAbout(ear, again) })
    // What came behind it in its block has moved up a place: the way leads from its old key to the new one.
    const moved = await factOf(world, kept)
    const { by } = ear.all('retract').find(({ key }) => key === kept) ?? {}
    expect([moved.stage, moved.texts]).toEqual(['retracted', heardAbout(ear, kept)])
    expect((await factOf(world, by ?? '')).stage).toBe('sealed')
  })

  it('that is folded into another is found in the seal of its block, and before that it is said where', async () => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world)
    devnet.act.remit({ symbol: 'TSLAc', raw: 100_000_000n, memo })
    devnet.flash()
    const { key } = await ear.hear('transfer', (moved) => moved.memo === memo)
    const own = key.replace(/\d+$/, (index) => String(Number(index) + 1))
    const { status, json } = await ask(`${world.relay.url}/v1/events/${own}`)
    expect([status, json]).toMatchObject([404, { message: expect.stringContaining('stands in the seal of its block') }])
    devnet.seal()
    const seal = await ear.hear('seal', ({ keys }) => keys.includes(key))
    expect(seal.types[seal.keys.indexOf(own)]).toBe('part')
    expect(await factOf(world, own)).toMatchObject({ stage: 'sealed', updates: [seal] })
  })

  it.each([
    'transfer',
    '7-0xab-0',
    `7-0x${'a'.repeat(64)}`,
    `07-0x${'a'.repeat(64)}-0`,
    `7-0x${'g'.repeat(64)}-0`,
    `7-0x${'a'.repeat(64)}-0%20`,
    `-1-0x${'a'.repeat(64)}-0`,
    `7-${'a'.repeat(66)}-0`,
    `${'9'.repeat(300)}`,
    '%F0%9F%8D%8E',
  ])('has a key, and this is none: %s', async (key) => {
    const { relay } = await openWorld()
    const { status, headers, json } = await ask(`${relay.url}/v1/events/${key}`)
    expect([status, headers.get('content-type')]).toEqual([400, 'application/json'])
    expect(json).toMatchObject({ code: 400, details: [{ '@type': 'stocktape/bad_parameter', parameter: 'key' }] })
  })

  it('of which nothing was told is unknown, however large its numbers are', async () => {
    const { relay } = await openWorld()
    for (const block of ['0', '7', '9'.repeat(40)]) {
      const { status, json } = await ask(`${relay.url}/v1/events/${block}-0x${'a'.repeat(64)}-${'9'.repeat(20)}`)
      expect(status).toBe(404)
      expect(json).toMatchObject({ code: 404, details: [{ '@type': 'stocktape/unknown_key' }] })
    }
  })
})
