import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Update } from '../../sdk/generated/messages.ts'
import type { ScriptedConnection } from '../../sdk/testing/scripted-connection.ts'
import { ExactTape } from './exact-tape.ts'
import { JudgedClient } from './judged-client.ts'
import { RelaySockets } from './relay-sockets.ts'
import { BrokenRule } from './rule-verdict.ts'

/** Limit of the time in which a client first connects. RETURN_MS is that of a reconnect, PRINT_MS that of a printed message. */
const CONNECT_MS = 15_000
const RETURN_MS = 12_000
const PRINT_MS = 10_000
/** Time for which a scenario watches a client that must not reconnect. */
export const WATCH_MS = 4_000

export class ScenarioDriver {
  readonly #command: readonly string[]
  readonly #folder: string
  readonly relay: RelaySockets
  #client: JudgedClient | null = null

  private constructor(command: readonly string[], relay: RelaySockets) {
    this.#command = command
    this.relay = relay
    this.#folder = mkdtempSync(join(tmpdir(), 'stocktape-conform-'))
  }

  static async open(command: readonly string[], name: string): Promise<ScenarioDriver> {
    return new ScenarioDriver(command, await RelaySockets.open(new ExactTape(`c${name.replace(/[^a-z0-9]/g, '')}`)))
  }

  get tape(): ExactTape {
    return this.relay.tape
  }

  get client(): JudgedClient {
    if (!this.#client) throw new Error('the client has not started')
    return this.#client
  }

  /** Starts the client, and resolves when it connects. */
  async firstConnection(): Promise<ScriptedConnection> {
    const { url } = this.relay
    const command = this.#command.map((word) => word.replaceAll('{url}', url))
    const environment = { STOCKTAPE_URL: url, STOCKTAPE_SYMBOLS: 'AAPLc', STOCKTAPE_POSITION: join(this.#folder, 'position') }
    this.#client = new JudgedClient(command, { ...process.env, ...environment })
    const connection = await this.relay.nextConnection(CONNECT_MS)
    if (connection) return connection
    const { ended, stderr } = this.client
    const how = ended === null ? '' : `; it ended with ${ended}`
    throw new BrokenRule(`the client did not connect within ${CONNECT_MS / 1_000} s${how}${stderr && `: ${lastLine(stderr)}`}`)
  }

  /** Resolves when the client is live and has printed two movements. */
  async openLive(): Promise<ScriptedConnection> {
    const connection = await this.firstConnection()
    connection.accept()
    await this.publishAndExpect(connection, this.tape.transfer(), this.tape.transfer())
    return connection
  }

  async nextConnection(withinMs = RETURN_MS): Promise<ScriptedConnection> {
    const connection = await this.relay.nextConnection(withinMs)
    if (!connection) throw new BrokenRule(`the client did not reconnect within ${withinMs / 1_000} s${this.#howItEnded()}`)
    return connection
  }

  /** Waits until the client resumes: at its last position, or at the earlier one up to which a heartbeat proved its stream. */
  async nextResume(last: string, withinMs?: number): Promise<ScriptedConnection> {
    const proven = this.relay.connections.findLast(({ isAccepted }) => isAccepted)?.provenBefore ?? last
    const connection = await this.nextConnection(withinMs)
    const { since } = connection
    if (since === null) throw new BrokenRule(`the client reconnected without a position; it had received ${last}`)
    const isBetween = seqOf(since) >= seqOf(proven) && seqOf(since) <= seqOf(last)
    if (!isBetween || since.split('.')[0] !== last.split('.')[0])
      throw new BrokenRule(`the client resumed at ${since}; it had received ${last}, and all messages up to ${proven}`)
    return connection
  }

  async publishAndExpect(connection: ScriptedConnection, ...messages: readonly Update[]): Promise<void> {
    for (const message of messages) connection.publish(message)
    await this.expectPrinted(...messages)
  }

  /** Requires that the client prints each message once, and unchanged. */
  async expectPrinted(...messages: readonly Update[]): Promise<void> {
    for (const message of messages) {
      const { type, id } = message
      const printed = () => this.client.lines.find((line) => line.id === id && line.type === type)
      await this.client.until(() => printed() !== undefined, PRINT_MS)
      const line = printed()
      if (!line) throw new BrokenRule(`the client did not print the ${type} ${id}${this.#howItEnded()}`)
      const difference = differenceOf(message, line)
      if (difference !== null) throw new BrokenRule(`the client printed the ${type} ${id} with ${difference}`)
    }
    this.#expectNoRepetition()
  }

  #expectNoRepetition(): void {
    const printed = this.client.lines.filter((line) => 'prev' in line && typeof line.id === 'string')
    const ids = printed.map(({ id }) => String(id))
    const repeated = ids.find((id, index) => ids.indexOf(id) < index)
    if (repeated !== undefined) throw new BrokenRule(`the client printed ${repeated} twice`)
  }

  /** Requires a gap with this reason, from the relay or found by the client. */
  async expectGap(reason: string, what: string): Promise<void> {
    const isGap = () => this.client.lines.some((line) => line.type === 'gap' && line.reason === reason)
    if (!(await this.client.until(isGap, PRINT_MS)))
      throw new BrokenRule(`the client printed no gap ${reason}: ${what}${this.#howItEnded()}`)
  }

  /** Requires that the client ends, or does not reconnect. */
  async expectAway(why: string): Promise<void> {
    const connection = await this.relay.nextConnection(WATCH_MS)
    if (!connection) return
    const lastArrival = this.relay.connections.findLast((other) => other !== connection)?.arrivedAt ?? 0
    throw new BrokenRule(`the client reconnected after ${Math.round(connection.arrivedAt - lastArrival)} ms, although ${why}`)
  }

  async close(): Promise<void> {
    await this.#client?.end()
    await this.relay.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #howItEnded(): string {
    const { ended, unreadable, stderr } = this.client
    if (unreadable !== null) return `; on standard output it printed a line that is no message: ${unreadable}`
    return ended === null ? '' : `; it had ended with ${ended}${stderr && `: ${lastLine(stderr)}`}`
  }
}

const seqOf = (position: string): number => Number(position.split('.')[1])
const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1)?.slice(0, 200) ?? ''

/** Names the first field that the client changed; null if there is none. */
function differenceOf(message: Update, line: object): string | null {
  const printed = new Map<string, unknown>(Object.entries(line))
  for (const [name, value] of Object.entries(message)) {
    if (!printed.has(name)) return `no ${name}`
    const given = printed.get(name)
    if (!isDeepStrictEqual(given, value)) return `${name} ${short(given)}, and not ${short(value)}`
  }
  return null
}

const short = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
