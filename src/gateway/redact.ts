/** A part of a path that is shorter is a word that anything may hold; what is given to be known by is short at times. */
const MIN_CHARS = { path: 8, credential: 4 }

/** Takes out of a text whatever of these URLs is nobody else's business: where they lead, and the keys in them. */
export function createRedactor(urls: readonly string[]): (text: string) => string {
  const secrets = [...new Set(urls.flatMap(secretsIn))].sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((redacted, secret) => redacted.replaceAll(secret, '…'), text)
}

/** The same in every text of a value, names included; numbers stay what they are. */
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
    // A name without a dot may be any word.
    ...(/[.:]/.test(host) ? [host] : []),
    ...(/[.:]/.test(hostname) ? [hostname] : []),
    ...spellings(pathname.split('/'), MIN_CHARS.path),
    ...spellings([username, password, ...values], MIN_CHARS.credential),
  ]
}

/** Each part in every way of writing it. */
const spellings = (parts: readonly string[], minChars: number): readonly string[] =>
  parts
    .flatMap((part) => [
      part,
      decodeSafely(part),
      decodeSafely(part.replaceAll('+', ' ')),
      encodeURIComponent(decodeSafely(part)),
    ])
    .filter(({ length }) => length >= minChars)

function decodeSafely(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
