import { describe, expect, it } from 'vitest'
import { decodeLog } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import { parseLogs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { alice, pendingLog, stringData, word, words } from '../node-json.ts'
import { topicOf } from './standard-events.ts'

const readOf = (topics: readonly string[], data: string) => {
  const [log] = parseLogs({ ...pendingLog({ block: 5 }), topics, data }).logs
  if (!log) throw new Error('no log')
  return decodeLog(log)
}
const paused = (data: string) => readOf([topicOf('Paused'), word(alice)], data)
const announced = (data: string) => readOf([topicOf('Announcement'), word(alice)], data)
const named = (name: string) => {
  const decoded = readOf([topicOf('NameUpdated'), word(alice)], stringData(name))
  return decoded.event === 'NameUpdated' ? decoded.name : null
}

const OTHER = { event: 'other' }
const FAR = 2n ** 255n
const MEBIBYTE = `0x${'ff'.repeat(2 ** 20)}`

describe('text from a contract', () => {
  it('is cut at its bound', () => {
    const long = 'x'.repeat(3_000)
    const cut = (characters: number) => 'x'.repeat(characters)
    expect(announced(stringData(long, long, long))).toEqual({
      event: 'Announcement',
      id: cut(256),
      description: cut(2_048),
      uri: cut(2_048),
    })
    expect(readOf([topicOf('ExtraMetadataUpdated')], stringData(long, long))).toEqual({
      event: 'ExtraMetadataUpdated',
      name: cut(256),
      value: cut(2_048),
    })
    expect(named(long)).toBe(cut(128))
    expect(readOf([topicOf('SymbolUpdated'), word(alice)], stringData(long))).toEqual({ event: 'SymbolUpdated', symbol: cut(128) })
  })

  it('is whole at its bound', () => {
    expect(named('x'.repeat(128))).toBe('x'.repeat(128))
  })

  it('is never cut inside a character', () => {
    expect(named(`${'x'.repeat(127)}🍏`)).toBe('x'.repeat(127))
    expect(named(`${'x'.repeat(126)}🍏🍏`)).toBe(`${'x'.repeat(126)}🍏`)
  })

  it('is otherwise unchanged', () => {
    const text = ' <b>&amp;\u0000\n\u202e ﬃ '
    expect(named(text)).toBe(text)
  })

  it('is well-formed even if its bytes are not', () => {
    const name = readOf([topicOf('NameUpdated'), word(alice)], `${words(0x20, 5)}${'ff4180eda0'.padEnd(64, '0')}`)
    expect(name).toMatchObject({ event: 'NameUpdated', name: expect.stringMatching(/^\ufffdA/) })
  })
})

describe('a hostile log', () => {
  it.each<[string, string]>([
    ['an offset beyond its end', words(0x60, 0)],
    ['an offset beyond all numbers', words(FAR, 1, 0)],
    ['a length beyond its end', words(0x20, 2, 0)],
    ['a length beyond all numbers', words(0x20, FAR, 0)],
    ['a feature that is not a uint8', words(0x20, 1, 256)],
    ['a feature beyond all numbers', words(0x20, 1, FAR)],
    ['more features than exist', words(0x20, 257, ...Array(257).fill(0))],
    ['a mebibyte of data', MEBIBYTE],
  ])('with %s instead of features is other', (_, data) => {
    expect(paused(data)).toEqual(OTHER)
  })

  it('may pause every feature', () => {
    const every = Array.from({ length: 256 }, (_, feature) => feature)
    expect(paused(words(0x20, 256, ...every))).toEqual({ event: 'Paused', features: every })
  })

  it.each<[string, string]>([
    ['an offset beyond its end', words(0x60, 0x60, 0x80)],
    ['an offset beyond all numbers', words(FAR, FAR, FAR)],
    ['a length beyond its end', words(0x60, 0x60, 0x60, 1)],
    ['a length beyond all numbers', words(0x60, 0x60, 0x60, FAR)],
    ['a mebibyte of data', MEBIBYTE],
    ['a string longer than the bound', stringData('id', 'x'.repeat(64 * 1_024), '')],
  ])('with %s instead of strings is other', (_, data) => {
    expect(announced(data)).toEqual(OTHER)
  })

  it('may use the same bytes for three strings', () => {
    expect(announced(`${words(0x60, 0x60, 0x60, 1)}61${'00'.repeat(31)}`)).toEqual({
      event: 'Announcement',
      id: 'a',
      description: 'a',
      uri: 'a',
    })
  })
})
