import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { RateLimiter } from '../../../../../src/relay/edge/limits/rate-limiter.ts'
import { SharedUsage } from '../../../../../src/relay/edge/limits/shared-usage.ts'
import { clientAt, openClients } from '../clients/test-clients.ts'

/** The counts of two workers, and of the process that forgets them. */
function openUsages() {
  const folder = mkdtempSync(join(tmpdir(), 'stocktape-usage-'))
  const usages = [0, 1, 2].map((worker) => new SharedUsage(join(folder, 'usage.sqlite'), worker))
  onTestFinished(() => {
    for (const usage of usages) usage.close()
    rmSync(folder, { recursive: true })
  })
  return { folder, usages: usages as [SharedUsage, SharedUsage, SharedUsage] }
}

describe('the counts that several processes share', () => {
  it('bound the connections of an address and of all, until one of them leaves', () => {
    const [, ...workers] = openUsages().usages
    const [one, other] = workers.map((sharedUsage) => openClients({ maxClients: 3, maxClientsPerAddress: 2, sharedUsage }))
    const [first, second] = [clientAt('a'), clientAt('a')]
    expect([one?.add(first), other?.add(second)]).toEqual([null, null])
    expect([one?.add(clientAt('a')), other?.refusal('a')?.reason]).toEqual(['too_many_connections', 'too_many_connections'])
    expect(one?.add(clientAt('b'))).toBeNull()
    expect(other?.add(clientAt('c'))).toBe('full')
    one?.remove(first)
    expect([other?.refusal('a'), other?.refusal('c')]).toEqual([null, null])
  })

  it('forget what a process counted that is gone', () => {
    const [primary, one, other] = openUsages().usages
    one.change('a', 3)
    other.change('a', 1)
    expect(primary.count('a')).toBe(4)
    primary.forget(1)
    expect([primary.count('a'), primary.count('b')]).toEqual([1, 0])
  })

  it('hold on in another file where theirs was removed', () => {
    const { folder, usages } = openUsages()
    const [, one, other] = usages
    one.change('a', 3)
    other.change('a', 1)
    for (const name of readdirSync(folder)) rmSync(join(folder, name))
    const next = openUsages()
    const [[primary], file] = [next.usages, join(next.folder, 'usage.sqlite')]
    one.moveTo(file)
    one.change('a', -1)
    expect(primary.count('a')).toBe(2)
    other.moveTo(file)
    for (const usage of [primary, one, other]) expect(usage.count('a')).toBe(3)
    expect(one.takeRate('a', (now) => ({ all: 1, logs: 1, at: now }))).toBe(true)
  })

  it('bound the requests of an address', () => {
    // The time of the machine would allow more from one line to the next.
    vi.useFakeTimers({ toFake: ['hrtime'] })
    onTestFinished(() => void vi.useRealTimers())
    const [, ...workers] = openUsages().usages
    const [one, other] = workers.map((shared) => new RateLimiter({ perSecond: 1, atOnce: 100, shared })) as [
      RateLimiter,
      RateLimiter,
    ]
    const sixty = Array.from({ length: 60 }, () => 'eth_chainId')
    expect([one.take('a', sixty, 0), other.take('a', sixty, 0), other.take('b', sixty, 0)]).toEqual([0, 20_000, 0])
    expect(other.take('a', sixty.slice(0, 40), 0)).toBe(0)
  })
})
