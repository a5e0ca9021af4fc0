import { performance } from 'node:perf_hooks'
import { WebSocket } from 'ws'
import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts'

/** The upstream and the listeners of a measured relay, in a process that takes commands from its parent. */

export type LatencyCommand =
  | { readonly do: 'upstream' }
  | { readonly do: 'listen'; readonly url: string; readonly listeners: number }
  | { readonly do: 'transfer'; readonly raw: number }
export type LatencyReply =
  | { readonly done: 'upstream'; readonly rpcUrl: string; readonly wsUrl: string; readonly url: string }
  | { readonly done: 'listen' }
  /** How long after the flashblock each listener received it. */
  | { readonly done: 'transfer'; readonly receivedMs: readonly number[] }

let devnet: Devnet | null = null
let sockets: WebSocket[] = []

/** Resolves when the next message with this text arrives. */
function timeOfNextMessage(socket: WebSocket, text: string): Promise<number> {
  return new Promise((resolve) => {
    const onMessage = (data: Buffer) => {
      const at = performance.now()
      if (!data.includes(text)) return
      socket.off('message', onMessage)
      resolve(at)
    }
    socket.on('message', onMessage)
  })
}

async function runCommand(command: LatencyCommand): Promise<LatencyReply> {
  switch (command.do) {
    case 'upstream': {
      devnet = await startDevnet({ pace: 'manual' })
      return { done: 'upstream', rpcUrl: devnet.rpcUrl, wsUrl: devnet.wsUrl, url: devnet.url }
    }
    case 'listen': {
      sockets = Array.from({ length: command.listeners }, () => new WebSocket(command.url, { perMessageDeflate: false }))
      await Promise.all(sockets.map((socket) => timeOfNextMessage(socket, '"live"')))
      await devnet?.until(() => devnet?.subscriptions().pendingLogs === 1)
      return { done: 'listen' }
    }
    case 'transfer': {
      const received = sockets.map((socket) => timeOfNextMessage(socket, '"transfer"'))
      devnet?.transfer({ symbol: 'AAPLc', raw: BigInt(command.raw) })
      const from = performance.now()
      devnet?.makeFlashblock()
      return { done: 'transfer', receivedMs: (await Promise.all(received)).map((at) => at - from) }
    }
  }
}

process.on('message', (command: LatencyCommand) => {
  void runCommand(command).then((report) => process.send?.(report))
})
process.on('disconnect', () => process.exit(0))
