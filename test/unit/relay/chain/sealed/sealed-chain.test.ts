import { describe, expect, it } from 'vitest'
import { apple, keyOf, sealedLog, timestampOf, word } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, sealedHeader } from './sealed-chain-fixture.ts'

describe('settling', () => {
  it('emits every field of a block', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.addLog(HEAD + 1)
    await seal(1)
    const hash = chain.hashOf(HEAD + 1)
    expect(settledEvents.all).toEqual([
      {
        type: 'sealed',
        holes: [],
        blocks: [
          {
            number: HEAD + 1,
            hash,
            timestamp: timestampOf(HEAD + 1),
            logs: [expect.objectContaining({ key: keyOf({ block: HEAD + 1 }), blockHash: hash })],
            filters: [{ addresses: [apple] }],
            via: 'sealed',
          },
        ],
        newest: HEAD + 1,
        cursor: { number: HEAD + 1, hash },
        restartCursor: { number: HEAD, hash: chain.hashOf(HEAD) },
      },
    ])
  })

  it('reads each block by its hash once, though its head is pushed often and in any order', async () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.head = HEAD + 4
    for (const block of [1, 4, 1, 4, 3, 3, 2]) {
      announceHead(HEAD + block)
      await advance(0)
    }
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 4))
    expect(settledEvents.cursors()).toEqual(range(HEAD + 1, HEAD + 4))
    expect(chain.requestedHashes().toSorted()).toEqual(range(HEAD + 1, HEAD + 4).map((block) => chain.hashOf(block)))
    // No header that was received before.
    expect(chain.requestedHeaders()).toEqual([HEAD + 2, HEAD + 3])
  })

  it('knows a block by its hash from its head on', async () => {
    const { chain, sealed, announceHead, advance } = openSealedBlocks()
    const header = sealedHeader(chain.headerOf(HEAD + 1))
    chain.head = HEAD + 1
    const before = sealed.knows(header)
    announceHead()
    const announced = sealed.knows(header)
    await advance(0)
    expect([before, announced, sealed.knows(header)]).toEqual([false, true, true])
    expect(sealed.knows({ ...header, hash: chain.hashOf(HEAD + 2) })).toBe(false)
  })

  it('starts once, even after a block with unknown hash', async () => {
    const { chain, settledEvents, receive, announceHead, advance } = openSealedBlocks({ cursor: { number: HEAD, hash: null } })
    receive({ type: 'began', cursor: { number: HEAD - 100, hash: null } })
    chain.head = HEAD + 2
    announceHead()
    await advance(0)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
  })

  it('finally counts unreadable logs, and reports a hole with the other transactions', async () => {
    const { chain, settledEvents, seal, advance } = openSealedBlocks()
    const [log, other] = [chain.addLog(HEAD + 1), chain.addLog(HEAD + 1)]
    // What an unreadable log means for the others of its transaction is unknown.
    const unreadable = { ...sealedLog({ ...log, index: 5 }), transactionHash: other.tx, data: '0x1' }
    chain.override = ({ method }) =>
      method === 'eth_getLogs' ? [sealedLog(log), sealedLog(other), unreadable, unreadable] : undefined
    await seal(1)
    await advance(1_500)
    expect(settledEvents.holes()).toEqual([`${HEAD + 1}-${HEAD + 1} unreadable`])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.blocks()).toMatchObject([{ number: HEAD + 1, unreadable: 2 }])
    expect(settledEvents.cursors()).toEqual([HEAD + 1])
  })

  it('emits no logs beside one that cannot be read and names no transaction', async () => {
    const { chain, settledEvents, seal, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.override = ({ method }) => (method === 'eth_getLogs' ? [{ data: '0x1' }, sealedLog(log), null] : undefined)
    await seal(1)
    await advance(1_500)
    expect(settledEvents.blocks()).toMatchObject([{ number: HEAD + 1, unreadable: 2, logs: [] }])
  })

  it('keeps up with the chain on a node slower than the block time', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.delayMs = 500
    await seal(50)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, settledEvents.blockNumbers().at(-1) ?? 0))
    expect(settledEvents.blockNumbers().length).toBeGreaterThanOrEqual(45)
  })

  it('sends nothing after its subscription ended', async () => {
    const { chain, subscription, announceHead, advance } = openSealedBlocks()
    chain.delayMs = 50
    chain.head += 5
    announceHead()
    await advance(20)
    subscription.unsubscribe()
    const requestCount = chain.requests.length
    announceHead()
    await advance(10_000)
    expect(chain.inFlight).toBe(0)
    expect(chain.requests.length).toBe(requestCount)
  })

  it.each([
    ['that never became canonical', {}],
    ['with a parent that never became canonical', { parentHash: word(76) }],
  ])('reads the block of an announced head %s from the node', async (_, fields) => {
    const { chain, settledEvents, sealed, seal, advance, warnings } = openSealedBlocks()
    await seal(10)
    settledEvents.all.length = 0
    chain.head = HEAD + 11
    sealed.receiveHead(sealedHeader({ ...chain.headerOf(HEAD + 11), hash: word(77), ...fields }))
    await advance(1_000)
    expect(settledEvents.blocks().map(({ number, hash }) => [number, hash])).toEqual([[HEAD + 11, chain.hashOf(HEAD + 11)]])
    expect(warnings).not.toContain('reorg')
  })
})
