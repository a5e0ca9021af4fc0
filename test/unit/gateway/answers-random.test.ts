import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { UpstreamError } from '../../../src/chain/rpc/error.ts'
import type { Heard } from '../../../src/chain/source/source.ts'
import { readQuestion } from '../../../src/gateway/call.ts'
import { Moment } from '../../../src/gateway/chain-state.ts'
import { alice } from '../chain/node-json.ts'
import { answering } from './answers-fixture.ts'
import { type Asking, Chain, UNKNOWN } from './model-chain.ts'

/** How long after it came an answer may be given again. */
const boundsMs: Readonly<Record<string, number>> = { pending: 200, head: 60_000 }
const SEALED_MS = 3_600_000

type Act =
  | { readonly kind: 'build'; readonly quiet: boolean }
  | { readonly kind: 'seal' | 'finalise' | 'lose' | 'regain' }
  /** The node answers all that it was asked. */
  | { readonly kind: 'answer' }
  | { readonly kind: 'reorganise'; readonly depth: number; readonly others: number }
  /** So many of the things that there are to hear are heard. */
  | { readonly kind: 'hear'; readonly count: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'ask'; readonly asking: (chain: Chain) => Asking }
  /** The node makes up its mind about a question; what it said arrives. */
  | { readonly kind: 'think' | 'arrive'; readonly which: number }

/** Numbers about the head, which is 99 at first, and about where the chain is deep. */
const arbNumber = fc.constantFrom(0, 33, 34, 35, 36, 37, 38, 97, 98, 99, 100, 101, 102)
const arbAt = fc.oneof(
  fc.constantFrom('latest', 'pending', 'pending', 'safe', 'finalized', 'earliest'),
  arbNumber.map((number) => `0x${number.toString(16)}`),
)
type Told<T> = (chain: Chain) => T
const arbHash = fc.tuple(arbNumber, fc.nat(3)).map(
  ([number, ago]): Told<string> =>
    (chain) =>
      chain.hash(number, ago),
)
const arbAsking: fc.Arbitrary<Told<Asking>> = fc.oneof(
  fc.constant((): Asking => ['eth_blockNumber']),
  arbAt.map((at) => (): Asking => ['eth_getBlockByNumber', at, false]),
  arbAt.map((at) => (): Asking => ['eth_getBalance', alice, at]),
  arbHash.map(
    (hash) =>
      (chain: Chain): Asking => ['eth_getBalance', alice, hash(chain)],
  ),
  arbHash.map(
    (hash) =>
      (chain: Chain): Asking => ['eth_getLogs', { blockHash: hash(chain) }],
  ),
  fc.tuple(arbAt, arbAt).map(
    ([fromBlock, toBlock]) =>
      (): Asking => ['eth_getLogs', { fromBlock, toBlock }],
  ),
)
/** The same few questions again and again, so that memory has something to do. */
const arbActs = fc.array(arbAsking, { minLength: 1, maxLength: 3 }).chain((askings) => {
  const act: fc.Arbitrary<Act> = fc.oneof(
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('build'), quiet: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('seal') }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('finalise', 'lose', 'regain') }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('reorganise'),
        depth: fc.constantFrom(1, 1, 2, 3, 70),
        others: fc.nat(3),
      }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('hear'), count: fc.constantFrom(1, 1, 2, 3, 99) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.constantFrom(50, 199, 59_801) }) },
    {
      weight: 12,
      arbitrary: fc
        .nat(askings.length - 1)
        .map((at): Act => ({ kind: 'ask', asking: askings[at] ?? (() => ['eth_blockNumber']) })),
    },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('answer') }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('think'), which: fc.nat(7) }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('arrive'), which: fc.nat(7) }) },
  ) as fc.Arbitrary<Act>
  return fc.array(act, { minLength: 10, maxLength: 80, size: 'max' })
})

