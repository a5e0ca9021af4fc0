import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ChildProgram, createTempFolder, freePort } from '../../support/child-program.ts'
import { needPrograms, pathOf } from '../../support/debian-programs.ts'
import type { TestLifecycle } from './deployed-relay.ts'

/** The addresses of a proxy, what it logged, and its certificate. */
export type OpenedProxy = {
  readonly url: string
  readonly wsUrl: string
  readonly tlsUrl: string
  readonly certificatePath: string
  readonly log: () => string
  readonly waitForLog: (pattern: RegExp) => Promise<unknown>
}

const documented = readFileSync(new URL('../../../docs/nginx.conf', import.meta.url), 'utf8')

/** Debian's nginx with the documented configuration before these relays, on free ports of this machine. `edit` changes it. */
export async function openNginx(
  test: TestLifecycle,
  upstreams: string | readonly string[],
  edit: (configuration: string) => string = (configuration) => configuration,
): Promise<OpenedProxy> {
  needPrograms('nginx', 'openssl')
  const folder = await createTempFolder(test)
  const [port, tlsPort] = [await freePort(), await freePort()]
  await mkdir(join(folder, 'temp'))
  const certificatePath = createCertificate(folder)
  const sites = [
    [
      /server 127\.0\.0\.1:8080 (.*)/,
      [upstreams]
        .flat()
        .map((url) => `server ${new URL(url).host} $1`)
        .join('\n  '),
    ],
    // The plain port of the test belongs to the same server as TLS.
    [/listen 80;\n {2}listen \[::\]:80;/, `listen 127.0.0.1:${await freePort()};`],
    [/listen 443 ssl http2;\n {2}listen \[::\]:443 ssl http2;/, `listen 127.0.0.1:${tlsPort} ssl http2; listen 127.0.0.1:${port};`],
    [/server_name stream\.example\.com;/g, 'server_name localhost;'],
    [/\/etc\/ssl\/stocktape/g, folder],
    [/\/var\/log\/nginx\/stocktape\.log/g, '/dev/stdout'],
    [/\/var\/log\/nginx\/stocktape\.error\.log/g, 'stderr'],
  ] as const
  const site = sites.reduce((text, [documentedText, testText]) => {
    if (!text.match(documentedText)) throw new Error(`docs/nginx.conf has nothing like ${documentedText}`)
    return text.replace(documentedText, testText)
  }, edit(documented))
  await writeFile(join(folder, 'stocktape.conf'), site)
  await writeFile(join(folder, 'nginx.conf'), frameFor(folder))
  // nginx can open a pipe as /dev/stdout, and cannot open the socket that Node gives to a child.
  const command = ['sh', '-c', '"$@" | cat', 'sh', pathOf('nginx'), '-p', folder, '-c', 'nginx.conf', '-e', 'stderr'] as const
  const nginx = new ChildProgram(command, { env: { ...process.env } })
  test.onTestFinished(() => nginx.kill())
  await nginx.waitForOutput('stderr', /using the "\w+" event method/)
  return {
    url: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    tlsUrl: `https://localhost:${tlsPort}`,
    certificatePath,
    log: () => nginx.stdout + nginx.stderr,
    waitForLog: (pattern) => nginx.waitForOutput('stdout', pattern),
  }
}

/** A self-signed certificate for `localhost`. */
export function createCertificate(folder: string): string {
  const [certificate, key] = [join(folder, 'fullchain.pem'), join(folder, 'privkey.pem')]
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  execFileSync('openssl', ['req', ...kind, ...name, '-out', certificate, '-keyout', key], { stdio: 'pipe' })
  return certificate
}

/** What keeps nginx in its folder and in the foreground. */
const frameFor = (folder: string): string => `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr notice;
events {}
http {
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${folder}/temp/${of};`).join(' ')}
  include stocktape.conf;
}
`
