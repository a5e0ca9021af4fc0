import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Hex } from '../../../../src/lib/hex.ts'
import { createRedactor } from '../../../../src/lib/redact.ts'
import type { RawRequestFn } from '../../../../src/relay/chain/rpc/endpoint-pool.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import { answerBody, type Caller, type Reply } from '../../../../src/relay/gateway/answer-rpc-body.ts'
import { ChainState } from '../../../../src/relay/gateway/chain-state.ts'
import { RpcError } from '../../../../src/relay/gateway/rpc-error.ts'
import { SharedAnswers } from '../../../../src/relay/gateway/shared-answers.ts'
import { readCall } from '../../../../src/relay/gateway/validated-call.ts'
import { hashOf, headEvent, pendingLogEvent, readNodeLog } from './subscriptions/log-notifier-fixture.ts'

/** Chain events, as the source emits them. */
export const chainEvents = {
  head: (sealed: number, hash: Hex = hashOf(sealed), parentHash?: Hex): ChainEvent =>
    ({ ...headEvent(sealed), hash, ...(parentHash && { parentHash }) }) as ChainEvent,
  pendingHead: (pending: number): ChainEvent => ({ type: 'head', sealed: null, pending, timestamp: null }),
  log: (block: number): ChainEvent => pendingLogEvent(readNodeLog({ block })),
  sealed: (number: number, hash: Hex = hashOf(number)): ChainEvent => {
    const block = { number, hash, timestamp: null, logs: [], filters: [], via: 'sealed' as const }
    return { type: 'sealed', holes: [], blocks: [block], newest: number, cursor: { number, hash }, restartCursor: { number, hash } }
  },
  connected: { type: 'status', source: 'pendingLogs', reason: 'ok' } as ChainEvent,
  disconnected: { type: 'status', source: 'down', reason: 'unreachable' } as ChainEvent,
  reorg: (from: number): ChainEvent => ({ type: 'reorg', from }),
  finality: (stage: 'safe' | 'finalized', number: number): ChainEvent => ({
    type: 'finality',
    stage,
    block: { number, hash: hashOf(number), parentHash: null, timestamp: null, gasUsed: null, transactions: null },
  }),
}

/** A call that reached the node. The test decides when it is answered. */
export type UpstreamCall = {
  readonly method: string
  readonly params: readonly unknown[]
  readonly succeed: (result: unknown) => Promise<void>
  readonly fail: (failure: Error) => Promise<void>
}

type AnswersSettings = {
  readonly head?: number | null
  readonly chainId?: number | null
  /** The upstream's URLs, which must stay secret. */
  readonly urls?: readonly string[]
  /** Whether a receipts endpoint serves what public endpoints refuse. */
  readonly hasReceipts?: boolean
}

/** Answers over a node, a clock and a chain that the test moves by hand. */
export function openAnswers({ head = 1_000, chainId = null, urls = [], hasReceipts = false }: AnswersSettings = {}) {
  const clock = { uptime: 0 }
  const chainState = new ChainState()
  if (head !== null)
    for (const event of [chainEvents.sealed(head - 1), chainEvents.head(head), chainEvents.connected]) chainState.receive(event)
  const [upstreamCalls, receiptsCalls] = [[] as UpstreamCall[], [] as UpstreamCall[]]
  const recordCalls =
    (to: UpstreamCall[]): RawRequestFn =>
    (method, params) =>
      new Promise((resolve, reject) => {
        const succeed = (result: unknown) => {
          resolve(Buffer.isBuffer(result) ? result : Buffer.from(JSON.stringify(result)))
          return yieldToEventLoop()
        }
        const fail = (failure: Error) => {
          reject(failure)
          return yieldToEventLoop()
        }
        to.push({ method, params, succeed, fail })
      })
  const answers = new SharedAnswers({
    forward: recordCalls(upstreamCalls),
    forwardReceipts: hasReceipts ? recordCalls(receiptsCalls) : null,
    chainState,
    chainId: () => chainId,
    redact: createRedactor(urls),
    uptime: () => clock.uptime,
  })
  const request = async (method: string, ...params: readonly unknown[]): Promise<string> =>
    String(await answers.answer(readCall(method, params, chainState)))
  /** Makes a call and answers it at once if it reaches the node; returns whether it did. */
  const callsUpstream = async (call: readonly [method: string, ...params: unknown[]], result: unknown) => {
    const before = upstreamCalls.length
    const answer = request(...call)
    await yieldToEventLoop()
    await upstreamCalls[before]?.succeed(result)
    await answer
    return upstreamCalls.length > before
  }
  return { clock, chainState, answers, upstreamCalls, receiptsCalls, request, callsUpstream }
}

/** Sends bodies of a client, who is allowed everything unless the test says otherwise, over a node that the test answers. */
export function openBody(given: Partial<Caller> = {}) {
  const fixture = openAnswers({ chainId: 7 })
  const replies: Reply[] = []
  const caller: Caller = {
    client: 'somebody',
    takeRate: (methods) => methods.map(() => true),
    isLocal: () => false,
    runLocal: () => 'null',
    reserve: () => true,
    hasHttpStatus: true,
    ...given,
  }
  const send = (body: unknown): Promise<void> =>
    answerBody(typeof body === 'string' ? body : JSON.stringify(body), fixture, caller, (one) => replies.push(one))
  const texts = () => replies.map(({ chunks }) => String(Buffer.concat(chunks)))
  const json = () => texts().map((text, at) => ({ status: replies[at]?.status, body: JSON.parse(text || 'null') }))
  return { ...fixture, send, texts, json, replies }
}

/** The error that a call fails with. */
export const rpcErrorOf = (answer: Promise<unknown>): Promise<RpcError> =>
  answer.then(
    (result) => new RpcError(0, `an answer: ${String(result)}`),
    (failure: unknown) => (failure instanceof RpcError ? failure : new RpcError(0, `not an RpcError: ${String(failure)}`)),
  )
