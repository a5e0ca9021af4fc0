/** Shorter parts of a path may be ordinary words. Credentials are redacted from a shorter length on. */
const MIN_CHARS = { path: 8, credential: 4 }

/** Removes the secrets of these URLs from a text: the hosts, and the keys in them. */
export function createRedactor(urls: readonly string[]): (text: string) => string {
  const secrets = [...new Set(urls.flatMap(secretsIn))].sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((redacted, secret) => redacted.replaceAll(secret, '…'), text)
}

/** Redacts every string of a value, property names included. */
export function redactDeep(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value)
  if (Array.isArray(value)) return value.map((one) => redactDeep(one, redact))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [redact(name), redactDeep(inner, redact)]))
}

function secretsIn(text: string): readonly string[] {
  const { href, host, hostname, username, password, pathname, search } = new URL(text)
  const values = search
    .slice(1)
    .split('&')
    .map((pair) => pair.slice(pair.indexOf('=') + 1))
  return [
    ...[text, href],
    // A host without a dot may be an ordinary word.
    ...(/[.:]/.test(host) ? [host] : []),
    ...(/[.:]/.test(hostname) ? [hostname] : []),
    ...spellings(pathname.split('/'), MIN_CHARS.path),
    ...spellings([username, password, ...values], MIN_CHARS.credential),
  ]
}

/** Each part in every encoding. */
const spellings = (parts: readonly string[], minChars: number): readonly string[] =>
  parts
    .flatMap((part) => [part, decodeSafely(part), decodeSafely(part.replaceAll('+', ' ')), encodeURIComponent(decodeSafely(part))])
    .filter(({ length }) => length >= minChars)

function decodeSafely(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
