import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../../src/relay/config/config.ts'
import { flagOf, settings } from '../../../../src/relay/config/settings.ts'
import { apiKey } from '../../../support/api-keys.ts'
import { configOf, type Env, mistakesOf } from './config-readings.ts'

const folder = mkdtempSync(join(tmpdir(), 'stocktape-settings-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function fileWith(text: string): string {
  files += 1
  const path = join(folder, String(files))
  writeFileSync(path, text)
  return path
}

/** A right value of each setting that may lie in a file. */
const values: Env = {
  UPSTREAM_RPC_URL: 'https://node.example/KEY-1',
  UPSTREAM_WS_URL: 'wss://node.example/KEY-2',
  RECEIPTS_RPC_URL: 'https://node.example/KEY-3',
  STOCKS_API_URL: 'https://list.example/KEY-4',
  NATS_URL: 'nats://user:KEY-5@nats.example',
  TOKEN_SECRET: 'KEY-6'.repeat(8),
  METRICS_TOKEN: 'KEY-7',
}
const names = Object.keys(values)

describe('a setting that may hold a secret', () => {
  it('is every secret and every URL that may hold a key', () => {
    expect([...settings].flatMap(([name, { mayHoldSecret }]) => (mayHoldSecret ? [name] : [])).toSorted()).toEqual(names.toSorted())
  })

  it('may lie in a file, whose last line break is no part of it', () => {
    const plain = configOf([], values)
    const inFiles = names.map((name, nth) => [name, fileWith(`${values[name]}${['', '\n', '\r\n'][nth % 3]}`)] as const)
    expect(configOf([], Object.fromEntries(inFiles.map(([name, path]) => [`${name}_FILE`, path])))).toEqual(plain)
    expect(configOf(inFiles.map(([name, path]) => `--${flagOf(name)}-file=${path}`))).toEqual(plain)
  })

  it.each(names)('is refused if it is given twice: %s and its file', (name) => {
    const path = fileWith(values[name] ?? '')
    const line = `${name} and ${name}_FILE are both set: leave one of them out`
    expect(mistakesOf([], { ...values, [`${name}_FILE`]: path })).toEqual([line])
    expect(mistakesOf([`--${flagOf(name)}=${values[name]}`, `--${flagOf(name)}-file=${path}`])).toEqual([line])
  })

  it('takes its flag before its variable, in either form', () => {
    const path = fileWith('flag\n')
    expect(configOf(['--metrics-token-file', path], { METRICS_TOKEN: 'variable' }).edge.metricsToken).toBe('flag')
    expect(configOf(['--metrics-token=flag'], { METRICS_TOKEN_FILE: '/nowhere' }).edge.metricsToken).toBe('flag')
  })

  it.each([
    ['/nowhere', /^METRICS_TOKEN_FILE names a file that cannot be read \(ENOENT\): "\/nowhere"$/],
    [folder, /^METRICS_TOKEN_FILE names a file that cannot be read \(EISDIR\): /],
    ['/dev/zero', /^METRICS_TOKEN_FILE names a file of more than 64KiB: "\/dev\/zero"$/],
  ])('is a mistake if its file is %s', (path, line) => {
    expect(mistakesOf([], { METRICS_TOKEN_FILE: path })).toEqual([expect.stringMatching(line)])
  })

  it.each(names)('is never printed from its file: %s', (name) => {
    const lines = mistakesOf([], { ...values, [name]: '', [`${name}_FILE`]: fileWith('ab cd\n') })
    expect(lines).toEqual([expect.stringMatching(new RegExp(`^${name}_FILE names a file whose text must be `))])
    expect(lines.join()).not.toContain('ab cd')
  })

  it('is the only kind with a file', () => {
    expect(mistakesOf(['--port-file', '/nowhere'])).toEqual([expect.stringMatching(/^'--port-file' is not a flag\./)])
    expect(mistakesOf([], { TAPE_RETENTION_FILE: '/nowhere' })).toEqual([expect.stringMatching(/is not a setting\./)])
  })
})

it('the settings that a start logs are those that differ from the defaults, without secrets', () => {
  const env = {
    ...{ PORT: '8080', DRAIN: '4s', METRICS_TOKEN: 'metrics-secret', API_KEYS: apiKey, POOLS: '', DEMO: 'true' },
    ...{
      UPSTREAM_RPC_URL: 'https://me:secret@one.example/v2/secret,https://two.example:81',
      STOCKS_API_URL_FILE: fileWith('http://me:sec,ret@list.example/path,secret'),
    },
  }
  expect(readConfig(['--host=::1', '--origins', `https://${'a'.repeat(300)}.example`], env)).toMatchObject({
    shown: {
      ...{ HOST: '::1', DRAIN: '4s', METRICS_TOKEN: '(a secret)', API_KEYS: '(a secret)', ORIGINS: `https://${'a'.repeat(192)}` },
      ...{ UPSTREAM_RPC_URL: 'one.example,two.example:81', STOCKS_API_URL: 'list.example' },
    },
  })
  expect(readConfig([], env)).toHaveProperty(
    'shown',
    expect.not.objectContaining({ PORT: expect.anything(), DEMO: expect.anything() }),
  )
})

describe('the file of --env-file', () => {
  const env = fileWith('# a comment\nPORT=7000\nDRAIN="4s"\nexport LOG_LEVEL=warn\nNETWORK=\n')

  it('is below the environment and the flags, and above the defaults', () => {
    expect(configOf([`--env-file=${env}`]).process).toMatchObject({ port: 7_000, drainMs: 4_000, logLevel: 'warn', workers: 1 })
    expect(configOf(['--env-file', env], { PORT: '7001' }).process).toMatchObject({ port: 7_001, drainMs: 4_000 })
    expect(configOf(['--env-file', env, '--port=7002'], { PORT: '7001' }).process.port).toBe(7_002)
  })

  it('may name the file of a secret, which the environment replaces', () => {
    const secrets = fileWith(`METRICS_TOKEN_FILE=${fileWith('from-file')}`)
    expect(configOf(['--env-file', secrets]).edge.metricsToken).toBe('from-file')
    expect(configOf(['--env-file', secrets], { METRICS_TOKEN: 'from-env' }).edge.metricsToken).toBe('from-env')
  })

  it('is checked as the environment is', () => {
    expect(mistakesOf(['--env-file', fileWith('UPSTREAM_URL=x\nSILENCE_MS=5\nPORT=http')])).toEqual([
      expect.stringMatching(/^PORT must be a whole number/),
      expect.stringMatching(/^SILENCE_MS is now SILENCE/),
      expect.stringMatching(/^UPSTREAM_URL is not a setting\./),
    ])
  })

  it('has to exist', () => {
    expect(mistakesOf(['--env-file', '/nowhere'])).toEqual(['--env-file names a file that cannot be read (ENOENT): "/nowhere"'])
  })
})
