import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ChildProgram } from '../../support/child-program.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { cloneRepository } from './repository-clone.ts'

/** Without a container engine, the tests run the instructions of the Dockerfile as an unprivileged user. */

const NOBODY_UID = 65_534
/** Only root can change its user; all others are unprivileged already. */
const unprivileged = process.getuid?.() === 0 ? { uid: NOBODY_UID, gid: NOBODY_UID } : {}

let clone: string
let app: string
let data: string
let image: Image
let relay: ChildProgram

type Image = {
  readonly env: Record<string, string>
  readonly runs: readonly string[]
  readonly copies: readonly { readonly from: string | null; readonly paths: readonly string[]; readonly to: string }[]
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
  for (const { from, paths } of image.copies) {
    if (from === null) for (const path of paths) cpSync(join(clone, path), join(app, basename(path)), { recursive: true })
  }
  const [install = ''] = image.runs
  execFileSync('sh', ['-c', install], { cwd: app, stdio: 'pipe' })
  chmodSync(root, 0o755)
  if (unprivileged.uid !== undefined) chownSync(data, NOBODY_UID, NOBODY_UID)
})

afterAll(async () => {
  await relay?.kill()
  rmSync(clone, { recursive: true })
  rmSync(join(app, '..'), { recursive: true })
})

it('the image has no development dependencies and does not run as root', () => {
  expect(image.runs[0]).toBe('npm ci --omit=dev --ignore-scripts')
  expect(image.user).toBe('node')
  expect(() => readFileSync(join(app, 'node_modules/vitest/package.json'))).toThrow(/ENOENT/)
})

it('the relay refuses to start without an upstream, and names the settings', async () => {
  const env = { ...image.env, PATH: process.env.PATH, PORT: '0', HOST: '127.0.0.1', DATA_DIR: data }
  const refused = new ChildProgram([process.execPath, ...image.command.slice(1)], { cwd: app, env, ...unprivileged })
  expect(await refused.waitForExit()).toBe(1)
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
})

it('the relay exits with 0 on the signal of the platform', async () => {
  relay.signal('SIGTERM')
  expect(await relay.waitForExit()).toBe(0)
})

it('the tape is on the volume of the platform, whose kill timeout exceeds DRAIN_MS', () => {
  const fly = readFileSync(join(clone, 'fly.toml'), 'utf8')
  const setting = (name: string) => new RegExp(`^\\s*${name} = "?([^"\\n]+)"?$`, 'm').exec(fly)?.[1]
  expect(setting('destination')).toBe(image.env.DATA_DIR)
  expect(setting('internal_port')).toBe(image.env.PORT)
  expect(Number.parseInt(setting('kill_timeout') ?? '', 10) * 1_000).toBeGreaterThan(Number(setting('DRAIN_MS')))
})

function readImage(dockerfile: string): Image {
  const lines = dockerfile.split('\n').map((line) => line.trim())
  const all = (word: string) => lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
  const pairs = all('ENV').flatMap((line) => line.split(' ').map((pair) => pair.split('=')))
  const [health = ''] = all('HEALTHCHECK')
  return {
    env: Object.fromEntries(pairs),
    runs: all('RUN'),
    copies: all('COPY').map((line) => {
      const words = line.split(' ')
      const from = words[0]?.startsWith('--from=') ? (words.shift() ?? null) : null
      return { from, paths: words.slice(0, -1), to: words.at(-1) ?? '' }
    }),
    command: JSON.parse(all('CMD').at(-1) ?? '[]'),
    health: JSON.parse(health.slice(health.indexOf('['))),
    user: all('USER')[0] ?? '',
  }
}
