/** Preloaded into a process: its wall clock is `CLOCK_OFFSET_MS` off, and each SIGUSR2 sets it by the next of the steps in `CLOCK_STEPS_MS`. */

const steps = (process.env.CLOCK_STEPS_MS ?? '').split(',').map(Number)
const RealDate = Date
let offsetMs = Number(process.env.CLOCK_OFFSET_MS ?? 0)

globalThis.Date = class extends RealDate {
  constructor(...args: readonly unknown[]) {
    super(...((args.length > 0 ? args : [RealDate.now() + offsetMs]) as [number]))
  }

  static override now(): number {
    return RealDate.now() + offsetMs
  }
} as DateConstructor

process.on('SIGUSR2', () => {
  offsetMs += steps.shift() ?? 0
  process.stdout.write(`the wall clock is ${offsetMs} ms off\n`)
})
