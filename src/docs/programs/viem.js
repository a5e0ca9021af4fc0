import { setTimeout } from 'node:timers/promises'
import { createPublicClient, hexToNumber, webSocket } from 'viem'

const print = ({ result: log }) =>
  console.log(log.removed ? 'did not happen:' : 'log:', hexToNumber(log.blockNumber), log.address, log.transactionHash)

// viem gives up when its first attempt to reconnect fails, so each loss begins with a new socket.
for (;;) {
  const { transport } = createPublicClient({ transport: webSocket('ws://127.0.0.1:8080/rpc', { reconnect: false }) })
  await new Promise((resolve) => {
    transport.subscribe({ params: ['pendingLogs', {}], onData: print, onError: resolve }).catch(resolve)
  })
  await transport.getRpcClient().then((socket) => socket.close(), () => {})
  await setTimeout(1_000)
}
