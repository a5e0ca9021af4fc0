import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { BehaviorSubject, map, NEVER, type Observable, type ObservedValueOf, of, Subject, VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { reconnectingLink } from '../../../../../src/relay/chain/link/reconnecting-link.ts'
import type { LinkSignal } from '../../../../../src/relay/chain/link/subscription-socket.ts'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import { ChainIdentity } from '../../../../../src/relay/chain/rpc/chain-identity.ts'
import { apple } from '../node-json.ts'

export const CHAIN_ID = 84_532

export type Signal = ObservedValueOf<ReturnType<typeof reconnectingLink>>

/** The signal that the node pushes the logs of these addresses. */
export const liveOn = (addresses: readonly Hex[], subscription: 'pendingLogs' | 'logs' = 'pendingLogs'): LinkSignal => ({
  ...{ type: 'live', subscription, filters: [{ addresses }], pushed: [{ addresses }] },
})

const asFilters = (wanted: readonly Hex[] | readonly ReadFilter[]): readonly ReadFilter[] => {
  const addresses = wanted.filter((one) => typeof one === 'string')
  return addresses.length > 0 ? [{ addresses }] : wanted.filter((one) => typeof one !== 'string')
}

/** Waits for conditions, which are checked again after each event. */
class ConditionWaiter {
  readonly #checks = new Set<() => void>()

  recheck(): void {
    for (const check of this.#checks) check()
  }

  waitUntil(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!condition()) return
        this.#checks.delete(check)
        resolve()
      }
      this.#checks.add(check)
      check()
    })
  }
}

export type RpcRequest = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }

/** A WebSocket node on loopback. It gives scripted answers and records the requests. */
export const openFakeNode = async () => {
  const waiter = new ConditionWaiter()
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, autoPong: false })
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  let subscriptions = 0
  let transport: Socket | null = null
  const node = {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/v2/key-9f8e7d`,
    requests: [] as RpcRequest[],
    /** The socket that was opened last. */
    socket: null as WebSocket | null,
    openedCount: 0,
    closedCount: 0,
    pingCount: 0,
    answersPings: true,
    /** The answer to a request; null sends none. Subscription ids count up in the order of the requests. */
    answer: (request: RpcRequest): Record<string, unknown> | null => {
      if (request.method === 'eth_chainId') return { result: `0x${CHAIN_ID.toString(16)}` }
      if (request.method !== 'eth_subscribe') return { result: true }
      subscriptions += 1
      return { result: `0x${subscriptions}` }
    },
    /** Answers instead of these, by the method or by what is subscribed to. */
    otherAnswers: new Map<unknown, Record<string, unknown>>(),
    methods: () => node.requests.map(({ method, params }) => (method === 'eth_subscribe' ? `${method} ${params[0]}` : method)),
    send: (message: unknown) => node.socket?.send(typeof message === 'string' ? message : JSON.stringify(message)),
    notify: (subscription: string, result: unknown) =>
      node.send({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription, result } }),
    /** Sends several messages so that one read receives them all. */
    inOneWrite: (send: () => void) => {
      transport?.cork()
      send()
      transport?.uncork()
    },
    waitUntil: (condition: () => boolean) => waiter.waitUntil(condition),
  }
  server.on('connection', (socket, request) => {
    node.socket = socket
    transport = request.socket
    node.openedCount += 1
    socket.on('error', () => socket.terminate())
    socket.on('close', () => {
      node.closedCount += 1
      waiter.recheck()
    })
    socket.on('ping', (data) => {
      node.pingCount += 1
      if (node.answersPings) socket.pong(data)
      waiter.recheck()
    })
    socket.on('message', (data) => {
      const request: RpcRequest = JSON.parse(String(data))
      node.requests.push(request)
      const { method, params } = request
      const answer = node.otherAnswers.get(method) ?? node.otherAnswers.get(params[0]) ?? node.answer(request)
      if (answer) node.send({ jsonrpc: '2.0', id: request.id, ...answer })
      waiter.recheck()
    })
    waiter.recheck()
  })
  return node
}

const MINUTE_MS = 60_000

/** A link to these nodes. Its delays pass only when the test calls `retry`. */
export const openLink = (
  urls: readonly string[],
  wanted: Observable<readonly Hex[] | readonly ReadFilter[]> = of([apple]),
  {
    chain = new ChainIdentity(CHAIN_ID, 'CHAIN_ID'),
    probes = NEVER,
    reconnects = NEVER,
  }: Partial<Pick<Parameters<typeof reconnectingLink>[0], 'chain' | 'probes' | 'reconnects'>> = {},
) => {
  const waiter = new ConditionWaiter()
  const clock = new VirtualTimeScheduler(undefined, Number.POSITIVE_INFINITY)
  const signals: Signal[] = []
  const warnings: { kind: string; detail: unknown }[] = []
  const log = (kind: string, detail: unknown) => {
    warnings.push({ kind, detail })
    waiter.recheck()
  }
  const filters = wanted.pipe(map(asFilters))
  const subscription = reconnectingLink({ urls, filters, probes, reconnects, chain, clock, random: () => 0, log }).subscribe(
    (signal) => {
      signals.push(signal)
      waiter.recheck()
    },
  )
  onTestFinished(() => subscription.unsubscribe())
  const signalsOfType = <Type extends Signal['type']>(type: Type) =>
    signals.filter((signal): signal is Extract<Signal, { type: Type }> => signal.type === type)
  return {
    clock,
    signals,
    warnings,
    signalsOfType,
    /** The logs in order. How many of them a signal has depends on the reads of the socket. */
    logs: () => signalsOfType('log').flatMap(({ log }) => log),
    waitUntil: (condition: () => boolean) => waiter.waitUntil(condition),
    /** Waits for this many signals of a type, and returns the last of them. */
    waitForSignal: async <Type extends Signal['type']>(type: Type, count = 1) => {
      await waiter.waitUntil(() => signalsOfType(type).length >= count)
      const signal = signalsOfType(type)[count - 1]
      if (!signal) throw new Error('unreachable')
      return signal
    },
    /** Lets the delay before the next attempt pass, or a longer time. */
    retry: (ms = MINUTE_MS) => {
      clock.maxFrames = clock.frame + ms
      clock.flush()
    },
    close: () => subscription.unsubscribe(),
  }
}

/** A link that is live at a node with these other answers. The test changes its list of tokens, and makes it retry. */
export const openLive = async (
  otherAnswers: Readonly<Record<string, Record<string, unknown>>> = {},
  chain = new ChainIdentity(CHAIN_ID, 'CHAIN_ID'),
) => {
  const node = await openFakeNode()
  for (const [what, answer] of Object.entries(otherAnswers)) node.otherAnswers.set(what, answer)
  const lists = new BehaviorSubject<readonly Hex[]>([apple])
  const probes = new Subject<void>()
  const link = openLink([node.url], lists, { chain, probes })
  await link.waitForSignal('live')
  return { node, link, lists, probes }
}
