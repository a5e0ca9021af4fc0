import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { UpstreamError, type UpstreamErrorKind } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { MissingLogsError } from '../../../../../src/relay/chain/sealed/block-logs.ts'
import { RetryPolicy } from '../../../../../src/relay/chain/sealed/retry-policy.ts'
import { behindError } from '../fake-chain.ts'

describe('the retry policy', () => {
  const failureOf = (kind: UpstreamErrorKind) => new UpstreamError(kind, 'no')
  /** Waits after each of these failures, and returns the delays. */
  const waits = async (retries: RetryPolicy, failures: readonly unknown[]) => {
    const clock = new VirtualTimeScheduler()
    const delays: number[] = []
    for (const failure of failures) {
      const before = clock.frame
      const waiting = retries.waitToRetry(failure, clock, new AbortController().signal)
      clock.flush()
      await waiting
      delays.push(clock.frame - before)
    }
    return delays
  }

  it('waits longer each time, up to two seconds, and less after a success', async () => {
    const retries = new RetryPolicy()
    const failures = Array(8).fill(failureOf('busy'))
    expect(await waits(retries, failures)).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000])
    retries.succeeded()
    expect(retries.totalFailures).toBe(0)
    expect(await waits(retries, [behindError()])).toEqual([50])
  })

  it('accepts missing logs of a block after waits of half a second and a second', async () => {
    const retries = new RetryPolicy()
    expect(await waits(retries, [new MissingLogsError(5)])).toEqual([500])
    expect(retries.acceptsMissing(5)).toBe(false)
    expect(await waits(retries, [new MissingLogsError(5), new MissingLogsError(5)])).toEqual([1_000, 2_000])
    expect(retries.acceptsMissing(5)).toBe(true)
    retries.succeeded()
    expect(retries.acceptsMissing(5)).toBe(false)
  })

  it('accepts no missing logs because of other failures or another block', async () => {
    const retries = new RetryPolicy()
    await waits(retries, [behindError(), behindError(), failureOf('busy'), new MissingLogsError(4), new MissingLogsError(4)])
    expect(retries.acceptsMissing(5)).toBe(false)
    expect(await waits(retries, [new MissingLogsError(5)])).toEqual([500])
  })

  it('gives up after enough refusals of the same kind', async () => {
    const retries = new RetryPolicy()
    const refused = failureOf('too_large')
    await waits(retries, [...Array(9).fill(failureOf('unreachable')), ...Array(4).fill(refused)])
    expect(retries.isExhausted(refused)).toBe(false)
    await waits(retries, [refused])
    expect(retries.isExhausted(refused)).toBe(true)
    expect(retries.isExhausted(failureOf('gone'))).toBe(false)
    expect(retries.isExhausted(failureOf('unreachable'))).toBe(false)
    expect(retries.isExhausted(new MissingLogsError(5))).toBe(false)
  })

  it('takes an old block for pruned after the node lacked it often enough', async () => {
    const retries = new RetryPolicy()
    await waits(retries, Array(5).fill(behindError()))
    expect(retries.isPruned(behindError())).toBe(true)
    expect(retries.isExhausted(behindError())).toBe(false)
    await waits(retries, Array(9).fill(failureOf('unreachable')))
    expect(retries.isPruned(failureOf('unreachable'))).toBe(false)
  })

  it('passes on an error of our own', async () => {
    const bug = new TypeError('no')
    await expect(waits(new RetryPolicy(), [bug])).rejects.toBe(bug)
  })
})
