import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { aliveIn, livesOf, sealedKeysOf } from '../support/key-states.ts'
import { type Ear, listenSse, type Message } from '../support/test-listener.ts'
import { hearAll, openDevnet, openWorld, relayOn, transfer } from '../support/test-stack.ts'

/** Resolves when a listener knows of everything that is sealed above a block, and nothing is open any more. */
const settled = (ear: Ear, devnet: Devnet, after: number, heard: () => readonly Message[] = () => ear.messages) =>
  ear.until(() => {
    const lives = livesOf(heard())
    const open = [...lives].some(([key, state]) => state === 'preconfirmed' && Number(key.split('-')[0]) > after)
    return !open && sealedKeysOf(devnet, after).every((key) => lives.get(key) === 'sealed')
  }, 'all that is sealed')

describe('every pre-confirmation', () => {
  it('ends sealed or retracted, and what was never announced is told as late', async () => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world)
    const dropped = devnet.transfer({ symbol: 'TSLAc', raw: 1n })
    devnet.transfer({ symbol: 'AAPLc', raw: 2n })
    devnet.flash()
    await ear.until(() => ear.all('transfer').length === 2)
    devnet.weather.lostFlashes = 1
    devnet.transfer({ symbol: 'NVDAc', raw: 3n })
    devnet.flash()
    devnet.weather.drop(dropped)
    const block = devnet.seal()
    await ear.until(() => ear.all('seal').length === 2)
    expect(ear.all('retract')).toMatchObject([
      { symbol: 'TSLAc', reason: 'not_sealed', block: { hash: block.hash } },
      {},
    ])
    expect(ear.all('transfer').filter(({ late }) => late)).toMatchObject([{ symbol: 'NVDAc', stage: 'sealed' }])
    expect(ear.all('seal').map(({ symbol, late }) => [symbol, late.length])).toEqual([
      ['AAPLc', 0],
      ['NVDAc', 1],
    ])
    expect(aliveIn(ear.messages, 'sealed')).toEqual(sealedKeysOf(devnet, block.number - 1))
  })

  it.each([
    ['a node that knows the block only later', { missingByHash: 3 }],
    ['a node that shows the block before its logs', { emptyLogs: 1 }],
    ['a node that is behind', { lagBlocks: 2, lagEvery: 2 }],
  ])('is not taken back because of %s', async (_, weather) => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world)
    const begin = devnet.chain.head.number
    transfer(world, 'AAPLc', 2)
    await ear.until(() => ear.all('transfer').length === 2)
    Object.assign(devnet.weather, weather)
    devnet.seal()
    transfer(world, 'TSLAc', 2)
    devnet.seal()
    transfer(world, 'TSLAc', 2)
    devnet.seal()
    await settled(ear, devnet, begin)
    expect(ear.all('retract')).toEqual([])
    expect(ear.all('transfer')).toHaveLength(6)
  })

  it('of a token that has other content when it is sealed is amended', async () => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world)
    const hash = devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    const [log] = devnet.flash()
    if (!log) throw new Error('no log')
    await ear.hear('transfer')
    devnet.weather.change(hash, [{ address: log.address, topics: log.topics, data: `0x${'7'.padStart(64, '0')}` }])
    devnet.seal()
    const amend = await ear.hear('amend')
    expect(amend).toMatchObject({ of: 'transfer', update: { type: 'transfer', stage: 'sealed', raw: '7' } })
    expect(amend.changed).toContain('raw')
    await ear.hear('seal', ({ keys }) => keys.join() === amend.key)
  })

  it.each([1, 3, 30, 100])(
    'that a reorganisation of %i blocks leaves out is retracted, and the rest sealed anew',
    async (depth) => {
      const world = await openWorld()
      const { devnet } = world
      const ear = await hearAll(world)
      const begin = devnet.chain.head.number
      const gone: `0x${string}`[] = []
      for (let block = 0; block < depth; block += 1) {
        if (block % 10 === 0) gone.push(devnet.transfer({ symbol: 'TSLAc', raw: BigInt(block) + 1n }))
        if (block % 5 === 0) devnet.transfer({ symbol: 'AAPLc', raw: BigInt(block) + 1n })
        devnet.flash()
        devnet.seal()
      }
      await settled(ear, devnet, begin)
      devnet.reorg(depth, gone)
      await ear.until(() => aliveIn(ear.messages, 'sealed').join() === sealedKeysOf(devnet, begin).join())
      await settled(ear, devnet, begin)
      const retracted = ear.all('retract').filter(({ reason }) => reason === 'reorg')
      expect(new Set(retracted.map(({ key }) => key.split('-')[1]))).toEqual(new Set(gone))
      expect(ear.all('hole')).toEqual([])
    },
  )
})

