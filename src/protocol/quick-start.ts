/** The first three lines that a new user needs: text, WebSocket, browser. */
export const quickStartLines = (host: string, symbol: string): readonly string[] => [
  `curl -N http://${host}/v1/tail/${symbol}`,
  `npx wscat -c 'ws://${host}/v1/ws?symbols=${symbol}'`,
  `new EventSource('http://${host}/v1/stream/${symbol}').onmessage = (message) => console.log(JSON.parse(message.data))`,
]
