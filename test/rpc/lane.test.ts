import { describe, expect, it } from 'vitest'
import { Lane } from '../../src/rpc/lane.ts'

/** Questions that are asked and answered by hand. */
function opened(atOnce: number, waiting: number) {
  const clock = { uptime: 0 }
  const lane = new Lane({ atOnce, waiting }, () => clock.uptime)
  const underWay: PromiseWithResolvers<string>[] = []
  const ask = () =>
    lane.pass(() => {
      const answer = Promise.withResolvers<string>()
      underWay.push(answer)
      return answer.promise
    })
  return { clock, underWay, ask }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('a lane', () => {
  it('hands a place on when an answer or a failure comes, first to who waited longest', async () => {
    const { underWay, ask } = opened(1, 2)
    const answers = ['one', 'two', 'three'].map(() => ask().catch(() => 'failed'))
    await settled()
    expect(underWay).toHaveLength(1)
    underWay[0]?.reject(new Error('no answer'))
    await settled()
    expect(underWay).toHaveLength(2)
    underWay[1]?.resolve('two')
    await settled()
    underWay[2]?.resolve('three')
    expect(await Promise.all(answers)).toEqual(['failed', 'two', 'three'])
  })

  it('has its place back after one that could not even be asked', async () => {
    const lane = new Lane({ atOnce: 1, waiting: 0 }, () => 0)
    const refusing = () => {
      throw new Error('refused')
    }
    for (let time = 0; time < 3; time += 1) await expect(lane.pass(refusing)).rejects.toThrow('refused')
    expect(await lane.pass(async () => 'answered')).toBe('answered')
  })

  it('refuses who comes when the row is full', async () => {
    const { underWay, ask } = opened(1, 1)
    const answers = [ask(), ask()]
    await expect(ask()).rejects.toMatchObject({ code: -32005, status: 503 })
    await settled()
    underWay[0]?.resolve('one')
    await settled()
    underWay[1]?.resolve('two')
    expect(await Promise.all(answers)).toEqual(['one', 'two'])
  })

  it('refuses who waited for too long, and asks for the next', async () => {
    const { clock, underWay, ask } = opened(1, 2)
    const answers = [ask(), ask().catch((fault: Error) => fault.message)]
    clock.uptime = 9_999
    answers.push(ask())
    await settled()
    clock.uptime = 10_000
    underWay[0]?.resolve('one')
    await settled()
    underWay[1]?.resolve('three')
    expect(await Promise.all(answers)).toEqual(['one', expect.stringContaining('too many questions'), 'three'])
  })
})
