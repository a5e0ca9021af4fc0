import { parseUnits } from 'viem/utils'
import { type Hex, ZERO_ADDRESS } from '../../lib/hex.ts'
import type { StateValues } from '../chain/account-state.ts'
import { GENESIS_MS } from '../chain/chain-builder.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { addressFrom } from '../chain/hashes.ts'
import { type DevnetToken, lateToken, TOKEN_DECIMALS, tokenOf } from '../tokens/issued-tokens.ts'
import { buildFeedFreeze } from '../tokens/oracle-registry.ts'
import * as calls from '../tokens/token-calls.ts'
import { initialTokenValues, NO_CAP } from '../tokens/token-storage.ts'
import { buildSeizure, buildTransfer, encodeMemo, type TokenTransfer } from '../tokens/token-transfers.ts'
import { CYCLE_BLOCKS, cycleOf, senderValues } from './trading-cycle.ts'

/** Block of a cycle from which the late token is on the list. LISTED_UNTIL_BLOCK is the first block without it. */
const LISTED_FROM_BLOCK = 48
const LISTED_UNTIL_BLOCK = 224

/** Tokens whose mints and burns are paused for a part of each cycle. The market never mints or burns them. */
export const mintPausedSymbols: readonly string[] = ['COINc']

/** The feed that is frozen around a dividend, in every cycle from `fromBlock` until before `untilBlock`. */
export const frozenFeed = { symbol: 'GOOGLc', fromBlock: 28, untilBlock: 64 } as const

/** Number of blocks until the list shows a token's new name. */
export const NAME_DELAY_BLOCKS = 10

/** The operator acts for the issuer: it uses the tokens of the custodian, and seizes tokens of the debtor. */
type Actors = { custodian: Hex; operator: Hex; debtor: Hex }

type Cycle = { number: number; timestampOf: (blockInCycle: number) => number }

/** An action and its block in the cycle. The last block of a cycle has none, since a chain may start after it. */
type ScriptEntry = readonly [at: number, plan: (cycle: Cycle) => DeferredTransaction]

/** Makes the corporate actions, which every cycle repeats. The end of a cycle restores the state of its start. */
export const createCalendar = (seed: string, blockMs: number, custodian: Hex, operator: Hex) => {
  const script = createScript({ custodian, operator, debtor: addressFrom(seed, 'debtor') })
  const byBlock = Map.groupBy(script, ([at]) => at)
  const cycleAt = (number: number): Cycle => ({
    number,
    timestampOf: (blockInCycle) => Math.floor((GENESIS_MS + (number * CYCLE_BLOCKS + 1 + blockInCycle) * blockMs) / 1_000),
  })
  const emptyContext = { readState: () => 0n, timestamp: 0 }
  const gasPerCycle = script.reduce((sum, [, plan]) => sum + plan(cycleAt(0))(emptyContext).gasUsed, 0)
  return {
    stateAtStart: (cycle: number): StateValues =>
      new Map([...initialTokenValues(lateToken), ...senderValues(operator, cycle, { count: script.length, gas: gasPerCycle })]),
    transactions: (block: number): readonly DeferredTransaction[] => {
      if (block < 1) return []
      const cycle = cycleAt(cycleOf(block))
      return (byBlock.get((block - 1) % CYCLE_BLOCKS) ?? []).map(([, plan]) => plan(cycle))
    },
    isListed: (token: DevnetToken, block: number): boolean => {
      const blockInCycle = (block - 1) % CYCLE_BLOCKS
      return token !== lateToken || (blockInCycle >= LISTED_FROM_BLOCK && blockInCycle < LISTED_UNTIL_BLOCK)
    },
  }
}

/**
 * The corporate actions of a cycle, in order. Later actions of the cycle undo the earlier ones. The best-known tokens
 * (AAPLc, TSLAc, NVDAc, MSFTc) have none.
 */
