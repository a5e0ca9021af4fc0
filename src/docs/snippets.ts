/** Code to copy. Tests run it unchanged. */

/** The page at `/docs` replaces it with its own origin. */
export const ORIGIN = 'http://127.0.0.1:8080'
const WS_ORIGIN = ORIGIN.replace('http', 'ws')

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

const typescript = `let since = 'now'

function listen(): void {
  const socket = new WebSocket(\`${WS_ORIGIN}/v1/ws?symbols=AAPLc&since=\${since}\`)
  const disconnect = () => socket.close()
  let silence = setTimeout(disconnect, 45_000)
  let retryMs = 1_000
  socket.onmessage = ({ data }) => {
    clearTimeout(silence)
    silence = setTimeout(disconnect, 45_000)
    const message = JSON.parse(data)
    since = message.id ?? since
    retryMs = message.retry_ms ?? retryMs
    if (message.type === 'transfer') console.log(message.time, message.symbol, message.amount, message.reference_value)
  }
  socket.onclose = ({ code }) => {
    clearTimeout(silence)
    // 40xx means: do not reconnect unchanged.
    if (code < 4000 || code >= 4100) setTimeout(listen, retryMs)
  }
}

listen()
`

const python = `import json, sys, time, urllib.error, urllib.request

since = "now"
while True:
    url = f"${ORIGIN}/v1/stream?symbols=AAPLc&format=ndjson&heartbeat=15&since={since}"
    try:
        with urllib.request.urlopen(url, timeout=45) as stream:
            for line in stream:
                message = json.loads(line)
                since = message.get("id") or since
                if message["type"] == "transfer":
                    print(message["time"], message["symbol"], message["amount"], message["reference_value"], flush=True)
    except urllib.error.HTTPError as refusal:
        print(refusal.read().decode(), file=sys.stderr)
        if refusal.code not in (429, 503):
            break
    except (OSError, ValueError) as failure:
        print(failure, file=sys.stderr)
    time.sleep(1)
`

const go = `package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

const url = "${ORIGIN}/v1/stream?symbols=AAPLc&format=ndjson&heartbeat=15&since="

func listen(since *string) error {
	response, err := http.Get(url + *since)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("refused: %s", response.Status)
	}
	silence := time.AfterFunc(45*time.Second, func() { response.Body.Close() })
	defer silence.Stop()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		silence.Reset(45 * time.Second)
		var message struct {
			Type, ID, Time, Symbol, Amount string
			ReferenceValue                 string \`json:"reference_value"\`
		}
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			return err
		}
		if message.ID != "" {
			*since = message.ID
		}
		if message.Type == "transfer" {
			fmt.Println(message.Time, message.Symbol, message.Amount, message.ReferenceValue)
		}
	}
	return lines.Err()
}

func main() {
	since := "now"
	for {
		if err := listen(&since); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		time.Sleep(time.Second)
	}
}
`

const resumeNote = 'It reconnects by itself, continues after the last id, and drops a connection that has gone silent.'

export const snippets: readonly Snippet[] = [
  { id: 'curl', title: 'curl', description: 'Readable lines, one per message.', source: curl },
  { id: 'wscat', title: 'wscat', description: 'JSON messages over WebSocket.', source: wscat },
  { id: 'browser', title: 'A browser’s console', description: 'It resumes by itself.', source: browser },
  {
    id: 'typescript',
    title: 'TypeScript',
    description: `Node 22, Deno, Bun or a browser; no package. ${resumeNote}`,
    source: typescript,
  },
  { id: 'python', title: 'Python', description: `3.8 or later; no package. ${resumeNote}`, source: python },
  { id: 'go', title: 'Go', description: `The standard library. ${resumeNote}`, source: go },
]
