import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { cloneRepository } from '../e2e/slow/repository-clone.ts'
import { loadBoard } from '../support/board-page.ts'
import { ChildProgram, freePort, upstreamOf } from '../support/child-program.ts'
import { needPrograms } from '../support/debian-programs.ts'
import { listenNdjson } from '../support/test-listener.ts'
import { openDevnet } from '../support/test-stack.ts'

/** The image, built and run by buildah on a base of Debian's own packages with the Node of this project. */

needPrograms('buildah', 'mmdebstrap')

/** An idle relay of the image may have so much in memory, once the garbage of the start is collected. */
const IDLE_BOUND_MIB = 110
const IDLE_WAIT_MS = 20_000

const folder = mkdtempSync(join(tmpdir(), 'stocktape-image-'))
const BASE = 'localhost/debian-with-node'
const NAME = 'localhost/stocktape'
const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'] as const
/** Containers have the network of this machine, and no other namespaces: a container in a container could not have more. */
const isolation = ['--isolation', 'chroot', '--network', 'host'] as const
const buildah = (...args: readonly string[]): string =>
  execFileSync('buildah', [...storage, ...args], { encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 26 }).trim()

type Config = {
  readonly Entrypoint: readonly string[]
  readonly Cmd: readonly string[]
  readonly User: string
  readonly Labels: Readonly<Record<string, string>>
}
let config: Config
let health: readonly string[]
let container: string
let relay: ChildProgram

beforeAll(() => {
  buildBase(join(folder, 'base'))
  const clone = cloneRepository()
  const npmrc = join(folder, 'npmrc')
  writeFileSync(npmrc, `registry=${npmConfig('registry')}\n`)
  // Where a company reads the traffic of its machines, npm has to trust its certificate.
  const { NODE_EXTRA_CA_CERTS: ca } = process.env
  const trust = ca ? ['--volume', `${ca}:/run/ca.pem:ro`, '--build-arg', 'CA=/run/ca.pem'] : []
  const settings = ['--build-arg', `BASE=${BASE}`, '--build-arg', 'VERSION=1.2.3', '--build-arg', 'REVISION=abc']
  buildah(
    'build',
    ...isolation,
    '--volume',
    `${npmrc}:/root/.npmrc:ro`,
    ...trust,
    ...settings,
    '--format',
    'docker',
    '--tag',
    NAME,
    clone,
  )
  rmSync(clone, { recursive: true })
  const { Docker } = JSON.parse(buildah('inspect', '--type', 'image', NAME))
  config = Docker.config
  container = buildah('from', NAME)
  health = Docker.config.Healthcheck.Test.slice(1)
})

afterAll(async () => {
  await relay?.kill()
  buildah('rm', '--all')
  rmSync(folder, { recursive: true, force: true })
})

function buildBase(context: string): void {
  const sources = globSync('/etc/apt/{sources.list,sources.list.d/*.sources}')
  const packages = ['--variant=essential', '--include=libstdc++6', 'bookworm']
  const npm = execFileSync('sh', ['-c', 'realpath "$(command -v npm)"'], { encoding: 'utf8' })
  cpSync(join(npm, '../..'), join(context, 'npm'), { recursive: true })
  copyFileSync(join(import.meta.dirname, '../../node_modules/.bin/node'), join(context, 'node'))
  execFileSync('mmdebstrap', [...packages, join(context, 'debian.tar'), ...sources], { stdio: 'pipe' })
  writeFileSync(
    join(context, 'Dockerfile'),
    `FROM scratch
ADD debian.tar /
COPY node /usr/local/bin/
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
 && echo node:x:1000:1000::/tmp:/bin/sh >> /etc/passwd && echo node:x:1000: >> /etc/group
`,
  )
  buildah('build', ...isolation, '--tag', BASE, context)
}

const npmConfig = (name: string): string => execFileSync('npm', ['config', 'get', name], { cwd: tmpdir(), encoding: 'utf8' }).trim()

