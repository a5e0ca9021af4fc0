const STORED = 'stocktape key'

/** The API key of this tab; null without one. A page without storage forgets it when it is loaded again. */
let key: string | null = null

/** Takes the API key out of the page's URL, so that neither a link nor the history of the browser has it. */
export function takePageKey(): void {
  const url = new URL(location.href)
  const [, inHash] = /^#key=(.*)/.exec(url.hash) ?? []
  key = url.searchParams.get('key') ?? (inHash === undefined ? null : decodeURIComponent(inHash))
  try {
    if (key === null) key = sessionStorage.getItem(STORED)
    else sessionStorage.setItem(STORED, key)
  } catch {
    // The browser forbids the storage.
  }
  url.searchParams.delete('key')
  if (inHash !== undefined) url.hash = ''
  if (url.href !== location.href) history.replaceState(null, '', url)
}

/** Keeps a key that the reader typed. Returns whether it is still there when the page is loaded again. */
export function keepPageKey(typed: string): boolean {
  try {
    sessionStorage.setItem(STORED, typed)
    return true
  } catch {
    return false
  }
}

export const pageKey = (): string | null => key
