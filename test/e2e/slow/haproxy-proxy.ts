import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { vi } from 'vitest'
import { ChildProgram, createTempFolder, freePort } from '../../support/child-program.ts'
import { needPrograms, pathOf } from '../../support/debian-programs.ts'
import { TEST_TIMEOUT_MS, type TestLifecycle } from './deployed-relay.ts'
import { createCertificate, type OpenedProxy } from './nginx-proxy.ts'

const documented = readFileSync(new URL('../../../docs/haproxy.cfg', import.meta.url), 'utf8')

/** Debian's HAProxy with the documented configuration before these relays, on free ports of this machine. `edit` changes it. */
export async function openHaproxy(
  test: TestLifecycle,
  upstreams: string | readonly string[],
  edit: (configuration: string) => string = (configuration) => configuration,
): Promise<OpenedProxy> {
  needPrograms('haproxy')
  const folder = await createTempFolder(test)
  const [port, tlsPort] = [await freePort(), await freePort()]
  const certificatePath = createCertificate(folder)
  const pem = join(folder, 'fullchain-and-key.pem')
  await writeFile(pem, readFileSync(certificatePath, 'utf8') + readFileSync(join(folder, 'privkey.pem'), 'utf8'))
  const changes = [
    [/log \/dev\/log local0/, 'log stdout format raw local0'],
    [/ {2}chroot .*\n {2}user .*\n {2}group .*\n/, ''],
    [/bind :80\n/, `bind 127.0.0.1:${port}\n`],
    [/bind :443 /, `bind 127.0.0.1:${tlsPort} `],
    [/\/etc\/ssl\/stocktape\/fullchain-and-key\.pem/, pem],
    // The plain port of the test serves what TLS serves.
    [/ {2}http-request redirect scheme .*\n/, ''],
    [
      / {2}server relay 127\.0\.0\.1:8080\n/g,
      [upstreams]
        .flat()
        .map((url, nth) => `  server relay-${nth + 1} ${new URL(url).host}\n`)
        .join(''),
    ],
  ] as const
  const configuration = changes.reduce((text, [documentedText, testText]) => {
    if (!text.match(documentedText)) throw new Error(`docs/haproxy.cfg has nothing like ${documentedText}`)
    return text.replace(documentedText, testText)
  }, edit(documented))
  await writeFile(join(folder, 'haproxy.cfg'), configuration)
  const haproxy = new ChildProgram([pathOf('haproxy'), '-db', '-f', join(folder, 'haproxy.cfg')], { env: {} })
  test.onTestFinished(() => haproxy.kill())
  const url = `http://127.0.0.1:${port}`
  const answers = async () => (await fetch(`${url}/healthz`).catch(() => null)) !== null
  await vi.waitUntil(answers, TEST_TIMEOUT_MS)
  return {
    url,
    wsUrl: `ws://127.0.0.1:${port}`,
    tlsUrl: `https://localhost:${tlsPort}`,
    certificatePath,
    log: () => haproxy.stdout + haproxy.stderr,
    waitForLog: (pattern) => haproxy.waitForOutput('stdout', pattern),
  }
}
