import { createHash } from 'node:crypto'
import type { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import { Lives } from './key-lifecycles.ts'
import type { Law, Scene } from './law.ts'
import { type Amended, isFact, timeOf, toldSaying } from './published-facts.ts'
import { Reasons } from './retract-reasons.ts'

type Seal = Extract<Update, { type: 'seal' }>

/** The order in which one settled block is told. */
const phases = { retract: 0, amend: 1, told: 2, seal: 3 } as const
type Phase = keyof typeof phases

/** One block as it is settled on the tape. */
type Settling = {
  readonly number: number
  readonly hash: string | null
  phase: Phase
  readonly told: { readonly key: string; readonly address: string; readonly late: boolean; readonly place: number }[]
  readonly seals: Seal[]
  readonly ended: Set<string>
}

/** I4: what is told of one settled block comes whole and in order, and leaves nothing open. Keeps the lives. */
export class Settlings implements Law {
  readonly lives: Lives
  /** The last seal of each token and block number. */
  readonly seals = new Map<string, Seal>()
  readonly #scene: Scene
  readonly #reasons: Reasons
  #settling: Settling | null = null
  /** A block of this turn that others were put right after: nothing more may come of it. */
  #through: Settling | null = null

  constructor(scene: Scene) {
    this.#scene = scene
    this.lives = new Lives(scene)
    this.#reasons = new Reasons(scene, this.lives)
  }

  turn(entries: readonly Entry[]): void {
    for (const { update } of entries) this.#heard(update)
    this.#close()
    this.#through = null
  }

  #heard(update: Update): void {
    if (isFact(update)) {
      if (update.stage === 'preconfirmed') this.#preconfirmed(update.id, update.block.number)
      this.lives.tell(update)
      if (update.stage === 'preconfirmed') return
      const settling = this.#in(update.block.number, update.block.hash, 'told', update.id)
      const { key, address, late } = update
      settling.told.push({ key, address, late, place: update.tx.log_index })
    } else if (update.type === 'retract') {
      const settling = this.#in(update.block.number, update.block.hash, 'retract', update.id)
      const ended = this.lives.retract(update)
      settling.ended.add(update.key)
      if (ended) this.#reasons.retracted(update, ended)
      // Another block has shown that what was sealed is not so: the former one may come back, and be sealed again.
      const name = `${update.block.number} ${update.address}`
      if (this.seals.get(name)?.block.hash !== update.block.hash) this.seals.delete(name)
    } else if (update.type === 'amend') {
      const fact = update.update as Amended
      if (fact.stage === 'sealed' && !this.#corrects(fact))
        this.#in(fact.block.number, fact.block.hash, 'amend', update.id)
      this.#reasons.amended(update)
      this.lives.amend(update)
    } else if (update.type === 'seal') {
      this.#sealed(update, this.#in(update.block.number, update.block.hash, 'seal', update.id))
    }
  }

  /** What is sealed and stays so may be put right whenever it is known to be wrong, but not in the midst of another block. */
  #corrects(fact: Amended): boolean {
    const { key, block } = fact
    const life = this.lives.all.get(key)
    const now = this.#settling
    if (now && now.number === block.number && now.hash === block.hash) return false
    if (life?.state !== 'sealed' || life.hash !== block.hash || life.saying !== toldSaying(fact)) return false
    // One that holds nothing any more ends without a seal.
    if (now && now.phase !== 'seal') {
      this.#close()
      this.#through = now
    }
    return true
  }

  /** A block that was settled as it still stands has nothing pre-confirmed any more. */
  #preconfirmed(id: string, number: number): void {
    const { broken, chain } = this.#scene
    const standing = chain.block(number)?.hash
    const settled = [...this.seals.values()].some(({ block }) => block.number === number && block.hash === standing)
    if (settled) broken('I4', `${id} is pre-confirmed though block ${number} is settled`)
  }

  #in(number: number, hash: string | null, phase: Phase, id: string): Settling {
    const { broken } = this.#scene
    const now = this.#settling
    if (now && now.number === number && now.hash === hash) {
      if (phases[phase] < phases[now.phase]) broken('I4', `${id}: a ${phase} after a ${now.phase} of block ${number}`)
      now.phase = phase
      return now
    }
    this.#close()
    if (this.#through?.number === number && this.#through.hash === hash)
      broken('I4', `${id}: others were put right in the midst of block ${number}`)
    if (hash === null) broken('I4', `${id} settles block ${number} without a hash`)
    const settling: Settling = { number, hash, phase, told: [], seals: [], ended: new Set() }
    this.#settling = settling
    return settling
  }

  #sealed(seal: Seal, { told, seals }: Settling): void {
    const { broken } = this.#scene
    const { id, address, block, keys } = seal
    const truth = this.lives.blockOf(block.hash)
    if (!truth || truth.number !== block.number) return broken('I3', `${id} seals block ${block.number} ${block.hash}`)
    // A head that was pushed without a readable time leaves it unknown.
    const time = timeOf(block)
    if (time !== null && time !== truth.timestamp) broken('I3', `${id} is of ${block.timestamp}`)
    const expected = truth.logs.filter((log) => log.content.address === address).map((log) => log.key)
    if (keys.join() !== expected.join())
      broken('I4', `${id} seals ${address} in block ${block.number}: ${keys.join()}, not ${expected.join()}`)
    const digest = createHash('sha256').update(expected.join('\n')).digest('hex').slice(0, 32)
    if (seal.digest !== digest) broken('I4', `${id}: digest ${seal.digest}, not ${digest}`)
    if (seal.count !== expected.length) broken('I4', `${id}: count ${seal.count}, not ${expected.length}`)
    if (seals.some((other) => other.address === address)) broken('I4', `${id}: ${address} is sealed twice at once`)
    const late = told.filter((one) => one.address === address && one.late).map(({ key }) => key)
    if (seal.late.join() !== late.join()) broken('I4', `${id}: late ${seal.late.join()}, not ${late.join()}`)
    const types = keys.map((key) => (this.#isPart(key, seal) ? 'part' : this.lives.seal(key, seal)?.type))
    if (seal.types.join() !== types.join()) broken('I4', `${id}: types ${seal.types.join()}, not ${types.join()}`)
    const name = `${block.number} ${address}`
    const before = this.seals.get(name)
    if (before && before.block.hash === block.hash && before.keys.join() === keys.join())
      broken('I5', `${id} seals ${address} in block ${block.number} again as ${before.id} did`)
    this.seals.set(name, seal)
    seals.push(seal)
  }

  /** Whether the block folds a log into another: then nothing is told of it any more. */
  #isPart(key: string, { id, block }: Seal): boolean {
    const { broken } = this.#scene
    if (!this.lives.readingOf(block.hash, key)?.isPart) return false
    const life = this.lives.all.get(key)
    if (life && life.state !== 'retracted') broken('I17', `${id}: ${key} is part of another and ${life.state}`)
    return true
  }

  #close(): void {
    const settling = this.#settling
    if (!settling) return
    this.#settling = null
    const { broken } = this.#scene
    const { number, hash, told, seals } = settling
    for (const [nth, { key, place }] of told.entries()) {
      if (place <= (told[nth - 1]?.place ?? -1)) broken('I4', `${key} is told out of log order`)
      if (!seals.some((seal) => seal.keys.includes(key))) broken('I4', `${key} is told as sealed without a seal`)
    }
    for (const life of this.lives.aliveIn(number)) {
      if (life.state === 'open') broken('I4', `${life.key} stays open after block ${number} was settled`)
      else if (life.hash !== hash) broken('I4', `${life.key} stays sealed by ${life.hash} after ${hash} was settled`)
    }
    this.#reasons.settled()
  }
}
