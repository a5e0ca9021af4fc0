import type { onTestFinished } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { freePort, openFolder, type Program, spawnRelay } from '../../support/child-program.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { type Told, toldTo, upTo } from './reconnecting-readers.ts'

/** Whoever says when a test is over. */
export type Test = { readonly onTestFinished: typeof onTestFinished }

/** Longer than any test takes that deploys; reaching it is a failure, never a pause. */
export const PATIENCE_MS = 60_000

/** How long stopping may take; ended by a signal it has to be quicker, whoever listens. */
export const DRAIN_MS = 5_000

/** More than any test here opens, all of them from this one machine. */
const CLIENTS_PER_ADDRESS = 1_000

/** One address and one tape, served by one process after the other. */
export class Deployment {
  readonly url: string
  readonly wsUrl: string
  readonly #test: Test
  readonly #settings: Record<string, string>
  #process: Program | undefined

  static async open(
    test: Test,
    { rpcUrl, wsUrl, url }: Pick<Devnet, 'rpcUrl' | 'wsUrl' | 'url'>,
    settings: Record<string, string> = {},
  ): Promise<Deployment> {
    const deployment = new Deployment(test, {
      PORT: String(await freePort()),
      DATA_DIR: await openFolder(test),
      UPSTREAM_RPC_URL: rpcUrl,
      UPSTREAM_WS_URL: wsUrl,
      STOCKS_API_URL: url,
      DRAIN_MS: String(DRAIN_MS),
      CLIENTS_PER_ADDRESS_BOUND: String(CLIENTS_PER_ADDRESS),
      ...settings,
    })
    await deployment.start()
    return deployment
  }

  private constructor(test: Test, settings: Record<string, string>) {
    this.#test = test
    this.#settings = settings
    this.url = `http://127.0.0.1:${settings.PORT}`
    this.wsUrl = `ws://127.0.0.1:${settings.PORT}`
  }

  /** Resolves once the relay listens and has its list. */
  async start(): Promise<void> {
    this.#process = spawnRelay(this.#test, this.#settings)
    await this.#process.url()
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.signal(name)
  }

  /** The exit code of the process that runs now, or null where a signal ended it. */
  async exit(): Promise<number | null> {
    return (await this.#process?.exit()) ?? null
  }

  /** Ends the process, and starts another on the same address and the same tape as soon as it is gone; its exit code. */
  async restart(name: NodeJS.Signals): Promise<number | null> {
    this.signal(name)
    const code = await this.exit()
    await this.start()
    return code
  }

  /** Asks until the answer is what is waited for. */
  async until(path: string, fits: (text: string) => boolean): Promise<void> {
    while (!fits(await (await fetch(`${this.url}${path}`)).text()));
  }

  /** The position of something that is told from now on. */
  async news(): Promise<string> {
    const ear = await listenNdjson(`${this.url}/v1/stream?symbols=*&types=*&snapshot=false`)
    await ear.until(() => toldTo(ear).length > 0, 'any news')
    ear.close()
    return toldTo(ear)[0]?.update.id ?? ''
  }

  /** The tape itself, from its start up to a position: each update with the text in which it is told. */
  async tape(last: string): Promise<readonly Told[]> {
    const ear = await listenNdjson(`${this.url}/v1/stream?symbols=*&types=*&since=start&snapshot=false`)
    await ear.until(() => toldTo(ear).some(({ update }) => update.id === last), last)
    ear.close()
    return upTo(last, toldTo(ear))
  }
}