/** Lets all of it happen; the first thing told that was not so, if there is one. */
async function lieIn(acts: readonly Act[], moment: Moment): Promise<string | null> {
  const [node, chain] = [answering({ moment }), new Chain()]
  const lies: string[] = []
  /** Up to which state was heard. */
  let known = 0
  /** What the node will say, by the place of the question among all that it was asked. */
  const said = new Map<number, unknown>()
  const arrived = new Set<number>()
  const arrivals: { name: string; text: string; at: number; boundMs: number }[] = []
  const nameOf = ({ method, params }: { readonly method: string; readonly params: unknown }) =>
    JSON.stringify([method, params])
  const textOf = (answer: unknown) => (answer === UNKNOWN ? 'unknown' : JSON.stringify(answer))

  const hear = (count: number) => {
    for (const { state, heard } of chain.news.splice(0, count)) {
      moment.hear(heard)
      known = Math.max(known, state)
    }
  }
  const oneOf = (which: number, fits: (place: number) => boolean): number => {
    const places = [...node.passed.keys()].filter(fits)
    return places[which % places.length] ?? -1
  }
  const think = (which: number) => {
    const passed = node.passed[which]
    if (passed && !said.has(which)) said.set(which, chain.answer([passed.method, ...passed.params] as never))
  }
  const arrive = (which: number) => {
    const passed = node.passed[which]
    if (!passed || !said.has(which) || arrived.has(which)) return
    arrived.add(which)
    const answer = said.get(which)
    if (answer === UNKNOWN) return passed.fail(new UpstreamError('behind', 'block not found'))
    const { method, params } = passed
    const { about } = readQuestion(method, params, moment)
    const boundMs = about.at === 'head' && moment.isDeaf ? boundsMs.pending : boundsMs[about.at]
    const [name, at] = [nameOf(passed), node.clock.uptime]
    arrivals.push({ name, text: textOf(answer), at, boundMs: boundMs ?? SEALED_MS })
    return passed.give(answer)
  }
  /** What is answered must have been so since what was heard last when it was asked. */
  const check = (name: string, asking: Asking, since: number, text: string) => {
    for (let state = chain.present; state >= since; state -= 1) if (textOf(chain.answer(asking, state)) === text) return
    lies.push(`${name} gave ${text}, which it was not since state ${since}`)
  }
  const ask = (asking: Asking) => {
    const [method, ...params] = asking
    const question = readQuestion(method, params, moment)
    const [name, since] = [nameOf(question), known]
    const answer = node.answers.answer(question)
    if (!Buffer.isBuffer(answer)) {
      const told = (text: string) => check(name, asking, since, text)
      answer.then(
        (text) => told(String(text)),
        () => told('unknown'),
      )
      return
    }
    check(name, asking, since, String(answer))
    const isYoung = (one: (typeof arrivals)[number]) => node.clock.uptime - one.at < one.boundMs
    if (!arrivals.some((one) => one.name === name && one.text === String(answer) && isYoung(one)))
      lies.push(`${name} gave ${answer} for too long`)
  }
  const answerAll = async () => {
    for (let which = 0; which < node.passed.length; which += 1) {
      think(which)
      await arrive(which)
    }
  }
  const carryOut = (act: Act) => {
    switch (act.kind) {
      case 'build':
        return chain.build(act.quiet)
      case 'seal':
        return chain.seal()
      case 'finalise':
      case 'lose':
      case 'regain':
        return chain[act.kind]()
      case 'reorganise':
        return chain.reorganise(act.depth, act.others)
      case 'hear':
        return hear(act.count)
      case 'wait':
        node.clock.uptime += act.ms
        return
      case 'ask':
        return ask(act.asking(chain))
      case 'answer':
        return answerAll()
      case 'think':
        return think(oneOf(act.which, (place) => !said.has(place)))
      case 'arrive':
        return arrive(oneOf(act.which, (place) => said.has(place) && !arrived.has(place)))
    }
  }
  hear(Number.POSITIVE_INFINITY)
  for (const act of acts) {
    await carryOut(act)
    await nextTurn()
  }
  await answerAll()
  return lies[0] ?? null
}

/** One that does not hear what is of a kind. */
class Deaf extends Moment {
  readonly #to: (heard: Heard) => boolean

  constructor(to: (heard: Heard) => boolean) {
    super()
    this.#to = to
  }

  override hear(heard: Heard): void {
    if (!this.#to(heard)) super.hear(heard)
  }
}

it('tells nothing that was not so since whatever had been heard of the chain when it was asked', async () => {
  await fc.assert(
    fc.asyncProperty(arbActs, async (acts) => {
      expect(await lieIn(acts, new Moment())).toBeNull()
    }),
    { numRuns: 300 },
  )
})

it.each<[Heard['type']]>([['log'], ['head'], ['doubted'], ['finality']])(
  'would tell what is no more if it did not hear of a %s',
  async (type) => {
    let heard = 0
    const deaf = (one: Heard) => one.type === type && heard++ > 0
    const told = await fc.check(
      fc.asyncProperty(arbActs, async (acts) => {
        heard = 0
        return (await lieIn(acts, new Deaf(deaf))) === null
      }),
      { numRuns: 5_000, endOnFailure: true, seed: 5 },
    )
    expect(told.failed).toBe(true)
  },
)
