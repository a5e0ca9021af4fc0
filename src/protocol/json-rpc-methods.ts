import { z } from 'zod'

/** Limit of blocks in one `eth_getLogs`: many nodes refuse more. */
export const LOGS_RANGE_BOUND = 2_000

/** Limit of addresses, and of alternatives for one topic, in a filter. */
const FILTER_BOUND = 10_000

const hex = (description: string, pattern: RegExp) => z.string({ error: description }).regex(pattern, description)

export const blockTags = ['latest', 'pending', 'safe', 'finalized', 'earliest'] as const

const Quantity = hex('a hex quantity such as 0x1f', /^0x(0|[1-9a-fA-F][0-9a-fA-F]{0,63})$/)
export const AddressParam = hex('a 20-byte address', /^0x[0-9a-fA-F]{40}$/)
const WordParam = hex('a 32-byte word', /^0x[0-9a-fA-F]{64}$/)
/** Nodes accept a slot as a padded word or as a quantity. */
const Slot = hex('a storage slot in hex', /^0x[0-9a-fA-F]{1,64}$/)
export const BlockParam = z.union([z.enum(blockTags), Quantity], { error: 'a block number in hex or a tag' })
/** A block in any form that nodes accept; the objects are EIP-1898. */
const AnyBlock = z.union(
  [
    z.enum(blockTags),
    WordParam,
    Quantity,
    z.strictObject({ blockHash: WordParam, requireCanonical: z.boolean().optional() }),
    z.strictObject({ blockNumber: Quantity }),
  ],
  { error: 'a block number in hex, a tag or a block hash' },
)
export type AnyBlock = z.infer<typeof AnyBlock>

const Topic = z.union([z.null(), WordParam, z.array(WordParam).max(FILTER_BOUND)], {
  error: `null, a 32-byte word, or a list of at most ${FILTER_BOUND}`,
})

export const LogFilter = z.object(
  {
    address: z
      .union([AddressParam, z.array(AddressParam).max(FILTER_BOUND).readonly()], {
        error: `a 20-byte address, or a list of at most ${FILTER_BOUND}`,
      })
      .nullish(),
    topics: z.array(Topic, { error: 'a list of topics' }).max(4, 'at most 4 topics').nullish(),
  },
  { error: 'a filter object' },
)
export type LogFilter = z.infer<typeof LogFilter>

/** Makes a test of logs. In a filter, null and an empty list match every address or topic. */
export function logMatcher({ address, topics }: LogFilter): (log: MatchableLog) => boolean {
  const addresses = lowercaseSet(address)
  const topicSets = (topics ?? []).map(lowercaseSet)
  return (log) =>
    (addresses.size === 0 || addresses.has(log.address)) &&
    topicSets.every((accepted, index) => {
      const topic = log.topics[index]
      return accepted.size === 0 || (topic !== undefined && accepted.has(topic))
    })
}

/** A log whose address and topics are in lower case. */
type MatchableLog = { readonly address: string; readonly topics: readonly string[] }

const lowercaseSet = (values: string | readonly string[] | null | undefined): ReadonlySet<string> =>
  new Set([values ?? []].flat().map((value) => value.toLowerCase()))

const RangeFilter = LogFilter.extend({
  fromBlock: BlockParam.nullish(),
  toBlock: BlockParam.nullish(),
  blockHash: WordParam.nullish(),
}).refine((filter) => Object.values(filter).some((value) => value != null), 'a filter with at least one criterion')

/** Methods that the relay serves. `public`: whether public endpoints serve the method too. */
export const methods = {
  eth_getBlockByNumber: { params: z.tuple([BlockParam, z.boolean({ error: 'true or false' })]), public: true },
  eth_getLogs: { params: z.tuple([RangeFilter]), public: true },
  eth_getBlockReceipts: { params: z.tuple([AnyBlock]), public: false },
  eth_getStorageAt: { params: z.tuple([AddressParam, Slot, AnyBlock]), public: true },
  eth_getTransactionCount: { params: z.tuple([AddressParam, AnyBlock]), public: true },
  eth_getCode: { params: z.tuple([AddressParam, AnyBlock]), public: true },
  eth_getBalance: { params: z.tuple([AddressParam, AnyBlock]), public: true },
  eth_chainId: { params: z.tuple([]), public: true },
  eth_blockNumber: { params: z.tuple([]), public: true },
} as const

export type Method = keyof typeof methods
export type Params<M extends Method> = z.infer<(typeof methods)[M]['params']>

export const Calldata = hex('data in hex', /^0x([0-9a-fA-F]{2})*$/)

/** The call that the relay makes, but does not serve to clients. It must work without the result. */
type CallMethod = 'eth_call'

export const isCallMethod = (method: NodeMethod): method is CallMethod => method === 'eth_call'

export type NodeMethod = Method | CallMethod
export type NodeParams<Q extends NodeMethod> = Q extends Method ? Params<Q> : [call: { to: string; data: string }, block: string]
