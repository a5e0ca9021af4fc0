import { firstValueFrom } from 'rxjs'
import { methods } from '../chain/methods.ts'
import { ANSWER_BOUND_BYTES, type Pass } from '../chain/rpc.ts'
import { UpstreamError } from '../chain/upstream-error.ts'
import { codes, Fault } from './fault.ts'
import { Lane } from './lane.ts'
import { holds, type Keeping, Memory, type Stamp } from './memory.ts'
import type { Moment } from './moment.ts'
import type { Question } from './question.ts'
import { hidden } from './secrets.ts'

/** So near to the head a node behind the same name may not know a block yet, and answer as if it held nothing. */
const RECENT_BLOCKS = 64
/** Questions that are asked at once, and that wait for their turn; those that take long have a lane of their own. */
const QUICK = { atOnce: 24, waiting: 500 }
const SLOW = { atOnce: 8, waiting: 100 }

/** What a node answers where there is nothing, and where it does not know better. */
const nothing = /^(null|\[\]|"0x0*")$/
const NOTHING_BOUND_BYTES = 68

/** The status by which a public endpoint refuses a method. */
const FORBIDDEN = 403

type Options = {
  readonly pass: Pass
  /** Who serves what public endpoints refuse; null where nobody else does. */
  readonly receipts: Pass | null
  readonly moment: Moment
  /** The chain, once it is known. */
  readonly chainId: () => number | null
  /** Takes out of a text what nobody else may read. */
  readonly hide: (text: string) => string
  readonly uptime: () => number
}

/** A question that is under way, and when it was asked. */
type Flight = { readonly stamp: Stamp; readonly answer: Promise<Buffer> }

/** Answers questions: from memory while that holds, once for all who ask the same at the same time, else from upstream. */
export class Answers {
  readonly #options: Options
  readonly #memory = new Memory()
  readonly #flights = new Map<string, Flight>()
  readonly #quick: Lane
  readonly #slow: Lane

  constructor(options: Options) {
    this.#options = options
    this.#quick = new Lane(QUICK, options.uptime)
    this.#slow = new Lane(SLOW, options.uptime)
  }

  /** The result in JSON; throws a `Fault` where there is none. */
  answer(question: Question): Buffer | Promise<Buffer> {
    const { moment, chainId, uptime } = this.#options
    const chain = question.method === 'eth_chainId' ? chainId() : null
    if (chain !== null) return Buffer.from(`"0x${chain.toString(16)}"`)
    return this.#memory.recall(question.key, moment, uptime()) ?? this.#share(question)
  }

  #share(question: Question): Promise<Buffer> {
    const { moment } = this.#options
    const { key } = question
    const flight = this.#flights.get(key)
    // Whoever asks after the chain moved must not be given what was asked before.
    if (flight && holds(this.#sharing(question), flight.stamp, moment)) return flight.answer
    const { head } = moment
    const stamp = { era: moment.era, heads: moment.heads, moves: moment.moves }
    const answer = this.#ask(question).then((text) => {
      const lasting = this.#keeping(question, text, head)
      // A head that nobody hears of must not make old answers new.
      const keeping = lasting === 'head' && moment.isDeaf ? 'pending' : lasting
      // What does not hold any more must not take the place of what does.
      if (keeping && holds(keeping, stamp, moment))
        this.#memory.keep(key, text, { keeping, stamp }, this.#options.uptime())
      return text
    })
    const mine = { stamp, answer }
    this.#flights.set(key, mine)
    const landed = () => {
      if (this.#flights.get(key) === mine) this.#flights.delete(key)
    }
    answer.then(landed, landed)
    return answer
  }

  #sharing({ about }: Question): Keeping {
    if (about.at === 'pending') return 'pending'
    return about.at === 'chain' || (about.at === 'number' && isDeep(about.number, this.#options.moment.head))
      ? 'sealed'
      : 'head'
  }

  /** How long an answer keeps to a question that was asked when the head was this; null where it does not. */
  #keeping({ method, about }: Question, text: Buffer, head: number | null): Keeping | null {
    const { moment } = this.#options
    switch (about.at) {
      case 'pending':
        return 'pending'
      case 'head':
        return method === 'eth_blockNumber' && Number(JSON.parse(String(text))) < (head ?? 0) ? null : 'head'
      case 'chain':
        return 'sealed'
      case 'hash':
        return isNothing(text) ? 'head' : 'sealed'
      case 'number':
        if (head === null || about.number > head) return null
        if (isDeep(about.number, head)) return 'sealed'
        // What is there proves that the block was known; of several, only that one was.
        return about.several || isNothing(text) || !moment.knows(about.number) ? 'head' : 'sealed'
    }
  }

  #ask({ method, params }: Question): Promise<Buffer> {
    const { pass, receipts } = this.#options
    const asked = methods[method].public ? pass : (receipts ?? pass)
    const lane = method === 'eth_getLogs' || asked === receipts ? this.#slow : this.#quick
    return lane.pass(() =>
      firstValueFrom(asked(method, params)).catch((failure: unknown) => {
        throw this.#faultOf(failure)
      }),
    )
  }

  /** What the upstream said, in its own words; where it said nothing, in ours. */
  #faultOf(failure: unknown): Fault {
    if (!(failure instanceof UpstreamError)) throw failure
    const { hide } = this.#options
    const { said, kind } = failure
    if (said) {
      const status = said.status === FORBIDDEN ? FORBIDDEN : 200
      return new Fault(said.code, hide(said.message), status, hidden(said.data, hide))
    }
    if (kind === 'forbidden') return new Fault(codes.method, 'the upstream does not answer this method', FORBIDDEN)
    if (kind === 'too_large')
      return new Fault(codes.server, `the answer is longer than ${ANSWER_BOUND_BYTES} bytes; ask for less`)
    if (kind === 'busy') return new Fault(codes.server, 'the upstream is busy; come back in a moment')
    return new Fault(codes.server, 'the upstream does not answer now; try again in a moment')
  }
}

const isDeep = (number: number, head: number | null): boolean => head !== null && number <= head - RECENT_BLOCKS

const isNothing = (text: Buffer): boolean => text.length <= NOTHING_BOUND_BYTES && nothing.test(text.toString('latin1'))
