import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { tokenBalanceKey } from '../../../src/devnet/tokens/token-storage.ts'
import { type Hex, toWord } from '../../../src/lib/hex.ts'
import { decodeLog } from './decode-log.ts'
import { CAROL, startManualDevnet, ZERO } from './devnet-client.ts'

const WAD = 10n ** 18n
const MEMO: Hex = `0x${'4d'.repeat(32)}`
const symbol = 'TSLAc'

const recordOf = (devnet: Devnet) => {
  const address = devnet.tokens.find((token) => token.symbol === symbol)?.contractAddress
  return devnet.list.records().find((record) => record.contract_address === address)
}
/** Makes a flashblock and decodes its logs. */
const decodeFlashblock = (devnet: Devnet) => devnet.makeFlashblock().map(decodeLog)
const sealUntil = (devnet: Devnet, timestamp: number) => {
  while (devnet.chain.head.timestamp < timestamp) devnet.seal()
}
const changedNow = (devnet: Devnet, from: bigint, to: bigint) => [
  ['MultiplierUpdated', to],
  ['UIMultiplierUpdated', from, to, BigInt(devnet.chain.pending.timestamp)],
]

describe('an immediate split', () => {
  it('emits two logs, and the list has the multiplier once the block is sealed', async () => {
    const devnet = await startManualDevnet()
    const hash = devnet.issuer.split({ symbol, to: '2' })
    const logs = devnet.makeFlashblock()
    expect(logs.map(decodeLog)).toEqual(changedNow(devnet, WAD, 2n * WAD))
    expect(logs.map(({ transactionHash }) => transactionHash)).toEqual([hash, hash])
    // Another in the same block starts from its result.
    devnet.issuer.split({ symbol, to: '6.000000000000000001' })
    expect(decodeFlashblock(devnet)).toEqual(changedNow(devnet, 2n * WAD, 6n * WAD + 1n))
    expect(recordOf(devnet)?.multiplier).toBe('1')
    devnet.seal()
    expect(recordOf(devnet)?.multiplier).toBe('6.000000000000000001')
  })

  it('cancels a pending schedule', async () => {
    const devnet = await startManualDevnet()
    const effectiveAt = devnet.chain.pending.timestamp + 60
    devnet.issuer.split({ symbol, to: '2', effectiveAt })
    devnet.issuer.split({ symbol, to: '3' })
    expect(decodeFlashblock(devnet).slice(1)).toEqual([
      ['UIMultiplierUpdateCancelled', 2n * WAD, BigInt(effectiveAt)],
      ...changedNow(devnet, WAD, 3n * WAD),
    ])
    sealUntil(devnet, effectiveAt)
    expect(recordOf(devnet)?.multiplier).toBe('3')
  })
})

describe('a scheduled split', () => {
  it('emits one log, and takes effect without a log in the first block that reaches its second', async () => {
    const devnet = await startManualDevnet()
    const effectiveAt = devnet.chain.pending.timestamp + 5
    devnet.issuer.split({ symbol, to: '20', effectiveAt })
    expect(decodeFlashblock(devnet)).toEqual([['UIMultiplierUpdated', WAD, 20n * WAD, BigInt(effectiveAt)]])
    const observed = [0, 1, 2, 3].map(() => {
      const { timestamp, logs } = devnet.seal()
      return [timestamp - effectiveAt, logs.length, recordOf(devnet)?.multiplier]
    })
    expect(observed).toEqual([
      [-5, 1, '1'],
      [-3, 0, '1'],
      [-1, 0, '1'],
      [1, 0, '20'],
    ])
    devnet.issuer.split({ symbol, to: '40', effectiveAt: effectiveAt + 60 })
    expect(decodeFlashblock(devnet)).toEqual([['UIMultiplierUpdated', 20n * WAD, 40n * WAD, BigInt(effectiveAt + 60)]])
  })

  it('is refused for the past, and while another is pending, until that one is cancelled', async () => {
    const devnet = await startManualDevnet()
    const now = devnet.chain.pending.timestamp
    const effectiveAt = now + 4
    devnet.issuer.split({ symbol, to: '4', effectiveAt: now })
    devnet.issuer.split({ symbol, to: '2', effectiveAt })
    devnet.issuer.split({ symbol, to: '3', effectiveAt })
    devnet.issuer.cancelSplit({ symbol })
    devnet.issuer.cancelSplit({ symbol })
    expect(decodeFlashblock(devnet)).toEqual([
      ['UIMultiplierUpdated', WAD, 2n * WAD, BigInt(effectiveAt)],
      ['UIMultiplierUpdateCancelled', 2n * WAD, BigInt(effectiveAt)],
    ])
    expect(devnet.seal().transactions).toHaveLength(5)
    sealUntil(devnet, effectiveAt)
    expect(recordOf(devnet)?.multiplier).toBe('1')
  })
})

