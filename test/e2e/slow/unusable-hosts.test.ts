import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { of } from 'rxjs'
import { expect, it, onTestFinished } from 'vitest'
import { failureReason } from '../../../src/lib/http-fetch.ts'
import { REQUEST_TIMEOUT_MS } from '../../../src/relay/chain/rpc/endpoint-pool.ts'
import { fetchList } from '../../../src/relay/tokens/list/list-poller.ts'
import { createTempFolder } from '../../support/child-program.ts'
import { needPrograms } from '../../support/debian-programs.ts'
import { openLink } from '../../unit/relay/chain/link/fake-socket-node.ts'
import { apple } from '../../unit/relay/chain/node-json.ts'
import { failureOf, openEndpointPool } from '../../unit/relay/chain/rpc/fake-endpoint.ts'

needPrograms('openssl')

/** What reaches a server in clear text. */
type Received = { requests: number }

/** A server with a certificate that nobody has signed. */
async function openUntrustedServer(received: Received): Promise<string> {
  const folder = await createTempFolder({ onTestFinished })
  const [cert, key] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')]
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
  execFileSync('openssl', ['req', ...kind, ...name, '-out', cert, '-keyout', key], { stdio: 'pipe' })
  const server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_, response) => {
    received.requests += 1
    response.end('{}')
  })
  server.on('upgrade', (_, socket) => {
    received.requests += 1
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `s://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server that accepts connections and never answers. */
async function openSilentServer(): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => sockets.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `://127.0.0.1:${(server.address() as AddressInfo).port}`
}

it.for<readonly [string, (received: Received) => Promise<string>, RegExp, RegExp]>([
  ['whose name does not resolve', async () => '://stocktape.invalid', /ENOTFOUND|EAI_AGAIN/, /ENOTFOUND|EAI_AGAIN/],
  ['whose certificate is not signed', openUntrustedServer, /self-signed certificate/, /self-signed certificate/],
  ['that never answers', openSilentServer, /handshake has timed out/, /aborted due to timeout/],
])('a host %s is lost with that reason for the socket, the node and the list', async ([, open, linkReason, reason]) => {
  const received = { requests: 0 }
  const host = await open(received)
  const link = openLink([`ws${host}`], of([apple]))
  const { rpc } = openEndpointPool([`http${host}`])
  const [node, list, down] = await Promise.all([
    failureOf(rpc.request('eth_blockNumber', [])),
    fetchList(`http${host}`, REQUEST_TIMEOUT_MS)(null).catch(failureReason),
    link.waitForSignal('down'),
  ])
  expect(node).toMatchObject({ kind: 'unreachable', message: expect.stringMatching(reason) })
  expect(list).toMatch(reason)
  expect(down).toMatchObject({ reason: expect.stringMatching(linkReason), isRefused: false })
  expect(link.warnings).toMatchObject([{ kind: 'link_down', detail: { reason: down.reason } }])
  expect(received.requests).toBe(0)
})
