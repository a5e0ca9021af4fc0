import { readFileSync } from 'node:fs'
import { quickStartLines } from '../protocol/routes.ts'

/** Code to copy. Tests run it unchanged. */

/** The page at `/docs` replaces it with its own origin. */
export const ORIGIN = 'http://127.0.0.1:8080'

export type Snippet = {
  readonly id: 'curl' | 'wscat' | 'browser' | 'typescript' | 'python' | 'go'
  readonly title: string
  readonly description: string
  readonly source: string
}

const [curl = '', wscat = '', browser = ''] = quickStartLines(ORIGIN.replace('http://', ''), 'AAPLc')

/** The programs are files, so that their own tools read them too. */
export const program = (file: string): string => readFileSync(new URL(`./programs/${file}`, import.meta.url), 'utf8')

const followNote =
  'It prints NDJSON, continues after the position in its file, drops repetitions, proves by prev that nothing is missing, leaves a silent relay, and ends at a refusal that would come again. It keeps every rule of the conformance kit.'

export const snippets: readonly Snippet[] = [
  { id: 'curl', title: 'curl', description: 'Readable lines, one per message.', source: curl },
  { id: 'wscat', title: 'wscat', description: 'JSON messages over WebSocket.', source: wscat },
  { id: 'browser', title: 'A browser’s console', description: 'It resumes by itself.', source: browser },
  {
    id: 'typescript',
    title: 'TypeScript',
    description:
      'Node 22, Deno or Bun; npm install stocktape. It reconnects, continues after the position in its file, proves that nothing is missing, reports retracts and gaps, and ends at a refusal that would come again.',
    source: program('bot.js'),
  },
  { id: 'python', title: 'Python', description: `3.8 or later; no package. ${followNote}`, source: program('follow.py') },
  { id: 'go', title: 'Go', description: `1.18 or later; the standard library. ${followNote}`, source: program('follow.go') },
]
