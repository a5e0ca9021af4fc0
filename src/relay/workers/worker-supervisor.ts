import cluster, { type Worker } from 'node:cluster'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ChainEvent } from '../chain/source/source.ts'
import { randomTokenSecret } from '../config/api-key-settings.ts'
import { upstreamOf } from '../config/config.ts'
import { ListenError } from '../edge/http/http-server.ts'
import { type MetricsJson, mergeMetrics } from '../metrics.ts'
import { openWriter, type Relay, type RelayOptions } from '../relay.ts'
import { batchMessageOf, encodeBatch } from '../tape/batch-message.ts'
import { TAPE_FILE_NAME } from '../tape/tape-database.ts'
import type { NumberedBatch } from '../tape/tape-store.ts'
import { LastChainEvents } from './last-chain-events.ts'
import { makeFolder, removeLeftovers, UsageFile } from './temporary-files.ts'
import { Questions, type WorkerOrder, type WorkerReport } from './worker-messages.ts'

/** Limit of the bytes of orders that a worker has not read. Beyond it the worker counts as stuck, and is replaced. */
const UNSENT_BOUND_BYTES = 128 * 2 ** 20
/** Least and greatest delay before a worker that ended is replaced. It doubles if the worker ended within SOON_MS of its start. */
const [RESTART_MS, RESTART_BOUND_MS, SOON_MS] = [250, 30_000, 10_000]
const METRICS_TIMEOUT_MS = 1_000
const CUT_CHECK_MS = 250
/** Interval between two attempts to copy the tape while the disk fails. */
const COPY_RETRY_MS = 1_000
/** A worker is killed if it has not ended this long after the time of DRAIN. */
const EXTRA_STOP_MS = 2_000

type Member = {
  readonly slot: number
  readonly worker: Worker
  readonly startedAt: number
  /** Batches that wait until the worker has its copy of the tape; null after that. */
  waiting: Uint8Array[] | null
  /** Called when the worker has its copy. */
  onCopy: () => void
  unsentBytes: number
  /** A worker receives chain events once it listens, the last ones of before first. */
  isListening: boolean
}

/** Writes the tape in this process, and starts others that serve it behind one port. Resolves when all of them listen. */
export async function startWorkers(options: RelayOptions): Promise<Relay> {
  const workers = new WorkerSupervisor(options)
  try {
    await workers.open()
    await workers.listening.promise
  } catch (failure) {
    await workers.stop()
    throw failure
  }
  return {
    port: await workers.listening.promise,
    whenListed: workers.listed.promise,
    metricsText: () => workers.metricsText(),
    announceStop: () => workers.announceStop(),
    clientCount: () => workers.clientCount,
    stop: () => workers.stop(),
  }
}

class WorkerSupervisor {
  readonly #options: RelayOptions
  readonly #folder: string
  readonly #tokenSecret: string
  #usage: UsageFile | null = null
  readonly #members = new Map<number, Member>()
  /** Resolves with the port once all workers listen on it. */
  readonly listening = Promise.withResolvers<number>()
  readonly listed = Promise.withResolvers<void>()
  readonly #listeningSlots = new Set<number>()
  readonly #restartDelays = new Map<number, number>()
  /** Questions to workers. */
  readonly #questions = new Questions()
  #writer: Awaited<ReturnType<typeof openWriter>> | null = null
  #lastEvents = new LastChainEvents()
  #port: number
  /** The port that workers request. They share one socket only if all request the same number. */
  #sharedPort: number
  #copies = 0
  /** Ends with the last copy that was asked for: workers copy the tape one after the other. */
  #copying: Promise<void> = Promise.resolve()
  #isCut = false
  #isStopAnnounced = false
  #isStopping = false
  #reopening: Promise<void> = Promise.resolve()
  readonly #cutTimer: NodeJS.Timeout

  constructor(options: RelayOptions) {
    this.#options = options
    const { process: own, tape, edge } = options.config
    this.#tokenSecret = edge.tokenSecret ?? randomTokenSecret()
    this.#port = own.port
    this.#sharedPort = own.port
    removeLeftovers()
    this.#folder = tape.dataDir === ':memory:' ? makeFolder('workers') : join(tape.dataDir, 'workers')
    this.#cutTimer = setInterval(() => this.#checkCut(), CUT_CHECK_MS)
    cluster.setupPrimary({ serialization: 'advanced' })
  }

