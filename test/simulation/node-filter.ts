import type { EmittedLog } from '../../src/devnet/chain/chain-types.ts'
import type { Hex } from '../../src/lib/hex.ts'
import { MANAGER } from './simulated-pools.ts'

/** Which logs a node is asked for. A place of `topics` has one word, several of which one must be there, or null for any. */
export type NodeFilter = { readonly address?: Hex | readonly Hex[]; readonly topics?: readonly (Hex | readonly Hex[] | null)[] }

/** Whether a node finds a log by a filter. No contracts mean every contract there is, and no words in a place any word. */
export function matchesFilter({ address = [], topics = [] }: NodeFilter, log: Pick<EmittedLog, 'address' | 'topics'>): boolean {
  const contracts = listOf(address)
  if (contracts.length > 0 && !contracts.includes(log.address)) return false
  if (topics.length > log.topics.length) return false
  return topics.every((asked, place) => {
    const words = listOf(asked ?? [])
    return words.length === 0 || words.some((word) => word === log.topics[place])
  })
}

/** Whether a filter asks for logs of the pool manager. */
export const isOfManager = ({ address = [] }: NodeFilter): boolean => listOf(address).includes(MANAGER)

const listOf = (value: Hex | readonly Hex[]): readonly Hex[] => (typeof value === 'string' ? [value] : value)
