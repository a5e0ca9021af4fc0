import { expect, it, vi } from 'vitest'
import { apiKey } from '../../support/api-keys.ts'
import { ChildProgram } from '../../support/child-program.ts'
import { openDevnet, transfer } from '../../support/test-stack.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

it('the tail command continues over a stop and a kill of the relay, and exits with 1 when the relay refuses it', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet)
  const command = [process.execPath, 'src/main.ts', 'tail', '*', '--url', relay.url, '--types', 'transfer,retract,amend'] as const
  const [text, json] = [command, [...command, '--json'] as const].map(
    (args) => new ChildProgram(args, { env: { PATH: process.env.PATH } }),
  )
  if (!text || !json) throw new Error('two programs were started')
  for (const program of [text, json]) test.onTestFinished(() => program.kill())
  for (const program of [text, json]) await program.waitForOutput('stderr', /tail: live over/)
  for (const [count, signal] of [
    [1, 'SIGTERM'],
    [2, 'SIGKILL'],
  ] as const) {
    transfer({ devnet }, 'AAPLc', 1, BigInt(count) * 10n ** 8n)
    await Promise.all(
      [text, json].map((program) => program.waitForOutput('stdout', new RegExp(`transfer  +${count} |"amount":"${count}"`))),
    )
    await relay.restart(signal)
  }
  transfer({ devnet }, 'AAPLc', 1, 3n * 10n ** 8n)
  await Promise.all([text, json].map((program) => program.waitForOutput('stdout', /transfer {2,}3 |"amount":"3"/)))
  expect([...text.stdout.matchAll(/ transfer +(\d+) /g)].map(([, amount]) => amount)).toEqual(['1', '2', '3'])
  // What was missed arrives before the stream is live again.
  await text.waitForOutput('stderr', /continuing at \w+\.\d+ in \d+ ms\nstocktape tail: live again after \d+\.\d s\n/)
  const messages = json.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(messages.filter(({ type }) => type === 'transfer').map(({ amount }) => amount)).toEqual(['1', '2', '3'])
  // A resume that was honoured brings no snapshots.
  const snapshots = messages.filter(({ type }) => type === 'snapshot').map(({ symbol }) => symbol)
  expect(snapshots).toEqual([...new Set(snapshots)])
  await relay.restart('SIGTERM', { API_KEYS: apiKey })
  expect(await Promise.all([text, json].map((program) => program.waitForExit()))).toEqual([1, 1])
  expect(text.stderr).toMatch(/\nstocktape tail: [^\n]*key[^\n]*\n$/)
})
