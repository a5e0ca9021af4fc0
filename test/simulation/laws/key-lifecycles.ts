import type { Update } from '../../../src/protocol/updates.ts'
import type { Block } from '../simulated-block.ts'
import { stockAt } from '../simulated-tokens.ts'
import { type Reading, readingsOf } from './expected-logs.ts'
import type { Scene } from './law.ts'
import {
  type Amended,
  detailObjection,
  type Fact,
  objectionTo,
  sayingsOf,
  toldDetail,
  toldSaying,
} from './published-facts.ts'

type Told<Type extends Update['type']> = Extract<Update, { type: Type }>

/** What the tape says of one key so far. */
export type Life = {
  readonly key: string
  readonly number: number
  readonly address: string
  readonly tx: string
  state: 'open' | 'sealed' | 'retracted'
  type: string
  /** What it says now, and all that was told of it last. */
  saying: string
  told: Amended
  /** The last message that told or amended it. */
  position: string
  toldLate: boolean
  /** Whether it was ever told as pre-confirmed; when it was told last (ms since the beginning). */
  preconfirmed: boolean
  toldAt: number
  /** Whether this life was sealed, and by which block. */
  hash: string | null
}

const isSealedSource = ({ ingest }: Extract<Fact, { ingest: unknown }>): boolean =>
  ingest.source === 'sealed' || ingest.source === 'backfill'

/** Every key that was told, and how its life goes on: I2, I3, I4 and the false retractions of I6. */
export class Lives {
  readonly all = new Map<string, Life>()
  /** The keys of a block number, so that a settling can look at what is open. */
  readonly byNumber = new Map<number, Set<string>>()
  readonly #scene: Scene

  constructor(scene: Scene) {
    this.#scene = scene
  }

  /** Those of a block that live now. */
  aliveIn(number: number): readonly Life[] {
    return [...(this.byNumber.get(number) ?? [])].flatMap((key) => {
      const life = this.all.get(key)
      return life && life.state !== 'retracted' ? [life] : []
    })
  }

  tell(fact: Fact): void {
    const { broken, chain, clock } = this.#scene
    const { key, id, address, type, stage, late } = fact
    const before = this.all.get(key)
    if (before && before.state !== 'retracted') broken('I2', `${id} ${key} is told again while it is ${before.state}`)
    const saying = toldSaying(fact)
    const reorganised = chain.numbers.get(fact.block.number)?.some(({ until }) => until <= clock.frame) ?? false
    if (before?.state === 'retracted' && before.saying === saying && !reorganised)
      broken('I6', `${id} ${key} is told again as it was, though nothing was reorganised`)
    if (key !== `${fact.block.number}-${fact.tx.hash}-${fact.tx.log_index}`) broken('I3', `${id} is not of ${key}`)
    if (!stockAt(address)) broken('I3', `${id} ${key} is of ${address}, which nobody listed`)
    if (stage === 'sealed') this.#sealedAs(fact.block.hash, key, fact, id)
    else this.#announcedAs(key, fact, id)
    if (stage === 'preconfirmed' && late) broken('I4', `${id} ${key} is late though it is pre-confirmed`)
    if ('ingest' in fact && isSealedSource(fact) !== (stage === 'sealed'))
      broken('I3', `${id} ${key} is ${stage} and from ${fact.ingest.source}`)
    const preconfirmed = stage === 'preconfirmed' || (before?.preconfirmed ?? false)
    this.all.set(key, {
      ...{
        key,
        number: fact.block.number,
        address,
        tx: fact.tx.hash,
        type,
        saying,
        told: fact,
        position: id,
        preconfirmed,
      },
      state: stage === 'sealed' ? 'sealed' : 'open',
      toldLate: late,
      toldAt: clock.frame,
      hash: null,
    })
    const keys = this.byNumber.get(fact.block.number)
    if (keys) keys.add(key)
    else this.byNumber.set(fact.block.number, new Set([key]))
  }

