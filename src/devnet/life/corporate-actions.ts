import { parseUnits, stringToHex } from 'viem/utils'
import { type Hex, ZERO_ADDRESS } from '../../lib/hex.ts'
import type { DeferredTransaction } from '../chain/state-dependent-transaction.ts'
import { addMemo, addSeizure, buildTransfer, type TokenTransfer } from '../chain/transactions.ts'
import {
  changeContractUri,
  changeMetadata,
  changeName,
  changeSupplyCap,
  changeSymbol,
  pause,
  unpause,
} from '../tokens/admin-calls.ts'
import { lateToken, TOKEN_DECIMALS, tokens } from '../tokens/issued-tokens.ts'
import { announce, buildTokenCall, multicall, type TokenCall } from '../tokens/issuer-call.ts'
import { cancelSchedule, changeMultiplier, scheduleMultiplier } from '../tokens/multiplier-calls.ts'
import { buildFeedFreeze } from '../tokens/oracle-registry.ts'
import { MULTIPLIER_DECIMALS, NO_CAP } from '../tokens/token-storage.ts'

/** A cycle's number, and the time in seconds of a block in it. */
export type Cycle = { number: number; timestampOf: (blockInCycle: number) => number }

/** An action and its block in the cycle. The last block has none, since a chain may start there. */
type ScriptEntry = readonly [at: number, plan: (cycle: Cycle) => DeferredTransaction]

/** The late token is on the list from one block of a cycle until before another. */
export const LISTED_FROM_BLOCK = 48
export const LISTED_UNTIL_BLOCK = 224

/** Tokens whose mints and burns are paused for a while; the market neither mints nor burns them. */
export const mintPausedSymbols: readonly string[] = ['COINc']

/** The feed that is frozen from one block of a cycle until before another, around a dividend. */
export const frozenFeed = { symbol: 'GOOGLc', fromBlock: 28, untilBlock: 64 } as const

/** How many blocks after the chain the list shows a token's new name. */
export const NAME_DELAY_BLOCKS = 10

/** The operator acts for the issuer, with the custodian's tokens, and seizes the debtor's. */
type Actors = { custodian: Hex; operator: Hex; debtor: Hex }

/**
 * The corporate actions of every cycle, in order; each is undone later in the cycle. The best-known tokens (AAPLc,
 * TSLAc, NVDAc, MSFTc) have only the market.
 */
