import type { onTestFinished } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import {
  type ChildProgram,
  createTempFolder,
  freePort,
  type LogEntry,
  spawnRelay,
  upstreamOf,
} from '../../support/child-program.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { type ReceivedUpdate, receivedUpdatesOf, upTo } from './reconnecting-readers.ts'

/** The context of a test, for cleanups. */
export type TestLifecycle = { readonly onTestFinished: typeof onTestFinished }

/** Longer than any test with restarts takes; reaching it is a failure, never a pause. */
export const TEST_TIMEOUT_MS = 180_000

/** How long the relay may drain; stopping by a signal must take less, with any listeners. */
export const DRAIN_MS = 5_000

/** More than any test opens from this machine. */
const MAX_CLIENTS_PER_ADDRESS = 1_000

/** One address and one tape over several runs of the relay. */
export class DeployedRelay {
  readonly url: string
  readonly wsUrl: string
  readonly #test: TestLifecycle
  readonly #settings: Record<string, string>
  #process: ChildProgram | undefined

  static async open(
    test: TestLifecycle,
    devnet: Pick<Devnet, 'rpcUrl' | 'wsUrl' | 'url'>,
    settings: Record<string, string> = {},
  ): Promise<DeployedRelay> {
    const relay = new DeployedRelay(test, {
      PORT: String(await freePort()),
      DATA_DIR: await createTempFolder(test),
      ...upstreamOf(devnet),
      DRAIN: `${DRAIN_MS}ms`,
      MAX_CLIENTS_PER_ADDRESS: String(MAX_CLIENTS_PER_ADDRESS),
      ...settings,
    })
    await relay.start()
    return relay
  }

  private constructor(test: TestLifecycle, settings: Record<string, string>) {
    this.#test = test
    this.#settings = settings
    this.url = `http://127.0.0.1:${settings.PORT}`
    this.wsUrl = `ws://127.0.0.1:${settings.PORT}`
  }

  /** Resolves once the relay listens and has its token list. */
  async start(): Promise<void> {
    this.#process = spawnRelay(this.#test, this.#settings)
    await this.#process.listeningUrl()
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.signal(name)
  }

  /** What the current process has logged. */
  get log(): readonly LogEntry[] {
    return this.#process?.log ?? []
  }

  /** The exit code of the current process, or null if a signal ended it. */
  async waitForExit(): Promise<number | null> {
    return (await this.#process?.waitForExit()) ?? null
  }

  /** Stops the process and then starts another on the same address and tape; the exit code of the first. */
  async restart(name: NodeJS.Signals, settings: Record<string, string> = {}): Promise<number | null> {
    Object.assign(this.#settings, settings)
    this.signal(name)
    const code = await this.waitForExit()
    await this.start()
    return code
  }

  /** Requests a path until the answer matches. */
  async waitForResponse(path: string, matches: (text: string) => boolean): Promise<void> {
    while (!matches(await (await fetch(`${this.url}${path}`)).text()));
  }

  /** Resolves once the relay follows the chain. On an empty tape it begins there, and never reads the blocks before. */
  waitForPendingLogs(): Promise<void> {
    return this.waitForResponse('/v1/status', (text) => text.includes('"source":"pendingLogs"'))
  }

  /** The position of the next update of a selection. */
  async waitForNewPosition(selection = 'symbols=*&types=*'): Promise<string> {
    const listener = await listenNdjson(`${this.url}/v1/stream?${selection}&snapshot=false`)
    await listener.until(() => receivedUpdatesOf(listener).length > 0, 'an update')
    listener.close()
    return receivedUpdatesOf(listener)[0]?.update.id ?? ''
  }

  /** The tape from its start up to a position: each update with its text. */
  async readTape(last: string): Promise<readonly ReceivedUpdate[]> {
    const listener = await listenNdjson(`${this.url}/v1/stream?symbols=*&types=*&since=start&snapshot=false`)
    await listener.until(() => receivedUpdatesOf(listener).some(({ update }) => update.id === last), last)
    listener.close()
    return upTo(last, receivedUpdatesOf(listener))
  }
}
