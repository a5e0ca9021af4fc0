import { expect, it } from 'vitest'
import { mergeMetrics } from '../../../src/workers/merge-metrics.ts'

it('metrics of several processes are added up, series by series, under one set of comments', () => {
  const textOf = (ws: number, bucket: number) =>
    [
      '# HELP listeners Listeners connected now',
      '# TYPE listeners gauge',
      `listeners{carrier="ws"} ${ws}`,
      `listeners{carrier="a name"} 1.5`,
      '',
      '# HELP delay_seconds Delay',
      '# TYPE delay_seconds histogram',
      `delay_seconds_bucket{le="+Inf"} ${bucket}`,
      `delay_seconds_count ${bucket}`,
      '',
    ].join('\n')
  const only = '# HELP updates Updates\n# TYPE updates counter\nupdates 7\n'
  expect(
    mergeMetrics([textOf(2, 10), only, textOf(3, 1), ''])
      .trim()
      .split('\n'),
  ).toEqual([
    '# HELP listeners Listeners connected now',
    '# TYPE listeners gauge',
    'listeners{carrier="ws"} 5',
    'listeners{carrier="a name"} 3',
    '',
    '# HELP delay_seconds Delay',
    '# TYPE delay_seconds histogram',
    'delay_seconds_bucket{le="+Inf"} 11',
    'delay_seconds_count 11',
    '',
    '# HELP updates Updates',
    '# TYPE updates counter',
    'updates 7',
  ])
})
