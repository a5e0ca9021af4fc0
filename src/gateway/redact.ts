/** A part of a path that is shorter is a word that anything may hold; what is given to be known by is short at times. */
const LEAST_CHARS = { path: 8, given: 4 }

/** Takes out of a text whatever of these URLs is nobody else's business: where they lead, and the keys in them. */
export function hiding(urls: readonly string[]): (text: string) => string {
  const secrets = [...new Set(urls.flatMap(partsOf))].sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, '…'), text)
}

/** The same in every text of a value, names included; numbers stay what they are. */
export function hidden(value: unknown, hide: (text: string) => string): unknown {
  if (typeof value === 'string') return hide(value)
  if (Array.isArray(value)) return value.map((one) => hidden(one, hide))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [hide(name), hidden(inner, hide)]))
}

function partsOf(text: string): readonly string[] {
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
    ...spelt(pathname.split('/'), LEAST_CHARS.path),
    ...spelt([username, password, ...values], LEAST_CHARS.given),
  ]
}

/** Each part in every way of writing it. */
const spelt = (parts: readonly string[], least: number): readonly string[] =>
  parts
    .flatMap((part) => [
      part,
      unescaped(part),
      unescaped(part.replaceAll('+', ' ')),
      encodeURIComponent(unescaped(part)),
    ])
    .filter(({ length }) => length >= least)

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
