import { map, mergeMap, type Observable } from 'rxjs'
import type { Signal } from '../../src/chain/link/socket.ts'
import type { Hex } from '../../src/protocol/fields.ts'
import type { Weather } from './active-faults.ts'
import { drawLog } from './random-transactions.ts'
import { Dice } from './seeded-random.ts'
import { type Block, hex, type Placed, place } from './simulated-block.ts'
import type { Chain, Deed } from './simulated-chain.ts'
import { habitually, type WireLog, wireHeader, wireLog } from './simulated-node-json.ts'
import { foreigners } from './simulated-tokens.ts'
import type { Settings } from './simulation-settings.ts'

type LogsKind = 'pendingLogs' | 'logs'
/** What a socket is subscribed to, and for whose logs. */
export type Subscriptions = ReadonlyMap<LogsKind | 'newHeads', readonly Hex[]>

/** A signal on its way; in order with those before it, unless the network says otherwise. */
export type Push = { readonly signal: Signal; readonly afterMs: number; readonly ordered: boolean }

/** How much later a repeated push may come. */
const ECHO_MOST_MS = 5_000

type Options = { readonly settings: Settings; readonly chain: Chain; readonly weather: Weather }

/** What the node pushes over one socket as the chain goes on, and what the network makes of it. */
export class Pushes {
  readonly #options: Options
  #count = 0

  constructor(options: Options) {
    this.#options = options
  }

