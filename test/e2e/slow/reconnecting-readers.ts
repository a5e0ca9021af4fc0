import { setTimeout as pause } from 'node:timers/promises'
import { EventSource } from 'eventsource'
import type { Update } from '../../../src/protocol/updates.ts'
import { Ear, type Ending } from '../../support/test-listener.ts'
import type { Test } from './deployed-relay.ts'

/** When a client comes back that nobody told when to. */
const RETRY_MS = 500

/** One who listens over many connections, and has heard one story in all. */
export interface Reader {
  readonly name: string
  /** One for each connection; one for all of them where the client does not show where one ends. */
  readonly ears: readonly Ear[]
  /** Resolves once a condition over what it heard holds. */
  until(holds: () => boolean, what: string): Promise<void>
}

/** An update, and the text in which it was told. */
export type Told = { readonly update: Update; readonly text: string }

/** What was heard of the tape on one connection. */
export const toldTo = ({ heard }: Ear): readonly Told[] =>
  heard.flatMap(({ message, text }) => ('prev' in message ? [{ update: message, text }] : []))

/** What a reader heard of the tape in all. */
export const storyOf = ({ ears }: Reader): readonly Told[] => ears.flatMap(toldTo)

/** A story as far as a position; all of it where that is not in it. */
export function upTo(last: string, story: readonly Told[]): readonly Told[] {
  const at = story.findIndex(({ update }) => update.id === last)
  return at < 0 ? story : story.slice(0, at + 1)
}

/** What speaks against a story being the tape itself, byte for byte; nothing if it is. */
export function differences(story: readonly Told[], tape: readonly Told[]): readonly string[] {
  const texts = new Map(tape.map(({ update, text }) => [update.id, text]))
  const heard = new Set<string>()
  const wrong = story.flatMap(({ update: { id }, text }) => {
    const twice = heard.has(id)
    heard.add(id)
    if (!texts.has(id)) return [`${id} is not on the tape`]
    if (twice) return [`${id} came twice`]
    return texts.get(id) === text ? [] : [`${id} is ${texts.get(id)} on the tape, and ${text} was heard`]
  })
  const missing = tape.flatMap(({ update: { id } }) => (heard.has(id) ? [] : [`${id} is missing`]))
  const same = story.length === tape.length && story.every(({ update }, at) => update.id === tape[at]?.update.id)
  return [...wrong, ...missing, ...(same ? [] : ['what was heard is not in the order of the tape'])]
}

/** Updates whose `prev` is not the one that was heard before of the same token and type. */
export function brokenChains(story: readonly Update[]): readonly string[] {
  const heads = new Map<string, string>()
  return story.flatMap(({ id, prev, address, type }) => {
    const chain = `${address} ${type}`
    const before = heads.get(chain)
    heads.set(chain, id)
    return before === undefined || before === prev ? [] : [`${id}: ${prev} after ${before}`]
  })
}

/** How each of its connections went on. */
export const resumesOf = ({ ears }: Reader): readonly string[] =>
  ears.flatMap((ear) => ear.all('subscribed').map(({ resume }) => resume))

/** A reader whose client comes back by itself and hides that it was away. */
export const unbroken = (name: string, ear: Ear): Reader => ({
  name,
  ears: [ear],
  until: (holds, what) => ear.until(holds, `${what}, as ${name}`),
})

/** The `EventSource` of npm. */
export function readEventSource(test: Test, url: string): Reader {
  const source = new EventSource(url)
  const ear = new Ear({ close: () => source.close() })
  test.onTestFinished(() => ear.close())
  source.onmessage = ({ data, lastEventId: id }) => ear.take(data, { id })
  source.addEventListener('heartbeat', ({ data, lastEventId: id }) => ear.take(data, { id, event: 'heartbeat' }))
  return unbroken('the package eventsource', ear)
}

/** How a connection is opened: from a position on, once there is one. */
type Open = (last: string | null) => Promise<Ear>

/** A client of a few lines: keeps the last id, waits as long as it was told to, and comes back with that id. */
export class Returning implements Reader {
  readonly name: string
  readonly ears: Ear[] = []
  readonly endings: Ending[] = []
  readonly #open: Open
  #next = Promise.withResolvers<void>()
  #over = false

  constructor(test: Test, name: string, open: Open) {
    this.name = name
    this.#open = open
    test.onTestFinished(() => this.close())
    void this.#listen()
  }

  async until(holds: () => boolean, what: string): Promise<void> {
    while (!holds()) {
      const next = this.#next.promise
      const ear = this.ears[this.endings.length]
      await (ear ? Promise.race([ear.until(holds, `${what}, as ${this.name}`), ear.ended]) : next)
    }
  }

  close(): void {
    this.#over = true
    this.ears.at(-1)?.close()
  }

  async #listen(): Promise<void> {
    let last: string | null = null
    while (!this.#over) {
      const ear: Ear | null = await this.#open(last).catch(() => null)
      if (ear && !this.#over) {
        this.ears.push(ear)
        this.#next.resolve()
        this.#next = Promise.withResolvers()
        this.endings.push(await ear.ended)
        last = lastIdOf(ear) ?? last
      }
      await pause(ear?.all('bye').at(-1)?.retry_ms ?? RETRY_MS)
    }
  }
}

const lastIdOf = (ear: Ear): string | null =>
  ear.messages.reduce<string | null>((last, message) => ('id' in message ? message.id : null) ?? last, null)
