import { parseUnits, stringToHex } from 'viem/utils'
import type { Plan } from '../chain/deferred-tx.ts'
import { type Hex, ZERO_ADDRESS } from '../chain/hex.ts'
import { type Movement, movement, seizing, withMemo } from '../chain/transactions.ts'
import {
  changeMetadata,
  changeName,
  changeSupplyCap,
  changeSymbol,
  changeUri,
  pause,
  unpause,
} from '../tokens/admin.ts'
import { type Act, announce, calling, together } from '../tokens/call.ts'
import { latecomer, TOKEN_DECIMALS, tokens } from '../tokens/listed.ts'
import { cancelSchedule, changeMultiplier, scheduleMultiplier } from '../tokens/multiplier.ts'
import { MULTIPLIER_DECIMALS, NO_CAP } from '../tokens/storage.ts'

/** Which tide it is, and the second of a block in it. */
export type Tide = { tide: number; secondOf: (at: number) => number }

/** In which block of a tide something is done. The last block has nothing: a chain may be opened there. */
type Row = readonly [at: number, plan: (tide: Tide) => Plan]

/** The latecomer is on the list from one block of a tide until before another. */
export const LISTED_FROM = 48
export const LISTED_UNTIL = 224

/** The tokens whose mints and burns are paused for a while: the market makes none of them. */
export const pausing: readonly string[] = ['COINc']

/** The list says the new name of a token so many blocks after the chain. */
export const NAMING_BLOCKS = 10

/** Who acts: the operator for the issuer, from the custodian's tokens, and on somebody whose tokens are seized. */
type Cast = { custodian: Hex; operator: Hex; debtor: Hex }

/**
 * What happens to the tokens in every tide, in its order; what is done is undone. Those that most look at (AAPLc, TSLAc,
 * NVDAc, MSFTc) have nothing but the market.
 */
export const programme = ({ custodian, operator, debtor }: Cast): readonly Row[] => {
  const does = (symbol: string, ...acts: readonly Act[]): Plan => {
    const [alone, ...others] = acts
    const act = alone && others.length === 0 ? alone : together(acts)
    return calling({ token: tokenOf(symbol).address, sender: operator }, act)
  }
  const moves = (symbol: string, from: Hex, to: Hex, tokens: string): Movement => {
    return { token: tokenOf(symbol).address, from, to, raw: parseUnits(tokens, TOKEN_DECIMALS) }
  }
  const remits = (symbol: string, tokens: string, memo: string): Plan => {
    const what = moves(symbol, custodian, debtor, tokens)
    return () => withMemo(movement(what, operator), what, wordOf(memo))
  }
  const seizes = (symbol: string, tokens: string, memo: string): Plan => {
    const what = moves(symbol, debtor, custodian, tokens)
    return () => seizing(movement(what, operator), what, wordOf(memo))
  }
  const shifts = (from: Hex, to: Hex, tokens: string): Plan => {
    const what = moves(latecomer.symbol, from, to, tokens)
    return () => movement(what, operator)
  }
  const dividend = ({ tide }: Tide, turn: string, description: string, to: string): Plan =>
    does(
      'GOOGLc',
      announce({ id: `GOOGLc-dividend-${tide}-${turn}`, description, uri: 'https://example.invalid/googlc/dividend' }, [
        changeMultiplier(wad(to)),
      ]),
    )

  return [
    [8, () => does('MSTRc', changeMultiplier(wad('2')))],
    [20, ({ secondOf }) => does('AMZNc', scheduleMultiplier(wad('20'), secondOf(44)))],
    [24, () => remits('METAc', '12.5', 'settlement 2041')],
    [32, (tide) => dividend(tide, 'paid', 'Cash dividend of 0.21 USD a share, reinvested', '1.001102219403117862')],
    [40, () => shifts(ZERO_ADDRESS, custodian, '5000')],
    [52, () => shifts(custodian, debtor, '40')],
    [56, () => does('COINc', pause([MINT, BURN]))],
    [68, () => does('COINc', pause([BURN, SEIZE]))],
    [72, () => remits('METAc', '0.75', 'settlement 2042')],
    [88, () => does('SNDKc', changeName('Sandisk Flash'), changeSymbol('SNDSKc'))],
    [96, () => does('INTCc', changeMetadata('transfer_agent', 'Example Trust'))],
    [104, () => does('COINc', unpause([MINT, BURN, SEIZE]))],
    [112, () => does('INTCc', changeUri('https://example.invalid/intcc/2'))],
    [120, () => remits('METAc', '3', 'settlement 2043')],
    [128, ({ tide }) => does('CRCLc', announce(meetingOf(tide), []))],
    [136, () => does('MSTRc', changeMultiplier(wad(tokenOf('MSTRc').multiplier)))],
    [144, () => does('INTCc', changeSupplyCap(parseUnits('1000000', TOKEN_DECIMALS)))],
    [152, ({ secondOf }) => does('AMZNc', scheduleMultiplier(wad('40'), secondOf(200)))],
    [160, () => shifts(debtor, custodian, '40')],
    [168, () => seizes('METAc', '16.25', 'court order 17/2026')],
    [176, () => does('AMZNc', cancelSchedule)],
    [184, (tide) => dividend(tide, 'reversed', 'The dividend is taken back', tokenOf('GOOGLc').multiplier)],
    [192, () => does('AMZNc', changeMultiplier(wad(tokenOf('AMZNc').multiplier)))],
    [204, () => does('SNDKc', changeName(tokenOf('SNDKc').name), changeSymbol('SNDKc'))],
    [216, () => does('INTCc', changeSupplyCap(NO_CAP))],
    [232, () => shifts(custodian, ZERO_ADDRESS, '5000')],
    [240, () => does('INTCc', changeMetadata('transfer_agent', ''))],
  ]
}

// What can be paused, beside transfers.
const [MINT, BURN, SEIZE] = [1, 2, 3]

const meetingOf = (tide: number) => ({
  id: `CRCLc-meeting-${tide}`,
  description: 'Annual meeting of shareholders',
  uri: 'https://example.invalid/crclc/meeting',
})

const tokenOf = (symbol: string) => {
  const token = [...tokens, latecomer].find((one) => one.symbol === symbol)
  if (!token) throw new Error(`no token ${symbol}`)
  return token
}

const wad = (multiplier: string): bigint => parseUnits(multiplier, MULTIPLIER_DECIMALS)

const wordOf = (memo: string): Hex => stringToHex(memo, { size: 32 })
