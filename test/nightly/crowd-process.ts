import { setMaxListeners } from 'node:events'
import { obey } from '../bench/pinned-processes.ts'
import { Dice } from '../simulation/seeded-random.ts'
import { characterOf } from './crowd-behaviors.ts'
import { type Offer, selectionsOf } from './crowd-selections.ts'
import type { Way } from './crowd-stream-readers.ts'
import { Latency, type Took } from './latency-recorder.ts'
import { Story } from './received-history.ts'
import { Judge } from './tape-comparison.ts'

/** The crowd, in a process of its own: comes, behaves each in its way, leaves, and is then judged by the tape. */

export type CrowdOrder =
  | {
      readonly do: 'enter'
      readonly seed: string
      readonly port: number
      readonly guests: number
      readonly offer: Offer
    }
  | { readonly do: 'look' }
  | { readonly do: 'leave' }
  | { readonly do: 'judge' }

export type Look = {
  readonly done: 'look'
  readonly heard: number
  /** How long transfers took to those who never stall, since the last look. */
  readonly took: Took
  /** The share of a core that this process used since the last look. */
  readonly load: number
  readonly endings: Readonly<Record<string, number>>
}

export type CrowdReport =
  | { readonly done: 'enter' }
  | Look
  | { readonly done: 'leave'; readonly heard: number }
  | {
      readonly done: 'judge'
      readonly faults: readonly string[]
      readonly faultsInAll: number
      readonly stories: number
      readonly pieces: number
      readonly compared: number
      readonly questions: number
    }

/** Each address of this machine is shared by so many, far fewer than may come from one. */
const GUESTS_PER_ADDRESS = 50
/** Nobody enters later than this. */
const ENTERING_MS = 4_000
const FAULTS_SHOWN = 20

const wayOf = (port: number, nth: number): Way => ({
  port,
  localAddress: `127.0.1.${1 + Math.floor(nth / GUESTS_PER_ADDRESS)}`,
})

let stories: Story[] = []
let ways: Way[] = []
let lives: Promise<void>[] = []
let leaving = new AbortController()
const latency = new Latency()
let endings: Record<string, number> = {}
let looked = { at: performance.now(), cpu: process.cpuUsage() }

function enter({ seed, port, guests, offer }: Extract<CrowdOrder, { do: 'enter' }>): CrowdReport {
  const dice = new Dice(seed)
  const pool = selectionsOf(dice.beside('selections'), offer)
  leaving = new AbortController()
  // Everybody waits for the end of it.
  setMaxListeners(0, leaving.signal)
  ways = Array.from({ length: guests }, (_, nth) => wayOf(port, nth))
  endings = {}
  const come = ways.map((way, nth) => {
    const { name, live } = characterOf(nth)
    const own = new Dice(seed, nth)
    const story = new Story(`${nth}, a ${name}`)
    const setting = {
      ...{ way, dice: own, pool, offer, story, over: leaving.signal },
      took: latency.take,
      stalls: name === 'staller',
      count: (what: string) => {
        endings[what] = (endings[what] ?? 0) + 1
      },
    }
    const comes = new Promise<void>((resolve) => setTimeout(resolve, own.int(0, ENTERING_MS)))
    return { story, life: comes.then(() => live(setting)).catch((failure) => story.fault(String(failure?.stack))) }
  })
  stories = come.map(({ story }) => story)
  lives = come.map(({ life }) => life)
  look()
  return { done: 'enter' }
}

const heardInAll = (): number => stories.reduce((sum, { heard }) => sum + heard, 0)

function look(): Look {
  const [now, { user, system }] = [performance.now(), process.cpuUsage(looked.cpu)]
  const load = (user + system) / 1_000 / (now - looked.at)
  looked = { at: now, cpu: process.cpuUsage() }
  return { done: 'look', heard: heardInAll(), took: latency.look(), load, endings }
}

async function leave(): Promise<CrowdReport> {
  leaving.abort()
  await Promise.all(lives)
  return { done: 'leave', heard: heardInAll() }
}

async function judge(): Promise<CrowdReport> {
  const judging = new Judge()
  const faults = stories.flatMap((story) => story.faults)
  const pieces = stories.flatMap((story) => story.pieces)
  const [epoch = ''] = stories.find(({ last }) => last !== null)?.last?.split('.') ?? []
  await judging.read(
    pieces,
    ways.filter((_, nth) => nth % GUESTS_PER_ADDRESS === 0),
    epoch,
  )
  for (const piece of pieces) {
    const fault = judging.fault(piece)
    if (fault) faults.push(fault)
  }
  return {
    ...{ done: 'judge', faults: faults.slice(0, FAULTS_SHOWN), faultsInAll: faults.length },
    ...{ stories: stories.length, pieces: pieces.length, compared: judging.compared, questions: judging.questions },
  }
}

const acts = { enter, look, leave, judge }

obey<CrowdOrder, CrowdReport>(async (order) => (order.do === 'enter' ? acts.enter(order) : acts[order.do]()))