describe('a call of the issuer', () => {
  const [description, uri] = ['Cash dividend', 'https://example.invalid/dividend']
  const byOperator = expect.stringMatching(/^0x0{24}[0-9a-f]{40}$/)
  const split = (devnet: Devnet) => ({ to: '2', effectiveAt: devnet.chain.pending.timestamp + 60 })

  it.each<[string, (devnet: Devnet) => Hex, (devnet: Devnet) => unknown]>([
    [
      'a dividend, with the announcement around the change',
      ({ issuer }) => issuer.dividend({ symbol, to: '1.0005', id: 'div-1', description, uri }),
      (devnet) => [
        ['Announcement', byOperator, 'div-1', description, uri],
        ...changedNow(devnet, WAD, 1_000_500_000_000_000_000n),
        ['EndAnnouncement', 'div-1'],
      ],
    ],
    [
      'an announced schedule',
      (devnet) => devnet.issuer.announce({ symbol, id: 'split-1', split: split(devnet) }),
      (devnet) => [
        ['Announcement', byOperator, 'split-1', '', ''],
        ['UIMultiplierUpdated', WAD, 2n * WAD, BigInt(split(devnet).effectiveAt)],
        ['EndAnnouncement', 'split-1'],
      ],
    ],
    [
      'a notice',
      ({ issuer }) => issuer.announce({ symbol, id: 'note-1' }),
      () => [
        ['Announcement', byOperator, 'note-1', '', ''],
        ['EndAnnouncement', 'note-1'],
      ],
    ],
    [
      'a mint with a memo, which the custodian sends',
      ({ issuer }) => issuer.transferWithMemo({ symbol, from: ZERO, to: CAROL, raw: 7n, memo: MEMO }),
      ({ custodian }) => [
        ['Transfer', toWord(0n), toWord(CAROL), 7n],
        ['Memo', toWord(custodian), MEMO],
      ],
    ],
    [
      'a new name and symbol',
      ({ issuer }) => issuer.rename({ symbol, to: 'TSLRc', name: 'Tesla Robotics Ärö' }),
      () => [['NameUpdated', byOperator, 'Tesla Robotics Ärö'], ['EIP712DomainChanged'], ['SymbolUpdated', byOperator, 'TSLRc']],
    ],
    [
      'other details, with an empty value for a removed field',
      ({ issuer }) => issuer.updateDetails({ symbol, uri, metadata: { lei: 'X', old: '' }, supplyCap: 5n }),
      () => [
        ['ContractURIUpdated'],
        ['ExtraMetadataUpdated', 'lei', 'X'],
        ['ExtraMetadataUpdated', 'old', ''],
        ['SupplyCapUpdated', byOperator, 2n ** 128n - 1n, 5n],
      ],
    ],
    [
      'a second supply cap, which names the first',
      (devnet) => {
        devnet.issuer.updateDetails({ symbol, supplyCap: 5n })
        devnet.makeFlashblock()
        return devnet.issuer.updateDetails({ symbol, supplyCap: 6n })
      },
      () => [['SupplyCapUpdated', byOperator, 5n, 6n]],
    ],
  ])('is one transaction: %s', async (_, act, expected) => {
    const devnet = await startManualDevnet()
    const hash = act(devnet)
    const logs = devnet.makeFlashblock()
    expect(logs.map(decodeLog)).toEqual(expected(devnet))
    expect(new Set(logs.map(({ transactionHash }) => transactionHash))).toEqual(new Set([hash]))
  })

  it('that pauses emits its own features, while the list has all paused features', async () => {
    const devnet = await startManualDevnet()
    for (const [action, name, features, listed] of [
      ['pause', 'Paused', [1, 0], [0, 1]],
      ['pause', 'Paused', [1, 3], [0, 1, 3]],
      ['unpause', 'Unpaused', [0, 2], [1, 3]],
    ] as const) {
      devnet.issuer[action]({ symbol, features })
      expect(decodeFlashblock(devnet)).toEqual([[name, byOperator, features]])
      devnet.seal()
      expect(recordOf(devnet)?.paused_features).toEqual(listed)
    }
  })

  it('that seizes is a transfer, its memo and Seized, by the operator', async () => {
    const devnet = await startManualDevnet()
    devnet.issuer.transferWithMemo({ symbol, to: CAROL, raw: 7n, memo: MEMO })
    devnet.issuer.seize({ symbol, from: CAROL, raw: 5n, memo: MEMO })
    const [custodian, carol] = [toWord(devnet.custodian), toWord(CAROL)]
    const decoded = decodeFlashblock(devnet)
    const operator = decoded[3]?.[1]
    expect(decoded).toEqual([
      ['Transfer', custodian, carol, 7n],
      ['Memo', custodian, MEMO],
      ['Transfer', carol, custodian, 5n],
      ['Memo', operator, MEMO],
      ['Seized', operator, carol, custodian, 5n],
    ])
    expect(operator).not.toBe(custodian)
    expect(devnet.chain.valueAt(tokenBalanceKey(devnet.list.addressOf(symbol), CAROL), 'pending')).toBe(2n)
  })

  it('that renames leaves the old symbol as a name of the token', async () => {
    const devnet = await startManualDevnet()
    const address = devnet.list.addressOf(symbol)
    devnet.issuer.rename({ symbol, to: 'TSLRc' })
    devnet.makeFlashblock()
    devnet.seal()
    expect([devnet.list.addressOf(symbol), devnet.list.addressOf('TSLRc')]).toEqual([address, address])
  })

  it('does not replace a value that a test has set on the list', async () => {
    const devnet = await startManualDevnet()
    devnet.list.change(symbol, { symbol: 'TSLA', multiplier: '7', paused_features: [9] })
    devnet.issuer.rename({ symbol: 'TSLA', to: 'TSLRc' })
    devnet.issuer.split({ symbol, to: '2' })
    devnet.makeFlashblock()
    devnet.seal()
    expect(recordOf(devnet)).toMatchObject({ symbol: 'TSLA', multiplier: '7', paused_features: [9] })
  })

  it.each<[string, ({ issuer }: Devnet) => Hex, string]>([
    ['a name that is too long for a slot', ({ issuer }) => issuer.rename({ symbol, name: 'x'.repeat(32) }), 'longer than 31 bytes'],
    ['nothing to change', ({ issuer }) => issuer.rename({ symbol }), 'there is nothing to do'],
    ['a multiplier of zero', ({ issuer }) => issuer.split({ symbol, to: '0' }), 'a multiplier is above zero'],
  ])('is refused at once for %s', async (_, act, message) => {
    const devnet = await startManualDevnet()
    expect(() => act(devnet)).toThrow(message)
  })
})
