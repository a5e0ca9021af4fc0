import { toFunctionSelector } from 'viem/utils'
import { type Hex, readHex } from '../../../lib/hex.ts'
import type { RequestFn } from '../rpc/endpoint-pool.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'

/** Limit of the hex characters of an answer. The called functions return less. */
const ANSWER_BOUND_CHARACTERS = 64 * 2 ** 10

/** Returns a function that calls this method of a contract. That function returns null if the contract lacks the method. */
export const contractMethod = <Value>(signature: string, decode: (data: Hex) => Value | null) => {
  const selector = toFunctionSelector(signature)
  return async (request: RequestFn, to: Hex, block: Hex | 'latest', words = ''): Promise<Value | null> => {
    try {
      const answer = await request('eth_call', [{ to, data: `${selector}${words}` }, block])
      const isLong = typeof answer === 'string' && answer.length > ANSWER_BOUND_CHARACTERS
      const data = isLong ? null : readHex(answer, null)
      if (data === null) throw new UpstreamError('unreadable', 'the answer is not hex data')
      return decode(data)
    } catch (failure) {
      // A contract without the function reverts the call. This is an answer, and no failure of the node.
      if (failure instanceof UpstreamError && failure.kind === 'reverted') return null
      throw failure
    }
  }
}

export const firstValue =
  <Value>(decode: (data: Hex) => readonly [Value, ...unknown[]] | null) =>
  (data: Hex): Value | null =>
    decode(data)?.[0] ?? null
