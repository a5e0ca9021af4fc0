import { describe, expect, it } from 'vitest'
import { tesla } from '../node-json.ts'
import {
  announcement,
  atAddress,
  endAnnouncement,
  foldLogs,
  inTx,
  type LogContent,
  memo,
  multiplierUpdated,
  paused,
  transfer,
  uiMultiplierUpdateCancelled,
  uiMultiplierUpdated,
} from './fold-fixture.ts'
import { topicOf } from './standard-events.ts'

describe('two tokens in one transaction', () => {
  it('are folded separately, even if their logs alternate', () => {
    const other = (content: LogContent) => atAddress(tesla, content)
    expect(
      foldLogs(
        announcement('a'),
        other(announcement('a')),
        multiplierUpdated(2),
        other(paused),
        uiMultiplierUpdated(2),
        other(endAnnouncement('a')),
        endAnnouncement('a'),
      ),
    ).toEqual({
      decodedLogs: ['0 Announcement, closed around 4', '1 Announcement, closed around 3', '3 Paused', '4 UIMultiplierUpdated'],
      folded: [2, 5, 6],
    })
  })
})

describe('an announcement', () => {
  it('encloses the decoded logs before its end, without the folded ones', () => {
    expect(
      foldLogs(
        announcement('a'),
        uiMultiplierUpdateCancelled,
        multiplierUpdated(2),
        uiMultiplierUpdated(2),
        paused,
        transfer(),
        memo(7),
        endAnnouncement('a'),
        transfer(),
      ),
    ).toEqual({
      decodedLogs: [
        '0 Announcement, closed around 1,3,4,5',
        '1 UIMultiplierUpdateCancelled',
        '3 UIMultiplierUpdated',
        '4 Paused',
        '5 Transfer, memo 7',
        '8 Transfer',
      ],
      folded: [2, 6, 7],
    })
  })

  it('may enclose nothing', () => {
    expect(foldLogs(announcement('a'), endAnnouncement('a'))).toEqual({
      decodedLogs: ['0 Announcement, closed around '],
      folded: [1],
    })
  })

  it('may enclose another', () => {
    expect(foldLogs(announcement('a'), announcement('b'), paused, endAnnouncement('b'), endAnnouncement('a'))).toEqual({
      decodedLogs: ['0 Announcement, closed around 1,2', '1 Announcement, closed around 2', '2 Paused'],
      folded: [3, 4],
    })
  })

  it('may overlap another', () => {
    expect(
      foldLogs(announcement('a'), announcement('b'), paused, endAnnouncement('a'), transfer(), endAnnouncement('b')).decodedLogs,
    ).toEqual(['0 Announcement, closed around 1,2', '1 Announcement, closed around 2,4', '2 Paused', '4 Transfer'])
  })

  it('with an id that occurs twice ends with the nearest end', () => {
    expect(foldLogs(announcement('a'), endAnnouncement('a'), announcement('a'), paused, endAnnouncement('a')).decodedLogs).toEqual([
      '0 Announcement, closed around ',
      '2 Announcement, closed around 3',
      '3 Paused',
    ])
    expect(foldLogs(announcement('a'), announcement('a'), paused, endAnnouncement('a')).decodedLogs).toEqual([
      '0 Announcement',
      '1 Announcement, closed around 2',
      '2 Paused',
    ])
  })

  it('with a truncated id is still closed', () => {
    const long = 'x'.repeat(3_000)
    expect(foldLogs(announcement(long), endAnnouncement(long)).folded).toEqual([1])
  })

  it.each<[string, readonly LogContent[]]>([
    ['no end', [announcement('a'), paused]],
    ['the end of another', [announcement('a'), endAnnouncement('b')]],
    ['an end before it', [endAnnouncement('a'), announcement('a')]],
    ['the end of another token', [announcement('a'), atAddress(tesla, endAnnouncement('a'))]],
    ['the end of another transaction', [announcement('a'), inTx(1, endAnnouncement('a'))]],
  ])('with %s stays open, and the end is its own log', (_, contents) => {
    const { decodedLogs, folded } = foldLogs(...contents)
    expect(decodedLogs).toContain(`${contents.findIndex((content) => content.topics[0] === topicOf('Announcement'))} Announcement`)
    expect(decodedLogs).toHaveLength(2)
    expect(folded).toEqual([])
  })

  it('stays open when too many others are open inside it', () => {
    const ids = Array.from({ length: 17 }, (_, at) => `id-${at}`)
    const { decodedLogs } = foldLogs(...ids.map(announcement), ...ids.toReversed().map(endAnnouncement))
    expect(decodedLogs[0]).toBe('0 Announcement')
    expect(decodedLogs[1]).toMatch(/^1 Announcement, closed around 2,3,/)
    expect(decodedLogs.at(-1)).toBe('33 EndAnnouncement')
  })
})
