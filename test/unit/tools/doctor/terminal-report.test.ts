import { stripVTControlCharacters } from 'node:util'
import { expect, it } from 'vitest'
import type { Examination } from '../../../../src/tools/doctor/examination.ts'
import { examinationText, showProgress } from '../../../../src/tools/doctor/terminal-report.ts'
import { withColours, withoutColours } from '../../../../src/tools/terminal-colours.ts'

const examination: Examination = {
  verdict: { ok: true, source: 'poll', reason: 'refused', message: 'poll, reason refused: why', advice: 'change it' },
  findings: [
    { id: 'rpc.reach', target: 'https://one.example', state: 'ok', message: 'answers in 3 ms' },
    { id: 'rpc.block_time', target: 'https://one.example', state: 'skip', message: 'not known' },
    { id: 'rpc.reach', target: 'https://two.example', state: 'fail', message: 'no answer', advice: 'check it' },
    { id: 'list.navs', target: 'https://one.example', state: 'warn', message: '1 stale' },
  ],
}

it('an examination is one line for each finding, with a word beside the sign, and a group for each upstream', () => {
  expect(examinationText(examination, withoutColours)).toBe(`node  https://one.example
  ✓ ok   reach        answers in 3 ms
  - skip block time   not known

node  https://two.example
  ✗ fail reach        no answer
                      → check it

list  https://one.example
  ! warn navs         1 stale

the relay can run on these
  ! warn source       poll, reason refused: why
                      → change it
`)
})

it('a text from an upstream neither moves the cursor nor changes the direction', () => {
  const finding = { id: 'list.tokens', target: 'https://one.example', state: 'ok', message: 'A\u202eB\u001b[2J\n\u009bC' } as const
  const text = examinationText({ ...examination, findings: [{ ...finding, advice: '\u2067D\r' }] }, withoutColours)
  expect(text).toContain('A\ufffdB\ufffd[2J\ufffd\ufffdC\n')
  expect(text).toContain('→ \ufffdD\ufffd\n')
})

it('colours change nothing but the colours', () => {
  const coloured = examinationText(examination, withColours)
  expect(coloured).toContain('\u001b[31m✗ fail\u001b[0m')
  expect(stripVTControlCharacters(coloured)).toBe(examinationText(examination, withoutColours))
})

it('progress is shown on a terminal only, and removed at the end', () => {
  const written: string[] = []
  showProgress({ isTTY: false, write: (text) => written.push(text) }, 10_000)()
  expect(written).toEqual([])
  showProgress({ isTTY: true, write: (text) => written.push(text) }, 10_000)()
  expect(written).toEqual(['\r\u001b[Kexamining the upstreams, at most 10 s: 0 s', '\r\u001b[K'])
})
