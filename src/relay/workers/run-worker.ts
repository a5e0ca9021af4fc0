import cluster from 'node:cluster'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Subject } from 'rxjs'
import type { ChainEvent } from '../chain/source/source.ts'
import { type Config, withUpstream } from '../config/config.ts'
import { ListenError } from '../edge/http/http-server.ts'
import { SharedUsage } from '../edge/limits/shared-usage.ts'
import type { WriteLine } from '../log-lines.ts'
import { openServer, type Relay, type RelayOptions, tapePorts } from '../relay.ts'
import { decodeBatch, entriesOf, numberedBatchOf } from '../tape/batch-message.ts'
import { REACH_BOUND_MS, type SharedTapeLink } from '../tape/tape.ts'
import { TAPE_FILE_NAME } from '../tape/tape-database.ts'
import { openTapeStore, type TapeStore } from '../tape/tape-store.ts'
import { Questions, type WorkerOrder, type WorkerReport } from './worker-messages.ts'

/** Limit of the wait for an answer of the writing process, which itself may wait for another process. */
const REACH_ANSWER_BOUND_MS = REACH_BOUND_MS + 500
/** Limit of the wait for the metrics of all processes. */
const METRICS_BOUND_MS = 10_000

type GivenOptions = Pick<RelayOptions, 'log' | 'metrics' | 'loadDocuments'>

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

class ServingWorker implements SharedTapeLink {
  readonly #config: Config
  readonly #given: GivenOptions
  readonly #chainEvents = new Subject<ChainEvent>()
  /** Questions to the writing process. */
  readonly #questions = new Questions()
  /** A copy of the tape, to which this process writes the batches that the writing process sends. */
  #tape: TapeStore | null = null
  #usage: SharedUsage | null = null
  #opening: Promise<Relay> | null = null
  #isCut = false

  constructor(config: Config, given: GivenOptions) {
    this.#config = config
    this.#given = given
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
        return this.#receive(order.bytes)
      case 'chainEvent':
        return this.#chainEvents.next(order.event)
      case 'cut':
        this.#isCut = order.isCut
        return
      case 'measure':
        return void this.#given.metrics.json().then((json) => report({ did: 'measure', question: order.question, json }))
      case 'answer':
        return this.#questions.answer(order.question, order.answer)
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
    this.#given.log('worker_failed', failure instanceof Error ? failure : { reason: String(failure) })
    process.exit(1)
  }

  async #start({
    dir,
    source,
    upstream,
    usageFile,
    tokenSecret,
    port,
    slot,
  }: Extract<WorkerOrder, { do: 'start' }>): Promise<void> {
    if (source) await copyFile(source, join(dir, TAPE_FILE_NAME))
    const config = withUpstream(this.#config, upstream)
    const tape = openTapeStore({ ...config.tape, dataDir: dir, ...tapePorts })
    this.#tape = tape
    const sharedUsage = new SharedUsage(usageFile, cluster.worker?.id ?? 0)
    this.#usage = sharedUsage
    report({ did: 'copy' })
    const options = {
      config: { ...config, process: { ...config.process, port }, edge: { ...config.edge, tokenSecret } },
      ...this.#given,
      log: logOfSlot(slot, this.#given.log),
      metrics: { ...this.#given.metrics, text: () => this.#askMetrics() },
      sharedUsage,
      onFailure: (failure: unknown) => this.onFailure(failure),
    }
    const opened = { tape, writer: null, shared: this, peers: null, close: async () => tape.close() }
    this.#opening = openServer(options, opened, this.#chainEvents)
    const relay = await this.#opening
    report({ did: 'listen', port: relay.port })
    await relay.whenListed
    report({ did: 'list' })
  }

  /** Writes a batch to the copy, which may already contain the first updates of the batch. */
  #receive(bytes: Uint8Array): void {
    const batch = decodeBatch(bytes)
    if (!batch) throw new Error('a batch from the writing process cannot be read')
    const end = this.#tape?.end() ?? 0
    this.#tape?.write(
      numberedBatchOf(
        batch,
        entriesOf(batch).filter(({ seq }) => seq > end),
      ),
    )
  }

  get isCut(): boolean {
    return this.#isCut
  }

  /** Only the writing process knows it. */
  get refusal(): string | null {
    return null
  }

  /** Asks the writing process, whose answer follows all of its batches. */
  async reach(seq: number): Promise<boolean> {
    const ask = (question: number) => report({ did: 'reach', question, seq })
    return (await this.#questions.ask<boolean>(REACH_ANSWER_BOUND_MS, ask)) ?? false
  }

  async #askMetrics(): Promise<string> {
    const text = await this.#questions.ask<string>(METRICS_BOUND_MS, (question) => report({ did: 'askMetrics', question }))
    if (text === null) throw new Error('the writing process does not answer')
    return text
  }
}

/** All workers read the API keys, and the first one says so for all. */
const logOfSlot =
  (slot: number, log: WriteLine): WriteLine =>
  (kind, detail) => {
    if (slot === 1 || !kind.startsWith('api_keys_')) log(kind, detail)
  }

const report = (message: WorkerReport): void => void process.send?.(message)
