import { decodeText } from './board-route.ts'

const { dataset } = document.documentElement

/** `theme.js` applies the choice when the page is loaded again. */
export function toggleTheme(): void {
  const isDark = dataset.theme === undefined ? matchMedia('(prefers-color-scheme: dark)').matches : dataset.theme === 'dark'
  dataset.theme = isDark ? 'light' : 'dark'
  keep('theme', dataset.theme)
}

/** Whether the screen has the width for which the style draws symbols as cards. */
export const isPhone = (): boolean => matchMedia('(max-width: 719px)').matches

/** Keeps a choice of the reader for the next visit. Without storage, it lasts until the page is closed. */
export function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value)
  } catch {
    // The browser forbids the storage.
  }
}

export function kept(name: string): string | null {
  try {
    return localStorage.getItem(name)
  } catch {
    return null
  }
}

/** The symbol of a card for the pages of others, which is in its path; null on the board. */
export function embeddedSymbol(): string | null {
  const [, symbol] = /\/embed\/([^/]+)$/.exec(location.pathname) ?? []
  return symbol === undefined ? null : decodeText(symbol)
}

/** The URL of the relay, which may be in a folder of its host. */
export const relayUrl = (): URL => new URL(embeddedSymbol() === null ? '.' : '..', location.origin + location.pathname)

/** Returns a setting that the server wrote into the page. */
export const pageSetting = (name: string): string => document.querySelector(`meta[name="${name}"]`)?.getAttribute('content') ?? ''
