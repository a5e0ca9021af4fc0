import { expect, it } from 'vitest'
import { ChildProgram } from '../../support/child-program.ts'
import { needPrograms } from '../../support/debian-programs.ts'
import { openTestStack } from '../../support/test-stack.ts'

needPrograms('curl')

it('curl with --http2, which asks for h2c by an upgrade, gets answers and streams over HTTP/1.1', async (test) => {
  const { relay } = await openTestStack({}, test)
  const run = (...args: readonly string[]) => {
    const curl = new ChildProgram(['curl', '-sSN', '--http2', ...args], { env: { PATH: process.env.PATH } })
    test.onTestFinished(() => curl.kill())
    return curl
  }
  const answer = run('-w', ' %{http_code} %{http_version}', `${relay.url}/healthz`)
  expect(await answer.waitForExit()).toBe(0)
  expect(answer.stdout).toBe('{"status":"ok"} 200 1.1')
  const post = run('-d', '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}', `${relay.url}/rpc`)
  expect(await post.waitForExit()).toBe(0)
  expect(post.stdout).toMatch(/^\{"jsonrpc":"2.0","id":1,"result":"0x/)
  const stream = run('-v', `${relay.url}/v1/stream/AAPLc`)
  await stream.waitForOutput('stdout', /"type":"live"/)
  expect(stream.stderr).toMatch(/> Upgrade: h2c/)
  expect(stream.stderr).toMatch(/< HTTP\/1\.1 200/)
})
