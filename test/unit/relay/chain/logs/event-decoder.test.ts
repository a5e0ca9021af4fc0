import { describe, expect, it } from 'vitest'
import { decodeLog } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import { parseLogs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { alice, bob, pendingLog, stringData, word, words } from '../node-json.ts'
import { decodedEvents, topicOf } from './standard-events.ts'

const decode = (topics: readonly string[], data: string) => {
  const [log] = parseLogs({ ...pendingLog({ block: 5 }), topics, data }).logs
  return decodeLog(log ?? expect.unreachable('no log'))
}
const paused = (data: string) => decode([topicOf('Paused'), word(alice)], data)
const announced = (data: string) => decode([topicOf('Announcement'), word(alice)], data)
const named = (name: string) => {
  const decoded = decode([topicOf('NameUpdated'), word(alice)], stringData(name))
  return decoded.event === 'NameUpdated' ? decoded.name : null
}

const TRANSFER = topicOf('Transfer')
const OTHER = { event: 'other' }
const FAR = 2n ** 255n
const MEBIBYTE = `0x${'ff'.repeat(2 ** 20)}`

describe('a log', () => {
  it.each(decodedEvents)('of %s is decoded exactly', (_, name, indexed, data, expected) => {
    expect(decode([name, ...indexed], data)).toEqual(expected)
  })

  it.each(decodedEvents)('of %s in another layout is other', (_, name, indexed, data) => {
    const less = data === '0x' ? word(7) : data.slice(0, -64)
    expect(decode([name, ...indexed], less)).toEqual(OTHER)
    if (indexed.length > 0) expect(decode([name, ...indexed.slice(1)], data)).toEqual(OTHER)
    if (indexed.length < 3) expect(decode([name, ...indexed, word(7)], data)).toEqual(OTHER)
  })

  it('has addresses in lower case and exact amounts', () => {
    const mixed = '0xB200000000000000000000C2E324D24D7EECD1FB'
    const expected = { event: 'Transfer', from: mixed.toLowerCase(), to: bob, amount: 2n ** 256n - 1n }
    expect(decode([TRANSFER, `0x${mixed.slice(2).padStart(64, '0')}`, word(bob)], `0x${'f'.repeat(64)}`)).toEqual(expected)
  })

  it('may transfer nothing, to its sender', () => {
    const expected = { event: 'Transfer', from: bob, to: bob, amount: 0n }
    expect(decode([TRANSFER, word(bob), word(bob)], word(0))).toEqual(expected)
  })

  it.each<[string, readonly string[], string]>([
    ['no topics', [], '0x'],
    ['an address with extra bytes', [TRANSFER, `0x01${word(alice).slice(4)}`, word(bob)], word(1)],
    ['an unknown topic', [word(1), word(alice), word(bob)], word(1)],
  ])('is other with %s', (_, topics, data) => {
    expect(decode(topics, data)).toEqual({ event: 'other' })
  })

  it('may have a negative price', () => {
    expect(decode([topicOf('AnswerUpdated'), `0x${'f'.repeat(64)}`, word(1)], word(2))).toMatchObject({ answer: -1n })
  })

  it('may pause nothing, or every feature', () => {
    const every = Array.from({ length: 256 }, (_, feature) => feature)
    expect(paused(words(0x20, 0))).toEqual({ event: 'Paused', features: [] })
    expect(paused(words(0x20, 256, ...every))).toEqual({ event: 'Paused', features: every })
  })
})

describe('text from a contract', () => {
  it('is cut at its bound', () => {
    const long = 'x'.repeat(3_000)
    const cut = (characters: number) => 'x'.repeat(characters)
    const announcement = { event: 'Announcement', id: cut(256), description: cut(2_048), uri: cut(2_048) }
    expect(announced(stringData(long, long, long))).toEqual(announcement)
    const metadata = { event: 'ExtraMetadataUpdated', name: cut(256), value: cut(2_048) }
    expect(decode([topicOf('ExtraMetadataUpdated')], stringData(long, long))).toEqual(metadata)
    for (const text of [long, cut(128)]) expect(named(text)).toBe(cut(128))
    expect(decode([topicOf('SymbolUpdated'), word(alice)], stringData(long))).toEqual({ event: 'SymbolUpdated', symbol: cut(128) })
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
    const name = decode([topicOf('NameUpdated'), word(alice)], `${words(0x20, 5)}${'ff4180eda0'.padEnd(64, '0')}`)
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

  it.each<[string, string]>([
    ['an offset beyond its end', words(0x60, 0x60, 0x80)],
    ['a length beyond its end', words(0x60, 0x60, 0x60, 1)],
    ['a length beyond all numbers', words(0x60, 0x60, 0x60, FAR)],
    ['a mebibyte of data', MEBIBYTE],
    ['a string longer than the bound', stringData('id', 'x'.repeat(64 * 1_024), '')],
  ])('with %s instead of strings is other', (_, data) => {
    expect(announced(data)).toEqual(OTHER)
  })

  it('may use the same bytes for three strings', () => {
    const same = { event: 'Announcement', id: 'a', description: 'a', uri: 'a' }
    expect(announced(`${words(0x60, 0x60, 0x60, 1)}61${'00'.repeat(31)}`)).toEqual(same)
  })
})
