import { describe, expect, it } from 'vitest'
import { read, type Said } from '../../src/chain/abi.ts'
import { type Log, readLogs } from '../../src/chain/log.ts'
import type { Hex } from '../../src/protocol/parts.ts'
import { alice, bob, pendingLog, tesla, texts, word, words } from './wire.ts'

const WAD = 10n ** 18n
const memo: Hex = `0x${'4d'.repeat(32)}`

/** A log with these topics and this data. */
const logOf = (topics: readonly string[], data: string): Log => {
  const [log] = readLogs({ ...pendingLog({ block: 5 }), topics, data }).logs
  if (!log) throw new Error('no log')
  return log
}

/** Every event of the standard and of what stands around it: its topic, its other topics, its data, and what it says. */
const rows: readonly (readonly [event: string, name: Hex, indexed: readonly Hex[], data: Hex, said: Said])[] = [
  [
    'Transfer',
    '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
    [word(alice), word(bob)],
    '0x0000000000000000000000000000000000000000000000000000000008f0d180',
    { event: 'Transfer', from: alice, to: bob, amount: 150_000_000n },
  ],
  [
    'Approval',
    '0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925',
    [word(alice), word(bob)],
    word(9),
    { event: 'Approval', owner: alice, spender: bob, amount: 9n },
  ],
  [
    'Memo',
    '0x6989f5818dcfd11f8cd53b27c94cec33dae1589735f03e639cba54553a1825e8',
    [word(alice), memo],
    '0x',
    { event: 'Memo', memo },
  ],
  [
    'BurnedBlocked',
    '0x0b552e96653fd6842da37c477005d3b5c08a8c7d3631b1f43787b2dc9a1006a3',
    [word(alice), word(bob)],
    word(9),
    { event: 'other' },
  ],
  [
    'Seized',
    '0xa9aec5d8b86e2fa2fd6ac3af62f2622e3dfdab1967d4cbbb56a5df7d74cb887c',
    [word(tesla), word(alice), word(bob)],
    word(9),
    { event: 'Seized', from: alice, to: bob, amount: 9n },
  ],
  [
    'Paused',
    '0x3e849708b13f20dd0b87a503523c305e7604cd7e8f855e7a5ebe21397dfd7146',
    [word(alice)],
    '0x0000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000000200000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001',
    { event: 'Paused', features: [0, 1] },
  ],
  [
    'Unpaused',
    '0x086a815e5123cf1af5cb7a82f8b052bf96c622204c98b2f4f9782bf77f753c57',
    [word(alice)],
    words(0x20, 1, 255),
    { event: 'Unpaused', features: [255] },
  ],
  [
    'MultiplierUpdated',
    '0x4dbe4840d7465bd162f67814cea0b519567a2e0e578bcde61e7f4ced361e5a3d',
    [],
    word(2n * WAD),
    { event: 'MultiplierUpdated', to: 2n * WAD },
  ],
  [
    'UIMultiplierUpdated',
    '0x2205df4534432b2f60654a3fdb48737ffdaf3e9edb1a498bd985bc026b15b055',
    [],
    '0x0000000000000000000000000000000000000000000000000de0b6b3a76400000000000000000000000000000000000000000000000000001bc16d674ec80000000000000000000000000000000000000000000000000000000000006b044de8',
    { event: 'UIMultiplierUpdated', from: WAD, to: 2n * WAD, effectiveAt: 1_795_444_200n },
  ],
  [
    'UIMultiplierUpdateCancelled',
    '0x883856335ba5f60c18b9817c4505d3c7d3f6223dcf39516b30c508c46a5e1cad',
    [],
    words(2n * WAD, 1_795_444_200),
    { event: 'UIMultiplierUpdateCancelled', to: 2n * WAD, effectiveAt: 1_795_444_200n },
  ],
  [
    'Announcement',
    '0xccebf8218a62875909564adef86a6f4df81503cb617221e793357d62f8e813f7',
    [word(alice)],
    // Three offsets, then each length before its text.
    '0x000000000000000000000000000000000000000000000000000000000000006000000000000000000000000000000000000000000000000000000000000000a000000000000000000000000000000000000000000000000000000000000000e000000000000000000000000000000000000000000000000000000000000000077370742d303031000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009322d312073706c697400000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000',
    { event: 'Announcement', id: 'spt-001', description: '2-1 split', uri: '' },
  ],
  [
    'EndAnnouncement',
    '0x96d64dafe2c790596430196b982ad1da3221cb3b0f4e6e2df77f2e4f71a90037',
    [],
    texts('spt-001'),
    { event: 'EndAnnouncement', id: 'spt-001' },
  ],
  [
    'ExtraMetadataUpdated',
    '0xd7bb345be29e78d635203d40fe0567e7ef19d5cd5cc5fcd25f768b8063e82aa1',
    [],
    texts('isin', ''),
    { event: 'ExtraMetadataUpdated', name: 'isin', value: '' },
  ],
  [
    'NameUpdated',
    '0x74321da206c1b9fa34367f7ece59ca49371dcd13820b9a5c3767ae1ecceed51a',
    [word(alice)],
    texts('Äpfel <b>🍏'),
    { event: 'NameUpdated', name: 'Äpfel <b>🍏' },
  ],
  [
    'SymbolUpdated',
    '0x64e8b5c6dcea43dd79766bb3b8af7c45968d12b68c960cf2da23856f34d598d4',
    [word(alice)],
    texts('AAPLc'),
    { event: 'SymbolUpdated', symbol: 'AAPLc' },
  ],
  [
    'ContractURIUpdated',
    '0xa5d4097edda6d87cb9329af83fb3712ef77eeb13738ffe43cc35a4ce305ad962',
    [],
    '0x',
    { event: 'ContractURIUpdated' },
  ],
  [
    'EIP712DomainChanged',
    '0x0a6387c9ea3628b88a633bb4f3b151770f70085117a15f9bf3787cda53f13d31',
    [],
    '0x',
    { event: 'other' },
  ],
  [
    'SupplyCapUpdated',
    '0x6d14f44808ce024f263432bc38d019a9951fbe674e9898b54844dbc8dc09c23a',
    [word(alice)],
    words(2n ** 128n - 1n, 5),
    { event: 'SupplyCapUpdated', from: 2n ** 128n - 1n, to: 5n },
  ],
  [
    'PolicyUpdated',
    '0x8b4790f7ff717fc8f60f07ae099e47ef318dc04b37ae98056b50a22b79056626',
    [word(1)],
    words(0, 1),
    { event: 'other' },
  ],
  [
    'RoleGranted',
    '0x2f8788117e7eff1d82e926ec794901d17c78024a50270940304540a733656f0d',
    [word(0), word(alice), word(bob)],
    '0x',
    { event: 'other' },
  ],
  [
    'RoleRevoked',
    '0xf6391f5c32d9c69d2a47ea670b442974b53935d1edc7fd64eb21e047a839171b',
    [word(0), word(alice), word(bob)],
    '0x',
    { event: 'other' },
  ],
  [
    'RoleAdminChanged',
    '0xbd79b86ffe0ab8e8776151514217cd7cacd52c909f66475c3af44e129f0b00ff',
    [word(0), word(1), word(2)],
    '0x',
    { event: 'other' },
  ],
  [
    'LastAdminRenounced',
    '0xe8d3a9872e7ca325571ff1e4c51ddd69090a0345240cc605ccde365ec867cc67',
    [word(alice)],
    '0x',
    { event: 'other' },
  ],
  [
    'B20Created',
    '0xfd9bf2730513a1709722ff379a0844dfd8f997d600693c2bcc659e188bbdba0d',
    [word(tesla), word(0)],
    texts('Tesla', 'TSLAc'),
    { event: 'other' },
  ],
  [
    'PolicyCreated',
    '0x718d87917f0c4cfd1263707ef0e77c656ed8d8bfaca06152bdb0b8094142ec27',
    [word(1), word(alice)],
    word(0),
    { event: 'other' },
  ],
  [
    'PolicyAdminStaged',
    '0xdbf3b34a4c956c56ca05cd4b8f9293a4347ad61994445a4b89817d4a19561136',
    [word(1), word(alice), word(bob)],
    '0x',
    { event: 'other' },
  ],
  [
    'PolicyAdminUpdated',
    '0x98925cfb1bc09c5b43dd0dd56d3d95aa04fb3300927580cc588c3f5dd58c15e1',
    [word(1), word(alice), word(bob)],
    '0x',
    { event: 'other' },
  ],
  [
    'AllowlistUpdated',
    '0x18c46532f90187ba11e436e21da087b684801d7f0787f2043f26f079c91e9ef0',
    [word(1), word(alice)],
    words(1, 0x40, 0),
    { event: 'other' },
  ],
  [
    'BlocklistUpdated',
    '0x2ff63c102b1b9fd7f5d39f83039c5d6aaf50a414a4f2def2704e41be2628f1e3',
    [word(1), word(alice)],
    words(1, 0x40, 0),
    { event: 'other' },
  ],
  [
    'CompositePolicyUpdated',
    '0x4ff6adaab31b0df87aa7b8b7320c52b8b3b5eede3bf28a6baaaa8b8b7e1d6363',
    [word(1), word(alice)],
    words(0x20, 0),
    { event: 'other' },
  ],
  [
    'AnswerUpdated',
    '0x0559884fd3a460db3073b7fc896cc77986f16e378210ded43186175bf646fc5f',
    [
      '0x000000000000000000000000000000000000000000000000000000078cfcaa60',
      '0x000000000000000000000000000000000000000000000000000000000000016b',
    ],
    '0x000000000000000000000000000000000000000000000000000000006b00596b',
    { event: 'AnswerUpdated', answer: 32_430_140_000n, round: 363n, updatedAt: 1_795_185_003n },
  ],
  [
    'NewTransmission',
    '0xc797025feeeaf2cd924c99e9205acb8ec04d5cad21c41ce637a38fb6dee6016a',
    [word(363)],
    '0x',
    { event: 'other' },
  ],
  [
    'NewRound',
    '0x0109fc6f55cf40689f02fbaad7af7fe7bbac8a3d2186600afc7d3e10cac60271',
    [word(363), word(0)],
    word(1_795_184_980),
    { event: 'other' },
  ],
]