  async open(): Promise<void> {
    this.#lastEvents = new LastChainEvents()
    const writer = await openWriter({
      ...this.#options,
      onChainEvent: (event) => this.#sendEvent(event),
      reopen: (why) => {
        this.#reopening = this.#reopening.then(() => this.#reopen(why)).catch(this.#options.onFailure)
      },
    })
    this.#writer = writer
    // The folder is removed only now, because it may belong to another relay until the tape is open.
    rmSync(this.#folder, { recursive: true, force: true })
    mkdirSync(this.#folder, { recursive: true })
    this.#usage = new UsageFile()
    writer.tape.follow((entries, notes, keepAfter, bars) => this.#sendBatch({ entries, notes, bars, keepAfter }))
    for (let slot = 1; slot <= this.#options.config.process.workers; slot += 1) this.#fork(slot)
  }

  get clientCount(): number {
    return this.#usage?.clientCount ?? 0
  }

  /** Returns the metrics of this process and of the workers that answer in time. */
  async metricsText(): Promise<string> {
    const measured = await Promise.all([...this.#members.values()].map((member) => this.#measure(member)))
    return mergeMetrics([await this.#options.metrics.json(), ...measured.filter((json) => json !== null)])
  }

  announceStop(): void {
    this.#isStopAnnounced = true
    for (const member of this.#members.values()) this.#send(member, { do: 'announceStop' })
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#cutTimer)
    await this.#reopening
    await this.#stopMembers()
    if (this.#writer) rmSync(this.#folder, { recursive: true, force: true })
    await this.#writer?.stop()
  }

  async #reopen(reason: string): Promise<void> {
    if (this.#isStopping) return
    this.#options.log('tape_reopened', { reason })
    const writer = this.#writer
    this.#writer = null
    await this.#stopMembers()
    await writer?.stop()
    this.#sharedPort = this.#port
    await this.open()
  }

  #fork(slot: number): void {
    const worker = cluster.fork()
    const startedAt = performance.now()
    const member: Member = { slot, worker, startedAt, waiting: [], onCopy: () => {}, unsentBytes: 0, isListening: false }
    this.#members.set(slot, member)
    worker.once('online', () => {
      this.#copying = this.#copying.then(() => this.#giveCopy(member)).catch(this.#options.onFailure)
    })
    worker.on('message', (report: WorkerReport) => this.#onReport(member, report))
    // A worker that cannot be reached ends, and `exit` handles that.
    worker.process.on('error', () => {})
    worker.once('exit', (code, signal) => this.#onExit(member, signal ?? `exit code ${code}`))
    closeLastConnectionAtExit(worker)
  }

  /** Lets a worker copy the tape. Batches for the worker wait until it has the copy. */
  async #giveCopy(member: Member): Promise<void> {
    const { worker, slot } = member
    this.#copies += 1
    const dir = join(this.#folder, `copy-${this.#copies}`)
    // If the folder is among the temporary files, another program may have deleted it.
    mkdirSync(dir, { recursive: true })
    const held = await this.#holdFor(member, join(dir, TAPE_FILE_NAME))
    const usage = this.#usage
    if (!held || !usage) return
    if (usage.renew()) for (const each of this.#members.values()) this.#send(each, { do: 'moveUsage', file: usage.path })
    const hasCopied = new Promise<boolean>((resolve) => {
      member.onCopy = () => resolve(true)
      worker.once('exit', () => resolve(false))
    })
    const given = { upstream: upstreamOf(this.#options.config), usageFile: usage.path, tokenSecret: this.#tokenSecret }
    this.#send(member, { do: 'start', ...given, dir, source: held.source, port: this.#sharedPort, slot })
    this.#send(member, { do: 'cut', isCut: this.#isCut })
    const isCopied = await hasCopied
    // If the file has changed during the copy, the worker that takes this slot copies it again.
    if (!held.release()) kill(member)
    else if (isCopied) this.#sendWaiting(member)
  }

  /** Holds the file for a copy: while the disk fails, its newest updates are in memory only. Null if the worker has ended. */
  async #holdFor(member: Member, path: string) {
    while (this.#writer && !member.worker.isDead()) {
      const held = this.#writer.tape.holdForCopy(path)
      if (held) {
        // The copy has all batches before this moment, and none after it.
        member.waiting = []
        member.unsentBytes = 0
        return held
      }
      await delay(COPY_RETRY_MS, null, { ref: false })
    }
    return null
  }

  #sendWaiting(member: Member): void {
    const waiting = member.waiting ?? []
    member.waiting = null
    member.unsentBytes = 0
    for (const bytes of waiting) this.#send(member, { do: 'batch', bytes }, bytes.length)
  }

  #onReport(member: Member, report: WorkerReport): void {
    switch (report.did) {
      case 'copy':
        return member.onCopy()
      case 'listen':
        this.#port = report.port
        this.#options.log('worker_started', { worker: member.slot, pid: member.worker.process.pid })
        this.#listeningSlots.add(member.slot)
        member.isListening = true
        for (const event of this.#lastEvents.all) this.#send(member, { do: 'chainEvent', event })
        if (this.#isStopAnnounced) this.#send(member, { do: 'announceStop' })
        if (this.#listeningSlots.size === this.#options.config.process.workers) this.listening.resolve(report.port)
        return
      case 'list':
        return this.listed.resolve()
      case 'fail':
        return this.listening.reject(new ListenError(report.message))
      case 'reach':
        return void this.#answerReach(member, report)
      case 'askMetrics':
        return void this.metricsText().then((text) => this.#answer(member, report.question, text))
      case 'measure':
        return this.#questions.answer(report.question, report.json)
    }
  }

  async #answerReach(member: Member, { question, seq }: Extract<WorkerReport, { did: 'reach' }>): Promise<void> {
    // While the tape is opened again, this process does not know what others have written.
    const isReached = this.#writer !== null && ((await this.#writer.shared?.reach(seq)) ?? true)
    this.#answer(member, question, isReached)
  }

  #answer(member: Member, question: number, answer: boolean | string): void {
    this.#send(member, { do: 'answer', question, answer })
  }

  #onExit(member: Member, how: string): void {
    if (this.#members.get(member.slot) === member) this.#members.delete(member.slot)
    if (!this.#isStopping) this.#usage?.forget(member.worker.id)
    if (this.#isStopping || !this.#writer) return
    this.#options.log('worker_ended', { worker: member.slot, reason: how })
    setTimeout(() => {
      if (!this.#isStopping && this.#writer && !this.#members.has(member.slot)) this.#fork(member.slot)
    }, this.#restartDelayOf(member)).unref()
  }

  #restartDelayOf({ slot, startedAt }: Member): number {
    const isSoon = performance.now() - startedAt < SOON_MS
    const delayMs = isSoon ? Math.min(RESTART_BOUND_MS, 2 * (this.#restartDelays.get(slot) ?? RESTART_MS / 2)) : RESTART_MS
    this.#restartDelays.set(slot, delayMs)
    return delayMs
  }

  #sendBatch(batch: NumberedBatch): void {
    if (this.#members.size === 0 || !this.#writer) return
    // A worker receives every batch in order, and does not read which number it follows.
    const bytes = encodeBatch(batchMessageOf(this.#writer.tape, batch))
    for (const member of this.#members.values()) {
      if (!member.waiting) this.#send(member, { do: 'batch', bytes }, bytes.length)
      else if (member.unsentBytes + bytes.length > UNSENT_BOUND_BYTES) kill(member)
      else {
        member.waiting.push(bytes)
        member.unsentBytes += bytes.length
      }
    }
  }

  #sendEvent(event: ChainEvent): void {
    this.#lastEvents.receive(event)
    for (const member of this.#members.values()) if (member.isListening) this.#send(member, { do: 'chainEvent', event })
  }

  #send(member: Member, order: WorkerOrder, bytes = 0): void {
    if (!member.worker.isConnected()) return
    member.unsentBytes += bytes
    if (member.unsentBytes > UNSENT_BOUND_BYTES) return kill(member)
    member.worker.send(order, () => {
      member.unsentBytes -= bytes
    })
  }

  #checkCut(): void {
    const isCut = this.#writer ? (this.#writer.shared?.isCut ?? false) : true
    if (isCut === this.#isCut) return
    this.#isCut = isCut
    for (const member of this.#members.values()) this.#send(member, { do: 'cut', isCut })
  }

  /** Asks a worker for its metrics. Resolves to null if the worker does not answer in time. */
  #measure(member: Member): Promise<MetricsJson | null> {
    return this.#questions.ask(METRICS_TIMEOUT_MS, (question) => this.#send(member, { do: 'measure', question }))
  }

  async #stopMembers(): Promise<void> {
    const deadlineMs = this.#options.config.process.drainMs + EXTRA_STOP_MS
    await Promise.all(
      [...this.#members.values()].map(async (member) => {
        const { worker } = member
        if (worker.isDead()) return
        const ended = new Promise((resolve) => worker.once('exit', resolve))
        this.#send(member, { do: 'stop' })
        const deadline = setTimeout(() => kill(member), deadlineMs)
        await ended
        clearTimeout(deadline)
      }),
    )
    this.#members.clear()
    this.#usage?.close()
    this.#usage = null
  }
}

/** Node hands a worker one connection at a time. If the worker dies before it takes one, Node never closes that connection. */
function closeLastConnectionAtExit({ process: child }: Worker): void {
  const send = child.send.bind(child) as (...args: readonly unknown[]) => boolean
  let last: { close(): unknown } | null = null
  child.send = (...args: readonly unknown[]) => {
    const [, handle] = args
    if (typeof handle === 'object' && handle && 'close' in handle) last = handle as { close(): unknown }
    return send(...args)
  }
  // If the worker has taken the connection, this handle is already closed.
  child.once('exit', () => last?.close())
}

const kill = ({ worker }: Member): void => void worker.process.kill('SIGKILL')
