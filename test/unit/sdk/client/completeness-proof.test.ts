import { describe, expect, it } from 'vitest'
import { type ChainedMessage, CompletenessProof, gapOf } from '../../../../src/sdk/client/completeness-proof.ts'
import { comparePositions } from '../../../../src/sdk/client/position-order.ts'
import { nav } from './fake-relay.ts'

const message = (id: string, prev: string | null, type = 'nav', address: string | null = '0xa'): ChainedMessage => ({
  ...{ id, prev, type, address },
})

const detector = (query = 'symbols=*', start = 'e.10') => {
  const losses = new CompletenessProof(new URLSearchParams(query))
  losses.startConnection(start)
  losses.receiveLive(0, start)
  return losses
}

/** The range of the loss that is found before a message, if any. */
function lossBefore(losses: CompletenessProof, received: ChainedMessage): string | null {
  if (losses.isRepeat(received, null)) return 'repeat'
  const loss = losses.receive(received)
  return loss && `(${loss.after}, ${loss.through}]`
}

const lossAt = (losses: CompletenessProof, sent: number, position: string): string | null => {
  const loss = losses.receiveCount(sent, position)
  return loss && `(${loss.after}, ${loss.through}]`
}

describe('the chain of prev', () => {
  it.each<[string, string, readonly ChainedMessage[], string | null]>([
    ['begins with null', '', [message('e.11', null)], null],
    ['begins before the start', '', [message('e.11', 'e.9')], null],
    ['begins at the start', '', [message('e.11', 'e.10')], null],
    ['begins after the start', '', [message('e.12', 'e.11')], '(e.10, e.11]'],
    ['goes on', '', [message('e.11', null), message('e.12', 'e.11')], null],
    ['has a hole', '', [message('e.11', null), message('e.15', 'e.13')], '(e.11, e.13]'],
    [
      'goes on before a message that the tape has lost',
      '',
      [message('e.11', null), message('e.13', 'e.11'), message('e.20', 'e.11')],
      null,
    ],
    [
      'has a hole after a message that the tape has lost',
      '',
      [message('e.11', null), message('e.13', 'e.11'), message('e.20', 'e.11'), message('e.22', 'e.21')],
      '(e.20, e.21]',
    ],
    ['is one for each type', '', [message('e.11', null), message('e.12', null, 'seal')], null],
    ['is one for each address', '', [message('e.11', null), message('e.12', null, 'nav', '0xb')], null],
    [
      'is one for all tokens',
      '',
      [message('e.11', 'e.9', 'session', null), message('e.13', 'e.12', 'session', null)],
      '(e.11, e.12]',
    ],
    ['proves a seal that comes by default', '', [message('e.12', 'e.11', 'seal')], '(e.10, e.11]'],
    ['proves a seal that is named', '&types=nav,seal', [message('e.12', 'e.11', 'seal')], '(e.10, e.11]'],
    ['proves a seal where all are named', '&types=*', [message('e.12', 'e.11', 'seal')], '(e.10, e.11]'],
    ...['seal', 'retract', 'amend'].map((type): [string, string, ChainedMessage[], null] => [
      `does not prove a ${type} that is not named`,
      '&types=nav',
      [message('e.12', 'e.11', type)],
      null,
    ]),
    ...['&min_value=1', '&min_shares=1', '&account=0x1', '&stage=sealed'].map(
      (filter): [string, string, ChainedMessage[], null] => [
        `does not hold with ${filter}`,
        filter,
        [message('e.12', 'e.11')],
        null,
      ],
    ),
  ])('%s', (_, query, messages, expected) => {
    const losses = detector(`symbols=*${query}`)
    expect(messages.map((each) => lossBefore(losses, each)).at(-1)).toBe(expected)
  })

  it('is asked of the history by address and type', () => {
    const losses = detector()
    losses.receive(message('e.11', null))
    const loss = losses.receive(message('e.15', 'e.13'))
    expect(loss && gapOf(loss, 'e.15').backfill).toBe('/v1/events?symbols=0xa&types=nav&after=e.11&through=e.13')
  })

  it('knows what it reported when the next connection repeats it, and nothing else before the newest id', () => {
    const losses = detector()
    expect(lossBefore(losses, message('e.15', 'e.13'))).toBe('(e.10, e.13]')
    expect(lossBefore(losses, message('e.17', 'e.15'))).toBeNull()
    losses.startConnection('e.10')
    const repeated = [message('e.13', 'e.10'), message('e.15', 'e.13'), message('e.16', 'e.10'), message('e.17', 'e.15')]
    expect(repeated.map((one) => losses.isRepeat(one, 'e.17'))).toEqual([true, true, false, true])
  })
})