const topicOf = (event: string): Hex => rows.find(([name]) => name === event)?.[1] ?? word(0)
const TRANSFER = topicOf('Transfer')

describe('a log', () => {
  it.each(rows)('of %s says what it is, and nothing that it is not', (_, name, indexed, data, said) => {
    expect(read(logOf([name, ...indexed], data))).toEqual(said)
  })

  it.each(rows)('of %s in another layout is something else', (_, name, indexed, data) => {
    const less = data === '0x' ? word(7) : data.slice(0, -64)
    const spoilt = [logOf([name, ...indexed], less)]
    if (indexed.length > 0) spoilt.push(logOf([name, ...indexed.slice(1)], data))
    if (indexed.length < 3) spoilt.push(logOf([name, ...indexed, word(7)], data))
    expect(spoilt.map(read)).toEqual(spoilt.map(() => ({ event: 'other' })))
  })

  it.each(rows)(
    'of %s whose words do not end where they should says no more than it does',
    (_, name, indexed, data) => {
      expect(() => read(logOf([name, ...indexed], `${data}00`))).not.toThrow()
    },
  )

  it('names addresses in lower case, and amounts exactly', () => {
    const mixed = '0xB200000000000000000000C2E324D24D7EECD1FB'
    const topics = [TRANSFER, `0x${mixed.slice(2).padStart(64, '0')}`, word(bob)]
    expect(read(logOf(topics, `0x${'f'.repeat(64)}`))).toEqual({
      event: 'Transfer',
      from: mixed.toLowerCase(),
      to: bob,
      amount: 2n ** 256n - 1n,
    })
  })

  it('may move nothing, and to oneself', () => {
    expect(read(logOf([TRANSFER, word(bob), word(bob)], word(0)))).toEqual({
      event: 'Transfer',
      from: bob,
      to: bob,
      amount: 0n,
    })
  })

  it.each<[string, readonly string[], string]>([
    ['no topics', [], '0x'],
    ['a third indexed value, as tokens with an id have', [TRANSFER, word(alice), word(bob), word(1)], '0x'],
    ['an address that is longer than one', [TRANSFER, `0x01${word(alice).slice(4)}`, word(bob)], word(1)],
    ['a word too many', [TRANSFER, word(alice), word(bob)], words(1, 2)],
    ['cut data', [TRANSFER, word(alice), word(bob)], '0x1234'],
    ['a name that nobody knows', [word(1), word(alice), word(bob)], word(1)],
  ])('is something else with %s', (_, topics, data) => {
    expect(read(logOf(topics, data))).toEqual({ event: 'other' })
  })

  it('may answer with less than nothing', () => {
    expect(read(logOf([topicOf('AnswerUpdated'), `0x${'f'.repeat(64)}`, word(1)], word(2)))).toMatchObject({
      answer: -1n,
    })
  })

  it('may pause nothing', () => {
    expect(read(logOf([topicOf('Paused'), word(alice)], words(0x20, 0)))).toEqual({ event: 'Paused', features: [] })
  })
})