  to(subscriptions: Subscriptions): Observable<Push> {
    return this.#options.chain.deeds.pipe(
      mergeMap((deed) => this.#said(deed, subscriptions)),
      mergeMap((push) => this.#weathered(push)),
      map(({ afterMs, ...push }) => ({ ...push, afterMs: afterMs + this.#options.settings.latencyMs })),
    )
  }

  #said(deed: Deed, subscriptions: Subscriptions): readonly Push[] {
    const { settings, weather } = this.#options
    const push = (signal: Signal, afterMs = settings.canonLagMs): Push => ({ signal, afterMs, ordered: true })
    const wants = (kind: LogsKind) => {
      const addresses = subscriptions.get(kind) ?? []
      const all = subscriptions.has(kind) && settings.traits.includes('unfiltered')
      return (log: Placed) => all || addresses.includes(log.content.address)
    }
    const silent = weather.is('mutePending')
    if (deed.type === 'shown') {
      if (silent || weather.is('mined')) return []
      return this.#shown(deed, wants('pendingLogs')).map((signal) => push(signal, weather.amount('behind') ?? 0))
    }
    const [removed, added] = deed.type === 'sealed' ? [[], [deed.block]] : [deed.removed, deed.added]
    const sealed = (kind: LogsKind) =>
      added.flatMap(({ hash, logs }) => logs.filter(wants(kind)).map((log) => this.#signal(kind, wireLog(log, hash))))
    const gone = removed.flatMap(({ hash, logs }) => logs.filter(wants('logs')).map((log) => wireLog(log, hash, true)))
    const lied = this.#takenBack(added, wants('logs'))
    return [
      ...(subscriptions.has('newHeads') && !weather.is('muteHeads')
        ? added.map((block) => push({ type: 'head', header: wireHeader(block) }))
        : []),
      ...(weather.is('mined') && !silent ? sealed('pendingLogs').map((signal) => push(signal)) : []),
      ...(weather.is('muteLogs')
        ? []
        : [
            ...gone.map((log) => push(this.#signal('logs', log))),
            ...sealed('logs').map((signal) => push(signal)),
            ...lied.map((log) => push(this.#signal('logs', log))),
          ]),
    ]
  }

  /** What is pre-confirmed now: each new log by itself, or all of them once more. */
  #shown({ building, logs }: Extract<Deed, { type: 'shown' }>, wanted: (log: Placed) => boolean): readonly Signal[] {
    const { shape, traits } = this.#options.settings
    if (shape === 'one') {
      const signals = logs.filter(wanted).map((log) => this.#signal('pendingLogs', wireLog(log)))
      return traits.includes('unsorted') ? signals.reverse() : signals
    }
    const all = place(building, building.txs).filter(wanted)
    const log = all.map((one) => habitually(traits, wireLog(one)))
    return all.length === 0 ? [] : [{ type: 'log', of: 'pendingLogs', log, receivedAt: 0 }]
  }

  #signal(of: LogsKind, log: WireLog): Signal {
    return { type: 'log', of, log: habitually(this.#options.settings.traits, log), receivedAt: 0 }
  }

  /** A node may say that a log is gone that is not. */
  #takenBack(added: readonly Block[], listens: (log: Placed) => boolean): readonly WireLog[] {
    const { settings, weather } = this.#options
    const percent = weather.amount('takenBack')
    if (percent === null) return []
    return added.flatMap(({ number, hash, logs }) => {
      const [log] = new Dice(settings.seed, 'takenBack', number).chance(percent) ? logs.filter(listens) : []
      return log ? [wireLog(log, hash, true)] : []
    })
  }

  #weathered(push: Push): readonly Push[] {
    const { settings, weather } = this.#options
    this.#count += 1
    const dice = new Dice(settings.seed, 'push', this.#count)
    const strikes = (kind: Parameters<Weather['amount']>[0]) => dice.chance(weather.amount(kind) ?? 0)
    const lost = strikes('lossy')
    const [malformed, repeated, shuffled] = [strikes('malformed'), strikes('repeated'), weather.amount('shuffled')]
    const isLog = push.signal.type === 'log'
    const [garbage, foreign, badHead] = [strikes('garbage'), strikes('foreign'), strikes('badHead')]
    const delayed = { ...push, afterMs: push.afterMs + (weather.amount('late') ?? 0) }
    const shown =
      shuffled === null
        ? delayed
        : { ...delayed, afterMs: delayed.afterMs + Math.floor(dice.roll() * shuffled), ordered: false }
    const besides: Signal[] = []
    if (malformed) besides.push({ type: 'unreadable' })
    if (isLog && garbage) besides.push(logSignal('pendingLogs', garbageLog(dice)))
    if (isLog && foreign) besides.push(logSignal('pendingLogs', this.#foreign(dice)))
    if (!isLog && badHead) besides.push({ type: 'head', header: this.#badHeader(dice) })
    return [
      ...besides.map((signal) => ({ ...push, signal })),
      ...(lost || malformed ? [] : [shown]),
      ...(repeated ? [{ ...shown, afterMs: shown.afterMs + dice.int(0, ECHO_MOST_MS), ordered: false }] : []),
    ]
  }

  #foreign(dice: Dice): unknown {
    const { chain } = this.#options
    const content = drawLog(dice, dice.pick(foreigners))
    const at = {
      block: chain.head + 1,
      timestamp: 0,
      txIndex: 0,
      logIndex: 0,
      key: '',
      tx: hex(64, dice.int(1, 2 ** 30)),
    }
    return wireLog({ ...at, content })
  }

  #badHeader(dice: Dice): unknown {
    const { chain } = this.#options
    const head = chain.block(chain.head)
    const real = head ? wireHeader(head) : {}
    return dice.pick<unknown>([
      null,
      'head',
      {},
      { ...real, number: null },
      { ...real, number: '0xffffffffffff' },
      { ...real, number: '12' },
      { ...real, hash: null },
      { ...real, hash: '0x12' },
      { ...real, timestamp: 'now' },
    ])
  }
}

const logSignal = (of: LogsKind, log: unknown): Signal => ({ type: 'log', of, log, receivedAt: 0 })

/** What is no log, or one that nobody can read. */
function garbageLog(dice: Dice): unknown {
  const content = drawLog(dice)
  const at = { block: 7, timestamp: 0, txIndex: 0, logIndex: 0, key: '', tx: hex(64, 7) }
  const log = wireLog({ ...at, content })
  return dice.pick<unknown>([
    null,
    42,
    'log',
    {},
    [],
    [null, {}],
    { ...log, topics: 'none' },
    { ...log, topics: Array.from({ length: 5 }, () => hex(64, 1)) },
    { ...log, data: '0x123' },
    { ...log, blockNumber: '0xzz' },
    { ...log, transactionHash: '0x12' },
    { ...log, logIndex: null },
    { ...log, address: '0x12' },
  ])
}
