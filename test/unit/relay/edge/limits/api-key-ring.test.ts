import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { digestOf, keyEntries } from '../../../../../src/relay/config/api-key-settings.ts'
import { ApiKeyRing } from '../../../../../src/relay/edge/limits/api-key-ring.ts'

const TOKEN_LIFE_S = 61
const secret = 'a secret of this start'
const [zero, one, two, three] = ['key-zero-'.repeat(2), 'key-one-'.repeat(2), 'key-two-'.repeat(2), 'key-three-'.repeat(2)] as const
type Options = { tokenSecret?: string; wallTime?: () => number; apiKeysFile?: string; onRevoked?: () => void }

const ringOf = (text: string, options: Options = {}) => {
  const log = vi.fn()
  const ring = new ApiKeyRing({
    tokenSecret: secret,
    wallTime: Date.now,
    apiKeysFile: undefined,
    onRevoked: () => {},
    ...options,
    apiKeys: text ? keyEntries(text) : [],
    log,
  })
  onTestFinished(() => ring.close())
  return { ring, log }
}

const tokenOf = ({ ring }: ReturnType<typeof ringOf>, key: string): string =>
  ring.createAccessToken(ring.clientOf(key) ?? '')?.token ?? ''

describe('a token', () => {
  it('stands for its key in every process that has its secret and the key, as it is or hashed', () => {
    const token = tokenOf(ringOf(`${one},${two}`), one)
    const elsewhere = ringOf(`${three},sha256:${digestOf(one).toString('hex')}`).ring
    expect(elsewhere.clientOf(token)).toBe(elsewhere.clientOf(one))
    expect(ringOf(two).ring.clientOf(token)).toBeNull()
    expect(ringOf(one, { tokenSecret: 'another start' }).ring.clientOf(token)).toBeNull()
  })

  it('cannot be made by who reads the hash of a key', () => {
    const digest = digestOf(one)
    const { ring } = ringOf(`sha256:${digest.toString('hex')}`)
    const [, name = ''] = (ring.clientOf(one) ?? '').split(':')
    for (const endS of [253_402_300_799, Math.floor(Date.now() / 1_000) + 30]) {
      const proof = createHmac('sha256', digest).update(`stocktape token ${name} ${endS}`).digest('base64url')
      expect(ring.clientOf(`t.${name}.${endS}.${proof}`)).toBeNull()
    }
  })

  it('that claims an end more than a minute from now is refused, although its proof is right', () => {
    const { ring } = ringOf(one)
    const inMs = (ms: number) => tokenOf(ringOf(one, { wallTime: () => Date.now() + ms }), one)
    expect(ring.clientOf(inMs(-10_000))).toBe(ring.clientOf(one))
    expect(ring.clientOf(inMs(0))).toBe(ring.clientOf(one))
    for (const ms of [5_000, 3_600_000]) expect(ring.clientOf(inMs(ms))).toBeNull()
  })

  it('ends, and cannot be lengthened or given to another key', () => {
    let now = 1_000_000_000_000
    const opened = ringOf(`${one},${two}`, { wallTime: () => now })
    const [token, other] = [tokenOf(opened, one), tokenOf(opened, two)]
    const [head, name, end, proof] = token.split('.')
    const forged = [
      [head, name, Number(end) + 1, proof],
      [head, other.split('.')[1], end, proof],
      [head, name, end, 'A'.repeat(43)],
    ]
    for (const parts of forged) expect(opened.ring.clientOf(parts.join('.'))).toBeNull()
    expect(opened.ring.clientOf(token)).not.toBeNull()
    now += TOKEN_LIFE_S * 1_000
    expect(opened.ring.clientOf(token)).toBeNull()
  })
})

it('any other text is no key', () => {
  const opened = ringOf(`${one},${two}`)
  const token = tokenOf(opened, one)
  const changed = fc
    .tuple(fc.nat(token.length - 1), fc.string({ unit: 'binary', minLength: 1, maxLength: 2 }))
    .map(([at, text]) => token.slice(0, at) + text + token.slice(at + 1))
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), changed), (text) => {
      fc.pre(![one, two, token].includes(text))
      expect(opened.ring.clientOf(text)).toBeNull()
    }),
  )
})

describe('a file of keys', () => {
  it('is read again when it changes, and names the clients whose keys are gone', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'stocktape-keys-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'keys')
    writeFileSync(file, `# people\n${one} clients=7 # of one\n\n${two}\n`)
    const onRevoked = vi.fn()
    const { ring, log } = ringOf(zero, { apiKeysFile: file, onRevoked })
    await vi.waitUntil(() => ring.clientOf(two) !== null)
    const client = ring.clientOf(one) ?? ''
    expect([ring.limitsOf(client), ring.maxClients]).toEqual([{ clients: 7 }, 7])
    writeFileSync(file, `${two}\n${three}\n`)
    await vi.waitUntil(() => ring.clientOf(three) !== null)
    expect([zero, one, two].map((key) => ring.clientOf(key) !== null)).toEqual([true, false, true])
    expect(onRevoked.mock.calls).toEqual([[new Set([client])]])
    writeFileSync(file, `# people\n${one} SECRET\n`)
    await vi.waitUntil(() => log.mock.calls.length > 2)
    expect(log.mock.calls).toEqual([
      ['api_keys_read', { keys: 3, removed: 0 }],
      ['api_keys_read', { keys: 3, removed: 1 }],
      ['api_keys_unreadable', { reason: expect.any(String) }],
    ])
    expect(ring.clientOf(two)).not.toBeNull()
    expect(JSON.stringify(log.mock.calls)).not.toContain('SECRET')
    expect(JSON.stringify(log.mock.calls)).toContain('line 2 may have')
  })
})