/** A command in the container. A relay there has a tape in memory. */
function commandOf(env: Readonly<Record<string, string>>, command: readonly string[]): [string, ...string[]] {
  const settings = Object.entries({ HOST: '127.0.0.1', DATA_DIR: ':memory:', ...env }).flatMap(([name, value]) => [
    '--env',
    `${name}=${value}`,
  ])
  return ['buildah', ...storage, 'run', ...isolation, ...settings, container, '--', ...command]
}
const start = (env: Readonly<Record<string, string>>, args: readonly string[] = config.Cmd): ChildProgram =>
  new ChildProgram(commandOf(env, [...config.Entrypoint, ...args]), { env: process.env })

it('the image holds what the program reads, without packages and sources, for a user who may write none of it', () => {
  const app = join(buildah('mount', container), 'app')
  expect(globSync('{LICENSE,README.md,licenses.md,main.js,package.json,sbom.json,board/index.html}', { cwd: app })).toHaveLength(7)
  expect(globSync('**/{node_modules,*.ts,*.tsx}', { cwd: app }).filter((file) => !file.endsWith('.d.ts'))).toEqual([])
  expect(config.User).toBe('node')
  expect(execFileSync('find', [app, '-not', '-user', 'root', '-o', '-perm', '/022'], { encoding: 'utf8' })).toBe('')
})

it('the image says which version it is, and of which commit', () => {
  expect(config.Labels).toMatchObject({
    'org.opencontainers.image.version': '1.2.3',
    'org.opencontainers.image.revision': 'abc',
    'org.opencontainers.image.source': packageJson.homepage.replace('#readme', ''),
  })
})

it('a container runs any command of the program', async () => {
  const version = start({}, ['--version'])
  expect([await version.waitForExit(), version.stdout]).toEqual([0, expect.stringContaining(`${packageJson.version} (Node `)])
  const ingest = start({}, ['--role', 'ingest'])
  expect([await ingest.waitForExit(), ingest.stderr]).toEqual([2, expect.stringContaining('NATS_URL')])
})

it('the relay refuses to start without an upstream, and names the settings', async () => {
  const refused = start({})
  expect(await refused.waitForExit()).toBe(2)
  expect(refused.stderr).toMatch(/stocktape: no upstream is set, .*UPSTREAM_RPC_URL.*DEMO=true.*\n/)
})

it('the relay starts as an unprivileged user, passes its health check, publishes transfers and is tailed', async () => {
  const port = String(await freePort())
  relay = start({ PORT: port, DATA_DIR: '/data', DEMO: 'true' })
  const url = await relay.listeningUrl()
  const check = new ChildProgram(commandOf({ PORT: port }, health), { env: process.env })
  expect(await check.waitForExit()).toBe(0)
  const listener = await listenNdjson(`${url}/v1/stream?symbols=*&types=transfer`)
  await listener.waitFor('transfer')
  listener.close()
  expect(await loadBoard(url)).toContain('pendingLogs')
  const tail = start({}, ['tail', 'AAPLc', '--url', url])
  await tail.waitForOutput('stdout', /AAPLc +transfer /)
  await tail.kill()
})

it('the relay ends with 0 on the signal of the platform', async () => {
  process.kill(pidOfRelay(), 'SIGTERM')
  expect([await relay.waitForExit(), relay.stderr]).toEqual([0, expect.not.stringContaining('failed')])
})

it('an idle relay has little in memory', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  relay = start({ PORT: '0', ...upstreamOf(devnet) })
  const url = await relay.listeningUrl()
  await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(200)
  const pid = pidOfRelay()
  const residentMib = () => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
  await expect.poll(residentMib, { timeout: IDLE_WAIT_MS }).toBeLessThan(IDLE_BOUND_MIB)
})

/** The process of the program itself, below those of buildah; 0 if there is none. */
function pidOfRelay(pid = relay.pid): number {
  if (/^([^\0]*\/)?node\0/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))) return pid
  const children = globSync(`/proc/${pid}/task/*/children`).flatMap((file) => readFileSync(file, 'utf8').match(/\d+/g) ?? [])
  return children.map((child) => pidOfRelay(Number(child))).find((found) => found > 0) ?? 0
}
