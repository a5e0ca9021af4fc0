import { finalize, ignoreElements, merge, NEVER, type Observable, Subject, tap } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Owed } from '../../../src/chain/sealed/block-logs.ts'
import type { Heard } from '../../../src/chain/source/source.ts'
import { Fault } from '../../../src/gateway/rpc-error.ts'
import { Foreign } from '../../../src/gateway/unlisted-contracts.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { headed, Listener, logOf, preconfirmed, sealed } from './log-feed-fixture.ts'

const contract = (at: number): Hex => `0x${(at + 1).toString(16).padStart(40, '0')}`
const [one, two, three] = [contract(0), contract(1), contract(2)]

/** Foreign contracts, and the source of what they say: what it was asked for, and how often it is open. */
function openForeign() {
  const foreign = new Foreign()
  const asked: (readonly Hex[])[] = []
  const standing = { open: 0, opened: 0, owed: null as Owed | null }
  const says = new Subject<Heard>()
  const source = (addresses: Observable<readonly Hex[]>, owed: Owed): Observable<Heard> => {
    standing.open += 1
    standing.opened += 1
    standing.owed = owed
    const asking = addresses.pipe(
      tap((list) => asked.push(list)),
      ignoreElements(),
    )
    return merge(asking, says, NEVER).pipe(finalize(() => (standing.open -= 1)))
  }
  const listening = foreign.heard(source).subscribe((heard) => foreign.wire.hear(heard))
  onTestFinished(() => listening.unsubscribe())
  const listen = (address: Hex) => {
    const ear = new Listener()
    foreign.subscribers.add({ kind: 'pendingLogs', subscriber: ear, ...foreign.wire.now }, { address })
    return ear
  }
  const say = (...some: Heard[]) => {
    for (const heard of some) says.next(heard)
  }
  return { foreign, asked, standing, listen, say }
}

describe('contracts that are not listed', () => {
  it('are listened to by one source, only while anybody wants any', () => {
    const { foreign, asked, standing } = openForeign()
    expect(standing).toMatchObject({ open: 0, opened: 0 })
    const ends = [foreign.want([two]), foreign.want([one, two]), foreign.want([two])]
    expect(standing).toMatchObject({ open: 1, opened: 1, owed: foreign.wire })
    expect(asked).toEqual([[two], [one, two]])
    ends[1]?.()
    expect(asked.at(-1)).toEqual([two])
    ends[0]?.()
    expect(standing.open).toBe(1)
    ends[2]?.()
    expect(standing).toMatchObject({ open: 0, opened: 1 })
    foreign.want([three])
    expect(standing).toMatchObject({ open: 1, opened: 2 })
    expect(asked.at(-1)).toEqual([three])
  })

  it('are told while they are wanted, and what was told is owed to whoever settles it', () => {
    const { foreign, standing, listen, say } = openForeign()
    const end = foreign.want([one])
    const ear = listen(one)
    const log = logOf({ block: 11, address: one })
    say(headed(10), preconfirmed(log), preconfirmed(logOf({ block: 11, index: 1, address: two })))
    expect(standing.owed?.at(11)).toEqual([{ key: log.key, address: one, tx: log.transactionHash }])
    say(sealed({ number: 11, asked: [one] }))
    expect(ear.told).toEqual(['+11.0=1 pending', '-11.0=1 pending'])
    end()
    expect(standing.open).toBe(0)
  })

  it('that are wanted again are told from then on', () => {
    const { foreign, listen, say } = openForeign()
    foreign.want([one])()
    foreign.want([one])
    const cursor = { number: 20, hash: null }
    const ear = listen(one)
    say(headed(20), { type: 'cursor', cursor }, preconfirmed(logOf({ block: 20, address: one })))
    say(preconfirmed(logOf({ block: 21, address: one })))
    expect(ear.told).toEqual(['+21.0=1 pending'])
  })

  it('are up to 256 at once, whoever wants them', () => {
    const { foreign, asked } = openForeign()
    const all = Array.from({ length: 256 }, (_, at) => contract(at))
    const end = foreign.want(all)
    foreign.want([one])
    const refused = () => foreign.want([two, contract(256)])
    expect(refused).toThrow(Fault)
    expect(refused).toThrow(
      expect.objectContaining({ code: -32005, message: expect.stringMatching(/come back later/) }),
    )
    expect(asked.at(-1)).toHaveLength(256)
    end()
    expect(asked.at(-1)).toEqual([one])
    refused()
    expect(asked.at(-1)).toEqual([one, two, contract(256)])
  })
})
