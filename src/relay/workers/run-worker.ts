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
import { decodeBatch } from '../tape/batch-message.ts'
import { Notes } from '../tape/notes.ts'
import { openStoredTape, StoredTape } from '../tape/stored-tape.ts'
import { type Entry, NotLeadingError, REACH_BOUND_MS } from '../tape/tape.ts'
import { TAPE_FILE_NAME } from '../tape/tape-database.ts'
import { entryOf } from '../tape/tape-row.ts'
import type { WorkerOrder, WorkerReport } from './worker-messages.ts'

/** Limit of the wait for an answer of the writing process, which itself may wait for another process. */
const ANSWER_BOUND_MS = REACH_BOUND_MS + 500

type GivenOptions = Pick<RelayOptions, 'log' | 'loadDocuments'>

/** Serves clients with a copy of the tape of the writing process. Ends when that process ends or orders it. */
export function runWorker(config: Config, given: GivenOptions): void {
  const worker = new ServingWorker(config, given)
  process.on('message', (order: WorkerOrder) => worker.execute(order))
  process.once('disconnect', () => worker.stop())
  // A signal to the process group is for the writing process, which stops the workers itself.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => {})
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(event, (failure) => worker.onFailure(failure))
}

/** A copy of the tape, kept up to date by the batches that the writing process sends. */
class WorkerTape extends StoredTape {
  readonly #reaching = new Map<number, (isReached: boolean) => void>()
  #requests = 0

  /** Asks the writing process, whose answer follows all of its batches. */
  override reach(seq: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#requests += 1
    const request = this.#requests
    const timeout = setTimeout(() => this.onReached(request, false), ANSWER_BOUND_MS)
    this.#reaching.set(request, (isReached) => {
      clearTimeout(timeout)
      resolve(isReached)
    })
    report({ did: 'reach', request, seq })
    return promise
  }

  onReached(request: number, isReached: boolean): void {
    this.#reaching.get(request)?.(isReached)
    this.#reaching.delete(request)
  }

  override async append(): Promise<readonly Entry[]> {
    throw new NotLeadingError('another process writes the tape')
  }

  /** Writes a batch to the copy, which may already contain the first updates of the batch. */
  receive(bytes: Uint8Array): void {
    const batch = decodeBatch(bytes)
    if (!batch) throw new Error('a batch from the writing process cannot be read')
    const { first, texts, notes, keepAfter } = batch
    const entries = texts.map((text, index) => entryOf([first + index, text])).filter(({ seq }) => seq > this.end())
    this.write(entries, new Notes(notes), keepAfter ?? Number.POSITIVE_INFINITY)
  }
}

class ServingWorker {
  readonly #config: Config
  readonly #given: GivenOptions
  readonly #metrics = openMetrics()
  readonly #chainEvents = new Subject<ChainEvent>()
  /** Requests for metrics that wait for an answer. All of them ask for the same metrics, so any answer fits any request. */
  readonly #answers: ((text: string) => void)[] = []
  #tape: WorkerTape | null = null
  #usage: SharedUsage | null = null
  #opening: Promise<Relay> | null = null
  #isCut = false

  constructor(config: Config, given: GivenOptions) {
    this.#config = config
    this.#given = given
    this.#metrics.addProcess()
  }

  execute(order: WorkerOrder): void {
    switch (order.do) {
      case 'start':
        return void this.#start(order).catch((failure: unknown) => {
          if (failure instanceof ListenError) report({ did: 'fail', message: failure.message })
          else this.onFailure(failure)
        })
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
        return this.#answers.shift()?.(order.text)
      case 'reached':
        return this.#tape?.onReached(order.request, order.isReached)
      case 'announceStop':
        return void this.#opening?.then((relay) => relay.announceStop()).catch(() => {})
      case 'stop':
        return this.stop()
    }
  }

  stop(): void {
    // A relay that failed to open has already reported its failure.
    const stopped = this.#opening?.catch(() => null).then((relay) => relay?.stop())
    void Promise.resolve(stopped).then(
      () => process.exit(0),
      (failure: unknown) => this.onFailure(failure),
    )
  }

  onFailure(failure: unknown): void {
    this.#given.log.fatal(failure instanceof Error ? failure : { failure }, 'the worker cannot continue')
    process.exit(1)
  }

  async #start({ dir, source, upstream, usageFile, tokenSecret, port }: Extract<WorkerOrder, { do: 'start' }>): Promise<void> {
    if (source) await copyFile(source, join(dir, TAPE_FILE_NAME))
    const config = withUpstream(this.#config, upstream)
    const tapeOptions = { ...config.tape, dataDir: dir, ...tapePorts }
    const tape = openStoredTape(tapeOptions, (database) => new WorkerTape(database, tapeOptions))
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

  #askMetrics(): Promise<string> {
    report({ did: 'askMetrics' })
    return new Promise((resolve) => this.#answers.push(resolve))
  }
}

const report = (message: WorkerReport): void => void process.send?.(message)
