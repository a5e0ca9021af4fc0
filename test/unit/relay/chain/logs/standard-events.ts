import { expect } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { DecodedEvent } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import { alice, bob, stringData, tesla, word, words } from '../node-json.ts'

const WAD = 10n ** 18n
/** The word of -1. */
const FULL = 2n ** 256n - 1n
const memo: Hex = `0x${'4d'.repeat(32)}`

const selectors: Readonly<Record<string, Hex>> = {
  Transfer: '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
  Approval: '0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925',
  Memo: '0x6989f5818dcfd11f8cd53b27c94cec33dae1589735f03e639cba54553a1825e8',
  Seized: '0xa9aec5d8b86e2fa2fd6ac3af62f2622e3dfdab1967d4cbbb56a5df7d74cb887c',
  Paused: '0x3e849708b13f20dd0b87a503523c305e7604cd7e8f855e7a5ebe21397dfd7146',
  Unpaused: '0x086a815e5123cf1af5cb7a82f8b052bf96c622204c98b2f4f9782bf77f753c57',
  MultiplierUpdated: '0x4dbe4840d7465bd162f67814cea0b519567a2e0e578bcde61e7f4ced361e5a3d',
  UIMultiplierUpdated: '0x2205df4534432b2f60654a3fdb48737ffdaf3e9edb1a498bd985bc026b15b055',
  UIMultiplierUpdateCancelled: '0x883856335ba5f60c18b9817c4505d3c7d3f6223dcf39516b30c508c46a5e1cad',
  Announcement: '0xccebf8218a62875909564adef86a6f4df81503cb617221e793357d62f8e813f7',
  EndAnnouncement: '0x96d64dafe2c790596430196b982ad1da3221cb3b0f4e6e2df77f2e4f71a90037',
  ExtraMetadataUpdated: '0xd7bb345be29e78d635203d40fe0567e7ef19d5cd5cc5fcd25f768b8063e82aa1',
  NameUpdated: '0x74321da206c1b9fa34367f7ece59ca49371dcd13820b9a5c3767ae1ecceed51a',
  SymbolUpdated: '0x64e8b5c6dcea43dd79766bb3b8af7c45968d12b68c960cf2da23856f34d598d4',
  ContractURIUpdated: '0xa5d4097edda6d87cb9329af83fb3712ef77eeb13738ffe43cc35a4ce305ad962',
  SupplyCapUpdated: '0x6d14f44808ce024f263432bc38d019a9951fbe674e9898b54844dbc8dc09c23a',
  AnswerUpdated: '0x0559884fd3a460db3073b7fc896cc77986f16e378210ded43186175bf646fc5f',
  Swap: '0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67',
  'Swap of a manager': '0x40e9cecb9f5f1f1c5b9c97dec2917b7ee92e57ba5563708daca94dd84ad7112f',
}

type Contents = readonly [event: string, indexed: readonly Hex[], data: Hex, fields: object]

/** What the decoded events contain, some of it in the bytes of a chain. */
const contents: readonly Contents[] = [
  ['Transfer', [word(alice), word(bob)], word(150_000_000), { from: alice, to: bob, amount: 150_000_000n }],
  ['Approval', [word(alice), word(bob)], word(9), { owner: alice, spender: bob, amount: 9n }],
  ['Memo', [word(alice), memo], '0x', { memo }],
  ['Seized', [word(tesla), word(alice), word(bob)], word(9), { from: alice, to: bob, amount: 9n }],
  [
    'Paused',
    [word(alice)],
    '0x0000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000000200000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001',
    { features: [0, 1] },
  ],
  ['Unpaused', [word(alice)], words(0x20, 1, 255), { features: [255] }],
  ['MultiplierUpdated', [], word(2n * WAD), { to: 2n * WAD }],
  [
    'UIMultiplierUpdated',
    [],
    '0x0000000000000000000000000000000000000000000000000de0b6b3a76400000000000000000000000000000000000000000000000000001bc16d674ec80000000000000000000000000000000000000000000000000000000000006b044de8',
    { from: WAD, to: 2n * WAD, effectiveAt: 1_795_444_200n },
  ],
  ['UIMultiplierUpdateCancelled', [], words(2n * WAD, 1_795_444_200), { to: 2n * WAD, effectiveAt: 1_795_444_200n }],
  [
    'Announcement',
    [word(alice)],
    // Three offsets, then each length before its string.
    '0x000000000000000000000000000000000000000000000000000000000000006000000000000000000000000000000000000000000000000000000000000000a000000000000000000000000000000000000000000000000000000000000000e000000000000000000000000000000000000000000000000000000000000000077370742d303031000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009322d312073706c697400000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000',
    { id: 'spt-001', description: '2-1 split', uri: '' },
  ],
  ['EndAnnouncement', [], stringData('spt-001'), { id: 'spt-001' }],
  ['ExtraMetadataUpdated', [], stringData('isin', ''), { name: 'isin', value: '' }],
  ['NameUpdated', [word(alice)], stringData('Äpfel <b>🍏'), { name: 'Äpfel <b>🍏' }],
  ['SymbolUpdated', [word(alice)], stringData('AAPLc'), { symbol: 'AAPLc' }],
  ['ContractURIUpdated', [], '0x', {}],
  ['SupplyCapUpdated', [word(alice)], words(2n ** 128n - 1n, 5), { from: 2n ** 128n - 1n, to: 5n }],
  [
    'AnswerUpdated',
    [word(32_430_140_000), word(363)],
    word(1_795_185_003),
    { answer: 32_430_140_000n, round: 363n, updatedAt: 1_795_185_003n },
  ],
  [
    'Swap',
    [word(alice), word(bob)],
    words(FULL - 149_999_999n, 487_356_584, 2n ** 159n, 2n ** 127n, FULL - 59n),
    {
      ...{ poolId: null, sender: alice, recipient: bob, fee: null },
      ...{ amounts: [-150_000_000n, 487_356_584n], sqrtPriceX96: 2n ** 159n, liquidity: 2n ** 127n },
    },
  ],
  [
    'Swap of a manager',
    [memo, word(alice)],
    words(150_000_000, FULL - 487_356_583n, 2n ** 96n, 7, 60, 3_000),
    {
      ...{ event: 'Swap', poolId: memo, sender: alice, recipient: null, fee: 3_000 },
      ...{ amounts: [150_000_000n, -487_356_584n], sqrtPriceX96: 2n ** 96n, liquidity: 7n },
    },
  ],
]

/** The selector of a decoded event. */
export const topicOf = (event: string): Hex => selectors[event] ?? expect.unreachable(`no ${event}`)

/** The decoded events: name, selector, indexed values, data, and the result. */
export const decodedEvents = contents.map(
  ([event, indexed, data, fields]) => [event, topicOf(event), indexed, data, { event, ...fields } as DecodedEvent] as const,
)
