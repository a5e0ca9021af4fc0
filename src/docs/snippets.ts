import { readFileSync } from 'node:fs'

/** Code to copy. Tests run it unchanged. */

/** The page at `/docs` replaces it with its own origin. */
export const ORIGIN = 'http://127.0.0.1:8080'

/** The first three lines that a new user needs: text, WebSocket, browser. */
export const quickStartLines = (host: string, symbol: string): readonly string[] => [
  `curl -N http://${host}/v1/tail/${symbol}`,
  `npx wscat -c 'ws://${host}/v1/ws?symbols=${symbol}'`,
  `new EventSource('http://${host}/v1/stream/${symbol}').onmessage = (message) => console.log(JSON.parse(message.data))`,
]

export type Snippet = {
  readonly id: 'curl' | 'wscat' | 'browser' | 'typescript' | 'python' | 'go'
  readonly title: string
  readonly description: string
  readonly source: string
}

const [curl = '', wscat = '', browser = ''] = quickStartLines(ORIGIN.replace('http://', ''), 'AAPLc')

const typescript = `import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

const file = 'AAPLc.position'
let since = existsSync(file) ? readFileSync(file, 'utf8') : 'now'
let retryMs = 1_000

function handle(line: string): void {
  const message = JSON.parse(line)
  if (message.type === 'transfer') console.log(message.time, message.symbol, message.amount, message.reference_value)
  if (message.type === 'retract') console.error('did not happen:', message.key)
  if (message.type === 'gap') console.error('gap:', message.reason, 'from', message.from, 'to', message.to, message.backfill ?? '')
  if (message.type === 'error') console.error('error:', message.message)
  if (message.type === 'bye') retryMs = message.retry_ms
  since = message.id ?? since
}

async function listen(): Promise<void> {
  const abort = new AbortController()
  let silence = setTimeout(() => abort.abort(), 45_000)
  try {
    const url = \`${ORIGIN}/v1/stream?symbols=AAPLc&format=ndjson&heartbeat=15&since=\${since}\`
    const response = await fetch(url, { signal: abort.signal })
    if (response.status !== 200 || response.body === null) {
      console.error(await response.text())
      // 429 and 5xx pass. Every other refusal would come again.
      if (response.status !== 429 && response.status < 500) process.exit(1)
      return
    }
    let rest = ''
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      clearTimeout(silence)
      silence = setTimeout(() => abort.abort(), 45_000)
      const lines = (rest + text).split('\\n')
      rest = lines.pop() ?? ''
      lines.forEach(handle)
      // Saved after the messages are handled: a crash repeats some, and loses none.
      writeFileSync(file + '.new', since)
      renameSync(file + '.new', file)
    }
  } finally {
    clearTimeout(silence)
  }
}

for (;;) {
  await listen().catch((failure) => console.error(String(failure)))
  await new Promise((resolve) => setTimeout(resolve, retryMs))
}
`

/** The programs are files, so that their own tools read them too. */
const program = (file: string): string => readFileSync(new URL(`./programs/${file}`, import.meta.url), 'utf8')

const resumeNote =
  'It reconnects, continues after the position in its file, reports retracts, gaps and errors, and ends at a refusal that would come again.'

const followNote =
  'It prints NDJSON, continues after the position in its file, drops repetitions, proves by prev that nothing is missing, leaves a silent relay, and ends at a refusal that would come again. It keeps every rule of the conformance kit.'

export const snippets: readonly Snippet[] = [
  { id: 'curl', title: 'curl', description: 'Readable lines, one per message.', source: curl },
  { id: 'wscat', title: 'wscat', description: 'JSON messages over WebSocket.', source: wscat },
  { id: 'browser', title: 'A browser’s console', description: 'It resumes by itself.', source: browser },
  { id: 'typescript', title: 'TypeScript', description: `Node 22, Deno or Bun; no package. ${resumeNote}`, source: typescript },
  { id: 'python', title: 'Python', description: `3.8 or later; no package. ${followNote}`, source: program('follow.py') },
  { id: 'go', title: 'Go', description: `1.18 or later; the standard library. ${followNote}`, source: program('follow.go') },
]
