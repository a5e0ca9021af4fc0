import { decodeEventLog, parseAbi } from 'viem/utils'
import type { Hex } from '../protocol/parts.ts'
import type { Log } from './log.ts'

const events = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 amount)',
  'event Approval(address indexed owner, address indexed spender, uint256 amount)',
])

/** What a log says, as far as its layout is known; anything else is `other` and told as it came. */
export type Said =
  | { readonly event: 'Transfer'; readonly from: Hex; readonly to: Hex; readonly amount: bigint }
  | { readonly event: 'Approval'; readonly owner: Hex; readonly spender: Hex; readonly amount: bigint }
  | { readonly event: 'other' }

/** Reads a log by the token standard. One that bears a known name and another layout is `other` too. */
export function read(log: Log): Said {
  const [name, ...indexed] = log.topics
  if (name === undefined) return { event: 'other' }
  try {
    const said = decodeEventLog({ abi: events, topics: [name, ...indexed], data: log.data, strict: true })
    if (said.eventName === 'Transfer') {
      const { from, to, amount } = said.args
      return { event: 'Transfer', from: lower(from), to: lower(to), amount }
    }
    const { owner, spender, amount } = said.args
    return { event: 'Approval', owner: lower(owner), spender: lower(spender), amount }
  } catch {
    return { event: 'other' }
  }
}

const lower = (address: string): Hex => address.toLowerCase() as Hex
