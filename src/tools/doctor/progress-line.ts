/** The part of a terminal's stream that shows progress. */
type ProgressStream = { readonly isTTY?: boolean; write(text: string): unknown }

const REFRESH_MS = 500
const CLEAR_LINE = '\r\u001b[K'

/** One line that counts the seconds, on a terminal only. Returns what removes it. */
export function showProgress(stream: ProgressStream, timeoutMs: number): () => void {
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
