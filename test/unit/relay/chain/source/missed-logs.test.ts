import { describe, expect, it } from 'vitest'
import * as missedLogs from '../../../../../src/relay/chain/source/missed-logs.ts'
import { range } from '../sealed/sealed-chain-fixture.ts'

type State = { readonly missed: missedLogs.MissedLogs; readonly head: number }

/** What the steps of the table do. Numbers are of a block and of its logs. */
const actions: Readonly<Record<string, (state: State, block: number, logs: number, at: number) => missedLogs.MissedLogs>> = {
  head: ({ missed }, block) => missedLogs.afterHead(missed, block),
  'closing poll': ({ missed, head }, block) => missedLogs.afterPoll(missed, Number.isNaN(block) ? null : block, true, head),
  poll: ({ missed, head }, block) => missedLogs.afterPoll(missed, block, false, head),
  push: ({ missed }, block) => missedLogs.afterTimelyPush(missed, block),
  'late push': ({ missed }) => missedLogs.afterLatePush(missed),
  settle: ({ missed }, block, logs, at) => missedLogs.afterSettling(missed, block, logs, at),
  reorg: ({ missed, head }) => missedLogs.afterReorg(missed, head),
}

const take = (steps: string): missedLogs.MissedLogs => {
  let state: State = { missed: missedLogs.noMissedLogs, head: 0 }
  for (const step of steps.split(', ')) {
    const [, action = '', block, logs, at = 0] = /^([a-z ]+?)(?: (\d+))?(?: (\d+))?(?: at (\d+))?$/.exec(step) ?? []
    const missed = actions[action]?.(state, Number(block), Number(logs), Number(at)) ?? state.missed
    state = { missed, head: ['head', 'settle'].includes(action) ? Math.max(state.head, Number(block)) : state.head }
  }
  return state.missed
}

/** The subscription began with head 100, and the poll after it showed no logs. */
const polled = 'head 100, closing poll'

describe('missed logs', () => {
  // The steps that miss nothing, and the one after which the stream is distrusted, at once or ten seconds later.
  it.each([
    ['make a stream silent once three are of two blocks', `${polled}, settle 101 2`, 'settle 102 1', 'silent'],
    [
      'are forgotten after one timely push',
      `${polled}, settle 101 2, push 102, settle 102 5, settle 103 2`,
      'settle 104 1',
      'silent',
    ],
    ['make a stream behind that pushes late', `${polled}, late push, settle 101 2`, 'settle 102 2', 'behind'],
    ['make none behind that pushes in time again', `${polled}, late push, push 101, settle 102 2`, 'settle 103 2', 'silent'],
    [
      'are none in the block that was being built at the start, until its logs were polled',
      'head 100, settle 101 3',
      'settle 102 3',
      'later',
    ],
    [
      'are none in a block with polled logs, which may be older',
      `${polled}, poll 101, settle 101 4, settle 102 2`,
      'settle 103 1',
      'silent',
    ],
    [
      'are none in a block whose logs the closing poll shows',
      'head 100, closing poll 101, settle 101 4, settle 102 2',
      'settle 103 1',
      'silent',
    ],
    [
      'are none in a block that was sealed before the poll that closes the gap, which cannot show its logs',
      'head 100, head 101, closing poll, settle 101 4',
      'settle 102 3',
      'later',
    ],
    ['count from the first head on, not from later ones', `${polled}, head 105, settle 100 5`, 'settle 101 3', 'later'],
    [
      'are none in blocks that are settled again after a reorganisation',
      `${polled}, settle 101 0, settle 102 0, reorg, settle 101 5, settle 102 5`,
      'settle 103 3',
      'later',
    ],
    [
      'are only the additional ones of a block that is settled again',
      `${polled}, settle 101 1, settle 101 1, settle 102 1, settle 102 1`,
      'settle 102 2',
      'silent',
    ],
  ])('%s', (_, steps, last, health) => {
    expect(missedLogs.streamHealth(take(steps), 60_000)).toBe('ok')
    const missed = take(`${steps}, ${last}`)
    expect(missedLogs.streamHealth(missed, 9_999)).toBe(health === 'later' ? 'ok' : health)
    expect(missedLogs.streamHealth(missed, 10_000)).toBe(health === 'later' ? 'silent' : health)
  })

  it('make a stream silent ten seconds after the first if all are of one block', () => {
    const missed = take(`${polled}, settle 101 2 at 1000, settle 101 3 at 5000`)
    expect([10_999, 11_000].map((at) => missedLogs.streamHealth(missed, at))).toEqual(['ok', 'silent'])
  })

  it('are remembered from the first head on, of a few blocks alone, and none in a quiet market', () => {
    const settleMany = (logs: number) =>
      `${polled}, ${range(101, 1_000)
        .map((block) => `settle ${block} ${logs}`)
        .join(', ')}`
    expect(take('settle 101 3')).toBe(missedLogs.noMissedLogs)
    expect([0, 1].map((logs) => take(settleMany(logs)).blocks.size)).toEqual([0, 3])
  })
})
