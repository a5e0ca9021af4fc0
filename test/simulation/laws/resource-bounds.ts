import type { Way } from '../simulated-rpc.ts'
import type { Clock } from '../virtual-clock.ts'
import type { Scene } from './law.ts'

/** Questions at once, questions a second, and things that wait for the clock. */
const IN_FLIGHT_BOUND = 16
const PER_SECOND_BOUND = 500
const WAITING_BOUND = 100

type Watched = { readonly way: Way; readonly relay: Clock }

/** I9 and I12: the relay asks no more than is decent, and whoever has left wants nothing any more. */
export class Bounds {
  readonly #scene: Scene
  readonly #watched: Watched
  readonly most = { inFlight: 0, perSecond: 0, waiting: 0 }

  constructor(scene: Scene, watched: Watched) {
    this.#scene = scene
    this.#watched = watched
  }

  moment(): void {
    const { broken } = this.#scene
    const { way, relay } = this.#watched
    const now = { inFlight: way.inFlight, perSecond: way.lately(), waiting: relay.waiting }
    this.most.inFlight = Math.max(this.most.inFlight, now.inFlight)
    this.most.perSecond = Math.max(this.most.perSecond, now.perSecond)
    this.most.waiting = Math.max(this.most.waiting, now.waiting)
    if (now.inFlight > IN_FLIGHT_BOUND) broken('I9', `${now.inFlight} questions at once`)
    if (now.perSecond > PER_SECOND_BOUND) broken('I9', `${now.perSecond} questions in a second`)
    if (now.waiting > WAITING_BOUND) broken('I9', `${now.waiting} things wait for the clock`)
  }

  /** Called when the relay's life has ended. */
  left(): void {
    const { broken } = this.#scene
    const { way, relay } = this.#watched
    if (way.inFlight > 0) broken('I12', `${way.inFlight} questions outlive the relay`)
    if (relay.waiting > 0) broken('I12', `${relay.waiting} things still wait for the clock`)
  }
}
