import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import { ChainState } from '../../../../src/relay/gateway/chain-state.ts'
import { readCall } from '../../../../src/relay/gateway/validated-call.ts'
import { alice } from '../chain/node-json.ts'
import { ModelChain, type ModelRequest, UNKNOWN } from './model-chain.ts'
import { openAnswers } from './shared-answers-fixture.ts'

/** How long after its arrival an answer may be reused. */
const boundsMs: Readonly<Record<string, number>> = { pending: 200, head: 60_000 }
const SEALED_MS = 3_600_000

type ChainAction =
  | { readonly kind: 'build'; readonly quiet: boolean }
  | { readonly kind: 'seal' | 'finalise' | 'lose' | 'regain' }
  /** The node answers all calls. */
  | { readonly kind: 'answer' }
  | { readonly kind: 'reorganise'; readonly depth: number; readonly others: number }
  /** The next events arrive, this many. */
  | { readonly kind: 'receive'; readonly count: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'request'; readonly request: (chain: ModelChain) => ModelRequest }
  /** The node decides the answer to a call; a decided answer arrives. */
  | { readonly kind: 'think' | 'arrive'; readonly which: number }

/** Numbers near the head, which is 99 at first, and near the depth where the chain is old. */
const arbNumber = fc.constantFrom(0, 33, 34, 35, 36, 37, 38, 97, 98, 99, 100, 101, 102)
const arbAt = fc.oneof(
  fc.constantFrom('latest', 'pending', 'pending', 'safe', 'finalized', 'earliest'),
  arbNumber.map((number) => `0x${number.toString(16)}`),
)
type FromChain<T> = (chain: ModelChain) => T
const arbHash = fc.tuple(arbNumber, fc.nat(3)).map(
  ([number, ago]): FromChain<string> =>
    (chain) =>
      chain.hash(number, ago),
)
const arbRequest: fc.Arbitrary<FromChain<ModelRequest>> = fc.oneof(
  fc.constant((): ModelRequest => ['eth_blockNumber']),
  arbAt.map((at) => (): ModelRequest => ['eth_getBlockByNumber', at, false]),
  arbAt.map((at) => (): ModelRequest => ['eth_getBalance', alice, at]),
  arbHash.map(
    (hash) =>
      (chain: ModelChain): ModelRequest => ['eth_getBalance', alice, hash(chain)],
  ),
  arbHash.map(
    (hash) =>
      (chain: ModelChain): ModelRequest => ['eth_getLogs', { blockHash: hash(chain) }],
  ),
  fc.tuple(arbAt, arbAt).map(
    ([fromBlock, toBlock]) =>
      (): ModelRequest => ['eth_getLogs', { fromBlock, toBlock }],
  ),
)
/** The same few calls again and again, so that the cache is used. */
const arbActions = fc.array(arbRequest, { minLength: 1, maxLength: 3 }).chain((requests) => {
  const action: fc.Arbitrary<ChainAction> = fc.oneof(
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('build'), quiet: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('seal') }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('finalise', 'lose', 'regain') }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('reorganise'), depth: fc.constantFrom(1, 1, 2, 3, 70), others: fc.nat(3) }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('receive'), count: fc.constantFrom(1, 1, 2, 3, 99) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.constantFrom(50, 199, 59_801) }) },
    {
      weight: 12,
      arbitrary: fc
        .nat(requests.length - 1)
        .map((at): ChainAction => ({ kind: 'request', request: requests[at] ?? (() => ['eth_blockNumber']) })),
    },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('answer') }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('think'), which: fc.nat(7) }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('arrive'), which: fc.nat(7) }) },
  ) as fc.Arbitrary<ChainAction>
  return fc.array(action, { minLength: 10, maxLength: 80, size: 'max' })
})

