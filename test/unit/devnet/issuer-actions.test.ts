import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { tokenBalanceKey } from '../../../src/devnet/tokens/token-storage.ts'
import { type Hex, toWord } from '../../../src/lib/hex.ts'
import { decodeLog, eventNames } from './decode-log.ts'
import { CAROL, startManualDevnet, ZERO } from './devnet-client.ts'

const WAD = 10n ** 18n
const MEMO: Hex = `0x${'4d'.repeat(32)}`
const symbol = 'TSLAc'

const recordOf = (devnet: Devnet, which = symbol) => {
  const address = devnet.tokens.find((token) => token.symbol === which)?.contractAddress
  return devnet.list.records().find((record) => record.contract_address === address)
}
/** Makes a flashblock and decodes its logs. */
const decodeFlashblock = (devnet: Devnet) => devnet.makeFlashblock().map(decodeLog)
const pendingTimestamp = (devnet: Devnet) => BigInt(devnet.chain.pending.timestamp)
/** Seals blocks until the head has reached this second. */
const sealUntil = (devnet: Devnet, timestamp: number) => {
  while (devnet.chain.head.timestamp < timestamp) devnet.seal()
}

describe('an immediate split', () => {
  it('emits two logs, and the list has the multiplier once the block is sealed', async () => {
    const devnet = await startManualDevnet()
    const now = pendingTimestamp(devnet)
    const hash = devnet.issuer.split({ symbol, to: '2' })
    const logs = devnet.makeFlashblock()
    expect(logs.map(decodeLog)).toEqual([
      ['MultiplierUpdated', 2n * WAD],
      ['UIMultiplierUpdated', WAD, 2n * WAD, now],
    ])
    expect(new Set(logs.map(({ transactionHash }) => transactionHash))).toEqual(new Set([hash]))
    expect(recordOf(devnet)?.multiplier).toBe('1')
    devnet.seal()
    expect(recordOf(devnet)?.multiplier).toBe('2')
  })

  it('starts from the result of another in the same flashblock', async () => {
    const devnet = await startManualDevnet()
    const now = pendingTimestamp(devnet)
    devnet.issuer.split({ symbol, to: '2' })
    devnet.issuer.split({ symbol, to: '6.000000000000000001' })
    expect(decodeFlashblock(devnet).at(-1)).toEqual(['UIMultiplierUpdated', 2n * WAD, 6n * WAD + 1n, now])
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
      ['MultiplierUpdated', 3n * WAD],
      ['UIMultiplierUpdated', WAD, 3n * WAD, pendingTimestamp(devnet)],
    ])
    sealUntil(devnet, effectiveAt)
    expect(recordOf(devnet)?.multiplier).toBe('3')
  })

  it.each([
    ['dropped', (devnet: Devnet, hash: Hex) => void devnet.faults.drop(hash), () => {}],
    ['reorganised away', () => {}, (devnet: Devnet, hash: Hex) => void devnet.reorg(1, [hash])],
  ])('is undone when its transaction is %s', async (_, beforeSeal, afterSeal) => {
    const devnet = await startManualDevnet()
    const hash = devnet.issuer.split({ symbol, to: '2' })
    devnet.makeFlashblock()
    beforeSeal(devnet, hash)
    devnet.seal()
    afterSeal(devnet, hash)
    expect(recordOf(devnet)?.multiplier).toBe('1')
    devnet.issuer.split({ symbol, to: '3' })
    expect(decodeFlashblock(devnet).at(-1)).toEqual(['UIMultiplierUpdated', WAD, 3n * WAD, pendingTimestamp(devnet)])
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

  it('is refused while another is pending, until that one is cancelled', async () => {
    const devnet = await startManualDevnet()
    const effectiveAt = devnet.chain.pending.timestamp + 4
    devnet.issuer.split({ symbol, to: '2', effectiveAt })
    devnet.issuer.split({ symbol, to: '3', effectiveAt })
    devnet.issuer.cancelSplit({ symbol })
    devnet.issuer.cancelSplit({ symbol })
    expect(decodeFlashblock(devnet).slice(1)).toEqual([['UIMultiplierUpdateCancelled', 2n * WAD, BigInt(effectiveAt)]])
    expect(devnet.seal().transactions).toHaveLength(4)
    sealUntil(devnet, effectiveAt)
    expect(recordOf(devnet)?.multiplier).toBe('1')
  })

  it('is refused for the past', async () => {
    const devnet = await startManualDevnet()
    devnet.issuer.split({ symbol, to: '2', effectiveAt: devnet.chain.pending.timestamp })
    expect(decodeFlashblock(devnet)).toEqual([])
  })
})