export const createCorporateActions = ({ custodian, operator, debtor }: Actors): readonly ScriptEntry[] => {
  const callToken = (symbol: string, ...calls: readonly TokenCall[]): DeferredTransaction => {
    const [first, ...others] = calls
    const call = first && others.length === 0 ? first : multicall(calls)
    return buildTokenCall({ token: findToken(symbol).address, sender: operator }, call)
  }
  const transferOf = (symbol: string, from: Hex, to: Hex, amount: string): TokenTransfer => {
    return { token: findToken(symbol).address, from, to, raw: parseUnits(amount, TOKEN_DECIMALS) }
  }
  const transferWithMemo = (symbol: string, amount: string, memo: string): DeferredTransaction => {
    const transfer = transferOf(symbol, custodian, debtor, amount)
    return () => addMemo(buildTransfer(transfer, operator), transfer, encodeMemo(memo))
  }
  const seize = (symbol: string, amount: string, memo: string): DeferredTransaction => {
    const transfer = transferOf(symbol, debtor, custodian, amount)
    return () => addSeizure(buildTransfer(transfer, operator), transfer, encodeMemo(memo))
  }
  const moveLateToken = (from: Hex, to: Hex, amount: string): DeferredTransaction => {
    const transfer = transferOf(lateToken.symbol, from, to, amount)
    return () => buildTransfer(transfer, operator)
  }
  const dividend = ({ number }: Cycle, phase: string, description: string, to: string): DeferredTransaction =>
    callToken(
      'GOOGLc',
      announce({ id: `GOOGLc-dividend-${number}-${phase}`, description, uri: 'https://example.invalid/googlc/dividend' }, [
        changeMultiplier(parseMultiplier(to)),
      ]),
    )

  return [
    [8, () => callToken('MSTRc', changeMultiplier(parseMultiplier('2')))],
    [20, ({ timestampOf }) => callToken('AMZNc', scheduleMultiplier(parseMultiplier('20'), timestampOf(44)))],
    [24, () => transferWithMemo('METAc', '12.5', 'settlement 2041')],
    ...freezeFeed(operator),
    [32, (cycle) => dividend(cycle, 'paid', 'Cash dividend of 0.21 USD a share, reinvested', '1.001102219403117862')],
    [40, () => moveLateToken(ZERO_ADDRESS, custodian, '5000')],
    [52, () => moveLateToken(custodian, debtor, '40')],
    [56, () => callToken('COINc', pause([MINT, BURN]))],
    [68, () => callToken('COINc', pause([BURN, SEIZE]))],
    [72, () => transferWithMemo('METAc', '0.75', 'settlement 2042')],
    [88, () => callToken('SNDKc', changeName('Sandisk Flash'), changeSymbol('SNDSKc'))],
    [96, () => callToken('INTCc', changeMetadata('transfer_agent', 'Example Trust'))],
    [104, () => callToken('COINc', unpause([MINT, BURN, SEIZE]))],
    [112, () => callToken('INTCc', changeContractUri('https://example.invalid/intcc/2'))],
    [120, () => transferWithMemo('METAc', '3', 'settlement 2043')],
    [128, ({ number }) => callToken('CRCLc', announce(meetingAnnouncement(number), []))],
    [136, () => callToken('MSTRc', changeMultiplier(parseMultiplier(findToken('MSTRc').multiplier)))],
    [144, () => callToken('INTCc', changeSupplyCap(parseUnits('1000000', TOKEN_DECIMALS)))],
    [152, ({ timestampOf }) => callToken('AMZNc', scheduleMultiplier(parseMultiplier('40'), timestampOf(200)))],
    [160, () => moveLateToken(debtor, custodian, '40')],
    [168, () => seize('METAc', '16.25', 'court order 17/2026')],
    [176, () => callToken('AMZNc', cancelSchedule)],
    [184, (cycle) => dividend(cycle, 'reversed', 'The dividend is taken back', findToken('GOOGLc').multiplier)],
    [192, () => callToken('AMZNc', changeMultiplier(parseMultiplier(findToken('AMZNc').multiplier)))],
    [204, () => callToken('SNDKc', changeName(findToken('SNDKc').name), changeSymbol('SNDKc'))],
    [216, () => callToken('INTCc', changeSupplyCap(NO_CAP))],
    [232, () => moveLateToken(custodian, ZERO_ADDRESS, '5000')],
    [240, () => callToken('INTCc', changeMetadata('transfer_agent', ''))],
  ]
}

const freezeFeed = (operator: Hex): readonly ScriptEntry[] => {
  const { symbol, fromBlock, untilBlock } = frozenFeed
  const { address } = findToken(symbol)
  return [
    [fromBlock, () => buildFeedFreeze(address, operator, true)],
    [untilBlock, () => buildFeedFreeze(address, operator, false)],
  ]
}

// Ordinals of the features that can be paused, beside transfers.
const [MINT, BURN, SEIZE] = [1, 2, 3]

const meetingAnnouncement = (cycle: number) => ({
  id: `CRCLc-meeting-${cycle}`,
  description: 'Annual meeting of shareholders',
  uri: 'https://example.invalid/crclc/meeting',
})

const findToken = (symbol: string) => {
  const token = [...tokens, lateToken].find((candidate) => candidate.symbol === symbol)
  if (!token) throw new Error(`no token ${symbol}`)
  return token
}

const parseMultiplier = (multiplier: string): bigint => parseUnits(multiplier, MULTIPLIER_DECIMALS)

const encodeMemo = (memo: string): Hex => stringToHex(memo, { size: 32 })
