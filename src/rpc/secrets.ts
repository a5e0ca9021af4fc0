/** A part of a URL shorter than this is a word that anything may hold. */
const LEAST_CHARS = 8

/** Takes out of a text whatever of these URLs is nobody else's business: where they lead, and the keys in them. */
export function hiding(urls: readonly string[]): (text: string) => string {
  const secrets = [...new Set(urls.flatMap(partsOf))].sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, '…'), text)
}

function partsOf(text: string): readonly string[] {
  const url = new URL(text)
  const { href, host, hostname, username, password, pathname, searchParams } = url
  const parts = [username, password, ...pathname.split('/'), ...searchParams.values()].flatMap((part) => [
    part,
    unescaped(part),
  ])
  return [text, href, host, hostname, ...parts.filter((part) => part.length >= LEAST_CHARS)]
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
