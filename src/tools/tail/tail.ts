import { once } from 'node:events'
import { type Command, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, UsageError } from '../../lib/exit-codes.ts'
import { printableText } from '../../lib/text.ts'
import {
  connect,
  type RelayClient,
  RelayError,
  StocktapeError,
  type StreamItem,
  type StreamState,
  type Updates,
} from '../../sdk/client/index.ts'
import { paintFor } from '../terminal-colours.ts'
import { readTailFlags, selectionOf, type TailRequest } from './tail-flags.ts'
import { TailLines } from './tail-lines.ts'
import { runTailTable } from './tail-table.ts'
import { TailTotals } from './tail-totals.ts'

const DEFAULT_URL = 'http://127.0.0.1:8080'

export const tail: Command = async (args) => {
  const request = readTailFlags(args)
  if (request.tui && !process.stdout.isTTY) throw new UsageError('--tui needs a terminal')
  const relay = openRelay(request)
  const reporter = new StateReporter()
  const stream = relay.updates(request.symbols, {
    ...selectionOf(request),
    onState: (state) => reporter.report(state, request.tui),
  })
  const ending = endOnSignals(stream)
  try {
    await follow(stream, request, ending)
    return EXIT_OK
  } catch (failure) {
    if (!(failure instanceof StocktapeError)) throw failure
    printWarning(adviceOf(failure))
    const isUsage = failure.code === 'bad_url' || (failure instanceof RelayError && failure.code < 4_000 && !reporter.wasLive)
    return isUsage ? EXIT_USAGE : EXIT_FAILED
  }
}

function openRelay({ url, key }: TailRequest): RelayClient {
  const base = url ?? process.env.STOCKTAPE_URL ?? DEFAULT_URL
  const apiKey = key ?? process.env.STOCKTAPE_KEY
  return connect(base, apiKey ? { key: apiKey } : {})
}

const advice: Readonly<Record<number | string, string>> = {
  401: 'the relay requires an API key: use --key or STOCKTAPE_KEY',
  unreachable: 'stocktape serve starts one.',
}

const adviceOf = ({ code, message }: StocktapeError): string =>
  code === 'unreachable' ? `${message} ${advice[code]}` : (advice[code] ?? message)

async function follow(stream: Updates<StreamItem>, request: TailRequest, ending: Ending): Promise<void> {
  const startedAt = performance.now()
  const totals = new TailTotals()
  if (request.tui) await runTailTable(stream, (item) => totals.add(item))
  else {
    const isTerminal = process.stdout.isTTY === true
    const lines = new TailLines(paintFor({ flag: request.color, isTerminal, env: process.env }))
    for await (const item of stream) {
      await print(request.json ? JSON.stringify(item) : lines.lineOf(item), ending.signal)
      totals.add(item)
    }
  }
  if (ending.isPipeClosed) return
  for (const line of totals.lines(performance.now() - startedAt)) printWarning(line)
  if (stream.position !== null) printWarning(`continue with: stocktape tail ${continuation(request, stream.position)}`)
}

function continuation({ symbols, since: _, ...flags }: TailRequest, position: string): string {
  const given = Object.entries({ ...flags, key: undefined, since: position }).flatMap(([name, value]) =>
    value === undefined ? [] : value === true ? [`--${name}`] : value === false ? [`--no-${name}`] : [`--${name}`, String(value)],
  )
  return [...symbols, ...given]
    .map((word) => (/^[\w.,:/%=+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ')
}

/** Reports changes of the connection on standard error. */
class StateReporter {
  #lastPhase: StreamState['phase'] | null = null
  #lostAt = 0
  #rejected = ''
  wasLive = false

  report({ phase, error, retryAt, position, transport, source, head, demo, rejected }: StreamState, isSilent = false): void {
    const isNew = phase !== this.#lastPhase
    this.#lastPhase = phase
    const warn = isSilent ? () => {} : printWarning
    const unknown = rejected.map(
      ({ symbol, suggest }) => `${symbol} is unknown${suggest.length > 0 ? `; did you mean ${suggest.join(', ')}?` : ''}`,
    )
    if (unknown.join() !== this.#rejected) for (const line of unknown) warn(line)
    this.#rejected = unknown.join()
    if (phase === 'waiting' && isNew) {
      this.#lostAt ||= performance.now()
      const waitMs = (retryAt?.getTime() ?? 0) - Date.now()
      warn(`${error?.message}; continuing at ${position ?? 'the present'} in ${Math.max(0, waitMs)} ms`)
    }
    if (phase !== 'live' || !isNew) return
    if (this.#lostAt > 0) warn(`live again after ${((performance.now() - this.#lostAt) / 1_000).toFixed(1)} s`)
    if (!this.wasLive)
      warn(
        `live over ${transport}, source ${source}, sealed ${head?.sealed ?? 'unknown'}, pending ${head?.pending ?? 'unknown'}${demo ? ', the built-in chain: nothing here is real' : ''}`,
      )
    this.#lostAt = 0
    this.wasLive = true
  }
}

type Ending = { isPipeClosed: boolean; readonly signal: AbortSignal }

/** Ends the stream at the first signal, or when the reader of the pipe leaves. A second signal ends the program at once. */
function endOnSignals(stream: Updates<StreamItem>): Ending {
  const abort = new AbortController()
  const ending = { isPipeClosed: false, signal: abort.signal }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      if (abort.signal.aborted) process.exit(EXIT_INTERRUPTED)
      abort.abort()
      void stream.close()
    })
  process.stdout.on('error', () => {
    ending.isPipeClosed = true
    void stream.close()
  })
  return ending
}

/** Prints a line. If the pipe is full, waits until it is read, its reader leaves or the program ends. */
async function print(line: string, signal: AbortSignal): Promise<void> {
  if (!process.stdout.write(`${line}\n`) && !signal.aborted) await once(process.stdout, 'drain', { signal }).catch(() => {})
}

const printWarning = (text: string): void => void process.stderr.write(`stocktape tail: ${printableText(text)}\n`)
