import { encodeFunctionData } from 'viem/utils'
import { tokenAbi, tokenLog } from '../tokens/abi.ts'
import type { EmittedLog, UnsignedTransaction } from './block.ts'
import { type HexString, toWord, ZERO_ADDRESS } from './hex.ts'
import { codeKey, mappingSlot, type StateWrite, storageKey } from './state.ts'

// A token's storage: balances at slot 0, allowances at slot 1 (both mappings), the total supply at slot 2.
const BALANCES = toWord(0n)
const ALLOWANCES = toWord(1n)
const SUPPLY = toWord(2n)

/** The code of every tokenized stock: the chain itself does its work, so there is none but a mark. */
export const TOKEN_CODE = 0xefn

const TRANSFER: HexString = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const APPROVAL: HexString = '0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925'

/** What a transaction of each kind uses. */
export const gasByKind = { transfer: 46_109, mint: 51_240, burn: 33_872, approval: 46_343, other: 60_000 } as const

/** The key of an account's balance of a token. */
export const tokenBalanceKey = (token: HexString, account: HexString): string =>
  storageKey(token, mappingSlot(account, BALANCES))

/** The key of what an owner lets a spender take. */
const allowanceKey = (token: HexString, owner: HexString, spender: HexString): string =>
  storageKey(token, mappingSlot(spender, mappingSlot(owner, ALLOWANCES)))

/** The key of a token's total supply. */
export const supplyKey = (token: HexString): string => storageKey(token, SUPPLY)

/** What moves, of which token: a mint comes from the zero address, a burn goes to it. */
export type TokenTransfer = { token: HexString; from: HexString; to: HexString; raw: bigint }

const add = (raw: bigint) => (balance: bigint) => balance + raw
// Not below nothing: the weather may have dropped the transaction that a holder had it from.
const take = (raw: bigint) => (balance: bigint) => (balance < raw ? 0n : balance - raw)
const raiseTo = (raw: bigint) => (balance: bigint) => {
  const missing = raw - balance
  return missing > 0n ? balance + missing : balance
}

/** A transfer, a mint or a burn, and who sends it. */
export const buildTransfer = ({ token, from, to, raw }: TokenTransfer, sender: HexString): UnsignedTransaction => {
  const isMint = from === ZERO_ADDRESS
  const isBurn = to === ZERO_ADDRESS
  const writes: StateWrite[] = []
  writes.push({ key: isMint ? supplyKey(token) : tokenBalanceKey(token, from), change: isMint ? add(raw) : take(raw) })
  writes.push({ key: isBurn ? supplyKey(token) : tokenBalanceKey(token, to), change: isBurn ? take(raw) : add(raw) })
  return {
    from: sender,
    to: token,
    input: encodeCall(isMint ? '40c10f19' : isBurn ? '9dc29fac' : 'a9059cbb', isBurn ? from : to, raw),
    gasUsed: isMint ? gasByKind.mint : isBurn ? gasByKind.burn : gasByKind.transfer,
    logs: [{ address: token, topics: [TRANSFER, toWord(from), toWord(to)], data: toWord(raw) }],
    writes,
  }
}

/** The same movement with a memo. */
export const addMemo = (
  transfer: UnsignedTransaction,
  { to, raw }: TokenTransfer,
  memo: HexString,
): UnsignedTransaction => ({
  ...transfer,
  input: encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithMemo', args: [to, raw, memo] }),
  logs: [...transfer.logs, tokenLog(transfer.to, 'Memo', { caller: transfer.from, memo })],
})

/** The same movement as a seizure: its holder did not ask for it. */
export const addSeizure = (
  transfer: UnsignedTransaction,
  { from, to, raw }: TokenTransfer,
  memo: HexString,
): UnsignedTransaction => ({
  ...transfer,
  input: encodeFunctionData({ abi: tokenAbi, functionName: 'seizeWithMemo', args: [from, to, raw, memo] }),
  logs: [
    ...transfer.logs,
    tokenLog(transfer.to, 'Memo', { caller: transfer.from, memo }),
    tokenLog(transfer.to, 'Seized', { caller: transfer.from, from, to, amount: raw }),
  ],
})

/** Who sends a movement: its holder, or the custodian where tokens are minted. */
export const senderOf = ({ from }: TokenTransfer, custodian: HexString): HexString =>
  from === ZERO_ADDRESS ? custodian : from

/** An owner lets a spender take so much. */
export const buildApproval = ({ token, from, to, raw }: TokenTransfer): UnsignedTransaction => ({
  from,
  to: token,
  input: encodeCall('095ea7b3', to, raw),
  gasUsed: gasByKind.approval,
  logs: [{ address: token, topics: [APPROVAL, toWord(from), toWord(to)], data: toWord(raw) }],
  writes: [{ key: allowanceKey(token, from, to), change: () => raw }],
})

/** A transaction that says what it is told to, and changes nothing that is kept. */
export const buildLogsTransaction = (sender: HexString, logs: readonly EmittedLog[]): UnsignedTransaction => ({
  from: sender,
  to: logs[0]?.address ?? sender,
  input: '0x',
  gasUsed: gasByKind.other,
  logs,
  writes: [],
})

/**
 * A movement that a test asks for, which always succeeds: what the holder lacks is there first, without a log,
 * and an address that was no token before is one from then on.
 */
export const buildFundedTransfer = (transfer: TokenTransfer, sender: HexString): UnsignedTransaction => {
  const { token, from, raw } = transfer
  const transaction = buildTransfer(transfer, sender)
  const writes: StateWrite[] = [{ key: codeKey(token), change: () => TOKEN_CODE }]
  if (from !== ZERO_ADDRESS) writes.push({ key: tokenBalanceKey(token, from), change: raiseTo(raw) })
  return { ...transaction, writes: [...writes, ...transaction.writes] }
}

const encodeCall = (selector: string, account: HexString, raw: bigint): HexString =>
  `0x${selector}${toWord(account).slice(2)}${toWord(raw).slice(2)}`
