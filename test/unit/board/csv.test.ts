import { expect, it } from 'vitest'
import { csvOf } from '../../../src/board/shared/csv.ts'

it.each([
  [null, ''],
  [7.5, '7.5'],
  ['-7.5', '-7.5'],
  ['a, "b"', '"a, ""b"""'],
  ['two\nlines', '"two\nlines"'],
  ['=HYPERLINK("x")', '"\'=HYPERLINK(""x"")"'],
  ['+1', "'+1"],
  ['@cmd', "'@cmd"],
  ['-1+2', "'-1+2"],
])('the value %s is %s in CSV', (value, cell) => {
  expect(csvOf(['name'], [[value]])).toBe(`name\r\n${cell}\r\n`)
})
