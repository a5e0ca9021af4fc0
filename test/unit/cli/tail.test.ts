import { expect, it, onTestFinished, vi } from 'vitest'
import { ChildProgram, freePort } from '../../support/child-program.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'

const WAIT_TIMEOUT_MS = 10_000

const tail = (...args: readonly string[]): ChildProgram => {
  const program = new ChildProgram([process.execPath, 'src/main.ts', 'tail', ...args], { env: { PATH: process.env.PATH } })
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

it('the tail command takes a key, and exits with 0 when the reader of its pipe leaves', async () => {
  const stack = await openTestStack({ API_KEYS: 'one' })
  const tailToHead = `"${process.execPath}" src/main.ts tail AAPLc --url ${stack.relay.url} --key one; echo "exit code $?" >&2`
  const program = new ChildProgram(['sh', '-c', `{ ${tailToHead}; } | head -n 1`], { env: { PATH: process.env.PATH } })
  onTestFinished(() => program.kill())
  await program.waitForOutput('stdout', /\n/)
  // A write to the pipe shows that the reader has left.
  await vi.waitUntil(() => {
    transfer(stack)
    return program.stderr !== ''
  }, WAIT_TIMEOUT_MS)
  expect(program.stdout).toMatch(/^# stocktape\.v1 at .*\n$/)
  expect(program.stderr).toBe('exit code 0\n')
})

it('the tail command reports a mistake in one line and exits with code 2', async () => {
  const stack = await openTestStack()
  const keyed = await openTestStack({ API_KEYS: 'one' })
  const unusedUrl = `http://127.0.0.1:${await freePort()}`
  const cases: [readonly string[], RegExp][] = [
    [['APPL', '--url', stack.relay.url], /^tail: No tokenized stock 'APPL'. Did you mean AAPLc\?\n$/],
    [['AAPLc', '--url', unusedUrl], /^tail: no answer from .*; is the relay running\? \(npm start\)\n$/],
    [['AAPLc', '--url', keyed.relay.url], /^tail: the relay requires an API key: use --key or STOCKTAPE_KEY\n$/],
    [[], /^tail: name at least one symbol, or \* for all\n$/],
    [['AAPLc', '--since'], /^tail: .*since.*\n$/],
  ]
  for (const [args, message] of cases) {
    const program = tail(...args)
    expect(await program.waitForExit()).toBe(2)
    expect(program.stderr).toMatch(message)
  }
})
