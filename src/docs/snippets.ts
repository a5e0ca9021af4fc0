import { readFileSync } from 'node:fs'
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
