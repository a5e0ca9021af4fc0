import { describe, expect, it } from 'vitest'
import { FairQueue } from '../../../src/gateway/fair-queue.ts'

/** Questions that are asked and answered by hand. */
function openQueue(runningBound: number, queuedBound: number) {
  const clock = { uptime: 0 }
  const queue = new FairQueue({ runningBound, queuedBound }, () => clock.uptime)
  const running: PromiseWithResolvers<string>[] = []
  const ask = (client = 'one') =>
    queue.run(() => {
      const answer = Promise.withResolvers<string>()
      running.push(answer)
      return answer.promise
    }, client)
  return { clock, running, ask }
}

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

describe('a lane', () => {
  it('hands a place on when an answer or a failure comes, first to who waited longest', async () => {
    const { running, ask } = openQueue(1, 2)
    const answers = ['one', 'two', 'three'].map(() => ask().catch(() => 'failed'))
    await nextTick()
    expect(running).toHaveLength(1)
    running[0]?.reject(new Error('no answer'))
    await nextTick()
    expect(running).toHaveLength(2)
    running[1]?.resolve('two')
    await nextTick()
    running[2]?.resolve('three')
    expect(await Promise.all(answers)).toEqual(['failed', 'two', 'three'])
  })

  it('has its place back after one that could not even be asked', async () => {
    const queue = new FairQueue({ runningBound: 1, queuedBound: 0 }, () => 0)
    const refusing = () => {
      throw new Error('refused')
    }
    for (let time = 0; time < 3; time += 1) await expect(queue.run(refusing, 'one')).rejects.toThrow('refused')
    expect(await queue.run(async () => 'answered', 'one')).toBe('answered')
  })

  it('refuses who comes when the row is full', async () => {
    const { running, ask } = openQueue(1, 1)
    const answers = [ask(), ask()]
    await expect(ask()).rejects.toMatchObject({ code: -32005, status: 503 })
    await nextTick()
    running[0]?.resolve('one')
    await nextTick()
    running[1]?.resolve('two')
    expect(await Promise.all(answers)).toEqual(['one', 'two'])
  })

  it('refuses who waited for too long, and asks for the next', async () => {
    const { clock, running, ask } = openQueue(1, 2)
    const answers = [ask(), ask().catch((fault: Error) => fault.message)]
    clock.uptime = 9_999
    answers.push(ask())
    await nextTick()
    clock.uptime = 10_000
    running[0]?.resolve('one')
    await nextTick()
    running[1]?.resolve('three')
    expect(await Promise.all(answers)).toEqual(['one', expect.stringContaining('too many questions'), 'three'])
  })

  it('gives whoever asks its turn in turn, however much one asks', async () => {
    const { running, ask } = openQueue(1, 10)
    const order: string[] = []
    const asked = ['much', 'much', 'much', 'little', 'other'].map((client, at) =>
      ask(client).then(() => order.push(client + at)),
    )
    for (let n = 0; n < asked.length; n += 1) {
      await nextTick()
      running[n]?.resolve('')
    }
    await Promise.all(asked)
    expect(order).toEqual(['much0', 'much1', 'little3', 'other4', 'much2'])
  })

  it('takes from whoever has most waiting what somebody else needs', async () => {
    const { running, ask } = openQueue(1, 3)
    const much = Array.from({ length: 4 }, () => ask('much').catch((fault: Error) => fault.message))
    const little = ask('little')
    expect(await much[3]).toContain('too many questions')
    await expect(ask('much')).rejects.toMatchObject({ code: -32005 })
    for (let n = 0; n < 4; n += 1) {
      await nextTick()
      running[n]?.resolve('answered')
    }
    expect(await Promise.all([...much.slice(0, 3), little])).toEqual(Array(4).fill('answered'))
  })
})
