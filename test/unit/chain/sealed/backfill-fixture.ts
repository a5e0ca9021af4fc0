import { VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import { Reader } from '../../../../src/chain/rpc/block-reader.ts'
import { Backfill } from '../../../../src/chain/sealed/backfill.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple } from '../node-json.ts'
import { Debts, HEAD, Told } from './sealed-blocks-fixture.ts'

/** Ranges of a chain that does as it is told, caught up in virtual time. */
export const catchUp = () => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(HEAD, clock)
  const owed = new Debts()
  const told = new Told()
  const said: string[] = []
  const list = { addresses: [apple] as readonly Hex[] }
  const backfill = new Backfill({
    node: new Reader(chain.ask),
    owed,
    addresses: () => list.addresses,
    clock,
    say: (kind) => said.push(kind),
  })
  const listening = backfill.run(() => ({ number: chain.head, hash: null })).subscribe((one) => told.all.push(one))
  onTestFinished(() => listening.unsubscribe())
  return {
    chain,
    owed,
    told,
    said,
    list,
    backfill,
    add: (from: number, to: number, hole: string | null = null) => backfill.add({ from, to, hole }),
    pass: (ms: number) => {
      clock.maxFrames += ms
      clock.flush()
      clock.frame = clock.maxFrames
    },
  }
}
