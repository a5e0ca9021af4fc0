import { describe, expect, it } from 'vitest'
import { FairQueue } from '../../../../../src/relay/edge/limits/fair-queue.ts'

const full = new Error('too many calls')

/** Calls that the test makes and answers by hand. */
function openQueue(runningBound: number, queuedBound: number) {
  const clock = { uptime: 0 }
  const queue = new FairQueue({ runningBound, queuedBound, full }, () => clock.uptime)
  const running: PromiseWithResolvers<string>[] = []
  const call = (client = 'one') =>
    queue.run(() => {
      const answer = Promise.withResolvers<string>()
      running.push(answer)
      return answer.promise
    }, client)
  return { clock, running, call }
}

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

describe('a fair queue', () => {
  it('gets the place back of a call that throws at once', async () => {
    const queue = new FairQueue({ runningBound: 1, queuedBound: 0, full }, () => 0)
    const refusing = () => {
      throw new Error('refused')
    }
    for (let time = 0; time < 3; time += 1) await expect(queue.run(refusing, 'one')).rejects.toThrow('refused')
    expect(await queue.run(async () => 'answered', 'one')).toBe('answered')
  })

  it('refuses a call that waited too long, and runs the next', async () => {
    const { clock, running, call } = openQueue(1, 2)
    const answers = [call(), call().catch((error: Error) => error.message)]
    clock.uptime = 9_999
    answers.push(call())
    await nextTick()
    clock.uptime = 10_000
    running[0]?.resolve('one')
    await nextTick()
    running[1]?.resolve('three')
    expect(await Promise.all(answers)).toEqual(['one', expect.stringContaining('too many calls'), 'three'])
  })

  it('lets clients take turns, however many calls one has', async () => {
    const { running, call } = openQueue(1, 10)
    const order: string[] = []
    const calls = ['much', 'much', 'much', 'little', 'other'].map((client, at) => call(client).then(() => order.push(client + at)))
    for (let n = 0; n < calls.length; n += 1) {
      await nextTick()
      running[n]?.resolve('')
    }
    await Promise.all(calls)
    expect(order).toEqual(['much0', 'much1', 'little3', 'other4', 'much2'])
  })

  it('refuses a call of the client with the longest queue for one of another client', async () => {
    const { running, call } = openQueue(1, 3)
    const much = Array.from({ length: 4 }, () => call('much').catch((error: Error) => error.message))
    const little = call('little')
    expect(await much[3]).toContain('too many calls')
    await expect(call('much')).rejects.toBe(full)
    for (let n = 0; n < 4; n += 1) {
      await nextTick()
      running[n]?.resolve('answered')
    }
    expect(await Promise.all([...much.slice(0, 3), little])).toEqual(Array(4).fill('answered'))
  })
})
