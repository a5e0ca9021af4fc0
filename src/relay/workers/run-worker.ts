import cluster from 'node:cluster'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EMPTY, Subject } from 'rxjs'
import type { ChainEvent } from '../chain/source/source.ts'
import { type Config, withUpstream } from '../config/config.ts'
import { ListenError } from '../edge/http/http-server.ts'
import { SharedUsage } from '../edge/limits/shared-usage.ts'
import { openMetrics } from '../metrics.ts'
import { openServer, type Relay, type RelayOptions, tapePorts } from '../relay.ts'
import { TAPE_FILE_NAME } from '../tape/tape-schema.ts'
import type { WorkerOrder, WorkerReport } from './worker-messages.ts'
import { openWorkerTape, type WorkerTape } from './worker-tape.ts'

type GivenOptions = Pick<RelayOptions, 'log' | 'loadDocuments'>

/** Serves clients with the tape that the process writes which started this one. Ends with it, or when it says so. */
export function runWorker(config: Config, given: GivenOptions): void {
  const worker = new ServingWorker(config, given)
  process.on('message', (order: WorkerOrder) => worker.execute(order))
  process.once('disconnect', () => worker.stop())
  // A signal to the process group is for the process that writes: it stops the workers.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => {})
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(event, (failure) => worker.onFailure(failure))
}

class ServingWorker {
  readonly #config: Config
  readonly #given: GivenOptions
  readonly #metrics = openMetrics()
  readonly #chainEvents = new Subject<ChainEvent>()
  readonly #answers = new Map<number, (text: string) => void>()
  #tape: WorkerTape | null = null
  #usage: SharedUsage | null = null
  #opening: Promise<Relay> | null = null
  #isCut = false
  #requests = 0

  constructor(config: Config, given: GivenOptions) {
    this.#config = config
    this.#given = given
    this.#metrics.addProcess()
  }

  execute(order: WorkerOrder): void {
    switch (order.do) {
      case 'start':
        return void this.#start(order).catch((failure: unknown) => this.#onStartFailure(failure))
      case 'moveUsage':
        return this.#usage?.moveTo(order.file)
      case 'batch':
        return this.#tape?.receive(order.bytes)
      case 'chainEvent':
        return this.#chainEvents.next(order.event)
      case 'cut':
        this.#isCut = order.isCut
        return
      case 'measure':
        return void this.#metrics.json().then((json) => report({ did: 'measure', request: order.request, json }))
      case 'measured':
        this.#answers.get(order.request)?.(order.text)
        this.#answers.delete(order.request)
        return
      case 'announceStop':
        return void this.#opening?.then((relay) => relay.announceStop()).catch(() => {})
      case 'stop':
        return this.stop()
    }
  }

  stop(): void {
    void (async () => {
      // One that never opened has said why.
      const relay = await this.#opening?.catch(() => null)
      await relay?.stop()
      process.exit(0)
    })().catch((failure: unknown) => this.onFailure(failure))
  }

  onFailure(failure: unknown): void {
    this.#given.log.fatal(failure instanceof Error ? failure : { failure }, 'the worker cannot go on')
    process.exit(1)
  }

  async #start({ dir, source, upstream, usageFile, tokenSecret, port }: Extract<WorkerOrder, { do: 'start' }>): Promise<void> {
    if (source) await copyFile(source, join(dir, TAPE_FILE_NAME))
    const config = withUpstream(this.#config, upstream)
    const tape = openWorkerTape({ ...config.tape, dataDir: dir, ...tapePorts })
    this.#tape = tape
    const sharedUsage = new SharedUsage(usageFile, cluster.worker?.id ?? 0)
    this.#usage = sharedUsage
    report({ did: 'copy' })
    const options = {
      config: { ...config, process: { ...config.process, port }, edge: { ...config.edge, tokenSecret } },
      ...this.#given,
      metrics: { ...this.#metrics, text: () => this.#askMetrics() },
      sharedUsage,
      onFailure: (failure: unknown) => this.onFailure(failure),
    }
    const opened = { tape, leadership: EMPTY, peers: null, isCut: () => this.#isCut }
    this.#opening = openServer(options, opened, this.#chainEvents)
    const relay = await this.#opening
    report({ did: 'listen', port: relay.port })
    await relay.whenListed
    report({ did: 'list' })
  }

  #onStartFailure(failure: unknown): void {
    if (!(failure instanceof ListenError)) return this.onFailure(failure)
    report({ did: 'fail', message: failure.message })
  }

  /** The metrics of all processes. */
  #askMetrics(): Promise<string> {
    this.#requests += 1
    const request = this.#requests
    report({ did: 'askMetrics', request })
    return new Promise((resolve) => this.#answers.set(request, resolve))
  }
}

const report = (message: WorkerReport): void => void process.send?.(message)
