import { BehaviorSubject, type Observable, ReplaySubject, Subject, VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import type { Signal } from '../../../../src/chain/link/socket.ts'
import type { Cursor } from '../../../../src/chain/sealed/recent-blocks.ts'
import { type Heard, type LinkAsked, source } from '../../../../src/chain/source/source.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple, pendingLog } from '../node-json.ts'
import { Debts } from '../sealed/sealed-blocks-fixture.ts'

export const HEAD = 1_000
export const POLL_MS = 200
export const SILENCE_MS = 3_000
export const MINUTE_MS = 60_000

export const down: Signal = { type: 'down', reason: 'closed with 1000', refused: false }
export const live = (addresses: readonly Hex[] = [apple], of: 'pendingLogs' | 'logs' = 'pendingLogs'): Signal => ({
  type: 'live',
  of,
  addresses,
})
export const push = (log: unknown, receivedAt = 0): Signal => ({ type: 'log', of: 'pendingLogs', log, receivedAt })
export const pushSealed = (log: unknown): Signal => ({ type: 'log', of: 'logs', log, receivedAt: 0 })

type Given = {
  readonly linked?: boolean
  readonly cursor?: Cursor | null
  readonly addresses?: Observable<readonly Hex[]>
  readonly finalityPollMs?: number
}

/** A source in virtual time, on a chain and a link that do as they are told. */
export const feed = ({
  linked = true,
  cursor = null,
  addresses = new BehaviorSubject([apple]),
  finalityPollMs = 1e9,
}: Given = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(HEAD, clock)
  const signals = new Subject<Signal>()
  const lists = new ReplaySubject<readonly Hex[]>()
  const heard: Heard[] = []
  const said: string[] = []
  const probed: number[] = []
  const owed = new Debts()
  const link = (asked: LinkAsked): Observable<Signal> => {
    asked.addresses.subscribe(lists)
    asked.probes.subscribe(() => probed.push(clock.now()))
    return signals
  }
  const listening = source({
    ask: chain.ask,
    link: linked ? link : null,
    addresses,
    owed,
    cursor,
    head: { pending: null, sealed: null, safe: null, finalized: null },
    pendingPollMs: POLL_MS,
    silenceMs: SILENCE_MS,
    finalityPollMs,
    backfillBoundMs: 3_600_000,
    clock,
    say: (kind) => said.push(kind),
  }).subscribe((one) => heard.push(one))
  onTestFinished(() => listening.unsubscribe())
  const all = <Type extends Heard['type']>(type: Type) =>
    heard.filter((one): one is Extract<Heard, { type: Type }> => one.type === type)
  const pass = (ms: number) => {
    clock.maxFrames += ms
    clock.flush()
    clock.frame = clock.maxFrames
  }
  const signal = (...some: Signal[]) => {
    for (const one of some) signals.next(one)
    pass(0)
  }
  const head = (block = chain.head): Signal => ({ type: 'head', header: chain.headerOf(block) })
  return {
    chain,
    clock,
    heard,
    said,
    lists,
    owed,
    /** When the link was told to try its subscription again. */
    probed,
    all,
    pass,
    signal,
    head,
    /** What was told before its block was sealed. */
    told: () => all('log').map(({ log, via }) => `${log.key} ${via}`),
    sealed: () => all('sealed').flatMap(({ blocks }) => blocks),
    statuses: () => all('status').map((status) => `${status.source} ${status.reason}`),
    /** Seals a block with so many logs; each was pushed before if the link lives, and so is the head. */
    seal: (logs: number, { announced = true, pushed = true } = {}) => {
      const block = chain.head + 1
      for (let log = 0; log < logs; log += 1) {
        const { index } = chain.put(block)
        if (announced) signal(push(pendingLog({ block, index })))
      }
      chain.head = block
      if (pushed) signal(head())
      pass(200)
    },
  }
}
