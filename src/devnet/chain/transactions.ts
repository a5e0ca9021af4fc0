import { encodeFunctionData } from 'viem/utils'
import { tokenAbi, tokenLog } from '../tokens/abi.ts'
import type { BareLog, Deed } from './block.ts'
import { type Hex, word, ZERO_ADDRESS } from './hex.ts'
import { codeOf, mappingSlot, slotOf, type Write } from './state.ts'

// A token's storage: balances at slot 0, allowances at slot 1 (both mappings), the total supply at slot 2.
const BALANCES = word(0n)
const ALLOWANCES = word(1n)
const SUPPLY = word(2n)

/** The code of every tokenized stock: the chain itself does its work, so there is none but a mark. */
export const TOKEN_CODE = 0xefn

const TRANSFER: Hex = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const APPROVAL: Hex = '0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925'

/** What a transaction of each kind uses. */
export const gasOf = { transfer: 46_109, mint: 51_240, burn: 33_872, approval: 46_343, other: 60_000 } as const

/** The key of an account's balance of a token. */
export const balanceOf = (token: Hex, account: Hex): string => slotOf(token, mappingSlot(account, BALANCES))

/** The key of what an owner lets a spender take. */
const allowanceOf = (token: Hex, owner: Hex, spender: Hex): string =>
  slotOf(token, mappingSlot(spender, mappingSlot(owner, ALLOWANCES)))

/** The key of a token's total supply. */
export const supplyOf = (token: Hex): string => slotOf(token, SUPPLY)

/** What moves, of which token: a mint comes from the zero address, a burn goes to it. */
export type Movement = { token: Hex; from: Hex; to: Hex; raw: bigint }

const add = (raw: bigint) => (held: bigint) => held + raw
// Not below nothing: the weather may have dropped the transaction that a holder had it from.
const take = (raw: bigint) => (held: bigint) => (held < raw ? 0n : held - raw)
const raisedTo = (raw: bigint) => (held: bigint) => {
  const lacking = raw - held
  return lacking > 0n ? held + lacking : held
}

/** A transfer, a mint or a burn, and who sends it. */
export const movement = ({ token, from, to, raw }: Movement, sender: Hex): Deed => {
  const minted = from === ZERO_ADDRESS
  const burned = to === ZERO_ADDRESS
  const writes: Write[] = []
  writes.push({ key: minted ? supplyOf(token) : balanceOf(token, from), change: minted ? add(raw) : take(raw) })
  writes.push({ key: burned ? supplyOf(token) : balanceOf(token, to), change: burned ? take(raw) : add(raw) })
  return {
    from: sender,
    to: token,
    input: call(minted ? '40c10f19' : burned ? '9dc29fac' : 'a9059cbb', burned ? from : to, raw),
    gasUsed: minted ? gasOf.mint : burned ? gasOf.burn : gasOf.transfer,
    logs: [{ address: token, topics: [TRANSFER, word(from), word(to)], data: word(raw) }],
    writes,
  }
}

/** The same movement with a memo. */
export const withMemo = (moved: Deed, { to, raw }: Movement, memo: Hex): Deed => ({
  ...moved,
  input: encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithMemo', args: [to, raw, memo] }),
  logs: [...moved.logs, tokenLog(moved.to, 'Memo', { caller: moved.from, memo })],
})

/** The same movement as a seizure: its holder did not ask for it. */
export const seizing = (moved: Deed, { from, to, raw }: Movement, memo: Hex): Deed => ({
  ...moved,
  input: encodeFunctionData({ abi: tokenAbi, functionName: 'seizeWithMemo', args: [from, to, raw, memo] }),
  logs: [
    ...moved.logs,
    tokenLog(moved.to, 'Memo', { caller: moved.from, memo }),
    tokenLog(moved.to, 'Seized', { caller: moved.from, from, to, amount: raw }),
  ],
})

/** Who sends a movement: its holder, or the custodian where tokens are minted. */
export const senderOf = ({ from }: Movement, custodian: Hex): Hex => (from === ZERO_ADDRESS ? custodian : from)

/** An owner lets a spender take so much. */
export const approval = ({ token, from, to, raw }: Movement): Deed => ({
  from,
  to: token,
  input: call('095ea7b3', to, raw),
  gasUsed: gasOf.approval,
  logs: [{ address: token, topics: [APPROVAL, word(from), word(to)], data: word(raw) }],
  writes: [{ key: allowanceOf(token, from, to), change: () => raw }],
})

/** A transaction that says what it is told to, and changes nothing that is kept. */
export const saying = (sender: Hex, logs: readonly BareLog[]): Deed => ({
  from: sender,
  to: logs[0]?.address ?? sender,
  input: '0x',
  gasUsed: gasOf.other,
  logs,
  writes: [],
})

/**
 * A movement that a test asks for, which always succeeds: what the holder lacks is there first, without a log,
 * and an address that was no token before is one from then on.
 */
export const arranged = (what: Movement, sender: Hex): Deed => {
  const { token, from, raw } = what
  const deed = movement(what, sender)
  const writes: Write[] = [{ key: codeOf(token), change: () => TOKEN_CODE }]
  if (from !== ZERO_ADDRESS) writes.push({ key: balanceOf(token, from), change: raisedTo(raw) })
  return { ...deed, writes: [...writes, ...deed.writes] }
}

const call = (selector: string, account: Hex, raw: bigint): Hex =>
  `0x${selector}${word(account).slice(2)}${word(raw).slice(2)}`
