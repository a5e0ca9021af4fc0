import { on, once } from 'node:events'
import { describe, expect, it, type TestContext } from 'vitest'
import { WebSocket } from 'ws'
import { startDevnet } from '../../../src/devnet/devnet.ts'
import { ChildProgram } from '../../support/child-program.ts'

const run = ({ onTestFinished }: TestContext, ...flags: string[]): ChildProgram => {
  const program = new ChildProgram([process.execPath, 'src/devnet/main.ts', ...flags], { env: process.env })
  onTestFinished(() => program.kill())
  return program
}
const TAKEN = 'the port of another devnet'

describe.concurrent('npm run devnet', () => {
  it.for([
    ['values that are no numbers', ['--port', 'http', '--block-ms', '0'], /--port: .* 0 to 65535; --block-ms: .* 20 to 60000/],
    ['an unknown fault', ['--faults', 'rerog=2%'], /--faults must be faults such as .* \(did you mean reorg\?\)/],
    ['a fault of the relay', ['--faults', 'gap'], /--faults must not name gap, which is a fault of the relay: .*/],
    ['a port in use', ['--port', TAKEN], /the port is in use: choose another with --port/],
  ] as const)('ends with one line and code 2 for %s', async ([, [flag, ...values], line], context) => {
    const devnet = await startDevnet({ pace: 'manual' })
    context.onTestFinished(() => devnet.stop())
    const program = run(context, flag, ...values.map((value) => (value === TAKEN ? new URL(devnet.url).port : value)))
    expect([await program.waitForExit(), program.stdout]).toEqual([2, ''])
    expect(program.stderr).toMatch(new RegExp(`^devnet: ${line.source}\\n$`))
  })

  it('applies the faults that are asked for', async (context) => {
    const program = run(context, '--port', '0', '--block-ms', '200', '--flash-ms', '200', '--faults', 'reorg=100%x3')
    const socket = new WebSocket((await program.waitForOutput('stdout', /ws:\S+/))[0])
    context.onTestFinished(() => socket.terminate())
    await once(socket, 'open')
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] }))
    let before = 0
    for await (const [message] of on(socket, 'message')) {
      const number = Number(JSON.parse(String(message)).params?.result.number)
      if (number < before) return expect(number).toBe(before - 2)
      before = number || before
    }
  })

  it('prints its addresses, and stops on SIGTERM', async (context) => {
    const program = run(context, '--port', '0', '--receipts')
    await program.waitForOutput('stdout', /\ncurl .*\ncurl .*\nnode .*\n$/)
    const list = /http:\S+tokenized-stocks/.exec(program.stdout)?.[0] ?? ''
    expect((await fetch(list)).status).toBe(200)
    for (const name of ['POOLS=AAPLc/USDC=uniswap_v3:0x', 'QUOTE_TOKENS=USDC:0x', 'ORACLE_REGISTRY=0x'])
      expect(program.stdout).toContain(`\n${name}`)
    program.signal('SIGTERM')
    expect(await program.waitForExit()).toBe(0)
  })
})