  amend(amend: Told<'amend'>): void {
    const { broken } = this.#scene
    const { id, key } = amend
    const life = this.#alive(amend)
    if (!life) return
    const update = amend.update as Amended
    if (update.key !== key) broken('I4', `${id} amends ${key} with ${update.key}`)
    const saying = toldSaying(update)
    if (saying === life.saying && toldDetail(update) === toldDetail(life.told))
      broken('I4', `${id} amends ${key} though it says the same`)
    if (amend.changed.length === 0) broken('I4', `${id} names nothing that changed`)
    if (update.stage === 'sealed') {
      this.#sealedAs(update.block.hash, key, update, id)
      life.state = 'sealed'
    } else {
      if (life.hash !== null) broken('I4', `${id} amends ${key}, which is sealed, as pre-confirmed`)
      this.#announcedAs(key, update, id)
    }
    life.saying = saying
    life.told = update
    life.type = update.type
    life.position = id
  }

  /** Ends a life; answers it as it was. */
  retract(retract: Told<'retract'>): Life | null {
    const { broken } = this.#scene
    const { id, key, block } = retract
    const life = this.#alive(retract)
    if (!life) return null
    if (block.number !== life.number) broken('I4', `${id} retracts ${key} by block ${block.number}`)
    const read = this.readingOf(block.hash, key)
    if (read && !read.isPart && read.saying === life.saying)
      broken('I6', `${id} ${key} is retracted by a block that holds it`)
    life.state = 'retracted'
    return life
  }

  seal(key: string, seal: Told<'seal'>): Life | null {
    const { broken } = this.#scene
    const life = this.all.get(key)
    if (!life || life.state === 'retracted') {
      broken('I4', `${seal.id} seals ${key}, which ${life ? 'was retracted' : 'was never told'}`)
      return null
    }
    const read = this.readingOf(seal.block.hash, key)
    if (read && read.saying !== life.saying) broken('I3', `${seal.id} seals ${key} as ${life.saying}`)
    const objection = read && detailObjection(life.told, read)
    if (objection) broken('I17', `${seal.id} seals ${key}, which ${objection}`)
    life.state = 'sealed'
    life.hash = seal.block.hash
    return life
  }

  #alive(told: Told<'retract' | 'amend'>): Life | null {
    const { broken } = this.#scene
    const { id, key, type } = told
    const life = this.all.get(key)
    if (!life || life.state === 'retracted') {
      broken('I4', `${id} is a ${type} of ${key}, which ${life ? 'was retracted before' : 'was never told'}`)
      return null
    }
    if (told.was !== life.position) broken('I4', `${id} ${key}: was ${told.was}, not ${life.position}`)
    if (told.of !== life.type) broken('I4', `${id} ${key}: of ${told.of}, not ${life.type}`)
    if (told.address !== life.address) broken('I4', `${id} ${key}: address ${told.address}, not ${life.address}`)
    return life
  }

  /** Some block under this hash has been canonical, and holds this. */
  #sealedAs(hash: string | null, key: string, fact: Amended, id: string): void {
    const { broken } = this.#scene
    const read = this.readingOf(hash, key)
    const objection = read ? objectionTo(fact, read.log, [read.saying]) : `is in no block ${hash}`
    if (objection) broken('I3', `${id} ${key} ${objection}`)
  }

  /** It was shown as pre-confirmed, or sealed: an answer about pending logs holds the newest sealed ones as well. */
  #announcedAs(key: string, fact: Amended, id: string): void {
    const { broken, chain, settings } = this.#scene
    if (fact.block.hash !== null) broken('I4', `${id} ${key} is pre-confirmed and has a hash`)
    const { number } = fact.block
    const sealed = chain.numbers.get(number)?.flatMap(({ logs }) => logs.filter(({ tx }) => tx === fact.tx.hash)) ?? []
    const beside = [...(chain.announcedIn.get(`${number} ${fact.tx.hash}`) ?? []), ...sealed]
    const shown = beside.filter((log) => log.key === key)
    const timeless = settings.traits.includes('timeless')
    const objections = shown.map((log) => objectionTo(fact, log, sayingsOf(log, beside, fact, timeless), timeless))
    if (!objections.includes(null)) broken('I3', `${id} ${key} ${objections[0] ?? 'was never shown'}`)
  }

  readingOf(hash: string | null, key: string): Reading | undefined {
    return readingsOf(this.blockOf(hash)?.logs ?? []).get(key)
  }

  blockOf(hash: string | null): Block | undefined {
    return hash === null ? undefined : this.#scene.chain.hashes.get(hash as Block['hash'])
  }
}
