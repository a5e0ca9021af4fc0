import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { NEVER, type Observable, type ObservedValueOf, VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { link } from '../../../../src/chain/link/link.ts'
import { ChainIdentity } from '../../../../src/chain/rpc/chain-id.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'

export const CHAIN = 84_532

export type Signal = ObservedValueOf<ReturnType<typeof link>>

/** Waits for what is heard: looked at again whenever something was. */
class Watch {
  readonly #looks = new Set<() => void>()

  changed(): void {
    for (const look of this.#looks) look()
  }

  until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!holds()) return
        this.#looks.delete(look)
        resolve()
      }
      this.#looks.add(look)
      look()
    })
  }
}

export type Asked = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }

/** An upstream node on loopback, by WebSocket: it answers as it is told and remembers what it was asked. */
export const openNode = async () => {
  const watch = new Watch()
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, autoPong: false })
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  let subscriptions = 0
  const node = {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/v2/key-9f8e7d`,
    asked: [] as Asked[],
    /** The socket that was opened last. */
    socket: null as WebSocket | null,
    opened: 0,
    closed: 0,
    pings: 0,
    pongs: true,
    /** What it answers; null for nothing. Subscriptions are numbered in the order in which they were asked for. */
    answer: (asked: Asked): Record<string, unknown> | null => {
      if (asked.method === 'eth_chainId') return { result: `0x${CHAIN.toString(16)}` }
      if (asked.method !== 'eth_subscribe') return { result: true }
      subscriptions += 1
      return { result: `0x${subscriptions}` }
    },
    methods: () =>
      node.asked.map(({ method, params }) => (method === 'eth_subscribe' ? `${method} ${params[0]}` : method)),
    say: (message: unknown) => node.socket?.send(typeof message === 'string' ? message : JSON.stringify(message)),
    notify: (subscription: string, result: unknown) =>
      node.say({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription, result } }),
    until: (holds: () => boolean) => watch.until(holds),
  }
  server.on('connection', (socket) => {
    node.socket = socket
    node.opened += 1
    socket.on('error', () => socket.terminate())
    socket.on('close', () => {
      node.closed += 1
      watch.changed()
    })
    socket.on('ping', (data) => {
      node.pings += 1
      if (node.pongs) socket.pong(data)
      watch.changed()
    })
    socket.on('message', (data) => {
      const asked: Asked = JSON.parse(String(data))
      node.asked.push(asked)
      const answer = node.answer(asked)
      if (answer) node.say({ jsonrpc: '2.0', id: asked.id, ...answer })
      watch.changed()
    })
    watch.changed()
  })
  return node
}

/** Listens to these nodes; waits between attempts pass only when the test lets them. */
export const openLink = (
  urls: readonly string[],
  addresses: Observable<readonly Hex[]>,
  {
    chain = new ChainIdentity(CHAIN, 'CHAIN_ID'),
    probes = NEVER,
  }: { chain?: ChainIdentity; probes?: Observable<unknown> } = {},
) => {
  const watch = new Watch()
  const clock = new VirtualTimeScheduler(undefined, Number.POSITIVE_INFINITY)
  const signals: Signal[] = []
  const said: { kind: string; detail: unknown }[] = []
  const say = (kind: string, detail: unknown) => {
    said.push({ kind, detail })
    watch.changed()
  }
  const listening = link({ urls, addresses, probes, chain, clock, dice: () => 0, say }).subscribe((signal) => {
    signals.push(signal)
    watch.changed()
  })
  onTestFinished(() => listening.unsubscribe())
  const heard = <Type extends Signal['type']>(type: Type) =>
    signals.filter((signal): signal is Extract<Signal, { type: Type }> => signal.type === type)
  return {
    clock,
    signals,
    said,
    heard,
    until: (holds: () => boolean) => watch.until(holds),
    /** Waits until so many signals of a type have been heard; the last of them. */
    hear: async <Type extends Signal['type']>(type: Type, count = 1) => {
      await watch.until(() => heard(type).length >= count)
      const signal = heard(type)[count - 1]
      if (!signal) throw new Error('unreachable')
      return signal
    },
    /** Lets the wait before the next attempt pass. */
    retry: () => clock.flush(),
    leave: () => listening.unsubscribe(),
  }
}