const createScript = ({ custodian, operator, debtor }: Actors): readonly ScriptEntry[] => {
  const callToken = (symbol: string, ...tokenCalls: readonly calls.TokenCall[]): DeferredTransaction =>
    calls.buildTokenCall({ token: tokenOf(symbol).address, sender: operator }, ...tokenCalls)
  const transferOf = (symbol: string, from: Hex, to: Hex, amount: string): TokenTransfer => {
    return { token: tokenOf(symbol).address, from, to, raw: parseUnits(amount, TOKEN_DECIMALS) }
  }
  const transferWithMemo = (symbol: string, amount: string, memo: string): DeferredTransaction => {
    const transfer = { ...transferOf(symbol, custodian, debtor, amount), memo: encodeMemo(memo) }
    return () => buildTransfer(transfer, operator)
  }
  const seize = (symbol: string, amount: string, memo: string): DeferredTransaction => {
    const transfer = { ...transferOf(symbol, debtor, custodian, amount), memo: encodeMemo(memo) }
    return () => buildSeizure(transfer, operator)
  }
  const moveLateToken = (from: Hex, to: Hex, amount: string): DeferredTransaction => {
    const transfer = transferOf(lateToken.symbol, from, to, amount)
    return () => buildTransfer(transfer, operator)
  }
  const dividend = ({ number }: Cycle, phase: string, description: string, to: string): DeferredTransaction => {
    const notice = { id: `GOOGLc-dividend-${number}-${phase}`, description, uri: 'https://example.invalid/googlc/dividend' }
    return callToken('GOOGLc', calls.announce(notice, calls.changeMultiplier(to)))
  }

  return [
    [8, () => callToken('MSTRc', calls.changeMultiplier('2'))],
    [20, ({ timestampOf }) => callToken('AMZNc', calls.scheduleMultiplier('20', timestampOf(44)))],
    [24, () => transferWithMemo('METAc', '12.5', 'settlement 2041')],
    ...freezeFeed(operator),
    [32, (cycle) => dividend(cycle, 'paid', 'Cash dividend of 0.21 USD a share, reinvested', '1.001102219403117862')],
    [40, () => moveLateToken(ZERO_ADDRESS, custodian, '5000')],
    [52, () => moveLateToken(custodian, debtor, '40')],
    [56, () => callToken('COINc', calls.pause([MINT, BURN]))],
    [68, () => callToken('COINc', calls.pause([BURN, SEIZE]))],
    [72, () => transferWithMemo('METAc', '0.75', 'settlement 2042')],
    [88, () => callToken('SNDKc', calls.changeName('Sandisk Flash'), calls.changeSymbol('SNDSKc'))],
    [96, () => callToken('INTCc', calls.changeMetadata('transfer_agent', 'Example Trust'))],
    [104, () => callToken('COINc', calls.unpause([MINT, BURN, SEIZE]))],
    [112, () => callToken('INTCc', calls.changeContractUri('https://example.invalid/intcc/2'))],
    [120, () => transferWithMemo('METAc', '3', 'settlement 2043')],
    [128, ({ number }) => callToken('CRCLc', calls.announce(meetingAnnouncement(number)))],
    [136, () => callToken('MSTRc', calls.changeMultiplier(tokenOf('MSTRc').multiplier))],
    [144, () => callToken('INTCc', calls.changeSupplyCap(parseUnits('1000000', TOKEN_DECIMALS)))],
    [152, ({ timestampOf }) => callToken('AMZNc', calls.scheduleMultiplier('40', timestampOf(200)))],
    [160, () => moveLateToken(debtor, custodian, '40')],
    [168, () => seize('METAc', '16.25', 'court order 17/2026')],
    [176, () => callToken('AMZNc', calls.cancelSchedule)],
    [184, (cycle) => dividend(cycle, 'reversed', 'The dividend is taken back', tokenOf('GOOGLc').multiplier)],
    [192, () => callToken('AMZNc', calls.changeMultiplier(tokenOf('AMZNc').multiplier))],
    [204, () => callToken('SNDKc', calls.changeName(tokenOf('SNDKc').name), calls.changeSymbol('SNDKc'))],
    [216, () => callToken('INTCc', calls.changeSupplyCap(NO_CAP))],
    [232, () => moveLateToken(custodian, ZERO_ADDRESS, '5000')],
    [240, () => callToken('INTCc', calls.changeMetadata('transfer_agent', ''))],
  ]
}

const freezeFeed = (operator: Hex): readonly ScriptEntry[] => {
  const { symbol, fromBlock, untilBlock } = frozenFeed
  const { address } = tokenOf(symbol)
  return [
    [fromBlock, () => buildFeedFreeze(address, operator, true)],
    [untilBlock, () => buildFeedFreeze(address, operator, false)],
  ]
}

// Ordinals of the features that the script pauses. Transfers have the ordinal 0.
const [MINT, BURN, SEIZE] = [1, 2, 3]

const meetingAnnouncement = (cycle: number) => ({
  id: `CRCLc-meeting-${cycle}`,
  description: 'Annual meeting of shareholders',
  uri: 'https://example.invalid/crclc/meeting',
})
