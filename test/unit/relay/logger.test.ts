import { describe, expect, it } from 'vitest'
import { type LogKind, logLines, type WriteLine } from '../../../src/relay/log-lines.ts'
import { openLog } from '../../../src/relay/logger.ts'

const open = (settings: Partial<Parameters<typeof openLog>[0]> = {}) => {
  const clock = { now: 0 }
  const [lines, levels] = [[] as string[], [] as string[]]
  const log = openLog({
    ...{ level: 'info', format: 'json', now: () => clock.now, write: (line) => lines.push(line) },
    ...{ onLine: (level) => levels.push(level), ...settings },
  })
  return { log, lines, levels, clock }
}

it.each<[Parameters<WriteLine>, string]>([
  [
    ['link_down', { reason: 'closed with 1006', endpoint: 'a' }],
    'WARN  the socket to the node is closed, and is opened again later: closed with 1006 {"endpoint":"a"}\n',
  ],
  [
    ['link_down', { begins: '\u202eA\u009b2J\u001b\u007f' }],
    'WARN  the socket to the node is closed, and is opened again later {"begins":"\\u202eA\\u009b2J\\u001b\\u007f"}\n',
  ],
  [
    ['link_down', { reason: 'a\n12:00 INFO "all is well"\u009b' }],
    'WARN  the socket to the node is closed, and is opened again later: a\\n12:00 INFO \\"all is well\\"\\u009b\n',
  ],
  [['leads'], 'INFO  this ingester leads: it writes the tape\n'],
  [['tape_unflushed', {}], `ERROR ${logLines.tape_unflushed.sentence}\n`],
])('a line of the log is readable on a terminal: %j', (line, readable) => {
  const { log, lines } = open({ format: 'text' })
  log(...line)
  expect(lines.map((text) => text.replace(/^\d\d:\d\d:\d\d\.\d{3} /, ''))).toEqual([readable])
})

describe('a line in JSON', () => {
  it('has the level as a word, a kind for programs, a sentence, and a detail that adds no line', () => {
    const { log, lines, levels } = open()
    log('nats_refuses', { reason: 'full\n{"level":"info"}' })
    log('failed', new Error('planted'))
    log('client_connected', { transport: 'ws' })
    expect(lines.map((line) => line.indexOf('\n') === line.length - 1)).toEqual([true, true])
    const detail = { reason: 'full\n{"level":"info"}' }
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'error', time: expect.any(String), kind: 'nats_refuses', msg: 'NATS does not store the tape', detail },
      { level: 'fatal', kind: 'failed', err: { message: 'planted', stack: expect.stringContaining('logger.test') } },
    ])
    expect(levels).toEqual(['error', 'fatal'])
  })

  it('that a condition repeats is written once a minute, and one for an event each time', () => {
    const { log, lines, clock } = open()
    const kinds: readonly LogKind[] = ['nats_lost', 'link_down', 'nats_back']
    for (const at of [0, 59_999, 60_000]) {
      clock.now = at
      for (const kind of kinds) log(kind)
    }
    const written = lines.map((line) => JSON.parse(line)).map(({ kind, more_since_last = 0 }) => `${kind} ${more_since_last}`)
    expect(written).toEqual([
      ...['nats_lost 0', 'link_down 0', 'nats_back 0', 'nats_lost 0', 'nats_back 0'],
      ...['nats_lost 0', 'link_down 1', 'nats_back 0'],
    ])
  })

  it('that a condition repeats is written for each endpoint, stage and subscription', () => {
    const { log, lines } = open()
    const details = [
      { endpoint: 'a', error: 'busy' },
      { endpoint: 'a', error: 'unreachable' },
      { endpoint: 'b', error: 'busy' },
      { endpoint: 'a', error: 'busy', reason: 'another' },
    ]
    for (const detail of details) log('upstream_failed', detail)
    for (const subscription of ['newHeads', 'pendingLogs', 'newHeads']) log('subscription_refused', { subscription })
    for (const stage of ['safe', 'finalized', 'safe']) log('no_finality', { stage })
    expect(lines.map((line) => JSON.parse(line).detail)).toEqual([
      ...details.slice(0, 3),
      ...['newHeads', 'pendingLogs'].map((subscription) => ({ subscription })),
      ...['safe', 'finalized'].map((stage) => ({ stage })),
    ])
  })
})
