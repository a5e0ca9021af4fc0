import { printableText } from '../../lib/text.ts'
import type { Colour, Paint } from '../terminal-colours.ts'
import type { Examination } from './examination.ts'
import type { Finding } from './finding.ts'

const looks: Readonly<Record<Finding['state'], readonly [sign: string, colour: Colour]>> = {
  ok: ['✓', 'green'],
  warn: ['!', 'yellow'],
  fail: ['✗', 'red'],
  skip: ['-', 'dim'],
}

const headings: Readonly<Record<string, string>> = { rpc: 'node', ws: 'socket', receipts: 'node for receipts', list: 'list' }

const NAME_WIDTH = 13
const ADVICE_INDENT = ' '.repeat(4 + 5 + NAME_WIDTH)

export function examinationText({ findings, verdict }: Examination, paint: Paint): string {
  const line = ({ state, message, advice }: Pick<Finding, 'state' | 'message' | 'advice'>, name: string): string => {
    const [sign, colour] = looks[state]
    const first = `  ${paint(colour, `${sign} ${state.padEnd(4)}`)} ${name.padEnd(NAME_WIDTH)}${printableText(message)}\n`
    return advice === undefined ? first : `${first}${ADVICE_INDENT}→ ${printableText(advice)}\n`
  }
  const groups = Map.groupBy(findings, ({ id, target }) => `${headings[roleOf(id)]}  ${target}`)
  const parts = [...groups].map(
    ([heading, group]) => `${heading}\n${group.map((finding) => line(finding, nameOf(finding.id))).join('')}`,
  )
  const { ok, message, advice } = verdict
  const state = !ok ? 'fail' : verdict.reason === 'ok' ? 'ok' : 'warn'
  const title = ok ? 'the relay can run on these' : 'the relay cannot run on these'
  parts.push(`${title}\n${line({ state, message, advice: advice ?? undefined }, 'source')}`)
  return parts.join('\n')
}

const roleOf = (id: string): string => id.slice(0, id.indexOf('.'))
const nameOf = (id: string): string => id.slice(id.indexOf('.') + 1).replaceAll('_', ' ')

const REFRESH_MS = 500
const CLEAR_LINE = '\r\u001b[K'

/** Shows the elapsed seconds in one line, on a terminal only. Returns a function that removes the line. */
export function showProgress(stream: { readonly isTTY?: boolean; write(text: string): unknown }, timeoutMs: number): () => void {
  if (!stream.isTTY) return () => {}
  const startedAt = performance.now()
  const show = () => {
    const seconds = Math.round((performance.now() - startedAt) / 1_000)
    stream.write(`${CLEAR_LINE}examining the upstreams, at most ${Math.ceil(timeoutMs / 1_000)} s: ${seconds} s`)
  }
  show()
  const timer = setInterval(show, REFRESH_MS)
  return () => {
    clearInterval(timer)
    stream.write(CLEAR_LINE)
  }
}
