import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { on, once } from 'node:events'
import type { Readable } from 'node:stream'
import { describe, expect, it, type TestContext } from 'vitest'
import { WebSocket } from 'ws'
import { startDevnet } from '../../../src/devnet/devnet.ts'

const run = ({ onTestFinished }: TestContext, ...flags: string[]): ChildProcessByStdio<null, Readable, Readable> => {
  const child = spawn(process.execPath, ['src/devnet/main.ts', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

const exitOf = async (child: ReturnType<typeof run>) => {
  const texts = Promise.all([child.stdout, child.stderr].map((stream) => stream.setEncoding('utf8').toArray()))
  const [code] = await once(child, 'exit')
  const [out, errorOutput] = (await texts).map((chunks) => chunks.join(''))
  return { code, out, errorOutput }
}

/** What it prints at its start. */
const startTextOf = async (child: ReturnType<typeof run>): Promise<string> => {
  const [chunk] = await once(child.stdout.setEncoding('utf8'), 'data')
  return String(chunk)
}

const settings = ['port', 'seed', 'block-ms', 'flash-ms', 'receipts', 'calls', 'calendar', 'faults']

describe.concurrent('npm run devnet', () => {
  it.for([
    ['an unknown flag', ['--bogus'], /^devnet: '--bogus' is not a flag\. .*\n$/],
    [
      'values that are no numbers',
      ['--port', 'http', '--block-ms', '0'],
      /^devnet: --port: a whole number from 0 to 65535; --block-ms: a whole number from 20 to 60000\n$/,
    ],
    ['an unknown fault', ['--faults', 'rerog=2%'], /^devnet: --faults must be faults such as .* \(did you mean reorg\?\)\n$/],
    ['a fault of the relay', ['--faults', 'gap'], /^devnet: --faults must not name gap, which is a fault of the relay: .*\n$/],
  ] as const)('ends with one line and code 2 for %s', async ([, flags, line], context) => {
    const { code, out, errorOutput } = await exitOf(run(context, ...flags))
    expect([code, out]).toEqual([2, ''])
    expect(errorOutput).toMatch(line)
  })

  it('ends with one line and code 2 when the port is in use', async (context) => {
    const devnet = await startDevnet({ pace: 'manual' })
    context.onTestFinished(() => devnet.stop())
    const { code, errorOutput } = await exitOf(run(context, '--port', new URL(devnet.url).port))
    expect([code, errorOutput]).toEqual([2, 'devnet: the port is in use: choose another with --port\n'])
  })

  it('prints every flag for --help', async (context) => {
    const { code, out } = await exitOf(run(context, '--help'))
    expect(code).toBe(0)
    for (const flag of settings) expect(out).toContain(`  --${flag} `)
  })

  it('applies the faults that are asked for', async (context) => {
    const flags = ['--port', '0', '--block-ms', '200', '--flash-ms', '200', '--faults', 'reorg=100%x3']
    const socket = new WebSocket(/ws:\S+/.exec(await startTextOf(run(context, ...flags)))?.[0] ?? '')
    context.onTestFinished(() => socket.terminate())
    await once(socket, 'open')
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] }))
    const numbers: number[] = []
    for await (const [message] of on(socket, 'message')) {
      const { params } = JSON.parse(String(message))
      if (params) numbers.push(Number(params.result.number))
      if (new Set(numbers).size < numbers.length - 1) break
    }
    const replacedAt = numbers.findIndex((number, index) => number < (numbers[index - 1] ?? 0))
    expect(numbers[replacedAt]).toBe((numbers[replacedAt - 1] ?? 0) - 2)
  })

  it.for(['SIGTERM', 'SIGINT'] as const)('prints its addresses, and stops on %s', async (signal, context) => {
    const child = run(context, '--port', '0', '--receipts')
    const text = await startTextOf(child)
    const list = /http:\S+tokenized-stocks/.exec(text)?.[0] ?? ''
    expect((await fetch(list)).status).toBe(200)
    for (const name of ['POOLS=AAPLc/USDC=uniswap_v3:0x', 'QUOTE_TOKENS=USDC:0x', 'ORACLE_REGISTRY=0x'])
      expect(text).toContain(`\n${name}`)
    expect(text).toMatch(/\ncurl .*\ncurl .*\nnode .*\n$/)
    child.kill(signal)
    expect(await once(child, 'exit')).toEqual([0, null])
  })
})