describe('finality', () => {
  it('is told as it rises, and named with the head', async () => {
    const devnet = await openDevnet({ pace: 'manual', safeDepth: 2, finalizedDepth: 4 })
    const relay = await relayOn(devnet, { FINALITY_POLL_MS: '100' })
    const ear = await hearAll({ relay })
    devnet.seal()
    devnet.seal()
    const { number } = devnet.seal()
    const safe = await ear.hear('finality', ({ stage, block }) => stage === 'safe' && block.number === number - 2)
    expect(safe.block.hash).toBe(devnet.chain.block(number - 2)?.hash)
    await ear.hear('finality', ({ stage, block }) => stage === 'finalized' && block.number === number - 4)
    const late = await listenSse(`${relay.url}/v1/stream?symbols=*`)
    onTestFinished(() => late.close())
    expect((await late.hear('hello')).head).toMatchObject({ sealed: number, safe: number - 2, finalized: number - 4 })
  })
})

describe('an upstream with all its faults', () => {
  const deeds = [
    'lose',
    'repeat',
    'shuffle',
    'drop',
    'move',
    'cut',
    'refuse',
    'html',
    'lag',
    'reorg',
    'reconnect',
    'fair',
  ] as const
  /** One thing that goes on, or wrong. */
  const Step = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom('transfers' as const) },
    { weight: 6, arbitrary: fc.constantFrom('seal' as const) },
    { weight: 5, arbitrary: fc.constantFrom(...deeds) },
  )
  type Deed = (typeof deeds)[number] | 'transfers' | 'seal'

  it('leaves every listener with exactly what is sealed, each told once and ended once', async () => {
    const [steps = []] = fc.sample(fc.array(Step, { minLength: 160, maxLength: 160 }), { numRuns: 1, seed: 20_261_121 })
    const world = await openWorld({ STOCKS_REFRESH_MS: '1000' })
    const { devnet, relay } = world
    const { weather } = devnet
    const begin = devnet.chain.head.number
    const steady = await hearAll(world)
    /** What the one heard who comes back with its last id. */
    const pieces: Message[] = []
    const url = `${relay.url}/v1/stream?symbols=*&types=*&snapshot=false`
    let restless = await listenSse(url)
    await restless.hear('live')
    const acts: Record<Deed, () => unknown> = {
      transfers: () => {
        transfer(world, 'AAPLc', 2)
        transfer(world, 'TSLAc', 1)
      },
      seal: () => devnet.seal(),
      lose: () => Object.assign(weather, { lostFlashes: 2 }),
      repeat: () => Object.assign(weather, { repeats: 3 }),
      shuffle: () => Object.assign(weather, { shuffle: true }),
      drop: () => weather.drop(devnet.transfer({ symbol: 'NVDAc', raw: 5n })),
      move: () => weather.move(devnet.transfer({ symbol: 'MSFTc', raw: 5n })),
      cut: () => weather.cut(),
      refuse: () => Object.assign(weather, { rpc: { status: 429 } }),
      html: () => Object.assign(weather, { rpc: { status: 503, body: '<html>busy</html>' } }),
      lag: () => Object.assign(weather, { lagBlocks: 2, lagEvery: 3 }),
      reorg: () => {
        const depth = Math.min(5, devnet.chain.head.number - begin)
        const gone = devnet.chain.head.logs.slice(0, 1).map(({ transactionHash }) => transactionHash)
        if (depth > 0) devnet.reorg(depth, gone)
      },
      reconnect: async () => {
        restless.close()
        await restless.ended
        pieces.push(...restless.messages)
        const last = restless.heard.findLast(({ id }) => id !== undefined)?.id
        restless = await listenSse(url, last === undefined ? {} : { 'last-event-id': last })
        await restless.hear('live')
      },
      fair: () => weather.clear(),
    }
    for (const step of steps) {
      await acts[step]()
      // One turn of the loop, so that what is said overlaps with what happens next.
      await new Promise(setImmediate)
    }
    weather.clear()
    devnet.flash()
    for (let block = 0; block < 4; block += 1) devnet.seal()
    onTestFinished(() => restless.close())
    const truth = sealedKeysOf(devnet, begin)
    expect(truth.length).toBeGreaterThan(50)
    for (const [ear, heard] of [
      [steady, () => steady.messages],
      [restless, () => [...pieces, ...restless.messages]],
    ] as const) {
      await settled(ear, devnet, begin, heard)
      await ear.until(() => aliveIn(heard(), 'sealed').join() === truth.join(), 'exactly what is sealed')
      expect(aliveIn(heard(), 'preconfirmed')).toEqual([])
      expect(ear.all('hole')).toEqual([])
    }
  })
})
