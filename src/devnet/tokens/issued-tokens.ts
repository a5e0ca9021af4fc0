import { type Hex, toLowerHex } from '../../lib/hex.ts'

export const TOKEN_DECIMALS = 8

export type DevnetToken = {
  /** Address with the capital letters of its checksum, as on the list. */
  contractAddress: string
  address: Hex
  symbol: string
  name: string
  isin: string
  /** Tokens issued at the start, in the token's smallest unit. */
  supply: bigint
  /** Multiplier as decimal text, because a double cannot hold all digits. */
  multiplier: string
  /** Average reference value, in dollars; absent if the token has none yet. */
  nav?: number
}

type TokenRow = readonly [contract: string, symbol: string, name: string, isin: string, supply: number, nav?: number]

// The addresses and symbols are those on Base, so wallets and block explorers recognise them.
const tokenRows: readonly TokenRow[] = [
  ['0xb200000000000000000000C2e324d24d7eEcd1fb', 'AAPLc', 'Apple', 'US0378331005', 19_893.91, 324.3014],
  ['0xb200000000000000000000d9192b6B456483C2E8', 'AMZNc', 'Amazon', 'US0231351067', 14_207.5, 241.18],
  ['0xb200000000000000000000c85a31389D71F3ecfb', 'COINc', 'Coinbase', 'US19260Q1076', 9_411.25, 318.44],
  ['0xB20000000000000000000019f6E7C675b73C2e4D', 'CRCLc', 'Circle Internet Group', 'US1725731079', 11_030.8, 132.07],
  ['0xb2000000000000000000002D0BA3164cc74f58B7', 'GOOGLc', 'Alphabet', 'US02079K3059', 17_640.02, 289.63],
  ['0xB2000000000000000000004AFF16039bA04bdFBc', 'INTCc', 'Intel', 'US4581401001', 52_118.4],
  ['0xb2000000000000000000008bC8786B856E61707C', 'METAc', 'Meta Platforms', 'US30303M1027', 8_803.33, 742.91],
  ['0xB200000000000000000000Ab99cFa739E253872B', 'MSFTc', 'Microsoft', 'US5949181045', 12_990.7, 512.36],
  ['0xb2000000000000000000004884b426556b92883d', 'MSTRc', 'Strategy', 'US5949724083', 10_450.09, 356.82],
  ['0xb20000000000000000000078ee7ce2fE4908108C', 'NVDAc', 'NVIDIA', 'US67066G1040', 41_275.66, 187.24],
  ['0xb200000000000000000000397293Cb8cda9a10c5', 'SNDKc', 'Sandisk', 'US80004C2008', 7_312.15, 214.73],
  ['0xb2000000000000000000007b9fcbd005511aCBd5', 'SPCXc', 'SpaceX', 'US84615Q1031', 23_006.9, 171.55],
  ['0xb2000000000000000000001e800a7f5189430cD0', 'TSLAc', 'Tesla', 'US88160R1014', 15_777.77, 438.29],
]

const multipliers: Readonly<Record<string, string>> = {
  NVDAc: '1.000537939576369481',
  GOOGLc: '1.000377118676784179',
  METAc: '1.000313792289598084',
}

const toToken = ([contractAddress, symbol, name, isin, supply, nav]: TokenRow): DevnetToken => ({
  contractAddress,
  address: toLowerHex(contractAddress),
  symbol,
  name,
  isin,
  supply: BigInt(Math.round(supply * 10 ** TOKEN_DECIMALS)),
  multiplier: multipliers[symbol] ?? '1',
  nav,
})

export const tokens: readonly DevnetToken[] = tokenRows.map(toToken)

/** The token that is on the list for only a part of each cycle. */
export const lateToken = toToken(['0xB20000000000000000000031e5a2C5b3c5DfE1A7', 'NFLXc', 'Netflix', 'US64110L1061', 0])

const TEST_CONTRACT = '0xb2000000000000000000007E57000000000007E5'
/** A token that is not a stock, with a fixed schedule, for authors of clients. It is on the list only with a calendar. */
export const testToken = toToken([TEST_CONTRACT, 'TESTc', 'Test token, not a stock', 'ZZTESTTOKEN2', 1_000_000])

/** Returns the token that was issued under a symbol. */
export const tokenOf = (symbol: string): DevnetToken => {
  const token = [...tokens, lateToken, testToken].find((issued) => issued.symbol === symbol)
  if (!token) throw new Error(`no token ${symbol}`)
  return token
}
