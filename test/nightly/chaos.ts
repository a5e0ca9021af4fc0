import { setTimeout as pause } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { expect } from 'vitest'
import { WebSocket } from 'ws'
import type { Devnet } from '../../src/devnet/devnet.ts'
import type { Update } from '../../src/protocol/updates.ts'
import type { SeededRandom } from '../simulation/seeded-random.ts'
import { keysInState, sealedKeysOnChain } from '../support/key-states.ts'
import { isNightly } from '../support/test-length.ts'
import type { TestLifecycle } from '../support/test-stack.ts'
import type { TrafficSettings } from './devnet-traffic.ts'

export const CHAOS_SEED = Number(process.env.CHAOS_SEED ?? 7)
export const CHAOS_MS = process.env.CHAOS_SECONDS ? Number(process.env.CHAOS_SECONDS) * 1_000 : isNightly ? 180_000 : 30_000
export const CHAOS_TRAFFIC: TrafficSettings = {
  ...{ flashblockMs: 100, transfersPerFlash: 4, logsPerFlash: 1, logBytes: 32 },
  ...{ flashesPerBlock: 5, reorgEveryBlocks: 25 },
}
const CLIENT_RETRY_MS = 150
/** How long a part works between two faults, and how long a fault lasts. */
const [CHANGE_LEAST_MS, CHANGE_MOST_MS] = [1_000, 8_000]
const [FAULT_LEAST_MS, FAULT_MOST_MS] = [50, 3_500]

/** Something that goes wrong for a while. */
export type Fault = { readonly name: string; readonly begin: () => unknown; readonly end: () => unknown }

/** Begins and ends faults, one of each part at a time, in an order that the seed determines. */
export async function runFaults(parts: readonly (readonly Fault[])[], random: SeededRandom): Promise<readonly string[]> {
  const log: string[] = []
  const until = performance.now() + CHAOS_MS
  const runPart = async (faults: readonly Fault[], partRandom: SeededRandom) => {
    while (performance.now() < until) {
      await pause(partRandom.int(CHANGE_LEAST_MS, CHANGE_MOST_MS))
      const fault = partRandom.pick(faults as [Fault, ...Fault[]])
      log.push(fault.name)
      await fault.begin()
      await pause(partRandom.int(FAULT_LEAST_MS, FAULT_MOST_MS))
      await fault.end()
    }
  }
  await Promise.all(parts.map((faults, nth) => runPart(faults, random.fork(String(nth)))))
  return log
}

/** The parts that all messages on the tape begin with. */
const messageStart = /^\{"type":"(\w+)","id":"(\w+\.\d+)"/

export const positionOf = (text: string): string => messageStart.exec(text)?.[2] ?? ''

/** What a client received between two gaps: the positions and the checksums of the messages. */
type ReceivedRun = { readonly positions: string[]; readonly checksums: number[] }

/** A client that comes back with its last position, to any of these URLs. */
export class ChaosClient {
  readonly #urls: readonly string[]
  readonly #random: SeededRandom
  #socket: WebSocket | null = null
  #isStopped = false
  readonly runs: ReceivedRun[] = [{ positions: [], checksums: [] }]
  readonly gaps: string[] = []
  /** Where it goes on. */
  position: string | null = null

  constructor(urls: readonly string[], random: SeededRandom) {
    this.#urls = urls
    this.#random = random
    this.#connect()
  }

  cut(): void {
    this.#socket?.terminate()
  }

  stop(): void {
    this.#isStopped = true
    this.#socket?.terminate()
  }

  #connect(): void {
    if (this.#isStopped) return
    const url = this.#random.pick(this.#urls as [string, ...string[]])
    const since = this.position ?? 'start'
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws?symbols=*&types=*&snapshot=false&since=${since}`)
    this.#socket = socket
    socket.on('error', () => {})
    socket.on('message', (data) => this.#receive(data as Buffer))
    socket.on('close', () => setTimeout(() => this.#connect(), CLIENT_RETRY_MS))
  }

  #receive(bytes: Buffer): void {
    const [, type = '', position = ''] = messageStart.exec(bytes.toString('latin1', 0, 96)) ?? []
    if (type === 'gap') {
      this.gaps.push(String(bytes))
      this.runs.push({ positions: [], checksums: [] })
      this.position = position
    } else if (position !== '' && bytes.includes('"prev":')) {
      const run = this.runs.at(-1)
      run?.positions.push(position)
      run?.checksums.push(crc32(bytes))
      this.position = position
    }
  }
}

/** So many clients of any of these URLs, which leave at the end of the test. */
export function openChaosClients(test: TestLifecycle, urls: readonly string[], count: number, random: SeededRandom) {
  const clients = Array.from({ length: count }, (_, nth) => new ChaosClient(urls, random.fork(`client ${nth}`)))
  const stopAll = () => {
    for (const client of clients) client.stop()
  }
  test.onTestFinished(stopAll)
  const cutAll: Fault = {
    name: 'cut all clients',
    begin: () => {
      for (const client of clients) client.cut()
    },
    end: () => {},
  }
  return { clients, stopAll, cutAll }
}

/** The positions and the checksums of the tape. */
export const contentOf = (tape: readonly string[]): ReceivedRun => ({
  positions: tape.map(positionOf),
  checksums: tape.map((text) => crc32(text)),
})

/** How many keys are open, or -1 if the newest block is not settled. */
export function unsealed(texts: readonly string[], head: number): number {
  const updates = texts.map((text) => JSON.parse(text) as Update)
  const isSettled = updates.some((update) => update.type === 'seal' && update.block.number >= head - 4)
  return isSettled ? keysInState(updates, 'preconfirmed').length : -1
}

/** The tape has the end of every key, and seals exactly what the chain has sealed. */
export function expectSealedAsOnChain(tape: readonly string[], devnet: Devnet): void {
  const updates = tape.map((text) => JSON.parse(text) as Update)
  expect(updates.filter(({ type }) => type === 'hole')).toEqual([])
  expect(keysInState(updates, 'preconfirmed')).toEqual([])
  const first = Math.min(...updates.flatMap((update) => (update.type === 'seal' ? [update.block.number] : [])))
  const sealed = keysInState(updates, 'sealed').filter((key) => Number.parseInt(key, 10) > first)
  expect(sealed).toEqual(sealedKeysOnChain(devnet, first))
  expect(sealed.length).toBeGreaterThan(CHAOS_MS / 100)
}
