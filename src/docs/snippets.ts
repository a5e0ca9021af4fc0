import { readFileSync } from 'node:fs'
import { closeCodes } from '../protocol/close-codes.ts'
import { quickStartLines } from '../protocol/routes.ts'

/** Origin of the URLs in all code to copy. The page at `/docs` replaces it with the origin of the page. */
export const ORIGIN = 'http://127.0.0.1:8080'

const [curl = '', wscat = '', browser = ''] = quickStartLines(ORIGIN.replace('http://', ''), 'AAPLc')

/** Reads a program. Programs are files, so that the tools of their languages can read them. */
export const program = (file: string): string => readFileSync(new URL(`./programs/${file}`, import.meta.url), 'utf8')

const followNote =
  'It prints NDJSON, continues after the position in its file, drops repetitions, proves by prev that nothing is missing, disconnects from a silent relay, and ends at a refusal that would be repeated. With STOCKTAPE_STAGE=sealed it prints sealed facts only. It obeys every rule of the conformance kit.'

/** Code to copy. Tests run it unchanged. */
export const snippets = [
  { id: 'curl', title: 'curl', description: 'Readable lines, one per message.', source: curl },
  { id: 'wscat', title: 'wscat', description: 'JSON messages over WebSocket.', source: wscat },
  { id: 'browser', title: 'A browser’s console', description: 'It resumes by itself.', source: browser },
  {
    id: 'typescript',
    title: 'TypeScript',
    description:
      'Node 22, Deno or Bun, with the tarball that npm run package makes in a clone. It reconnects, continues after the position in its file, proves that nothing is missing, reports retracts and gaps, and ends at a refusal that would be repeated.',
    source: program('bot.js'),
  },
  { id: 'python', title: 'Python', description: `3.8 or later; no package. ${followNote}`, source: program('follow.py') },
  { id: 'go', title: 'Go', description: `1.18 or later; the standard library. ${followNote}`, source: program('follow.go') },
] as const

/** A sentence that every document must contain. */
export const CAVEAT =
  'Presence of a record does not imply trading availability or eligibility; a reference value is not a price to trade at.'

/** The introduction of each document. */
export const serviceDescription = `A real-time feed of tokenized stocks: every on-chain event the moment it is pre-confirmed. Every pre-confirmation ends sealed or retracted, every event is published once on one numbered tape, and every gap is reported. Reconnect with the last id and continue after it. No account; a key only if the operator of this relay requires one.`

export const closeCodesText = `The close code says whether to reconnect: 40xx: do not reconnect before you have changed the request; 41xx: reconnect with backoff; 42xx: reconnect with your last position after bye.retry_ms (${Object.entries(
  closeCodes,
)
  .map(([reason, code]) => `${code} ${reason}`)
  .join(', ')}); the close reason is the word and the position.`
