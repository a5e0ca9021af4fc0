import { VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { Backfill } from '../../../../../src/relay/chain/sealed/backfill.ts'
import { RecentBlocks } from '../../../../../src/relay/chain/blocks/sealed-block.ts'
import { UnreadRanges } from '../../../../../src/relay/chain/sealed/unread-ranges.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple } from '../node-json.ts'
import { FakeOpenKeys, HEAD, SettledEvents } from './sealed-chain-fixture.ts'

/** A backfill of a scripted chain in virtual time. */
export const openBackfill = () => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(HEAD, clock)
  const openKeys = new FakeOpenKeys()
  const settledEvents = new SettledEvents()
  const warnings: string[] = []
  const list = { addresses: [apple] as readonly Hex[] }
  const recentBlocks = new RecentBlocks()
  recentBlocks.addUnread({ number: HEAD, hash: chain.hashOf(HEAD) })
  const ranges = new UnreadRanges(recentBlocks)
  const controller = new AbortController()
  const backfill = new Backfill({
    node: new ChainReader(chain.request),
    confirmChain: chain.confirmChain,
    openKeys,
    addresses: () => list.addresses,
    ranges,
    recentBlocks,
    clock,
    warn: (kind) => warnings.push(kind),
    emit: (event) => settledEvents.all.push(event),
    signal: controller.signal,
  })
  onTestFinished(() => controller.abort())
  backfill.run().catch((failure: unknown) => {
    if (!controller.signal.aborted) throw failure
  })
  return {
    chain,
    openKeys,
    settledEvents,
    warnings,
    list,
    ranges,
    add: (from: number, to: number, missingReason: string | null = null) => ranges.add({ from, to, missingReason }),
    advance: (ms: number) => advanceClock(clock, ms),
  }
}
