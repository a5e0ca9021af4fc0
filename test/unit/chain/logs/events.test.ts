import { describe, expect, it } from 'vitest'
import { decodeLog } from '../../../../src/chain/logs/events.ts'
import { type Log, readLogs } from '../../../../src/chain/logs/log-schema.ts'
import { alice, bob, pendingLog, word, words } from '../node-json.ts'
import { decodedEvents, topicOf, undecodedEvents } from './standard-events.ts'

/** A log with these topics and this data. */
const logOf = (topics: readonly string[], data: string): Log => {
  const [log] = readLogs({ ...pendingLog({ block: 5 }), topics, data }).logs
  if (!log) throw new Error('no log')
  return log
}
const TRANSFER = topicOf('Transfer')

describe('a log', () => {
  it.each(decodedEvents)('of %s says what it is, and nothing that it is not', (_, name, indexed, data, said) => {
    expect(decodeLog(logOf([name, ...indexed], data))).toEqual(said)
  })

  it.each(undecodedEvents)('of %s is told as it comes', (_, name, indexed, data) => {
    expect(decodeLog(logOf([name, ...indexed], data))).toEqual({ event: 'other' })
  })

  it.each(decodedEvents)('of %s in another layout is something else', (_, name, indexed, data) => {
    const less = data === '0x' ? word(7) : data.slice(0, -64)
    const spoilt = [logOf([name, ...indexed], less)]
    if (indexed.length > 0) spoilt.push(logOf([name, ...indexed.slice(1)], data))
    if (indexed.length < 3) spoilt.push(logOf([name, ...indexed, word(7)], data))
    expect(spoilt.map(decodeLog)).toEqual(spoilt.map(() => ({ event: 'other' })))
  })

  it('names addresses in lower case, and amounts exactly', () => {
    const mixed = '0xB200000000000000000000C2E324D24D7EECD1FB'
    const topics = [TRANSFER, `0x${mixed.slice(2).padStart(64, '0')}`, word(bob)]
    expect(decodeLog(logOf(topics, `0x${'f'.repeat(64)}`))).toEqual({
      event: 'Transfer',
      from: mixed.toLowerCase(),
      to: bob,
      amount: 2n ** 256n - 1n,
    })
  })

  it('may move nothing, and to oneself', () => {
    expect(decodeLog(logOf([TRANSFER, word(bob), word(bob)], word(0)))).toEqual({
      event: 'Transfer',
      from: bob,
      to: bob,
      amount: 0n,
    })
  })

  it.each<[string, readonly string[], string]>([
    ['no topics', [], '0x'],
    ['a third indexed value, as tokens with an id have', [TRANSFER, word(alice), word(bob), word(1)], '0x'],
    ['an address that is longer than one', [TRANSFER, `0x01${word(alice).slice(4)}`, word(bob)], word(1)],
    ['a word too many', [TRANSFER, word(alice), word(bob)], words(1, 2)],
    ['cut data', [TRANSFER, word(alice), word(bob)], '0x1234'],
    ['a name that nobody knows', [word(1), word(alice), word(bob)], word(1)],
  ])('is something else with %s', (_, topics, data) => {
    expect(decodeLog(logOf(topics, data))).toEqual({ event: 'other' })
  })

  it('may answer with less than nothing', () => {
    expect(decodeLog(logOf([topicOf('AnswerUpdated'), `0x${'f'.repeat(64)}`, word(1)], word(2)))).toMatchObject({
      answer: -1n,
    })
  })

  it('may pause nothing', () => {
    expect(decodeLog(logOf([topicOf('Paused'), word(alice)], words(0x20, 0)))).toEqual({
      event: 'Paused',
      features: [],
    })
  })
})
