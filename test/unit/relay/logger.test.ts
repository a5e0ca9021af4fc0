import { expect, it } from 'vitest'
import { readableLine } from '../../../src/relay/logger.ts'

it.each([
  [
    {
      level: 40,
      time: '2026-11-24T12:53:19.203Z',
      kind: 'link down',
      detail: { reason: 'no' },
      more_since_last: 2,
      msg: 'link down',
    },
    '12:53:19.203 WARN  link down {"reason":"no","more_since_last":2}\n',
  ],
  [
    { level: 40, time: '2026-11-24T12:53:19.203Z', msg: 'unreadable', detail: { begins: '\u202eA\u009b2J\u001b\u007f' } },
    '12:53:19.203 WARN  unreadable {"begins":"\\u202eA\\u009b2J\\u001b\\u007f"}\n',
  ],
  [{ level: 30, time: '2026-11-24T12:53:19.203Z', msg: 'ready' }, '12:53:19.203 INFO  ready\n'],
  [
    { level: 60, time: '2026-11-24T12:53:19.203Z', err: { type: 'Error' }, msg: 'over' },
    '12:53:19.203 FATAL over {"err":{"type":"Error"}}\n',
  ],
])('a line of the log is readable on a terminal: %j', (line, readable) => {
  expect(readableLine(JSON.stringify(line))).toBe(readable)
})
