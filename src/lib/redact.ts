/** Least lengths of a secret in a URL: a shorter part may be an ordinary word. */
const MIN_CHARS = { path: 8, credential: 4 }

/** Returns a function that removes the hosts, API keys and logins of these URLs from a text, also if they are escaped in it. */
export function createRedactor(urls: readonly string[]): (text: string) => string {
  const secrets = [...new Set(urls.flatMap(secretsIn))].sort((a, b) => b.length - a.length)
  if (secrets.length === 0) return (text) => text
  const pattern = new RegExp(secrets.map((secret) => [...secret].map(anySpellingOf).join('')).join('|'), 'giu')
  return (text) => text.replace(pattern, '…')
}

/**
 * Returns a pattern for a character in plain form, percent-encoded once or several times, or escaped as in JSON, a string or
 * HTML. Each repeat in it has a limit: otherwise the time for many backslashes would grow with the square of their number.
 */
function anySpellingOf(character: string): string {
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  const itself = `\\u{${hex}}`
  const percentEncoded = [...Buffer.from(character)].map((byte) => `%(?:25){0,4}${byte.toString(16).padStart(2, '0')}`).join('')
  const isSign = /[^\w\s]/.test(character)
  return `(?:${[
    itself,
    percentEncoded,
    `\\\\{1,8}(?:u0{0,4}|x|u\\{0{0,4})${hex}\\}?`,
    `&#(?:x0{0,6}${hex}|0{0,6}${code});?`,
    ...(character === ' ' ? ['\\+'] : []),
    ...(isSign ? [`\\\\{1,8}${itself}`] : []),
  ].join('|')})`
}

/** Redacts all texts in a value, and the names of properties. */
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
    // A host without a dot or a colon may be an ordinary word.
    ...(/[.:]/.test(host) ? [host] : []),
    ...(/[.:]/.test(hostname) ? [hostname] : []),
    ...decodedParts(pathname.split('/'), MIN_CHARS.path),
    ...decodedParts([username, password, ...values], MIN_CHARS.credential),
    ...(username || password ? basicCredentials(`${decodeSafely(username)}:${decodeSafely(password)}`) : []),
  ]
}

/** Returns a login as a header for Basic authorization contains it, in both alphabets of base64, and without padding. */
const basicCredentials = (login: string): readonly string[] => {
  const bytes = Buffer.from(login)
  return [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url')]
}

const decodedParts = (parts: readonly string[], minChars: number): readonly string[] =>
  parts
    .flatMap((part) => [part, decodeSafely(part), decodeSafely(part.replaceAll('+', ' '))])
    .filter(({ length }) => length >= minChars)

function decodeSafely(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
