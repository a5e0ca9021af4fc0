import { firstValueFrom, toArray, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { observe, WakeUp, wait } from '../../../src/lib/async-loop.ts'

const aborted = new Error('aborted')

describe('a wait', () => {
  it('fails as soon as its signal is aborted, and leaves nothing scheduled', async () => {
    const clock = new VirtualTimeScheduler()
    const controller = new AbortController()
    const done = wait(500, clock, controller.signal)
    controller.abort(aborted)
    await expect(done).rejects.toBe(aborted)
    expect(clock.actions.filter(({ closed }) => !closed)).toEqual([])
    await expect(wait(500, clock, controller.signal)).rejects.toBe(aborted)
  })
})

describe('a wake-up', () => {
  it('ends all waits that began before it', async () => {
    const wakeUp = new WakeUp()
    const { signal } = new AbortController()
    wakeUp.notify()
    let woken = 0
    const waits = [1, 2].map(() => wakeUp.wait(signal).then(() => (woken += 1)))
    await Promise.resolve()
    expect(woken).toBe(0)
    wakeUp.notify()
    await Promise.all(waits)
    expect(woken).toBe(2)
  })

  it('is waited for no longer once the signal is aborted', async () => {
    const controller = new AbortController()
    const waiting = new WakeUp().wait(controller.signal)
    controller.abort(aborted)
    await expect(waiting).rejects.toBe(aborted)
  })
})

describe('an observed run', () => {
  it('emits in order, and completes with the run without aborting it', async () => {
    let signal: AbortSignal | undefined
    const run = observe<number>(async (emit, runSignal) => {
      signal = runSignal
      emit(1)
      await Promise.resolve()
      emit(2)
    })
    expect(await firstValueFrom(run.pipe(toArray()))).toEqual([1, 2])
    expect(signal?.aborted).toBe(false)
  })

  it('fails with the run, and aborts what else the run has begun', async () => {
    let signal: AbortSignal | undefined
    const run = observe((_, runSignal) => {
      signal = runSignal
      return Promise.reject(aborted)
    })
    await expect(firstValueFrom(run)).rejects.toBe(aborted)
    expect(signal?.aborted).toBe(true)
  })

  it('is aborted when its subscription ends, and emits no more', async () => {
    const emitted: number[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    let signal: AbortSignal | undefined
    const run = observe<number>(async (emit, runSignal) => {
      signal = runSignal
      await promise
      emit(1)
      throw aborted
    })
    run.subscribe((value) => emitted.push(value)).unsubscribe()
    resolve()
    await new Promise(setImmediate)
    expect(signal?.aborted).toBe(true)
    expect(emitted).toEqual([])
  })
})
