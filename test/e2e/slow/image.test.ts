import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import packageJson from '../../../package.json' with { type: 'json' }
import { durationMs } from '../../../src/lib/units.ts'
import { loadBoard } from '../../support/board-page.ts'
import { ChildProgram, freePort, upstreamOf } from '../../support/child-program.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { openDevnet } from '../../support/test-stack.ts'
import { cloneRepository } from './repository-clone.ts'

/** Without a container engine, the tests run the instructions of the Dockerfile as an unprivileged user in files that only root may write. */

const repositoryRoot = fileURLToPath(new URL('../../..', import.meta.url))
const NOBODY_UID = 65_534
/** An idle relay of the image may have so much in memory. */
const IDLE_BOUND_MIB = 110
/** The garbage of the start is collected soon after it. */
const IDLE_WAIT_MS = 20_000
/** Only root can change its user; all others are unprivileged already. */
const unprivileged = process.getuid?.() === 0 ? { uid: NOBODY_UID, gid: NOBODY_UID } : {}

let clone: string
let app: string
let data: string
let image: Image
let relay: ChildProgram

type Stage = {
  readonly name: string
  readonly env: Record<string, string>
  readonly runs: readonly string[]
  readonly copies: readonly { readonly from: string | null; readonly paths: readonly string[]; readonly to: string }[]
}

/** The last stage, and the others by name. */
type Image = Stage & {
  readonly stages: ReadonlyMap<string, Stage>
  readonly command: readonly [string, ...string[]]
  readonly health: readonly [string, ...string[]]
  readonly user: string
}

beforeAll(() => {
  clone = cloneRepository()
  image = readImage(readFileSync(join(clone, 'Dockerfile'), 'utf8'))
  const root = mkdtempSync(join(tmpdir(), 'stocktape-image-'))
  app = join(root, 'app')
  data = join(root, 'data')
  mkdirSync(app)
  mkdirSync(data)
  buildImage(root)
  chmodSync(root, 0o755)
  execFileSync('chmod', ['-R', 'a-w', app])
  if (unprivileged.uid !== undefined) chownSync(data, NOBODY_UID, NOBODY_UID)
})

afterAll(async () => {
  await relay?.kill()
  rmSync(clone, { recursive: true })
  execFileSync('chmod', ['-R', 'u+w', app])
  rmSync(join(app, '..'), { recursive: true })
})

/** Each stage in a folder of its own, from the files that the Dockerfile copies there. */
function buildImage(root: string): void {
  const folders = new Map([...image.stages.keys()].map((name) => [name, join(root, name)]))
  for (const [name, stage] of image.stages) {
    copyInto(join(root, name), stage, folders)
    const [install = '', ...others] = stage.runs
    if (install === 'npm ci --ignore-scripts') symlinkSync(join(repositoryRoot, 'node_modules'), join(root, name, 'node_modules'))
    else others.unshift(install)
    for (const run of others) execFileSync('sh', ['-c', run], { cwd: join(root, name), stdio: 'pipe' })
  }
  copyInto(app, image, folders)
}

/** What .dockerignore keeps out is not there to be copied. */
function copyInto(folder: string, { copies }: Stage, stageFolders: ReadonlyMap<string, string>): void {
  const [everything, ...kept] = readFileSync(join(clone, '.dockerignore'), 'utf8').trim().split('\n')
  expect(everything).toBe('*')
  for (const { from, paths, to } of copies) {
    if (from === null) expect(kept).toEqual(expect.arrayContaining(paths.map((path) => `!${path}`)))
    for (const path of paths) {
      const source = from === null ? join(clone, path) : join(stageFolders.get(from) ?? 'no stage', path.replace('/app/', ''))
      cpSync(source, to.endsWith('./') ? join(folder, to, basename(path)) : join(folder, to), {
        recursive: true,
        verbatimSymlinks: true,
      })
    }
  }
}

it('the image holds what the program reads, without packages and sources, and nothing in it can be written', () => {
  expect(globSync('*', { cwd: app }).toSorted()).toEqual(['LICENSE', 'dist', 'package.json'])
  expect(globSync('dist/**/*.{ts,tsx}', { cwd: app })).toEqual([])
  expect(readFileSync(join(app, 'dist/licenses.md'), 'utf8')).toContain('## ws')
  const script = "try { require('node:fs').writeFileSync('new-file', ''); process.exit(1) } catch ({ code }) { console.log(code) }"
  expect(execFileSync(process.execPath, ['-e', script], { cwd: app, encoding: 'utf8', ...unprivileged })).toMatch(/EACCES|EROFS/)
})

