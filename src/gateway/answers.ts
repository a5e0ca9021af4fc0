import { firstValueFrom } from 'rxjs'
import { ANSWER_BOUND_BYTES, type Pass } from '../chain/rpc/client.ts'
import { UpstreamError } from '../chain/rpc/error.ts'
import { methods } from '../chain/rpc/methods.ts'
import { holds, type Keeping, keptMs, Memory, type Stamp } from './answer-cache.ts'
import type { Question } from './call.ts'
import type { Moment } from './chain-state.ts'
import { Lane } from './fair-queue.ts'
import { hidden } from './redact.ts'
import { codes, Fault } from './rpc-error.ts'
import { Allowance } from './upstream-quota.ts'

/** So near to the head a node behind the same name may lack the last blocks of a range. */
const LATEST_BLOCKS = 8
/** So near to the head a block that was never heard of may be replaced without a word. */
const RECENT_BLOCKS = 64
/** That there is nothing is believed of what is safe, or lies so deep: a node that is far behind says so too. */
const DEEP_BLOCKS = 1_024
/** Questions that are asked at once, and that wait for their turn; those that take long have a lane of their own. */
const QUICK = { atOnce: 16, waiting: 500 }
const SLOW = { atOnce: 8, waiting: 100 }
/** What the relay itself asks, for all who hear of it. */
const OWN = { atOnce: 8, waiting: 100 }

/** What a node answers where there is nothing, and where it does not know better. */
const nothing = /^(null|\[\]|"0x0*")$/
const NOTHING_BOUND_BYTES = 68

/** The status by which a public endpoint refuses a method. */
const FORBIDDEN = 403

const tooMuch = new Fault(codes.limit, 'the upstream is asked too much now; come back in a moment')

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
type Flight = { readonly stamp: Stamp; readonly askedAt: number; readonly answer: Promise<Buffer> }

/** Answers questions: from memory while that holds, once for all who ask the same at the same time, else from upstream. */
export class Answers {
  readonly #options: Options
  readonly #memory = new Memory()
  readonly #flights = new Map<string, Flight>()
  readonly #quick: Lane
  readonly #slow: Lane
  readonly #own: Lane
  readonly #allowance = new Allowance()
  readonly #receiptsAllowance = new Allowance()

  constructor(options: Options) {
    this.#options = options
    this.#quick = new Lane(QUICK, options.uptime)
    this.#slow = new Lane(SLOW, options.uptime)
    this.#own = new Lane(OWN, options.uptime)
  }

  /** The result in JSON, for `who` asks; throws a `Fault` where there is none. */
  answer(question: Question, who = ''): Buffer | Promise<Buffer> {
    return this.#answer(question, () => this.#askFor(question, who))
  }

  /** The same, asked for everybody: no other question of a client stands before it. */
  answerAll(question: Question): Buffer | Promise<Buffer> {
    return this.#answer(question, () => this.#own.pass(() => this.#ask(question), ''))
  }

