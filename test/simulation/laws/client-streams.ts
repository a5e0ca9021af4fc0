import { formatPosition } from '../../../src/protocol/position.ts'
import { Refusal } from '../../../src/protocol/refusal.ts'
import type { Outlet } from '../../../src/relay/edge/transport/socket-outlet.ts'
import { lineDigest } from '../../../src/relay/tape/line-digest.ts'
import type { Tape } from '../../../src/relay/tape/tape.ts'
import { ConnectionError } from '../../../src/sdk/client/errors.ts'
import type { Http, ReadText } from '../../../src/sdk/client/http-requests.ts'
import { comparePositions } from '../../../src/sdk/client/position-order.ts'
import type { Gap, StreamItem } from '../../../src/sdk/client/stream-types.ts'
import { UpdateStream } from '../../../src/sdk/client/update-stream.ts'
import { SeededRandom } from '../seeded-random.ts'
import { SimulatedEdge } from '../simulated-edge.ts'
import { SimulatedNetwork } from '../simulated-network.ts'
import type { ClientSettings } from '../simulation-settings.ts'
import type { VirtualClock } from '../virtual-clock.ts'
import type { LawContext } from './law.ts'

const HEARTBEAT_S = 5
/** The client that never leaves tries again after this time while the relay has no list. */
const RETRY_MS = 100
/** How often, in %, the consumer pauses after an item, and how long at most. */
const PAUSE_PERCENT = 1
const PAUSE_BOUND_MS = 5_000

type Options = { readonly context: LawContext; readonly clock: VirtualClock; readonly settings: ClientSettings }

/**
 * I23: the SDK yields what a client received that never left, each message once and unchanged, or a gap that covers the
 * difference, whatever is lost on the way and wherever connections break. What the tape loses after the SDK has yielded it
 * lies in a gap that comes later, once a relay without it has counted its messages. Where nothing is lost in the network, it
 * never claims that something was.
 */
export class ClientStreams {
  readonly #options: Options
  readonly #random: SeededRandom
  readonly network: SimulatedNetwork
  /** What the program takes: a planted bug may change it. */
  takes: (item: StreamItem) => boolean = () => true
  #edge: SimulatedEdge | null = null
  #stream: UpdateStream | null = null
  #savedPosition: string | null = null
  readonly #received: StreamItem[] = []
  /** What the client received that never left: text by id, in order. */
  readonly #reference = new Map<string, string>()
  #referencePosition = 'start'
  /** What it was told to be missing. */
  readonly #referenceGaps: Gap[] = []
  /** Messages that the disk or an older backup has lost since, each with the number of the last connection before the loss. */
  readonly #lost = new Map<string, number>()