describe('an announcement', () => {
  it('surrounds the logs of the dividend that it announces', async () => {
    const devnet = await startManualDevnet()
    const now = pendingTimestamp(devnet)
    const [description, uri] = ['Cash dividend', 'https://example.invalid/dividend']
    devnet.issuer.dividend({ symbol, to: '1.0005', id: 'div-1', description, uri })
    const logs = devnet.makeFlashblock()
    const [announcement, ...rest] = logs.map(decodeLog)
    expect(announcement).toEqual(['Announcement', expect.stringMatching(/^0x0{24}/), 'div-1', description, uri])
    expect(rest).toEqual([
      ['MultiplierUpdated', 1_000_500_000_000_000_000n],
      ['UIMultiplierUpdated', WAD, 1_000_500_000_000_000_000n, now],
      ['EndAnnouncement', 'div-1'],
    ])
    expect(new Set(logs.map(({ transactionHash }) => transactionHash)).size).toBe(1)
  })

  it('may announce a schedule, or be only a notice', async () => {
    const devnet = await startManualDevnet()
    const effectiveAt = devnet.chain.pending.timestamp + 60
    devnet.issuer.announce({ symbol, id: 'split-1', split: { to: '2', effectiveAt } })
    expect(eventNames(devnet.makeFlashblock())).toEqual(['Announcement', 'UIMultiplierUpdated', 'EndAnnouncement'])
    devnet.issuer.announce({ symbol, id: 'note-1' })
    expect(eventNames(devnet.makeFlashblock())).toEqual(['Announcement', 'EndAnnouncement'])
  })
})

describe('a pause', () => {
  it('emits the features of the call, while the list has all paused features', async () => {
    const devnet = await startManualDevnet()
    const observed: unknown[] = []
    for (const [action, features] of [
      ['pause', [1, 0]],
      ['pause', [1, 3]],
      ['unpause', [0, 2]],
    ] as const) {
      devnet.issuer[action]({ symbol, features })
      const [name, updater, decoded] = decodeFlashblock(devnet)[0] ?? []
      expect(updater).toMatch(/^0x0{24}[0-9a-f]{40}$/)
      devnet.seal()
      observed.push([name, decoded, recordOf(devnet)?.paused_features])
    }
    expect(observed).toEqual([
      ['Paused', [1, 0], [0, 1]],
      ['Paused', [1, 3], [0, 1, 3]],
      ['Unpaused', [0, 2], [1, 3]],
    ])
  })
})

describe('a memo', () => {
  it('follows its transfer, and Seized follows the memo of a seizure', async () => {
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

  it('follows a mint that the custodian sends', async () => {
    const devnet = await startManualDevnet()
    devnet.issuer.transferWithMemo({ symbol, from: ZERO, to: CAROL, raw: 7n, memo: MEMO })
    expect(decodeFlashblock(devnet).map(([name, by]) => [name, by])).toEqual([
      ['Transfer', toWord(0n)],
      ['Memo', toWord(devnet.custodian)],
    ])
  })
})

describe('a new name or symbol', () => {
  it('is on the list once it is sealed, while the old symbol still finds the token', async () => {
    const devnet = await startManualDevnet()
    const address = devnet.list.addressOf(symbol)
    devnet.issuer.rename({ symbol, to: 'TSLRc', name: 'Tesla Robotics Ärö' })
    expect(decodeFlashblock(devnet).map(([name, updater, to]) => [name, to ?? updater])).toEqual([
      ['NameUpdated', 'Tesla Robotics Ärö'],
      ['EIP712DomainChanged', undefined],
      ['SymbolUpdated', 'TSLRc'],
    ])
    devnet.seal()
    expect(recordOf(devnet)).toMatchObject({ symbol: 'TSLRc', name: 'Tesla Robotics Ärö' })
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

  it('is refused at once if it is too long for a slot or changes nothing', async () => {
    const devnet = await startManualDevnet()
    expect(() => devnet.issuer.rename({ symbol, name: 'x'.repeat(32) })).toThrow('longer than 31 bytes')
    expect(() => devnet.issuer.rename({ symbol })).toThrow('there is nothing to do')
    expect(() => devnet.issuer.split({ symbol, to: '0' })).toThrow('a multiplier is above zero')
  })
})

describe('other token details', () => {
  it('change in one transaction, with an empty value for a removed field', async () => {
    const devnet = await startManualDevnet()
    devnet.issuer.updateDetails({ symbol, uri: 'https://example.invalid/2', metadata: { lei: 'X', old: '' }, supplyCap: 5n })
    devnet.issuer.updateDetails({ symbol, supplyCap: 6n })
    const decoded = decodeFlashblock(devnet)
    expect(decoded.slice(0, 3)).toEqual([
      ['ContractURIUpdated'],
      ['ExtraMetadataUpdated', 'lei', 'X'],
      ['ExtraMetadataUpdated', 'old', ''],
    ])
    expect(decoded.slice(3).map(([name, , from, to]) => [name, from, to])).toEqual([
      ['SupplyCapUpdated', 2n ** 128n - 1n, 5n],
      ['SupplyCapUpdated', 5n, 6n],
    ])
  })
})
