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

const python = `import json, os, sys, time, urllib.error, urllib.request

FILE = "AAPLc.position"
since = open(FILE).read() if os.path.exists(FILE) else "now"
retry_s = 1

while True:
    url = f"${ORIGIN}/v1/stream?symbols=AAPLc&format=ndjson&heartbeat=15&since={since}"
    try:
        with urllib.request.urlopen(url, timeout=45) as stream:
            for line in stream:
                message = json.loads(line)
                if message["type"] == "transfer":
                    print(message["time"], message["symbol"], message["amount"], message["reference_value"], flush=True)
                elif message["type"] == "retract":
                    print("did not happen:", message["key"], file=sys.stderr)
                elif message["type"] == "gap":
                    print("gap:", message["reason"], "from", message["from"], "to", message["to"], message["backfill"] or "", file=sys.stderr)
                elif message["type"] == "error":
                    print("error:", message["message"], file=sys.stderr)
                elif message["type"] == "bye":
                    retry_s = message["retry_ms"] / 1000
                since = message.get("id") or since
                # Saved after the message is handled: a crash repeats one, and loses none.
                with open(FILE + ".new", "w") as file:
                    file.write(since)
                os.replace(FILE + ".new", FILE)
    except urllib.error.HTTPError as refusal:
        print(refusal.read().decode(), file=sys.stderr)
        # 429 and 5xx pass. Every other refusal would come again.
        if refusal.code != 429 and refusal.code < 500:
            sys.exit(1)
    except (OSError, ValueError) as failure:
        print(failure, file=sys.stderr)
    time.sleep(retry_s)
`

const go = `package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const url = "${ORIGIN}/v1/stream?symbols=AAPLc&format=ndjson&heartbeat=15&since="
const file = "AAPLc.position"

type message struct {
	Type, ID, Time, Symbol, Amount, Key, Reason, From, To, Backfill, Message string
	ReferenceValue                                                          string \`json:"reference_value"\`
	RetryMs                                                                 int    \`json:"retry_ms"\`
}

func handle(m message) {
	switch m.Type {
	case "transfer":
		fmt.Println(m.Time, m.Symbol, m.Amount, m.ReferenceValue)
	case "retract":
		fmt.Fprintln(os.Stderr, "did not happen:", m.Key)
	case "gap":
		fmt.Fprintln(os.Stderr, "gap:", m.Reason, "from", m.From, "to", m.To, m.Backfill)
	case "error":
		fmt.Fprintln(os.Stderr, "error:", m.Message)
	}
}

func listen(since *string, retry *time.Duration) error {
	response, err := http.Get(url + *since)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		fmt.Fprintln(os.Stderr, string(body))
		// 429 and 5xx pass. Every other refusal would come again.
		if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < 500 {
			os.Exit(1)
		}
		return nil
	}
	silence := time.AfterFunc(45*time.Second, func() { response.Body.Close() })
	defer silence.Stop()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		silence.Reset(45 * time.Second)
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		handle(m)
		if m.RetryMs > 0 {
			*retry = time.Duration(m.RetryMs) * time.Millisecond
		}
		if m.ID == "" {
			continue
		}
		*since = m.ID
		// Saved after the message is handled: a crash repeats one, and loses none.
		if err := os.WriteFile(file+".new", []byte(m.ID), 0o644); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	since, retry := "now", time.Second
	if saved, err := os.ReadFile(file); err == nil {
		since = string(saved)
	}
	for {
		if err := listen(&since, &retry); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		time.Sleep(retry)
	}
}
`

const resumeNote =
  'It reconnects, continues after the position in its file, reports retracts, gaps and errors, and ends at a refusal that would come again.'

export const snippets: readonly Snippet[] = [
  { id: 'curl', title: 'curl', description: 'Readable lines, one per message.', source: curl },
  { id: 'wscat', title: 'wscat', description: 'JSON messages over WebSocket.', source: wscat },
  { id: 'browser', title: 'A browser’s console', description: 'It resumes by itself.', source: browser },
  { id: 'typescript', title: 'TypeScript', description: `Node 22, Deno or Bun; no package. ${resumeNote}`, source: typescript },
  { id: 'python', title: 'Python', description: `3.8 or later; no package. ${resumeNote}`, source: python },
  { id: 'go', title: 'Go', description: `The standard library. ${resumeNote}`, source: go },
]