describe('the number of messages', () => {
  it.each(['symbols=*', 'symbols=*&min_value=1', 'symbols=*&stage=sealed'])('proves all or reports a loss once: %s', (query) => {
    const losses = detector(query)
    losses.isRepeat(message('e.11', null), 'e.10')
    losses.receive(message('e.11', null))
    expect(lossAt(losses, 1, 'e.15')).toBeNull()
    expect(lossAt(losses, 2, 'e.20')).toBe('(e.15, e.20]')
    expect(lossAt(losses, 2, 'e.25')).toBeNull()
    expect(lossAt(losses, 4, 'e.30')).toBe('(e.25, e.30]')
  })

  it('does not report again what the chain has shown', () => {
    const losses = detector()
    expect(lossBefore(losses, message('e.12', 'e.11'))).toBe('(e.10, e.11]')
    expect(lossAt(losses, 2, 'e.15')).toBeNull()
  })

  it('is not deceived by a loss that both have shown: another one beside it is reported', () => {
    const losses = detector()
    // e.11 is lost, and the heartbeat says so before the chain does.
    expect(lossAt(losses, 1, 'e.12')).toBe('(e.10, e.12]')
    expect(lossBefore(losses, message('e.13', 'e.11'))).toBe('(e.10, e.11]')
    // e.14, of another token, is lost too.
    expect(lossAt(losses, 3, 'e.15')).toBe('(e.12, e.15]')
  })

  it('reports a loss beside a chain that goes on before a message that the tape has lost', () => {
    const losses = detector()
    lossBefore(losses, message('e.11', null))
    lossBefore(losses, message('e.13', 'e.11'))
    expect(lossBefore(losses, message('e.20', 'e.11'))).toBeNull()
    // e.21, of another token, is lost on the way.
    expect(lossAt(losses, 4, 'e.21')).toBe('(e.10, e.21]')
  })

  it('begins anew with each connection', () => {
    const losses = detector()
    lossBefore(losses, message('e.11', null))
    losses.startConnection('e.11')
    expect(losses.receiveLive(0, 'e.11')).toBeNull()
    expect(lossBefore(losses, message('e.12', 'e.11'))).toBeNull()
    expect(lossAt(losses, 1, 'e.12')).toBeNull()
    expect(lossAt(losses, 2, 'e.14')).toBe('(e.12, e.14]')
  })

  it('of a replay counts once, also where a gap in the middle is followed by another replay', () => {
    const losses = detector()
    lossBefore(losses, message('e.11', null))
    losses.restart('e.11', 'e.20')
    lossBefore(losses, message('e.21', 'e.15'))
    expect(losses.receiveLive(1, 'e.21')).toBeNull()
    expect(lossAt(losses, 2, 'e.21')).toBeNull()
  })

  it('of a replay that lacks a repetition shows a loss on the way, not on the tape', () => {
    const losses = detector('symbols=*&min_value=1')
    losses.receive(message('e.11', null))
    losses.startConnection('e.10')
    expect(losses.receiveLive(1, 'e.11')?.query).not.toBeNull()
    // What was received since the last proof is a repetition.
    expect([message('e.11', null), message('e.12', null)].map((one) => losses.isRepeat(one, 'e.13'))).toEqual([true, false])
  })

  it.each([
    ['a second gap that goes on at the first one', 'e.43', '(e.83, e.90]'],
    ['a gap in the middle, before which all was lost', 'e.51', '(e.43, e.90]'],
  ])('begins where nothing is proven behind %s', (_, from, range) => {
    const losses = detector('symbols=*&stage=sealed')
    losses.startConnection(null)
    losses.restart('e.11', 'e.43')
    losses.restart(from, 'e.83')
    const loss = losses.receiveLive(1, 'e.90')
    expect(loss && `(${loss.after}, ${loss.through}]`).toBe(range)
  })
})

it.each(['symbols=*', 'symbols=*&min_value=1', 'symbols=*&stage=sealed'])('resumes where the last heartbeat was: %s', (query) => {
  const losses = detector(query)
  losses.receive(nav('e.11', null))
  losses.receiveCount(1, 'e.12')
  losses.receive(nav('e.13', 'e.11'))
  expect(losses.resumeFrom('e.13')).toBe('e.12')
})

it('resumes at the newest message where too many came since the last heartbeat', () => {
  const losses = detector()
  for (let seq = 11; seq < 100_200; seq += 1) losses.receive(nav(`e.${seq}`, null))
  expect(losses.resumeFrom('e.100199')).toBe('e.100199')
  losses.receiveCount(100_189, 'e.100199')
  expect(losses.resumeFrom('e.100200')).toBe('e.100199')
})

it('forgets chains, not their order, beyond its bound', () => {
  const losses = detector()
  for (let seq = 11; seq < 100_200; seq += 1) losses.receive(message(`e.${seq}`, null, 'nav', `0x${seq}`))
  expect(losses.receive(message('e.200000', 'e.100100', 'nav', '0x100100'))).toBeNull()
  expect(losses.receive(message('e.200002', 'e.200001', 'nav', '0x100100'))).not.toBeNull()
})

it.each([
  ['e.1', 'e.1', 0],
  ['e.9', 'e.10', -1],
  ['e.10', 'e.9', 1],
  ['e.5.1', 'e.5', -1],
  ['e.5.9', 'e.5.10', -1],
  ['e.5.1', 'e.4', 1],
  ['e.5.2', 'e.5.2', 0],
  ['e.1', 'd.1', null],
] as const)('the position %s beside %s', (a, b, order) => {
  expect(comparePositions(a, b)).toBe(order)
})
