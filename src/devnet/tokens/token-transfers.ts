import { stringToHex, toEventSelector, toFunctionSelector } from 'viem/utils'
import { type Hex, toWord, ZERO_ADDRESS } from '../../lib/hex.ts'
import { codeKey, type StateWrite } from '../chain/account-state.ts'
import type { EmittedLog, UnsignedTransaction } from '../chain/chain-types.ts'
import { tokenInput, tokenLog } from './contract-abis.ts'
import { allowanceKey, supplyKey, TOKEN_CODE, tokenBalanceKey } from './token-storage.ts'

const TRANSFER = toEventSelector('Transfer(address,address,uint256)')
const APPROVAL = toEventSelector('Approval(address,address,uint256)')
const selectors = {
  transfer: toFunctionSelector('transfer(address,uint256)'),
  mint: toFunctionSelector('mint(address,uint256)'),
  burn: toFunctionSelector('burn(address,uint256)'),
  approval: toFunctionSelector('approve(address,uint256)'),
}

export const gasByKind = { transfer: 46_109, mint: 51_240, burn: 33_872, approval: 46_343, other: 60_000 } as const

/** A mint is from the zero address, a burn is to it. */
export type TokenTransfer = { token: Hex; from: Hex; to: Hex; raw: bigint; memo?: Hex | undefined }

const add = (raw: bigint) => (balance: bigint) => balance + raw
// Stays at zero or above: a fault may have dropped the transaction that gave the holder the tokens.
const take = (raw: bigint) => (balance: bigint) => (balance < raw ? 0n : balance - raw)
const raiseTo = (raw: bigint) => (balance: bigint) => (balance < raw ? raw : balance)

export const buildTransfer = ({ token, from, to, raw, memo }: TokenTransfer, sender: Hex): UnsignedTransaction => {
  const isMint = from === ZERO_ADDRESS
  const isBurn = to === ZERO_ADDRESS
  const kind = isMint ? 'mint' : isBurn ? 'burn' : 'transfer'
  return {
    from: sender,
    to: token,
    input: memo ? tokenInput('transferWithMemo', [to, raw, memo]) : encodeCall(selectors[kind], isBurn ? from : to, raw),
    gasUsed: gasByKind[kind],
    logs: [
      { address: token, topics: [TRANSFER, toWord(from), toWord(to)], data: toWord(raw) },
      ...(memo ? [tokenLog(token, 'Memo', { caller: sender, memo })] : []),
    ],
    writes: [
      { key: isMint ? supplyKey(token) : tokenBalanceKey(token, from), change: isMint ? add(raw) : take(raw) },
      { key: isBurn ? supplyKey(token) : tokenBalanceKey(token, to), change: isBurn ? take(raw) : add(raw) },
    ],
  }
}

/** Encodes a memo as 32 bytes. */
export const encodeMemo = (text: string): Hex => stringToHex(text, { size: 32 })

/** Builds a transfer that the holder did not send. */
export const buildSeizure = (transfer: TokenTransfer, sender: Hex): UnsignedTransaction => {
  const { from, to, raw, memo } = transfer
  const transaction = buildTransfer(transfer, sender)
  return {
    ...transaction,
    input: tokenInput('seizeWithMemo', [from, to, raw, memo]),
    logs: [...transaction.logs, tokenLog(transfer.token, 'Seized', { caller: sender, from, to, amount: raw })],
  }
}

export const senderOf = ({ from }: TokenTransfer, custodian: Hex): Hex => (from === ZERO_ADDRESS ? custodian : from)

export const buildApproval = ({ token, from, to, raw }: TokenTransfer): UnsignedTransaction => ({
  from,
  to: token,
  input: encodeCall(selectors.approval, to, raw),
  gasUsed: gasByKind.approval,
  logs: [{ address: token, topics: [APPROVAL, toWord(from), toWord(to)], data: toWord(raw) }],
  writes: [{ key: allowanceKey(token, from, to), value: raw }],
})

export const buildLogsTransaction = (sender: Hex, logs: readonly EmittedLog[]): UnsignedTransaction => ({
  from: sender,
  to: logs[0]?.address ?? sender,
  input: '0x',
  gasUsed: gasByKind.other,
  logs,
  writes: [],
})

/**
 * Builds a transfer that always succeeds, for tests. The holder first receives the missing tokens, without a log. If the
 * address is no token, it becomes one.
 */
export const buildFundedTransfer = (transfer: TokenTransfer, sender: Hex, build = buildTransfer): UnsignedTransaction => {
  const { token, from, raw } = transfer
  const transaction = build(transfer, sender)
  const writes: StateWrite[] = [{ key: codeKey(token), value: TOKEN_CODE }]
  if (from !== ZERO_ADDRESS) writes.push({ key: tokenBalanceKey(token, from), change: raiseTo(raw) })
  return { ...transaction, writes: [...writes, ...transaction.writes] }
}

const encodeCall = (selector: Hex, account: Hex, raw: bigint): Hex =>
  `${selector}${toWord(account).slice(2)}${toWord(raw).slice(2)}`
