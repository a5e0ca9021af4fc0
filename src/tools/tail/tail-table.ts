import { BoundedMap } from '../../lib/bounded-map.ts'
import { EXIT_INTERRUPTED } from '../../lib/exit-codes.ts'
import { printableText } from '../../lib/text.ts'
import { book, type StockState, type StreamItem, type StreamState, type Updates } from '../../sdk/client/index.ts'
import { type Paint, withColours } from '../terminal-colours.ts'
import { amountText } from './tail-lines.ts'

/** Least interval between two drawings of the screen. */
const DRAW_INTERVAL_MS = 100
/** Limit of the movements that are kept for the list below the table. */
const RECENT_BOUND = 200

const enterScreen = '\u001b[?1049h\u001b[?25l'
const leaveScreen = '\u001b[?25h\u001b[?1049l'
const home = '\u001b[H'
const clearToEndOfLine = '\u001b[K'
const clearBelow = '\u001b[J'

type Row = { readonly time: string; readonly text: string; readonly stage: string }

/** Shows a live table until the stream ends or q is pressed. Restores the terminal in any case. */
export async function runTailTable(stream: Updates<StreamItem>, onItem: (item: StreamItem) => void): Promise<void> {
  const { stdout, stdin } = process
  const stocks = book(undefined, { movements: 1 })
  const recent = new BoundedMap<string, Row>(RECENT_BOUND)
  let isDirty = true
  const draw = () => {
    if (!isDirty) return
    isDirty = false
    const size = { columns: stdout.columns || 80, rows: stdout.rows || 24 }
    const content = { stocks: stocks.all(), recent: [...recent.values()].reverse(), state: stream.state }
    const lines = tableLines(content, size, withColours)
    stdout.write(`${home}${lines.map((line) => `${line}${clearToEndOfLine}`).join('\r\n')}${clearBelow}`)
  }
  const markDirty = () => {
    isDirty = true
  }
  let isEnding = false
  const onKey = (key: Buffer) => {
    const isInterrupt = String(key) === '\u0003'
    // In raw mode Ctrl-C is a key. A second Ctrl-C ends the program at once.
    if (isInterrupt && isEnding) process.exit(EXIT_INTERRUPTED)
    if (!isInterrupt && !['q', 'Q'].includes(String(key))) return
    isEnding = true
    void stream.close()
  }
  const restore = () => {
    stdout.write(leaveScreen)
    if (stdin.isTTY) stdin.setRawMode(false)
  }
  process.on('exit', restore)
  stdout.write(enterScreen)
  if (stdin.isTTY) stdin.setRawMode(true)
  stdin.on('data', onKey)
  stdout.on('resize', markDirty)
  // The age of a NAV and the state of the connection change without a message.
  const second = setInterval(markDirty, 1_000)
  const timer = setInterval(draw, DRAW_INTERVAL_MS)
  try {
    for await (const item of stream) {
      stocks.apply(item)
      onItem(item)
      addTo(recent, item)
      markDirty()
    }
  } finally {
    clearInterval(second)
    clearInterval(timer)
    stdin.off('data', onKey)
    stdin.pause()
    stdout.off('resize', markDirty)
    process.off('exit', restore)
    restore()
  }
}

function addTo(recent: Map<string, Row>, item: StreamItem): void {
  if ('shares' in item && 'key' in item) {
    const { key, time, symbol, type, stage } = item
    recent.set(key, { time, stage, text: `${symbol.padEnd(8)} ${type.padEnd(9)} ${amountText(item)}` })
  }
  const setStage = (key: string, stage: string) => {
    const row = recent.get(key)
    if (row) recent.set(key, { ...row, stage })
  }
  if (item.type === 'retract') setStage(item.key, 'RETRACTED')
  if (item.type === 'seal') for (const key of item.keys) setStage(key, 'sealed')
}

type TableContent = { readonly stocks: readonly StockState[]; readonly recent: readonly Row[]; readonly state: StreamState }
type Size = { readonly columns: number; readonly rows: number }

/** Makes the lines of the screen: the table in at most half of them, then the newest movements. Cuts text that does not fit. */
export function tableLines({ stocks, recent, state }: TableContent, { columns, rows }: Size, paint: Paint): readonly string[] {
  const body = Math.max(0, rows - 4)
  const shown = [...stocks].sort((a, b) => (a.symbol < b.symbol ? -1 : 1)).slice(0, Math.max(1, Math.ceil(body / 2)))
  const hidden = stocks.length - shown.length
  const fit = (text: string) => printableText(text).slice(0, columns)
  const movements = recent.slice(0, Math.max(0, body - shown.length)).map(({ time, text, stage }) => {
    const line = fit(`${time.slice(11, 19)} ${stage.padEnd(13)} ${text}`)
    return stage === 'RETRACTED' ? paint('red', line) : line
  })
  return [
    paint('bold', fit(rowOf(headings))),
    ...shown.map((stock) => fit(rowOf(cellsOf(stock)))),
    paint('dim', fit(hidden > 0 ? `… ${hidden} more` : '')),
    ...movements,
    paint(state.phase === 'live' ? 'green' : 'red', fit(footerOf(state))),
  ].slice(0, rows)
}

const widths = [9, 12, 9, 22, 22, 9, 12]
const headings = ['symbol', 'NAV', 'state', 'quote', 'basis', 'session', 'paused']
const rowOf = (cells: readonly string[]): string =>
  cells.map((cell, index) => cell.slice(0, widths[index]).padEnd(widths[index] ?? 0)).join(' ')

function cellsOf({ symbol, nav, quote, session, paused }: StockState): readonly string[] {
  const basis = quote?.basis_bps == null ? '' : `${quote.basis_bps} bps ${quote.basis}`
  const price = quote === null ? '' : `${quote.price ?? quote.state} ${quote.venue.currency.symbol}`
  return [symbol, nav.price ?? '–', nav.frozen ? 'frozen' : nav.state, price, basis, session?.state ?? '', paused.join(' ')]
}

/** Makes the footer, which also says that a basis takes the currency of the pool as one dollar. */
const footerOf = ({ phase, transport, source, head, position, error, demo, rejected }: StreamState): string =>
  [
    phase === 'live' ? `live over ${transport}` : `${phase}: ${error?.message ?? ''}`,
    ...(rejected.length > 0 ? [`unknown: ${rejected.map(({ symbol }) => symbol).join(' ')}`] : []),
    `source ${source ?? '?'}`,
    `sealed ${head?.sealed ?? '?'}`,
    position ?? '',
    ...(demo ? ['built-in chain, nothing is real'] : []),
    'basis: the currency counts as 1 USD',
    'q quits',
  ].join(' · ')
