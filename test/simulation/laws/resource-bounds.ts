import type { SimulatedRpc } from '../simulated-rpc.ts'
import type { VirtualClock } from '../virtual-clock.ts'
import type { LawContext } from './law.ts'

/** Requests in flight (ten for blocks, a few polls, a call), requests per second, and scheduled actions. */
const IN_FLIGHT_BOUND = 16
const PER_SECOND_BOUND = 500
const WAITING_BOUND = 100

type MeasuredParts = { readonly rpc: SimulatedRpc; readonly relay: VirtualClock }

/** I9 and I12: the relay limits its requests, and leaves nothing scheduled or in flight after it stops. */
export class ResourceBounds {
  readonly #context: LawContext
  readonly #parts: MeasuredParts
  readonly peaks = { inFlight: 0, perSecond: 0, waiting: 0 }

  constructor(context: LawContext, parts: MeasuredParts) {
    this.#context = context
    this.#parts = parts
  }

  onTick(): void {
    const { violation } = this.#context
    const { rpc, relay } = this.#parts
    const current = { ...rpc.takePeaks(), waiting: relay.waitingCount }
    this.peaks.inFlight = Math.max(this.peaks.inFlight, current.inFlight)
    this.peaks.perSecond = Math.max(this.peaks.perSecond, current.perSecond)
    this.peaks.waiting = Math.max(this.peaks.waiting, current.waiting)
    if (current.inFlight > IN_FLIGHT_BOUND) violation('I9', `${current.inFlight} requests in flight`)
    if (current.perSecond > PER_SECOND_BOUND) violation('I9', `${current.perSecond} requests per second`)
    if (current.waiting > WAITING_BOUND) violation('I9', `${current.waiting} actions are scheduled`)
  }

  /** Called after the relay has stopped. */
  onRelayStopped(): void {
    const { violation } = this.#context
    const { rpc, relay } = this.#parts
    if (rpc.inFlight > 0) violation('I12', `${rpc.inFlight} requests outlive the relay`)
    if (relay.waitingCount > 0) violation('I12', `${relay.waitingCount} actions are still scheduled`)
  }
}
