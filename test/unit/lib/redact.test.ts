import { describe, expect, it } from 'vitest'
import { createRedactor } from '../../../src/lib/redact.ts'

describe('an upstream URL in a text', () => {
  it.each([
    ['its URL', 'https://rpc.example.org/v2/k-1234567', 'cannot reach https://rpc.example.org/v2/k-1234567 now'],
    ['its URL as it is normalised', 'HTTPS://RPC.example.org', 'cannot reach https://rpc.example.org/ now'],
    ['its URL as it is configured', 'HTTPS://RPC.Example.org', 'cannot reach HTTPS://RPC.Example.org now'],
    ['its host', 'https://rpc.example.org/v2', 'lookup rpc.example.org: no such host'],
    ['its host and port', 'ws://10.1.2.3:8546/', 'connect ECONNREFUSED 10.1.2.3:8546'],
    ['its host without the port', 'ws://10.1.2.3:8546/', 'no route to 10.1.2.3'],
    ['a key in its path', 'https://rpc.example.org/v2/k-1234567', 'key k-1234567 has no credits'],
    ['a key in its query', 'https://rpc.example.org/?apikey=k-1234567&x=1', 'key k-1234567 has no credits'],
    ['a key of eight characters', 'https://rpc.example.org/k-123456', 'key k-123456 has no credits'],
    ['a password of four', 'https://u:k-12@rpc.example.org/', 'wrong: k-12'],
    ['its user', 'https://operator:pass-word@rpc.example.org/', 'operator may not do this'],
    ['its password', 'https://operator:pass-word@rpc.example.org/', 'wrong: pass-word'],
    ['a key that is escaped', 'https://rpc.example.org/k%2F123%3D456', 'key k%2F123%3D456 has no credits'],
    ['a key that is escaped in the URL alone', 'https://rpc.example.org/k%2F123%3D456', 'key k/123=456 has no credits'],
    ['a key with a lone %', 'https://rpc.example.org/100%-secret', 'key 100%-secret has no credits'],
    ['a key in other letters', 'https://rpc.example.org/k-1234567', 'key K-1234567 has no credits'],
    ['a key that is encoded twice', 'https://rpc.example.org/?k=k/123%3D456', 'key k%252f123%253D456 has no credits'],
    ['a key that is wholly encoded', 'https://rpc.example.org/k-1234567', 'key %6b%2D%31234567 has no credits'],
    ['a key that is escaped as in JSON', 'https://rpc.example.org/k-1234567', 'key \\u006b-\\u00312\\u00334567 has no credits'],
    ['a URL with escaped slashes', 'https://rpc.example.org/k-1234567', 'cannot reach https:\\/\\/rpc.example.org\\/k-1234567 now'],
    ['a key that is escaped as in HTML', 'https://rpc.example.org/k-1234567', 'key &#107;-&#x31;234567 has no credits'],
    ['the login that is sent', 'https://operator:pass-word@rpc.example.org/', 'bad Basic b3BlcmF0b3I6cGFzcy13b3Jk now'],
    ['the login in another alphabet', 'https://o:p%3E%3F%7E~@rpc.example.org/', 'bad Basic bzpwPj9-fg now'],
    ['the login with padding', 'https://o:p%3E%3F%7E~@rpc.example.org/', 'bad Basic bzpwPj9+fg== now'],
    ['a key that stands twice', 'https://rpc.example.org/k-1234567', 'k-1234567, again k-1234567'],
  ])('is redacted: %s', (_, url, text) => {
    const hidden = createRedactor([url])(text)
    expect(hidden).toContain('…')
    expect(hidden).not.toMatch(/rpc\.example|10\.1\.2\.3|854|k-12|123.*456|operator|pass-word|100%|b3Blc|bzpwP|u006b/i)
    for (const word of ['cannot reach', 'now', 'has no credits', 'no such host', 'again'])
      expect(hidden.includes(word)).toBe(text.includes(word))
  })

  it('is redacted as a whole before its parts', () => {
    const hide = createRedactor(['https://rpc.example.org/v2/k-1234567', 'https://rpc.example.org/v2/k-1234567-longer'])
    expect(hide('at https://rpc.example.org/v2/k-1234567-longer: k-1234567-longer')).toBe('at …: …')
  })

  it('is looked for once in a long run of escapes', () => {
    const hide = createRedactor(['https://operator:pass-word@rpc.example.org/v2/k-1234567'])
    const runs = ['\\', '%25', '&#x0', '\\u0'].map((sign) => sign.repeat(20_000)).join(' ')
    const startedAt = performance.now()
    expect(hide(`${runs} k-1234567`)).toBe(`${runs} …`)
    // Quadratic time would be some ten seconds.
    expect(performance.now() - startedAt).toBeLessThan(1_000)
  })

  it('takes no ordinary words with it', () => {
    const hide = createRedactor(['https://rpc.example.org/v2/rpc/base?x=1'])
    const text = 'rpc v2 of base has no block x=1, it said: execution reverted'
    expect(hide(text)).toBe(text)
  })
})
