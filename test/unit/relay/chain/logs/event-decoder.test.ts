import { describe, expect, it } from 'vitest'
import { decodeLog } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import { type Log, parseLogs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { alice, bob, pendingLog, word, words } from '../node-json.ts'
import { decodedEvents, topicOf, undecodedEvents } from './standard-events.ts'

/** A log with these topics and this data. */
const logOf = (topics: readonly string[], data: string): Log => {
  const [log] = parseLogs({ ...pendingLog({ block: 5 }), topics, data }).logs
  if (!log) throw new Error('no log')
  return log
}
const TRANSFER = topicOf('Transfer')

describe('a log', () => {
  it.each(decodedEvents)('of %s is decoded exactly', (_, name, indexed, data, expected) => {
    expect(decodeLog(logOf([name, ...indexed], data))).toEqual(expected)
  })

  it.each(undecodedEvents)('of %s is not decoded', (_, name, indexed, data) => {
    expect(decodeLog(logOf([name, ...indexed], data))).toEqual({ event: 'other' })
  })

  it.each(decodedEvents)('of %s in another layout is other', (_, name, indexed, data) => {
    const less = data === '0x' ? word(7) : data.slice(0, -64)
    const spoilt = [logOf([name, ...indexed], less)]
    if (indexed.length > 0) spoilt.push(logOf([name, ...indexed.slice(1)], data))
    if (indexed.length < 3) spoilt.push(logOf([name, ...indexed, word(7)], data))
    expect(spoilt.map(decodeLog)).toEqual(spoilt.map(() => ({ event: 'other' })))
  })

  it('has addresses in lower case and exact amounts', () => {
    const mixed = '0xB200000000000000000000C2E324D24D7EECD1FB'
    const topics = [TRANSFER, `0x${mixed.slice(2).padStart(64, '0')}`, word(bob)]
    expect(decodeLog(logOf(topics, `0x${'f'.repeat(64)}`))).toEqual({
      event: 'Transfer',
      from: mixed.toLowerCase(),
      to: bob,
      amount: 2n ** 256n - 1n,
    })
  })

  it('may transfer nothing, to its sender', () => {
    expect(decodeLog(logOf([TRANSFER, word(bob), word(bob)], word(0)))).toEqual({
      event: 'Transfer',
      from: bob,
      to: bob,
      amount: 0n,
    })
  })

  it.each<[string, readonly string[], string]>([
    ['no topics', [], '0x'],
    ['a third indexed value, as NFTs have', [TRANSFER, word(alice), word(bob), word(1)], '0x'],
    ['an address with extra bytes', [TRANSFER, `0x01${word(alice).slice(4)}`, word(bob)], word(1)],
    ['an extra word', [TRANSFER, word(alice), word(bob)], words(1, 2)],
    ['cut data', [TRANSFER, word(alice), word(bob)], '0x1234'],
    ['an unknown topic', [word(1), word(alice), word(bob)], word(1)],
  ])('is other with %s', (_, topics, data) => {
    expect(decodeLog(logOf(topics, data))).toEqual({ event: 'other' })
  })

  it('may have a negative price', () => {
    expect(decodeLog(logOf([topicOf('AnswerUpdated'), `0x${'f'.repeat(64)}`, word(1)], word(2)))).toMatchObject({ answer: -1n })
  })

  it('may pause nothing', () => {
    expect(decodeLog(logOf([topicOf('Paused'), word(alice)], words(0x20, 0)))).toEqual({ event: 'Paused', features: [] })
  })
})
