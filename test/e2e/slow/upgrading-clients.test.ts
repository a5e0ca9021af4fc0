import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { ChildProgram } from '../../support/child-program.ts'
import { hasPrograms, needPrograms } from '../../support/debian-programs.ts'
import { openTestStack } from '../../support/test-stack.ts'

/** Clients that ask for HTTP/2 by an upgrade to h2c, without a proxy between them and the relay. */

const javaClient = fileURLToPath(new URL('UpgradingClient.java', import.meta.url))

needPrograms('curl')

it('curl with --http2 gets answers and streams over HTTP/1.1', async (test) => {
  const { relay } = await openTestStack({}, test)
  const run = (...args: readonly string[]) => {
    const curl = new ChildProgram(['curl', '-sSN', '--http2', ...args], { env: { PATH: process.env.PATH } })
    test.onTestFinished(() => curl.kill())
    return curl
  }
  const answer = run('-w', ' %{http_code} %{http_version}', `${relay.url}/healthz`)
  expect(await answer.waitForExit()).toBe(0)
  expect(answer.stdout).toBe('{"status":"ok"} 200 1.1')
  const stream = run('-v', `${relay.url}/v1/stream/AAPLc`)
  await stream.waitForOutput('stdout', /"type":"live"/)
  expect(stream.stderr).toMatch(/> Upgrade: h2c/)
  expect(stream.stderr).toMatch(/< HTTP\/1\.1 200/)
})

it.runIf(hasPrograms('java'))("Java's own client gets answers, streams and WebSockets", async (test) => {
  const { relay } = await openTestStack({}, test)
  const java = new ChildProgram(['java', javaClient, relay.url], { env: { PATH: process.env.PATH } })
  test.onTestFinished(() => java.kill())
  expect([await java.waitForExit(), java.stderr]).toEqual([0, ''])
  expect(java.stdout.split('\n')).toEqual([
    'GET 200 HTTP_1_1 {"status":"ok"}',
    expect.stringMatching(/^POST \{"jsonrpc":"2.0","id":1,"result":"0x/),
    expect.stringMatching(/^SSE data: \{"type":"live"/),
    expect.stringMatching(/^WebSocket \{"type":"live"/),
    '',
  ])
})
