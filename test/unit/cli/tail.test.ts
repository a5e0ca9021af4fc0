import { expect, it, onTestFinished } from 'vitest'
import { ChildProgram, freePort } from '../../support/child-program.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'

const tail = (...args: readonly string[]): ChildProgram => {
  const program = new ChildProgram([process.execPath, 'src/cli/tail.ts', ...args], { env: { PATH: process.env.PATH } })
  onTestFinished(() => program.kill())
  return program
}

it('the tail command prints a line for each message of its symbols', async () => {
  const stack = await openTestStack()
  const program = tail('aapl', 'TSLAc', '--url', stack.relay.url, '--types', 'transfer')
  await program.waitForOutput('stdout', /# live/)
  transfer(stack, 'AAPLc', 1, 150_000_000n)
  expect((await program.waitForOutput('stdout', /AAPLc +transfer +(\S+)/))[1]).toBe('1.5')
})

it('the tail command with --json prints the messages as on the wire', async () => {
  const stack = await openTestStack()
  transfer(stack, 'AAPLc', 1, 150_000_000n)
  const program = tail('*', '--url', stack.relay.url, '--json', '--since', 'start')
  const [line] = await program.waitForOutput('stdout', /\{"type":"transfer".*\}/)
  expect(JSON.parse(line)).toMatchObject({ symbol: 'AAPLc', amount: '1.5' })
})

it('the tail command reports a mistake in one line and exits with code 2', async () => {
  const stack = await openTestStack()
  const unusedUrl = `http://127.0.0.1:${await freePort()}`
  const cases: [readonly string[], RegExp][] = [
    [['APPL', '--url', stack.relay.url], /^tail: No tokenized stock 'APPL'. Did you mean AAPLc\?\n$/],
    [['AAPLc', '--url', unusedUrl], /^tail: no answer from .*; is the relay running\? \(npm start\)\n$/],
    [[], /^tail: name at least one symbol, or \* for all\n$/],
    [['AAPLc', '--since'], /^tail: .*since.*\n$/],
  ]
  for (const [args, message] of cases) {
    const program = tail(...args)
    expect(await program.waitForExit()).toBe(2)
    expect(program.stderr).toMatch(message)
  }
})