/** Runs all steps; returns the first wrong answer, if any. */
async function findWrongAnswer(actions: readonly ChainAction[], chainState: ChainState): Promise<string | null> {
  const [node, chain] = [openAnswers({ chainState }), new ModelChain()]
  const wrongAnswers: string[] = []
  /** The state up to which events arrived. */
  let receivedState = 0
  /** The node's answers, by the index of the call. */
  const nodeAnswers = new Map<number, unknown>()
  const arrived = new Set<number>()
  const arrivedAnswers: { name: string; text: string; at: number; boundMs: number }[] = []
  const nameOf = ({ method, params }: { readonly method: string; readonly params: unknown }) => JSON.stringify([method, params])
  const textOf = (answer: unknown) => (answer === UNKNOWN ? 'unknown' : JSON.stringify(answer))

  const receive = (count: number) => {
    for (const { state, event } of chain.events.splice(0, count)) {
      chainState.receive(event)
      receivedState = Math.max(receivedState, state)
    }
  }
  const oneOf = (which: number, fits: (place: number) => boolean): number => {
    const places = [...node.upstreamCalls.keys()].filter(fits)
    return places[which % places.length] ?? -1
  }
  const think = (which: number) => {
    const passed = node.upstreamCalls[which]
    if (passed && !nodeAnswers.has(which)) nodeAnswers.set(which, chain.answer([passed.method, ...passed.params] as never))
  }
  const arrive = (which: number) => {
    const passed = node.upstreamCalls[which]
    if (!passed || !nodeAnswers.has(which) || arrived.has(which)) return
    arrived.add(which)
    const answer = nodeAnswers.get(which)
    if (answer === UNKNOWN) return passed.fail(new UpstreamError('behind', 'block not found'))
    const { method, params } = passed
    const { scope } = readCall(method, params, chainState)
    const boundMs = scope.at === 'head' && chainState.isDisconnected ? boundsMs.pending : boundsMs[scope.at]
    const [name, at] = [nameOf(passed), node.clock.uptime]
    arrivedAnswers.push({ name, text: textOf(answer), at, boundMs: boundMs ?? SEALED_MS })
    return passed.succeed(answer)
  }
  /** An answer must have been true at some time since the newest event before its call. */
  const check = (name: string, request: ModelRequest, since: number, text: string) => {
    for (let state = chain.currentState; state >= since; state -= 1) if (textOf(chain.answer(request, state)) === text) return
    wrongAnswers.push(`${name} gave ${text}, which it was not since state ${since}`)
  }
  const makeRequest = (request: ModelRequest) => {
    const [method, ...params] = request
    const call = readCall(method, params, chainState)
    const [name, since] = [nameOf(call), receivedState]
    const answer = node.answers.answer(call)
    if (!Buffer.isBuffer(answer)) {
      const record = (text: string) => check(name, request, since, text)
      answer.then(
        (text) => record(String(text)),
        () => record('unknown'),
      )
      return
    }
    check(name, request, since, String(answer))
    const isYoung = (one: (typeof arrivedAnswers)[number]) => node.clock.uptime - one.at < one.boundMs
    if (!arrivedAnswers.some((one) => one.name === name && one.text === String(answer) && isYoung(one)))
      wrongAnswers.push(`${name} gave ${answer} for too long`)
  }
  const answerAll = async () => {
    for (let which = 0; which < node.upstreamCalls.length; which += 1) {
      think(which)
      await arrive(which)
    }
  }
  const carryOut = (action: ChainAction) => {
    switch (action.kind) {
      case 'build':
        return chain.build(action.quiet)
      case 'seal':
        return chain.seal()
      case 'finalise':
      case 'lose':
      case 'regain':
        return chain[action.kind]()
      case 'reorganise':
        return chain.reorganise(action.depth, action.others)
      case 'receive':
        return receive(action.count)
      case 'wait':
        node.clock.uptime += action.ms
        return
      case 'request':
        return makeRequest(action.request(chain))
      case 'answer':
        return answerAll()
      case 'think':
        return think(oneOf(action.which, (place) => !nodeAnswers.has(place)))
      case 'arrive':
        return arrive(oneOf(action.which, (place) => nodeAnswers.has(place) && !arrived.has(place)))
    }
  }
  receive(Number.POSITIVE_INFINITY)
  for (const action of actions) {
    await carryOut(action)
    await yieldToEventLoop()
  }
  await answerAll()
  return wrongAnswers[0] ?? null
}

/** A chain state that ignores one kind of event. */
class PartialChainState extends ChainState {
  readonly #ignores: (event: ChainEvent) => boolean

  constructor(ignores: (event: ChainEvent) => boolean) {
    super()
    this.#ignores = ignores
  }

  override receive(event: ChainEvent): void {
    if (!this.#ignores(event)) super.receive(event)
  }
}

it('answers only what was true at some time since the newest event before the call', async () => {
  await fc.assert(
    fc.asyncProperty(arbActions, async (actions) => {
      expect(await findWrongAnswer(actions, new ChainState())).toBeNull()
    }),
    { numRuns: 300 },
  )
})

it.each<[ChainEvent['type']]>([['logs'], ['head'], ['reorg'], ['finality']])(
  'would answer what is outdated if it ignored a %s',
  async (type) => {
    let count = 0
    const ignores = (one: ChainEvent) => one.type === type && count++ > 0
    const result = await fc.check(
      fc.asyncProperty(arbActions, async (actions) => {
        count = 0
        return (await findWrongAnswer(actions, new PartialChainState(ignores))) === null
      }),
      { numRuns: 5_000, endOnFailure: true, seed: 5 },
    )
    expect(result.failed).toBe(true)
  },
)