  constructor(options: Options) {
    const { context, clock, settings } = options
    this.#options = options
    this.#random = new SeededRandom(context.settings.seed, 'client stream')
    this.network = new SimulatedNetwork({
      ...{ clock, settings, edge: () => this.#edge },
      random: new SeededRandom(context.settings.seed, 'client network'),
      breakRandom: new SeededRandom(context.settings.seed, 'client network before breaks'),
    })
    clock.runAfter(0, () => this.#startProgram())
  }

  onRelayStart(tape: Tape): void {
    const random = new SeededRandom(this.#options.context.settings.seed, 'edge')
    const edge = new SimulatedEdge(tape, this.#options.clock, () => random.next())
    this.#edge = edge
    const end = formatPosition(tape.epoch, tape.end())
    const { openedCount } = this.network
    for (const id of this.#reference.keys()) if (!isUpTo(id, end) && !this.#lost.has(id)) this.#lost.set(id, openedCount)
    this.#openReference(edge)
  }

  onRelayStop(isGraceful: boolean): void {
    this.#edge?.close(isGraceful)
    this.#edge = null
    if (!isGraceful) this.network.cutAll()
  }

  /** How much the client received, what it was told to be missing, and what was lost on the way. */
  get counts() {
    return {
      items: this.#received.length,
      gaps: this.#received.filter(({ type }) => type === 'gap').length,
      lost: this.network.lostCount,
    }
  }

  onEnd(): void {
    const { context, settings } = this.#options
    const finished = this.#stream?.position ?? ''
    void this.#stream?.close()
    const { restartEveryMs, lossPercent, breakLossPercent = 0 } = settings
    const { counted } = this.network
    // A message that was found late may still wait for a program that has finished with a later one.
    const isBefore = (position: string) => (comparePositions(position, finished) ?? 0) < 0
    // A relay that began after the loss has counted its messages, and the program has handled a later one. What an older
    // relay counted may arrive after the loss, but says nothing about it.
    const isKnown = ([id, lastBefore]: readonly [string, number]) =>
      counted.some(({ position, connection }) => connection > lastBefore && !isUpTo(position, id) && isBefore(position))
    const conditions = {
      restartEveryMs,
      losesMessages: lossPercent + breakLossPercent > 0,
      proven: counted.findLast(({ position }) => isBefore(position))?.position ?? '',
      lost: new Set(this.#lost.keys()),
      knownLost: new Set(restartEveryMs === null ? [...this.#lost].filter(isKnown).map(([id]) => id) : []),
      evicts: context.settings.tapeBound !== undefined,
      skipped: this.#referenceGaps,
    }
    for (const difference of differences([...this.#reference], this.#received, conditions)) context.violation('I23', difference)
  }

  /** A program that follows the stream. It may end at any moment and start again. */
  #startProgram(): void {
    const { clock, settings } = this.#options
    const stream = new UpdateStream(
      {
        ...{ clock, http: this.#http(), heartbeatS: HEARTBEAT_S, transport: undefined },
        open: { websocket: this.network.open, sse: this.network.open },
        now: () => clock.elapsedMs,
        wallTime: () => clock.elapsedMs,
        random: () => this.#random.next(),
        after: (ms, callback) => clock.runAfter(ms, callback),
      },
      '*',
      {
        ...settings.selection,
        since: 'start',
        snapshot: false,
        gaps: settings.fill ? 'fill' : 'yield',
        highWaterMark: settings.queueBound,
        store: {
          load: () => this.#savedPosition,
          save: (position) => {
            this.#savedPosition = position
          },
        },
      },
    )
    this.#stream = stream
    this.#consume(stream).catch((failure) => this.#options.context.violation('I23', `the stream failed: ${failure}`))
    if (settings.restartEveryMs === null) return
    clock.runAfter(this.#random.int(1, 2 * settings.restartEveryMs), () => {
      void stream.close()
      this.#startProgram()
    })
  }

  async #consume(stream: UpdateStream): Promise<void> {
    const { clock } = this.#options
    for await (const item of stream) {
      if (stream !== this.#stream) return
      if (this.takes(item)) this.#received.push(item)
      if (!this.#random.chance(PAUSE_PERCENT)) continue
      await new Promise<void>((resolve) => clock.runAfter(this.#random.int(1, PAUSE_BOUND_MS), resolve))
    }
  }

  #http(): Http {
    return {
      isKnown: true,
      getKey: async () => undefined,
      request: () => Promise.reject(new Error('there is no network')),
      probe: async () => (this.#edge ? null : new ConnectionError('unreachable', 'http://relay/', null)),
      digestOf: async (ids) => lineDigest(ids),
      errorOf: (code, cause) => new ConnectionError(code, 'http://relay/', cause),
      retry: undefined,
      urlOf: (path) => new URL(path, 'http://relay/'),
      get: async <Body>(path: string, query = new URLSearchParams(), _?: AbortSignal, read: ReadText<Body> = JSON.parse) => {
        if (!this.#edge) throw new Error('the relay is down')
        return read(await this.#edge.get(path, query))
      },
    }
  }

  /** Its connection has no latency and never breaks. It resumes in the moment when the relay starts again. */
  #openReference(edge: SimulatedEdge): void {
    const { clock, context, settings } = this.#options
    const query = new URLSearchParams({ symbols: '*', since: this.#referencePosition, snapshot: 'false' })
    for (const [name, value] of Object.entries(parametersOf(settings))) query.set(name, value)
    try {
      edge.open(query, this.#referenceOutlet(), () => context.violation('I23', 'the client that never left was disconnected'))
    } catch (failure) {
      if (!(failure instanceof Refusal)) throw failure
      clock.runAfter(RETRY_MS, () => edge === this.#edge && this.#openReference(edge))
    }
  }

  #referenceOutlet(): Outlet {
    const write = (bytes: Buffer) => {
      for (const line of String(bytes).split('\n')) {
        if (line === '') continue
        const message = JSON.parse(line)
        // While the relay has no list it refuses connections, and a small tape evicts its first messages meanwhile.
        if (message.type === 'hello' && this.#referencePosition === 'start')
          this.#referenceGaps.push({ ...message, type: 'gap', after: null, through: message.id })
        if (message.id) this.#referencePosition = message.id
        if (message.type === 'gap') this.#referenceGaps.push(message)
        if (!('prev' in message)) continue
        this.#reference.set(message.id, line)
        // Where the clock has gone back, a run may give a lost number again.
        this.#lost.delete(message.id)
      }
    }
    return { write, backlog: 0, takenBytes: 0, drained: () => Promise.resolve(), ping: () => false, end() {}, cut() {} }
  }
}

const parametersOf = ({ selection: { types, minValue, stage } }: ClientSettings): Record<string, string> => ({
  ...(types && { types: String(types) }),
  ...(minValue && { min_value: minValue }),
  ...(stage && { stage }),
})

type Reference = readonly (readonly [id: string, text: string])[]
type Conditions = Pick<ClientSettings, 'restartEveryMs'> & {
  readonly losesMessages: boolean
  /** Nothing is missing up to here: the relay has told how many messages it sent, and the program has handled them. */
  readonly proven: string
  readonly lost: ReadonlySet<string>
  /** What the SDK can know of: it must say so, unless the program has restarted. */
  readonly knownLost: ReadonlySet<string>
  /** Whether the tape evicts: then how a fact ends also comes to a client that cannot be proven to know the fact. */
  readonly evicts: boolean
  /** What the client that never left was told to be missing. Another may have received a part of it. */
  readonly skipped: readonly Gap[]
}

/** What is wrong with the items of a client, compared with what was sent to one that never left. */
export function differences(reference: Reference, items: readonly StreamItem[], conditions: Conditions): string[] {
  const { proven } = conditions
  const seen = new Set(items.flatMap(({ type, id }) => (type === 'gap' ? [] : [id])))
  const isExcused = (id: string) => conditions.lost.has(id) || items.some((item) => item.type === 'gap' && covers(item, id))
  const first = reference.findIndex(([id]) => seen.has(id))
  const later = reference.slice(first < 0 ? reference.length : first + 1)
  const missing = later.filter(([id]) => !seen.has(id) && isUpTo(id, proven) && !isExcused(id))
  return [
    ...missing.map(([id]) => `${id} is missing`),
    ...unreported(items, conditions.knownLost).map((id) => `${id} is lost, and no gap says so`),
    ...wrongItems(new Map(reference), items, conditions),
  ]
}

/** What the tape has lost after the client received it, and no later gap covers. */
function unreported(items: readonly StreamItem[], lost: ReadonlySet<string>): readonly string[] {
  const held = new Set<string>()
  for (const item of items) {
    if (item.type === 'gap') for (const id of held) if (revokes(item, id)) held.delete(id)
    if (item.type !== 'gap' && item.id !== null && lost.has(item.id)) held.add(item.id)
  }
  return [...held]
}

function wrongItems(
  textById: ReadonlyMap<string, string>,
  items: readonly StreamItem[],
  { losesMessages, restartEveryMs, evicts, skipped, lost }: Conditions,
): string[] {
  const found: string[] = []
  const seen = new Set<string>()
  let last: string | null = null
  for (const item of items) {
    const { id } = item
    if (item.type === 'snapshot' || id === null) continue
    if (item.type === 'gap') {
      if (item.reason === 'missed' && !losesMessages) found.push(`claims a loss: ${JSON.stringify(item)}`)
    } else {
      const text = textById.get(id)
      const isEnding = item.type === 'seal' || item.type === 'retract' || item.type === 'amend'
      const isExtra = text === undefined && evicts && (isEnding || skipped.some((gap) => covers(gap, id)))
      if (!isExtra && text !== JSON.stringify(item)) found.push(`${id} is not what was sent`)
      // A program that ends while it handles a message gets that one again.
      if (seen.has(id) && restartEveryMs === null) found.push(`${id} comes twice`)
      // A tape that has lost its end gives smaller numbers if the clock was set back too.
      const isBefore = last !== null && !lost.has(last) && (comparePositions(id, last) ?? 1) < 0
      // Eviction lets the relay send an ending that it left out before, and a connection continues at the last proof.
      if (isBefore && !isExtra && !seen.has(id) && !losesMessages) found.push(`${id} comes after ${last}`)
      seen.add(id)
    }
    last = id
  }
  return found
}

const isUpTo = (id: string, position: string): boolean => (comparePositions(id, position) ?? 1) <= 0

/** A gap that begins after its end tells that the numbers went back: those up to the end may have been given since. */
const covers = ({ after, through }: Gap, id: string): boolean =>
  isUpTo(id, through) && (after === null || !isUpTo(after, through) || !isUpTo(id, after))

/** A gap that ends before it begins, or on another tape, says that all that came after its end is lost. */
const revokes = (gap: Gap, id: string): boolean =>
  covers(gap, id) || (gap.after !== null && !isUpTo(gap.after, gap.through) && !isUpTo(id, gap.through))
