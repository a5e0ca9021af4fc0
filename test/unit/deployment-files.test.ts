import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { durationMs } from '../../src/lib/units.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const dockerfile = read('Dockerfile')

describe('the Dockerfile', () => {
  it.each([
    [
      'two stages of one base, whose digest is pinned',
      /^ARG NODE_DIGEST=sha256:[0-9a-f]{64}$[\s\S]+^FROM .*\$\{BASE\} AS build$[\s\S]+^FROM \$\{BASE\}$/m,
    ],
    ['packages without their scripts', /npm install --no-save --ignore-scripts --omit=dev/],
    [
      'the program as its entry point, which a signal reaches, and its first command',
      /^ENTRYPOINT \["node", [\s\S]+^CMD \["serve"\]$/m,
    ],
    ['a signal that the relay handles', /^STOPSIGNAL SIGTERM$/m],
    ['a user other than root in its last stage', /^FROM \$\{BASE\}$[\s\S]+^USER node$/m],
  ])('has %s', (_, pattern) => {
    expect(dockerfile).toMatch(pattern)
  })

  it('fetches nothing beside its base and its packages, and takes no secret', () => {
    expect(dockerfile).not.toMatch(/^ADD |curl|wget|apt-get|_KEY|SECRET|PASSWORD|TOKEN/m)
  })

  it('copies only what .dockerignore lets in', () => {
    const [everything, ...kept] = read('.dockerignore').trim().split('\n')
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '))
    expect([everything, copied.filter((path) => !kept.includes(`!${path}`))]).toEqual(['*', []])
  })
})

it('docs/fly-cluster.toml gives each group its role', () => {
  const [, groups] = /^\[processes\]\n((?: .*\n)+)/m.exec(read('docs/fly-cluster.toml')) ?? []
  expect(groups).toBe('  ingest = "--role ingest"\n  edge = "--role edge"\n')
})

it.each(['fly.toml', 'docs/fly-cluster.toml'])('%s keeps the tape on the volume, and kills later than DRAIN', (path) => {
  const setting = (name: string) => new RegExp(`^\\s*${name} = "?([^"\\n]+)"?$`, 'm').exec(read(path))?.[1]
  expect(dockerfile).toContain(` PORT=${setting('internal_port')} DATA_DIR=${setting('destination')} `)
  expect(Number.parseInt(setting('kill_timeout') ?? '', 10) * 1_000).toBeGreaterThan(durationMs(setting('DRAIN') ?? ''))
})

it('the services of docs/compose.yaml have no more rights than they need', () => {
  const compose = read('docs/compose.yaml')
  const [, hardened] = /^x-hardened: &hardened\n([\s\S]*?)\n\n/m.exec(compose) ?? []
  for (const line of ['read_only: true', 'cap_drop: [ALL]', '"no-new-privileges:true"', 'init: true', 'tmpfs: [/tmp]'])
    expect(hardened).toContain(line)
  const services = [...compose.matchAll(/^x-(?:nats|stocktape): .*\n {2}(.*)$|^ {2}balancer:\n {4}(<<.*)$/gm)]
  expect(services.map(([, template, service]) => template ?? service)).toEqual(Array(3).fill('<<: *hardened'))
})
