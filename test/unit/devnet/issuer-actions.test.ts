import { parseUnits } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
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
const nowOf = (devnet: Devnet) => devnet.chain.pending.timestamp
const changedNow = (devnet: Devnet, from: bigint, to: bigint) => [
  ['MultiplierUpdated', to],
  ['UIMultiplierUpdated', from, to, BigInt(nowOf(devnet))],
]
const scheduled = (from: bigint, to: bigint, effectiveAt: number) => ['UIMultiplierUpdated', from, to, BigInt(effectiveAt)]
const cancelled = (to: bigint, effectiveAt: number) => ['UIMultiplierUpdateCancelled', to, BigInt(effectiveAt)]

describe('the multiplier', () => {
  it.each<[string, (devnet: Devnet, at: number) => void, (devnet: Devnet, at: number) => unknown[], string]>([
    [
      'changes at once, and again in the same block',
      ({ issuer }) => ['2', '6.000000000000000001'].forEach((to) => void issuer.split({ symbol, to })),
      (devnet) => [...changedNow(devnet, WAD, 2n * WAD), ...changedNow(devnet, 2n * WAD, 6n * WAD + 1n)],
      '6.000000000000000001',
    ],
    [
      'changes at once, which cancels a schedule',
      ({ issuer }, effectiveAt) => [issuer.split({ symbol, to: '2', effectiveAt }), issuer.split({ symbol, to: '3' })],
      (devnet, at) => [scheduled(WAD, 2n * WAD, at), cancelled(2n * WAD, at), ...changedNow(devnet, WAD, 3n * WAD)],
      '3',
    ],
    [
      'changes as scheduled, but neither in the past nor by a second schedule',
      (devnet, effectiveAt) => {
        devnet.issuer.split({ symbol, to: '4', effectiveAt: nowOf(devnet) })
        for (const to of ['2', '3']) devnet.issuer.split({ symbol, to, effectiveAt })
      },
      (_, at) => [scheduled(WAD, 2n * WAD, at)],
      '2',
    ],
    [
      'stays where the schedule is cancelled, once',
      ({ issuer }, effectiveAt) => {
        issuer.split({ symbol, to: '2', effectiveAt })
        for (let times = 0; times < 2; times++) issuer.cancelSplit({ symbol })
      },
      (_, at) => [scheduled(WAD, 2n * WAD, at), cancelled(2n * WAD, at)],
      '1',
    ],
  ])('%s', async (_, act, expected, listed) => {
    const devnet = await startManualDevnet()
    const effectiveAt = nowOf(devnet) + 5
    act(devnet, effectiveAt)
    expect(decodeFlashblock(devnet)).toEqual(expected(devnet, effectiveAt))
    while (devnet.chain.head.timestamp < effectiveAt) devnet.seal()
    expect(recordOf(devnet)?.multiplier).toBe(listed)
    // Also what took effect by a schedule is where the next one starts, and stays until then.
    devnet.issuer.split({ symbol, to: '40', effectiveAt: effectiveAt + 60 })
    expect(decodeFlashblock(devnet)).toEqual([scheduled(parseUnits(listed, 18), 40n * WAD, effectiveAt + 60)])
    devnet.seal()
    expect(recordOf(devnet)?.multiplier).toBe(listed)
  })
})

describe('a call of the issuer', () => {
  const [description, uri] = ['Cash dividend', 'https://example.invalid/dividend']
  const byOperator = expect.stringMatching(/^0x0{24}[0-9a-f]{40}$/)

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
      'a mint with a memo, which the custodian sends',
      ({ transfer }) => transfer({ symbol, from: ZERO, to: CAROL, raw: 7n, memo: MEMO }),
      ({ custodian }) => [
        ['Transfer', toWord(0n), toWord(CAROL), 7n],
        ['Memo', toWord(custodian), MEMO],
      ],
    ],
    [
      'a seizure, by the operator',
      ({ issuer }) => issuer.seize({ symbol, from: CAROL, raw: 5n, memo: MEMO }),
      ({ custodian }) => [
        ['Transfer', toWord(CAROL), toWord(custodian), 5n],
        ['Memo', byOperator, MEMO],
        ['Seized', byOperator, toWord(CAROL), toWord(custodian), 5n],
      ],
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

  it('that renames leaves the old symbol as a name of the token, and the values that a test has set on the list', async () => {
    const devnet = await startManualDevnet()
    const address = devnet.list.addressOf(symbol)
    devnet.issuer.rename({ symbol, to: 'TSLRc' })
    devnet.makeFlashblock()
    devnet.seal()
    expect([devnet.list.addressOf(symbol), devnet.list.addressOf('TSLRc')]).toEqual([address, address])
    devnet.list.change('TSLRc', { multiplier: '7' })
    devnet.issuer.split({ symbol, to: '2' })
    devnet.makeFlashblock()
    devnet.seal()
    expect(recordOf(devnet)).toMatchObject({ symbol: 'TSLRc', multiplier: '7' })
  })

  it.each<[string, ({ issuer }: Devnet) => Hex, string]>([
    ['a name that is too long for a slot', ({ issuer }) => issuer.rename({ symbol, name: 'x'.repeat(32) }), 'longer than 31 bytes'],
    ['a multiplier of zero', ({ issuer }) => issuer.split({ symbol, to: '0' }), 'a multiplier is above zero'],
  ])('is refused at once for %s', async (_, act, message) => {
    const devnet = await startManualDevnet()
    expect(() => act(devnet)).toThrow(message)
  })
})