  #answer(question: Question, ask: () => Promise<Buffer>): Buffer | Promise<Buffer> {
    const { moment, chainId, uptime } = this.#options
    const chain = question.method === 'eth_chainId' ? chainId() : null
    if (chain !== null) return Buffer.from(`"0x${chain.toString(16)}"`)
    return this.#memory.recall(question.key, moment, uptime()) ?? this.#share(question, ask)
  }

  #share(question: Question, ask: () => Promise<Buffer>): Promise<Buffer> {
    const { moment, uptime } = this.#options
    const { key } = question
    const flight = this.#flights.get(key)
    const sharing = this.#sharing(question)
    // Whoever asks after the chain moved must not be given what was asked before.
    if (flight && holds(sharing, flight.stamp, moment) && uptime() < flight.askedAt + keptMs[sharing])
      return flight.answer
    const { head } = moment
    const askedAt = uptime()
    const stamp = { era: moment.era, heads: moment.heads, moves: moment.moves }
    const answer = ask().then((text) => {
      const lasting = this.#keeping(question, text, head)
      // A head that nobody hears of must not make old answers new.
      const keeping = lasting === 'head' && moment.isDeaf ? 'pending' : lasting
      // What does not hold any more must not take the place of what does.
      if (keeping && holds(keeping, stamp, moment)) this.#memory.keep(key, text, { keeping, stamp, askedAt })
      return text
    })
    const mine = { stamp, askedAt, answer }
    this.#flights.set(key, mine)
    const landed = () => {
      if (this.#flights.get(key) === mine) this.#flights.delete(key)
    }
    answer.then(landed, landed)
    return answer
  }

  #sharing({ about }: Question): Keeping {
    if (about.at === 'pending') return 'pending'
    const { head } = this.#options.moment
    const isOld = about.at === 'number' && head !== null && about.number <= head - RECENT_BLOCKS
    return about.at === 'chain' || isOld ? 'sealed' : 'head'
  }

  /** How long an answer keeps to a question that was asked when the head was this; null where it does not. */
  #keeping({ method, about }: Question, text: Buffer, head: number | null): Keeping | null {
    switch (about.at) {
      case 'pending':
        return 'pending'
      case 'head':
        return method === 'eth_blockNumber' && Number(JSON.parse(String(text))) < (head ?? 0) ? null : 'head'
      case 'chain':
        return 'sealed'
      case 'hash':
        // Whoever does not know a block yet may know it in a moment.
        return isNull(text) ? null : isNothing(text) ? 'head' : 'sealed'
      case 'number':
        if (head === null || about.number > head) return null
        if (isNothing(text) && about.number > head - LATEST_BLOCKS) return isNull(text) ? null : 'pending'
        if (method === 'eth_getBlockByNumber' && this.#isAnother(about.number, text)) return null
        return this.#isSure(about, text, head) ? 'sealed' : 'head'
    }
  }

  /** Whether an answer is that of a node that knows what it was asked about, and it would be noticed if that changed. */
  #isSure({ number, several }: { number: number; several: boolean }, text: Buffer, head: number): boolean {
    const { moment } = this.#options
    if (isNothing(text)) return number <= Math.max(moment.safe ?? 0, head - DEEP_BLOCKS)
    if (several) return number <= head - LATEST_BLOCKS
    return moment.hashOf(number) !== null || number <= head - RECENT_BLOCKS
  }

  /** Whether a block is not the one that was heard of: whoever gave it stands on a chain that is no more, or not yet. */
  #isAnother(number: number, text: Buffer): boolean {
    const hash = this.#options.moment.hashOf(number)
    return hash !== null && !isNothing(text) && !text.includes(hash)
  }

  #askFor(question: Question, who: string): Promise<Buffer> {
    const { uptime } = this.#options
    const isSlow = question.method === 'eth_getLogs' || !methods[question.method].public
    return (isSlow ? this.#slow : this.#quick).pass(() => {
      if (!this.#allowanceOf(question).take(uptime())) throw tooMuch
      return this.#ask(question)
    }, who)
  }

  async #ask(question: Question): Promise<Buffer> {
    const { uptime } = this.#options
    const { method, params } = question
    try {
      return await firstValueFrom(this.#passOf(question)(method, params))
    } catch (failure) {
      if (!(failure instanceof UpstreamError)) throw failure
      this.#allowanceOf(question).heard(failure, uptime())
      throw this.#faultOf(failure)
    }
  }

  #passOf({ method }: Question): Pass {
    const { pass, receipts } = this.#options
    return methods[method].public ? pass : (receipts ?? pass)
  }

  /** Whose quota a question is of. */
  #allowanceOf(question: Question): Allowance {
    return this.#passOf(question) === this.#options.receipts ? this.#receiptsAllowance : this.#allowance
  }

  /** What the upstream said, in its own words; where it said nothing, in ours. */
  #faultOf({ said, kind }: UpstreamError): Fault {
    const { hide } = this.#options
    if (said) {
      const status = said.status === FORBIDDEN ? FORBIDDEN : 200
      return new Fault(said.code, hide(said.message), status, hidden(said.data, hide))
    }
    if (kind === 'forbidden') return new Fault(codes.method, 'the upstream does not answer this method', FORBIDDEN)
    if (kind === 'too_large')
      return new Fault(codes.server, `the answer is longer than ${ANSWER_BOUND_BYTES} bytes; ask for less`)
    if (kind === 'busy') return tooMuch
    return new Fault(codes.server, 'the upstream does not answer now; try again in a moment')
  }
}

const isNull = (text: Buffer): boolean => text.length === 4 && text.toString('latin1') === 'null'

const isNothing = (text: Buffer): boolean => text.length <= NOTHING_BOUND_BYTES && nothing.test(text.toString('latin1'))