it('the image lists the packages in its program, each with a license that asks for no more than to be passed on', () => {
  const licenses = ['dist/licenses.md', 'dist/board/licenses.md'].map((file) => readFileSync(join(app, file), 'utf8')).join('\n')
  const bundled = [...licenses.matchAll(/^## (\S+) - (\S+) \((.+)\)$/gm)]
  const { components } = JSON.parse(readFileSync(join(app, 'dist/sbom.json'), 'utf8'))
  const listed = components.map((component: { name: string; version: string }) => `${component.name}@${component.version}`)
  expect(listed.toSorted()).toEqual(bundled.map(([, name, version]) => `${name}@${version}`).toSorted())
  expect(listed).toContain(`ws@${packageJson.devDependencies.ws}`)
  const kinds = new Set(bundled.map(([, , , license]) => license))
  expect([...kinds].filter((license) => !['MIT', 'Apache-2.0', 'Unlicense'].includes(license ?? ''))).toEqual([])
})

it('the Dockerfile has no mistake that a linter finds', () => {
  const lint = join(repositoryRoot, 'node_modules/.bin/dockerfile-utils')
  expect(execFileSync(process.execPath, [lint, 'lint', 'Dockerfile'], { cwd: clone, encoding: 'utf8' })).toBe('')
})

it.each([
  ['two stages', (text: string) => text.match(/^FROM /gm)?.length === 2],
  [
    'stages of one image, of the Node that the tests use',
    (text: string) => {
      const images = [...text.matchAll(/^FROM node:(\S+)-bookworm-slim@sha256:[0-9a-f]{64}(?= |$)/gm)]
      return (
        images.length === 2 &&
        images.every(([image, version]) => image === images[0]?.[0] && version === packageJson.devDependencies.node)
      )
    },
  ],
  ['no file from elsewhere', (text: string) => !/^ADD |curl|wget|apt-get/m.test(text)],
  ['packages as the lock file has them, without their scripts', (text: string) => /^RUN npm ci --ignore-scripts$/m.test(text)],
  ['commands that a signal reaches', (text: string) => /^CMD \["node", /m.test(text) && !/^ENTRYPOINT|^CMD [^[]/m.test(text)],
  ['a signal that the relay handles', (text: string) => /^STOPSIGNAL SIGTERM$/m.test(text)],
  ['a user other than root in its last stage', (text: string) => /^USER node$/m.test(text.split(/^FROM /m).at(-1) ?? '')],
  ['no secret', (text: string) => !/_KEY|SECRET|PASSWORD|TOKEN|^ARG /m.test(text)],
])('the Dockerfile has %s', (_, holds) => {
  expect(holds(readFileSync(join(clone, 'Dockerfile'), 'utf8'))).toBe(true)
})

it('the relay refuses to start without an upstream, and names the settings', async () => {
  const env = { ...image.env, PATH: process.env.PATH, PORT: '0', HOST: '127.0.0.1', DATA_DIR: data }
  const refused = new ChildProgram([process.execPath, ...image.command.slice(1)], { cwd: app, env, ...unprivileged })
  expect(await refused.waitForExit()).toBe(2)
  expect(refused.stderr).toMatch(/^stocktape: no upstream is set, .*UPSTREAM_RPC_URL.*DEMO=true.*\n$/)
})

it('the relay starts as an unprivileged user, passes its health check, and publishes transfers', async () => {
  const env = { ...image.env, PATH: process.env.PATH, PORT: '18473', HOST: '127.0.0.1', DATA_DIR: data, DEMO: 'true' }
  const [program, ...args] = image.command
  expect(program).toBe('node')
  relay = new ChildProgram([process.execPath, ...args], { cwd: app, env, ...unprivileged })
  await relay.listeningUrl()
  const [, ...check] = image.health
  execFileSync(process.execPath, check, { cwd: app, env, ...unprivileged })
  const listener = await listenNdjson('http://127.0.0.1:18473/v1/stream?symbols=*&types=transfer')
  await listener.waitFor('transfer')
  listener.close()
  expect(await loadBoard('http://127.0.0.1:18473')).toContain('pendingLogs')
})

it('the relay exits with 0 on the signal of the platform', async () => {
  relay.signal('SIGTERM')
  expect(await relay.waitForExit()).toBe(0)
})

it('an idle relay has little in memory', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const port = String(await freePort())
  const env = { ...image.env, PATH: process.env.PATH, PORT: port, HOST: '127.0.0.1', DATA_DIR: ':memory:', ...upstreamOf(devnet) }
  const idle = new ChildProgram([process.execPath, ...image.command.slice(1)], { cwd: app, env, ...unprivileged })
  test.onTestFinished(() => idle.kill())
  await idle.listeningUrl()
  await expect.poll(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
  const residentMib = () => {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${idle.pid}/status`, 'utf8')) ?? []
    return Number(kilobytes) / 1_024
  }
  await expect.poll(residentMib, { timeout: IDLE_WAIT_MS }).toBeLessThan(IDLE_BOUND_MIB)
})

it('the process groups of docs/fly-cluster.toml run the command of the image', () => {
  const fly = readFileSync(join(clone, 'docs/fly-cluster.toml'), 'utf8')
  const groups = [...fly.matchAll(/^ {2}(\w+) = "(node .+) --role (\w+)"$/gm)].map(([, name, command, role]) => [
    name,
    command,
    role,
  ])
  expect(groups).toEqual(['ingest', 'edge'].map((role) => [role, image.command.join(' '), role]))
})

it('the services of docs/compose.yaml have no more rights than they need', () => {
  const compose = readFileSync(join(clone, 'docs/compose.yaml'), 'utf8')
  for (const line of [
    'read_only: true',
    'cap_drop: [ALL]',
    'security_opt: ["no-new-privileges:true"]',
    'init: true',
    'tmpfs: [/tmp]',
  ])
    expect(/^x-hardened: &hardened\n([\s\S]*?)\n\n/m.exec(compose)?.[1]).toContain(line)
  const services = [...compose.matchAll(/^x-(?:nats|stocktape): .*\n {2}(.*)$|^ {2}balancer:\n {4}(<<.*)$/gm)].map(
    ([, x, y]) => x ?? y,
  )
  expect(services).toEqual(['<<: *hardened', '<<: *hardened', '<<: *hardened'])
})

it.each(['fly.toml', 'docs/fly-cluster.toml'])(
  'the tape is on the volume of the platform, whose kill timeout exceeds DRAIN: %s',
  (path) => {
    const fly = readFileSync(join(clone, path), 'utf8')
    const setting = (name: string) => new RegExp(`^\\s*${name} = "?([^"\\n]+)"?$`, 'm').exec(fly)?.[1]
    expect(setting('destination')).toBe(image.env.DATA_DIR)
    expect(setting('internal_port')).toBe(image.env.PORT)
    expect(Number.parseInt(setting('kill_timeout') ?? '', 10) * 1_000).toBeGreaterThan(durationMs(setting('DRAIN') ?? ''))
  },
)

function readImage(dockerfile: string): Image {
  const [, ...texts] = dockerfile.split(/^FROM /m)
  const stages = texts.map(readStage)
  const last = stages.pop()
  if (!last) throw new Error('the Dockerfile has no stage')
  const lines = linesOf(texts.at(-1) ?? '')
  const [health = ''] = instructions(lines, 'HEALTHCHECK')
  return {
    ...last,
    stages: new Map(stages.map((stage) => [stage.name, stage])),
    command: JSON.parse(instructions(lines, 'CMD').at(-1) ?? '[]'),
    health: JSON.parse(health.slice(health.indexOf('['))),
    user: instructions(lines, 'USER')[0] ?? '',
  }
}

function readStage(text: string): Stage {
  const lines = linesOf(text)
  const pairs = instructions(lines, 'ENV').flatMap((line) =>
    line.split(' ').map((pair) => /^(\w+)=(.*)$/.exec(pair)?.slice(1) ?? []),
  )
  return {
    name: / AS (\w+)$/.exec(lines[0] ?? '')?.[1] ?? 'the image',
    env: Object.fromEntries(pairs),
    runs: instructions(lines, 'RUN'),
    copies: instructions(lines, 'COPY').map((line) => {
      const words = line.split(' ')
      const from = words[0]?.startsWith('--from=') ? (words.shift()?.replace('--from=', '') ?? null) : null
      return { from, paths: words.slice(0, -1), to: words.at(-1) ?? '' }
    }),
  }
}

const linesOf = (text: string): readonly string[] => text.split('\n').map((line) => line.trim())

const instructions = (lines: readonly string[], word: string): string[] =>
  lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
