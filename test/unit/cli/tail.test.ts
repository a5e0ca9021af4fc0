import { expect, it, onTestFinished } from 'vitest'
import { ChildProgram, freePort } from '../../support/child-program.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'

const tail = (...args: readonly string[]): ChildProgram => {
  const program = new ChildProgram([process.execPath, 'src/cli/tail.ts', ...args], { env: { PATH: process.env.PATH } })
  onTestFinished(() => program.kill())
  return program
}

it('a tail prints a line for what happens to the symbols that it names', async () => {
  const world = await openTestStack()
  const program = tail('aapl', 'TSLAc', '--url', world.relay.url, '--types', 'transfer')
  await program.waitForOutput('stdout', /# live/)
  transfer(world, 'AAPLc', 1, 150_000_000n)
  expect((await program.waitForOutput('stdout', /AAPLc +transfer +(\S+)/))[1]).toBe('1.5')
})

it('a tail with --json prints the messages as they are on the wire', async () => {
  const world = await openTestStack()
  transfer(world, 'AAPLc', 1, 150_000_000n)
  const program = tail('*', '--url', world.relay.url, '--json', '--since', 'start')
  const [line] = await program.waitForOutput('stdout', /\{"type":"transfer".*\}/)
  expect(JSON.parse(line)).toMatchObject({ symbol: 'AAPLc', amount: '1.5' })
})

it('a tail that cannot work says why in one line and ends with code 2', async () => {
  const world = await openTestStack()
  const nobody = `http://127.0.0.1:${await freePort()}`
  const cases: [readonly string[], RegExp][] = [
    [['APPL', '--url', world.relay.url], /^tail: No tokenized stock 'APPL'. Did you mean AAPLc\?\n$/],
    [['AAPLc', '--url', nobody], /^tail: no answer from .*; is the relay running\? \(npm start\)\n$/],
    [[], /^tail: name at least one symbol, or \* for all\n$/],
    [['AAPLc', '--since'], /^tail: .*since.*\n$/],
  ]
  for (const [args, complaint] of cases) {
    const program = tail(...args)
    expect(await program.waitForExit()).toBe(2)
    expect(program.stderr).toMatch(complaint)
  }
})
